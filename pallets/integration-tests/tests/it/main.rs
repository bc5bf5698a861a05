//! Rounds from their first commitment to their last slash.

#![allow(clippy::unwrap_used)]

mod audit_pay;
mod audits;
mod challenges;
mod claimed;
mod commit;
mod committee;
mod committee_draws;
mod committee_electorate;
mod committee_hostile;
mod committee_pay;
mod correlated;
mod data;
mod disputes;
mod equivocation;
mod finders;
mod honesty;
mod hostile;
mod inputs;
mod items;
mod late;
mod leaves;
mod machine;
mod migrations;
mod open;
mod openings;
mod pursuit;
mod referred;
mod replacement;
mod reveal;
mod security;
mod shields;
mod showing;
mod slashes;
mod threats;
mod time;
mod try_state;
mod try_state_committees;
mod unserved;
mod verdict;

use surety_pallet_integration_tests::*;

/// A round of stashes 1 and up that have revealed these results, one each, with audits announced on the way.
fn revealed_with(audits: &[(AccountId, AccountId, u8)], results: &[u8]) {
    let results: Vec<_> = (1..).zip(results.iter().copied()).collect();
    all_commit(&results);
    for (verifier, provider, result) in audits {
        assert_eq!(announce(*verifier, *provider, *result), Ok(()));
    }
    pass(AUDIT_WINDOW + 1);
    all_reveal(&results);
    assert_eq!(phase().map(|(name, _)| name), Some(PhaseName::Challengeable));
}

/// Stash 2 says what stash 1 has committed to, with its salt.
fn copied_opening() -> ResultsCall {
    ResultsCall::reveal {
        task: TASK,
        provider: 2,
        claim: claim(9),
        salt: salt_of(1),
    }
}

fn revealed(results: &[u8]) {
    revealed_with(&[], results);
}

/// Runs a test after [`revealed`].
fn after(results: &[u8], test: impl FnOnce()) {
    let redundancy = results.len() as u32;
    TestExt::new().round_of(redundancy).execute_with(|| {
        revealed(results);
        test();
    });
}
