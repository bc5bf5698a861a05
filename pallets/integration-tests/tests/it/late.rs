//! A bad line is no lie: what is opened late costs pay, and silence alone costs stake.

use frame_support::{
    assert_noop, assert_ok,
    pallet_prelude::{InvalidTransaction, TransactionValidityError},
};
use sp_runtime::DispatchError;
use surety_pallet_test_kit::{MockOutcome, MockStake};
use surety_types::{
    task::{FailureReason, MemberProgress, RoundPhase, Verdict},
    traits::{Jail, TaskTrust},
    trust::{AuditState, FaultKind},
};

use super::revealed_with;
use surety_pallet_integration_tests::*;

const VERIFIER: AccountId = FIRST_VERIFIER;

/// A round of three that have committed to these results; the reveal window is over, and those listed have
/// revealed.
fn late(results: &[u8], in_time: &[AccountId], test: impl FnOnce()) {
    late_with(&[], results, in_time, test);
}

/// The same with verifiers that have announced audits of providers, with results of their own.
fn late_with(
    audits: &[(AccountId, AccountId, u8)],
    results: &[u8],
    in_time: &[AccountId],
    test: impl FnOnce(),
) {
    TestExt::new().round_of(results.len() as u32).execute_with(|| {
        let results: Vec<_> = (1..).zip(results.iter().copied()).collect();
        all_commit(&results);
        for (verifier, provider, result) in audits {
            assert_ok!(announce(*verifier, *provider, *result));
        }
        pass(AUDIT_WINDOW + 1);
        for (stash, result) in results.iter().filter(|(stash, _)| in_time.contains(stash)) {
            assert_ok!(reveal(*stash, *result));
        }
        pass(REVEAL_WINDOW + 1);
        assert_eq!(phase().map(|(name, _)| name), Some(PhaseName::Challengeable));
        test();
    });
}

fn slashed(stash: AccountId) -> Balance {
    MockStake::slashed(stash)
}

fn refused(call: &ResultsCall) -> InvalidTransaction {
    match validity_of(call) {
        Err(TransactionValidityError::Invalid(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_silent_provider_loses_its_pay_opens_late_and_loses_no_stake() {
    late(&[9, 9, 9], &[1, 2], || {
        assert_eq!(faults(), []);
        pass(CHALLENGE_WINDOW + 2);
        // The others wait for it.
        assert_eq!(decision(), None);
        assert_ok!(reveal(3, 9));
        pass(2);
        assert_eq!(decision(), Some(agreed(9, &[1, 2], &[], &[3])));
        pass(DEFERRAL + 1);
        assert_eq!((faults(), slashed(3), MockStake::locked(3)), (vec![], 0, 0));
        assert!(MockStake::bonded(3) == BOND);
    });
}

#[test]
fn who_opens_late_before_the_challenge_window_is_over_holds_nobody_up() {
    late(&[9, 9, 9], &[1, 2], || {
        assert_ok!(reveal(3, 9));
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(agreed(9, &[1, 2], &[], &[3])));
    });
}

#[test]
fn silence_beyond_the_long_window_is_a_conviction() {
    late(&[9, 9, 9], &[1, 2], || {
        let until = round().unwrap().openings_until.unwrap();
        pass(until - System::block_number());
        assert_eq!(faults(), []);
        assert_ok!(validity_of(&opening(3, claim(9))));
        pass(1);
        assert_eq!(faults(), [(3, FaultKind::NoReveal)]);
        assert_noop!(reveal(3, 9), ResultsError::WrongPhase);
        pass(1);
        assert_eq!(decision(), Some(agreed(9, &[1, 2], &[], &[3])));
        pass(DEFERRAL + 1);
        assert_eq!(slashed(3), LOCK);
    });
}

#[test]
fn a_pool_takes_a_late_opening_as_long_as_the_call_does() {
    late(&[9, 9, 9], &[1, 2], || {
        let until = round().unwrap().openings_until.unwrap();
        assert_eq!(refused(&opening(3, claim(8))), InvalidTransaction::BadProof);
        assert_eq!(refused(&opening(1, claim(9))), InvalidTransaction::Stale);
        pass_unattended(until - System::block_number());
        assert_ok!(validity_of(&opening(3, claim(9))));
        pass_unattended(1);
        assert_eq!(refused(&opening(3, claim(9))), InvalidTransaction::Stale);
    });
}

#[test]
fn an_opening_after_the_window_is_late_though_nobody_has_advanced_the_round() {
    TestExt::new().round_of(3).execute_with(|| {
        all_commit(&[(1, 9), (2, 9), (3, 9)]);
        pass(AUDIT_WINDOW + 1);
        all_reveal(&[(1, 9), (2, 9)]);
        pass_unattended(REVEAL_WINDOW + 1);
        events();
        assert_ok!(reveal(3, 9));
        assert!(
            events().contains(&RuntimeEvent::Results(ResultsEvent::RevealMissed {
                task: TASK,
                provider: 3
            }))
        );
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(agreed(9, &[1, 2], &[], &[3])));
    });
}

#[test]
fn what_is_opened_late_pays_whoever_was_in_time_and_agrees() {
    late(&[9, 9, 9], &[1], || {
        assert!(matches!(
            round().unwrap().phase,
            RoundPhase::Challengeable {
                verdict: Verdict::Failed(FailureReason::NoAgreement),
                ..
            }
        ));
        all_reveal(&[(2, 9), (3, 9)]);
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(agreed(9, &[1], &[], &[2, 3])));
    });
}

#[test]
fn nobody_is_paid_when_nobody_was_in_time() {
    late(&[9, 9], &[], || {
        all_reveal(&[(1, 9), (2, 9)]);
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(Verdict::Failed(FailureReason::NoAgreement)));
        assert_eq!(faults(), []);
    });
}

