//! The checker notices what it should.

use frame_support::assert_ok;
use surety_types::task::{FailureReason, MemberProgress, ResultClaim, RoundPhase, Verdict};

use crate::{mock::*, Pallet, RoundOf, Rounds};

/// Corrupts the round that `prepare` leaves, and expects the checker to say `id`.
#[track_caller]
fn assert_noticed(id: &str, prepare: impl FnOnce(), corrupt: impl FnOnce(&mut RoundOf<Test>)) {
    TestExt::new().round_of(3).build().execute_with(|| {
        prepare();
        assert_ok!(Pallet::<Test>::do_try_state());
        Rounds::<Test>::mutate(TASK, |round| corrupt(round.as_mut().unwrap()));
        let noticed = Pallet::<Test>::do_try_state();
        assert!(
            matches!(noticed, Err(sp_runtime::DispatchError::Other(text)) if text.starts_with(id)),
            "{noticed:?}"
        );
    });
}

fn fresh() {}

fn all_committed() {
    all_commit(&[(1, 9), (2, 9), (3, 8)]);
}

fn revealing() {
    all_committed();
    pass(AUDIT_WINDOW + 1);
}

fn challengeable() {
    revealing();
    all_reveal(&[(1, 9), (2, 9), (3, 8)]);
}

#[test]
fn an_empty_or_short_round_is_noticed() {
    assert_noticed("TRUST-1", fresh, |round| round.members.clear());
    assert_noticed("TRUST-1", fresh, |round| {
        round.members.pop();
    });
    assert_noticed("TRUST-1", fresh, |round| round.redundancy = 4);
}

#[test]
fn a_provider_on_a_round_twice_is_noticed() {
    assert_noticed("TRUST-1", fresh, |round| round.members[2].provider = 1);
    assert_noticed("TRUST-1", fresh, |round| round.dropped.try_push(2).unwrap());
}

#[test]
fn progress_that_does_not_fit_the_phase_is_noticed() {
    assert_noticed("TRUST-2", fresh, |round| {
        round.members[0].progress = MemberProgress::Revealed(claim(9));
    });
    assert_noticed("TRUST-2", all_committed, |round| {
        round.members[0].progress = MemberProgress::Revealed(claim(9));
    });
}

#[test]
fn a_phase_that_should_have_ended_is_noticed() {
    assert_noticed("TRUST-2", all_committed, |round| {
        round.phase = RoundPhase::Committing { until: 9 }
    });
    assert_noticed("TRUST-2", challengeable, |round| {
        round.phase = RoundPhase::Revealing { until: 9 }
    });
}

#[test]
fn a_round_that_went_on_without_a_quorum_is_noticed() {
    assert_noticed("TRUST-2", fresh, |round| {
        round.phase = RoundPhase::Auditing { until: 9 }
    });
    assert_noticed("TRUST-2", revealing, |round| {
        round.members[0].progress = MemberProgress::Working;
        round.members[1].progress = MemberProgress::Working;
    });
}

#[test]
fn a_verdict_out_of_nowhere_is_noticed() {
    let verdict = Verdict::Failed(FailureReason::NoAgreement);
    assert_noticed("TRUST-3", challengeable, |round| {
        round.phase = RoundPhase::Challengeable { until: 99, verdict };
    });
    assert_noticed("TRUST-3", challengeable, |round| {
        round.members[0].progress = MemberProgress::Revealed(claim(8));
    });
}

#[test]
fn a_claim_of_too_many_units_is_noticed() {
    assert_noticed("TRUST-4", revealing, |round| {
        let units = UNITS_MAX + 1;
        round.members[0].progress = MemberProgress::Revealed(ResultClaim { units, ..claim(9) });
    });
}
