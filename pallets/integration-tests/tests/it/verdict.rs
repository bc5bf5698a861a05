//! Who was right.

use surety_pallet_test_kit::MockStake;
use surety_types::task::{FailureReason, Verdict};

use surety_pallet_integration_tests::*;

/// Plays a round of `redundancy`: who is listed commits, and reveals unless it stands in `silent`. Whoever
/// gets into a dispute plays it.
fn play(redundancy: u32, results: &[(AccountId, u8)], silent: &[AccountId]) -> Verdict<AccountId> {
    play_with(Model::Exact, redundancy, results, silent)
}

fn play_with(
    model: Model,
    redundancy: u32,
    results: &[(AccountId, u8)],
    silent: &[AccountId],
) -> Verdict<AccountId> {
    let mut verdict = None;
    TestExt::new().model(model).round_of(redundancy).execute_with(|| {
        all_commit(results);
        while phase().is_some_and(|(name, _)| matches!(name, PhaseName::Committing | PhaseName::Auditing)) {
            pass(1);
        }
        let shown: Vec<_> = results
            .iter()
            .copied()
            .filter(|(stash, _)| !silent.contains(stash))
            .collect();
        if phase().is_some_and(|(name, _)| name == PhaseName::Revealing) {
            all_reveal(&shown);
        }
        while phase().is_some_and(|(name, _)| name == PhaseName::Revealing) {
            pass(1);
        }
        for _ in 0..redundancy {
            play_out(results);
            pass(2);
        }
        pass(OPENING_WINDOW + 3);
        verdict = decision();
        assert_eq!(phase(), None);
        pass(DEFERRAL);
        assert_eq!(MockStake::locked_in_all(), 0);

        let announced: Vec<_> = events()
            .into_iter()
            .filter_map(|event| match event {
                RuntimeEvent::Results(ResultsEvent::VerdictReached { task: TASK, verdict }) => Some(verdict),
                _ => None,
            })
            .collect();
        assert_eq!(announced.last(), verdict.as_ref());
    });
    verdict.unwrap()
}

#[test]
fn one_provider_decides_alone() {
    assert_eq!(play(1, &[(1, 9)], &[]), agreed(9, &[1], &[], &[]));
}

#[test]
fn equal_results_win_together() {
    assert_eq!(
        play(3, &[(1, 9), (2, 9), (3, 9)], &[]),
        agreed(9, &[1, 2, 3], &[], &[])
    );
}

#[test]
fn the_minority_is_named() {
    assert_eq!(
        play(3, &[(1, 9), (2, 8), (3, 9)], &[]),
        agreed(9, &[1, 3], &[2], &[])
    );
    let results = [(1, 7), (2, 9), (3, 9), (4, 8), (5, 9)];
    assert_eq!(play(5, &results, &[]), agreed(9, &[2, 3, 5], &[1, 4], &[]));
}

#[test]
fn who_does_not_commit_is_absent() {
    assert_eq!(play(3, &[(1, 9), (3, 9)], &[]), agreed(9, &[1, 3], &[], &[2]));
}

#[test]
fn who_does_not_reveal_is_absent() {
    assert_eq!(
        play(3, &[(1, 9), (2, 9), (3, 9)], &[2]),
        agreed(9, &[1, 3], &[], &[2])
    );
}

#[test]
fn wrong_silent_and_missing_members_are_told_apart() {
    let results = [(1, 9), (2, 8), (3, 9), (4, 9), (5, 9), (6, 9)];
    assert_eq!(play(7, &results, &[4]), agreed(9, &[1, 3, 5, 6], &[2], &[4, 7]));
}

#[test]
fn half_is_no_majority_where_no_referee_can_say_who_is_right() {
    let no_agreement = Verdict::Failed(FailureReason::NoAgreement);
    let play = |redundancy, results| play_with(Model::Native, redundancy, results, &[]);
    assert_eq!(play(2, &[(1, 9), (2, 8)]), no_agreement);
    assert_eq!(play(4, &[(1, 9), (2, 9), (3, 8), (4, 8)]), no_agreement);
}

#[test]
fn half_or_fewer_win_when_the_others_were_proven_wrong() {
    assert_eq!(play(2, &[(1, 9), (2, 8)], &[]), agreed(9, &[1], &[2], &[]));
    let even = [(1, 9), (2, 9), (3, 8), (4, 8)];
    assert_eq!(play(4, &even, &[]), agreed(9, &[1, 2], &[3, 4], &[]));
    let colluding = [(1, 8), (2, 8), (3, 8), (4, 8), (5, 9)];
    assert_eq!(play(5, &colluding, &[]), agreed(9, &[5], &[1, 2, 3, 4], &[]));
}

#[test]
fn who_stays_silent_still_counts() {
    // One of three is proven wrong, one is silent: one of the two that are left is no majority.
    let no_agreement = Verdict::Failed(FailureReason::NoAgreement);
    assert_eq!(play(3, &[(1, 9), (2, 8)], &[]), no_agreement);
}

#[test]
fn a_majority_is_of_the_redundancy_and_not_of_those_who_revealed() {
    let results = [(1, 9), (2, 9), (3, 9), (4, 9), (5, 9)];
    assert_eq!(
        play(5, &results, &[3, 4, 5]),
        Verdict::Failed(FailureReason::NoAgreement)
    );
}

#[test]
fn a_round_in_which_nobody_reveals_fails() {
    assert_eq!(
        play(1, &[(1, 9)], &[1]),
        Verdict::Failed(FailureReason::NoAgreement)
    );
}

#[test]
fn too_few_commitments_fail_the_task() {
    let not_enough = Verdict::Failed(FailureReason::NotEnoughResults);
    assert_eq!(play(1, &[], &[]), not_enough);
    assert_eq!(play(3, &[(2, 9)], &[]), not_enough);
    assert_eq!(play(4, &[(1, 9), (2, 9)], &[]), not_enough);
}
