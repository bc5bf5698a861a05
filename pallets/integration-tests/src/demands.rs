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

fn parts_of(content: Content, parts: impl IntoIterator<Item = u32>) -> DemandedParts {
    let parts = parts.into_iter().map(|part| ContentPart { content, part });
    DemandedParts::truncate_from(parts.collect())
}

/// These parts of a provider's output.
pub fn of_output(parts: impl IntoIterator<Item = u32>) -> DemandedParts {
    parts_of(Content::Output, parts)
}

/// These parts of the task's input.
pub fn of_input(parts: impl IntoIterator<Item = u32>) -> DemandedParts {
    parts_of(Content::Input, parts)
}

/// These parts of the leaves of a provider's trace.
pub fn of_leaves(parts: impl IntoIterator<Item = u32>) -> DemandedParts {
    parts_of(Content::Leaves, parts)
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

/// The leaves of the trace of whoever has this result, as they are shown.
pub fn leaves(result: u8) -> Vec<u8> {
    trace_leaves(result).iter().flat_map(|leaf| leaf.0).collect()
}

/// The stash's agent shows the leaves of the trace of this result.
pub fn show_leaves(provider: AccountId, result: u8) -> DispatchResult {
    let leaves = leaves(result);
    let call = ResultsCall::supply {
        task: TASK,
        content: Content::Leaves,
        bytes: leaves.len() as u32,
        opening: PartOpening::of_leaves(&leaves, 0).unwrap(),
    };
    send(provider, call)
}

/// A verifier that has sealed an item demands the leaves of its provider's trace.
pub fn demand_leaves(verifier: AccountId, provider: AccountId) -> DispatchResult {
    demand(agent_of(verifier), provider, of_leaves([0]))
}
