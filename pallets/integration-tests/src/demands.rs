//! Demands of what providers do not serve, and showing it.

use frame_support::{assert_ok, dispatch::DispatchResult, traits::fungible::Mutate};
use surety_pallet_test_kit::MockOutcome;
use surety_proofs::{PART_BYTES, PART_SEGMENTS, PartOpening};
use surety_types::{
    model::Operation,
    trust::{Content, ContentPart, DemandedParts},
};

use crate::*;

/// The task's client.
pub const CLIENT: AccountId = MockOutcome::CLIENT;
/// What a part costs that is demanded.
pub const PART_PRICE: Balance = SUPPLY_PRICE * PART_SEGMENTS as Balance;

/// What the bytes of this cost that a client has shown.
pub fn price(shown: &[u8]) -> Balance {
    PART_PRICE * shown.len() as Balance / Balance::from(PART_BYTES)
}

/// The same of an auditor.
pub fn half_price(shown: &[u8]) -> Balance {
    price(shown) / 2
}

/// Lets the client, and agents of verifiers, have money.
pub fn endow_demanders() {
    for account in verifiers().map(agent_of).chain([CLIENT]) {
        assert_ok!(Balances::mint_into(&account, MONEY));
    }
}

/// Has the task be one of generation, of which auditors are shown the output.
pub fn generates() {
    Rounds::<Test>::mutate(TASK, |round| {
        round.as_mut().unwrap().terms.operation = Operation::Generate;
    });
}

/// These parts of a provider's output.
pub fn of_output(parts: impl IntoIterator<Item = u32>) -> DemandedParts {
    let content = Content::Output;
    DemandedParts::truncate_from(
        parts
            .into_iter()
            .map(|part| ContentPart { content, part })
            .collect(),
    )
}

/// These parts of the task's input.
pub fn of_input(parts: impl IntoIterator<Item = u32>) -> DemandedParts {
    let content = Content::Input;
    DemandedParts::truncate_from(
        parts
            .into_iter()
            .map(|part| ContentPart { content, part })
            .collect(),
    )
}

/// An account demands after the reveal.
pub fn demand(by: AccountId, provider: AccountId, parts: DemandedParts) -> DispatchResult {
    let call = ResultsCall::demand {
        task: TASK,
        provider,
        parts,
        proof: None,
    };
    send_as(by, call)
}

/// A verifier that drew itself demands before the reveal.
pub fn demand_unserved(verifier: AccountId, provider: AccountId, parts: DemandedParts) -> DispatchResult {
    let agent = agent_of(verifier);
    let call = ResultsCall::demand {
        task: TASK,
        provider,
        parts,
        proof: Some(proof_of(agent, &input_of(provider), 0)),
    };
    send_as(agent, call)
}

/// The stash's agent shows a part of these bytes.
pub fn show(provider: AccountId, content: Content, bytes: &[u8], part: u32) -> DispatchResult {
    let call = ResultsCall::supply {
        task: TASK,
        content,
        bytes: bytes.len() as u32,
        opening: PartOpening::new(bytes, part).unwrap(),
    };
    send(provider, call)
}

/// It shows the output of this result.
pub fn show_output(provider: AccountId, result: u8) -> DispatchResult {
    show(provider, Content::Output, &output(result), 0)
}