#[test]
fn a_late_opening_that_differs_is_disputed_like_any() {
    late(&[9, 9, 8], &[1, 2], || {
        assert_ok!(reveal(3, 8));
        assert_eq!(pairs(), [(3, 1)]);
        play_out(&[(1, 9), (3, 8)]);
        assert_eq!(faults(), [(3, FaultKind::WrongResult)]);
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(agreed(9, &[1, 2], &[], &[3])));
    });
}

#[test]
fn an_audit_of_a_late_opening_has_the_whole_window() {
    late_with(&[(VERIFIER, 3, 9)], &[9, 9, 8], &[1, 2], || {
        let until = round().unwrap().openings_until.unwrap();
        pass(until - System::block_number());
        assert_ok!(reveal(3, 8));
        let moved = round().unwrap().openings_until.unwrap();
        assert_eq!(moved, until + OPENING_WINDOW);
        // It was right, and so is what the others say: both play.
        assert_ok!(reveal_audit(VERIFIER, 3, 9));
        assert!(pairs().contains(&(3, VERIFIER)));
        play_out(&[(1, 9), (3, 8), (VERIFIER, 9)]);
        assert_eq!(faults(), [(3, FaultKind::WrongResult)]);
        assert_eq!(MockStake::bonded(VERIFIER), BOND);
    });
}

#[test]
fn who_audited_what_was_opened_late_is_paid_though_its_provider_is_not() {
    late_with(&[(VERIFIER, 1, 9)], &[9], &[], || {
        assert_ok!(reveal(1, 9));
        assert_ok!(reveal_audit(VERIFIER, 1, 9));
        pass(CHALLENGE_WINDOW + 2);
        assert_eq!(decision(), Some(Verdict::Failed(FailureReason::NoAgreement)));
        assert_eq!(MockOutcome::audits_to_pay(TASK), [(1, VERIFIER)]);
    });
}

