//! A task with an input, and agents who can pay for pieces of it.

use frame_support::{assert_ok, dispatch::DispatchResult, traits::fungible::Mutate};
use surety_pallet_test_kit::MockOutcome;
use surety_proofs::{SegmentOpening, content_hash};

use crate::*;

/// What the agent of every provider starts with.
pub const AGENT_MONEY: Balance = 1_000;

/// The task's input: three pieces.
pub fn input() -> Vec<u8> {
    (0..2_500u32).map(|at| at as u8).collect()
}

/// Lets the task have its input, and agents money.
pub fn post_input() {
    MockOutcome::set_input(TASK, (content_hash(&input()), 2_500));
    for stash in 1..=STASHES {
        assert_ok!(Balances::mint_into(&agent_of(stash), AGENT_MONEY));
    }
}

/// The stash's agent demands a piece.
pub fn demand_input(stash: AccountId, segment: u32) -> DispatchResult {
    send(stash, ResultsCall::demand_input { task: TASK, segment })
}

/// An account supplies a piece of these bytes.
pub fn supply_input(by: AccountId, bytes: &[u8], segment: u32) -> DispatchResult {
    let opening = SegmentOpening::new(bytes, segment).unwrap();
    send_as(by, ResultsCall::supply_input { task: TASK, opening })
}

/// Which piece of the input is demanded now.
pub fn demanded_input() -> Option<u32> {
    Some(round()?.input_demand?.segment)
}