#[test]
fn nobodys_late_opening_gives_another_late_provider_more_time() {
    late_with(&[(VERIFIER, 2, 9)], &[9, 9, 9], &[1], || {
        let until = round().unwrap().reveals_until.unwrap();
        pass(until - System::block_number());
        assert_ok!(reveal(2, 9));
        assert!(round().unwrap().openings_until.unwrap() > until);
        assert_ok!(validity_of(&opening(3, claim(9))));
        pass(1);
        assert_eq!(faults(), [(3, FaultKind::NoReveal)]);
        assert_noop!(reveal(3, 9), ResultsError::WrongPhase);
        // The auditor still has its time.
        assert_ok!(reveal_audit(VERIFIER, 2, 9));
    });
}

#[test]
fn silence_of_many_is_dealt_with_a_few_at_a_time() {
    let auditors = 2 * CONVICTED_AT_ONCE + 1;
    let audits: Vec<_> = (0..auditors as AccountId)
        .map(|place| (VERIFIER + place, 1, 9))
        .collect();
    TestExt::new().round_of(1).execute_with(|| {
        bond_verifiers(audits.len() as AccountId);
        revealed_with(&audits, &[9]);
        pass_unattended(round().unwrap().openings_until.unwrap() + 1 - System::block_number());
        let mut found = 0;
        for step in 1..=3 {
            assert_ok!(<Results as TaskTrust<_, _, _>>::advance(TASK));
            found = auditors.min(step * CONVICTED_AT_ONCE);
            assert_eq!(faults().len(), found);
            assert_eq!(decision(), None);
        }
        assert_eq!(found, auditors);
        assert_ok!(<Results as TaskTrust<_, _, _>>::advance(TASK));
        assert_eq!(decision(), Some(agreed(9, &[1], &[], &[])));
    });
}

#[test]
fn an_auditor_that_opens_late_keeps_its_bond() {
    TestExt::new().round_of(1).execute_with(|| {
        revealed_with(&[(VERIFIER, 1, 9)], &[9]);
        pass(OPENING_WINDOW);
        assert_eq!((faults(), decision()), (vec![], None));
        assert_ok!(reveal_audit(VERIFIER, 1, 9));
        assert_eq!(audit_state(VERIFIER, 1), Some(AuditState::Confirmed));
        pass(2);
        assert_eq!(decision(), Some(agreed(9, &[1], &[], &[])));
        assert_eq!((faults(), MockStake::locked(VERIFIER)), (vec![], 0));
        assert_eq!(Records::<Test>::get(VERIFIER).missed, 0);
    });
}

#[test]
fn an_auditor_that_never_opens_loses_its_whole_bond() {
    TestExt::new().round_of(1).execute_with(|| {
        revealed_with(&[(VERIFIER, 1, 9)], &[9]);
        pass(OPENING_WINDOW + 1);
        assert_eq!(faults(), [(VERIFIER, FaultKind::AuditNoShow)]);
        assert_noop!(reveal_audit(VERIFIER, 1, 9), ResultsError::UnknownRound);
        pass(DEFERRAL + 1);
        assert_eq!(slashed(VERIFIER), AUDIT_BOND);
    });
}

#[test]
fn a_standstill_while_a_task_is_audited_slashes_nobody_and_everybody_is_paid() {
    TestExt::new().round_of(3).execute_with(|| {
        all_commit(&[(1, 9), (2, 9), (3, 9)]);
        assert_ok!(announce(VERIFIER, 1, 9));
        let since = System::block_number();
        FinalityStoppedAt::set(Some(since));
        pass(1_000);
        assert_eq!(phase().map(|(name, _)| name), Some(PhaseName::Auditing));
        // It comes back, and stands still again while commitments and audits are opened.
        FinalityStoppedAt::set(Some(since + AUDIT_WINDOW + 1));
        pass(1_000);
        assert_eq!((faults(), decision()), (vec![], None));
        all_reveal(&[(1, 9), (2, 9), (3, 9)]);
        pass(1_000);
        assert_ok!(reveal_audit(VERIFIER, 1, 9));
        FinalityStoppedAt::set(None);
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(agreed(9, &[1, 2, 3], &[], &[])));
        assert_eq!((faults(), MockStake::locked_in_all()), (vec![], 0));
        assert!((1..=3).all(|stash| !TrustLock::is_suspended(&stash)));
    });
}

#[test]
fn a_clock_that_leaps_over_a_window_still_leaves_the_long_one() {
    TestExt::new().round_of(3).execute_with(|| {
        all_commit(&[(1, 9), (2, 9), (3, 9)]);
        pass(AUDIT_WINDOW + 1);
        FinalityStoppedAt::set(Some(System::block_number() + REVEAL_WINDOW + 1));
        pass(1);
        assert_eq!(phase().map(|(name, _)| name), Some(PhaseName::Challengeable));
        all_reveal(&[(1, 9), (2, 9), (3, 9)]);
        FinalityStoppedAt::set(None);
        pass(OPENING_WINDOW + DEFERRAL);
        assert_eq!((faults(), phase()), (vec![], None));
    });
}

/// Up to when the stash gets no tasks.
fn suspended_until(stash: AccountId) -> BlockNumber {
    Records::<Test>::get(stash).suspended_until.unwrap_or_default()
}

/// Stash 2 takes a place in a round and commits nothing, and the two others do commit.
fn leaves(task: surety_types::TaskId) {
    open_with_commitment(task);
    pass(COMMIT_WINDOW + 1);
}

fn open_with_commitment(task: surety_types::TaskId) {
    assert_ok!(open(task, [1, 2, 3]));
    Rounds::<Test>::mutate_extant(task, |round| {
        for seat in [0, 2] {
            round.members[seat].progress = MemberProgress::Committed(Default::default());
        }
    });
}

#[test]
fn nobody_is_suspended_for_a_task_on_which_nobody_could_commit() {
    TestExt::new().execute_with(|| {
        assert_ok!(open(100, [1, 2]));
        pass(COMMIT_WINDOW + 1);
        assert!(!TrustLock::is_suspended(&1) && !TrustLock::is_suspended(&2));
    });
}

#[test]
fn never_committing_suspends_and_twice_as_long_the_second_time() {
    TestExt::new().execute_with(|| {
        for (task, windows) in [(100, 1), (101, 2), (102, 4)] {
            leaves(task);
            let until = System::block_number() + windows * SUSPENSION;
            assert_eq!(suspended_until(2), until);
            assert!(TrustLock::is_suspended(&2) && TrustLock::is_jailed(&2));
            let event = RuntimeEvent::TrustLock(TrustLockEvent::Suspended { stash: 2, until });
            assert!(events().contains(&event));
            pass(windows * SUSPENSION + 1);
        }
        assert!(faults().iter().all(|(offender, _)| *offender != 2));
        assert_eq!(slashed(2), 0);
        assert!(!TrustLock::is_suspended(&2) && !TrustLock::is_jailed(&2));
    });
}

#[test]
fn a_suspension_does_not_grow_for_ever() {
    TestExt::new().execute_with(|| {
        Records::<Test>::mutate(2, |record| record.missed = u32::MAX);
        leaves(100);
        assert_eq!(suspended_until(2), System::block_number() + 64 * SUSPENSION);
    });
}

#[test]
fn who_is_replaced_or_late_is_suspended_and_nobody_else() {
    TestExt::new().round_of(3).reserves([5]).execute_with(|| {
        all_commit(&[(1, 9), (3, 9)]);
        pass(COMMIT_WINDOW + 1);
        assert!(TrustLock::is_suspended(&2));
        assert_ok!(commit(5, 9));
        pass(AUDITING + 1);
        all_reveal(&[(1, 9), (5, 9)]);
        pass(REVEAL_WINDOW + 1);
        assert!(TrustLock::is_suspended(&3));
        assert!(!TrustLock::is_suspended(&1) && !TrustLock::is_suspended(&5));
        assert_ok!(reveal(3, 9));
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(agreed(9, &[1, 5], &[], &[3])));
    });
}

#[test]
fn a_clean_task_makes_good_for_missed_deadlines() {
    TestExt::new().round_of(1).execute_with(|| {
        Records::<Test>::mutate(1, |record| record.missed = 3);
        revealed_with(&[], &[9]);
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(Records::<Test>::get(1).missed, 2);
    });
}

#[test]
fn what_is_missed_during_a_suspension_is_the_same_incident() {
    TestExt::new().execute_with(|| {
        for task in 100..104 {
            open_with_commitment(task);
        }
        pass(COMMIT_WINDOW + 1);
        assert_eq!(Records::<Test>::get(2).missed, 1);
        assert_eq!(suspended_until(2), System::block_number() + SUSPENSION);
    });
}

#[test]
fn a_verdict_that_a_late_opening_changes_can_be_challenged_for_the_whole_window() {
    late(&[9, 9], &[1], || {
        pass(CHALLENGE_WINDOW + 2);
        assert_noop!(challenge(77, 1), ResultsError::WrongPhase);
        assert_ok!(reveal(2, 9));
        let RoundPhase::Challengeable { until, .. } = round().unwrap().phase else {
            panic!("the round has ended");
        };
        assert_eq!(until, System::block_number() + CHALLENGE_WINDOW);
        pass(CHALLENGE_WINDOW);
        assert_eq!(decision(), None);
        pass(2);
        assert_eq!(decision(), Some(agreed(9, &[1], &[], &[2])));
    });
}

#[test]
fn who_was_convicted_of_silence_opens_nothing_any_more() {
    late(&[9, 9, 9], &[1, 2], || {
        let fault = |fault| Rounds::<Test>::mutate_extant(TASK, |round| round.members[2].fault = fault);
        fault(Some(FaultKind::NoReveal));
        assert_noop!(reveal(3, 9), ResultsError::AlreadyAtFault);
        fault(None);
    });
}

#[test]
fn leaving_does_not_shorten_a_suspension() {
    use surety_types::traits::StashClosed;
    TestExt::new().execute_with(|| {
        leaves(100);
        <TrustLock as StashClosed<_>>::closed(&2);
        assert!(TrustLock::is_suspended(&2));
    });
}

#[test]
fn anybody_may_carry_an_auditors_opening_and_nobody_sign_it() {
    TestExt::new().round_of(1).execute_with(|| {
        all_commit(&[(1, 9)]);
        assert_ok!(announce(VERIFIER, 1, 9));
        let call = opening_audit(VERIFIER, 1, 9);
        assert_eq!(refused(&call), InvalidTransaction::Future);
        pass(AUDIT_WINDOW + 1);
        // Not before there is something to compare with.
        assert_eq!(refused(&call), InvalidTransaction::Future);
        assert_ok!(reveal(1, 9));
        let signed = send(VERIFIER, call.clone());
        assert_noop!(signed, DispatchError::BadOrigin);
        assert_eq!(
            refused(&opening_audit(VERIFIER, 1, 8)),
            InvalidTransaction::BadProof
        );
        assert_eq!(
            refused(&opening_audit(VERIFIER + 1, 1, 9)),
            InvalidTransaction::Call
        );
        assert_eq!(refused(&opening_audit(VERIFIER, 2, 9)), InvalidTransaction::Call);
        // Its agent may be gone.
        MockStake::dismiss_agent(VERIFIER);
        let valid = validity_of(&call).unwrap();
        assert_eq!(valid.priority, surety_types::opening::PRIORITY);
        assert_ok!(send_opening(call.clone()));
        assert_eq!(refused(&call), InvalidTransaction::Stale);
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(refused(&call), InvalidTransaction::Call);
    });
}
