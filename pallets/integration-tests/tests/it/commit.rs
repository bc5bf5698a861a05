//! Committing to a result.

use frame_support::{assert_noop, assert_ok};
use sp_core::H256;
use sp_runtime::DispatchError;
use surety_audit_economics::audit_seed;
use surety_pallet_test_kit::{MockClock, MockEntropy, MockStake};
use surety_types::{stake::Role, task::MemberProgress};

use super::copied_opening;
use surety_pallet_integration_tests::*;

#[test]
fn a_commitment_is_written_down_and_announced() {
    TestExt::new().round_of(3).execute_with(|| {
        events();
        assert_ok!(commit(2, 9));
        let commitment = seal(2, &claim(9));
        assert_eq!(
            round().unwrap().members[1].progress,
            MemberProgress::Committed(commitment)
        );
        assert_eq!(
            events(),
            [RuntimeEvent::Results(ResultsEvent::Committed {
                task: TASK,
                provider: 2,
                commitment
            })]
        );
        assert_eq!(phase(), Some((PhaseName::Committing, 1 + COMMIT_WINDOW)));
    });
}

#[test]
fn after_the_last_commitment_the_audit_window_opens_with_its_seed() {
    TestExt::new().round_of(3).execute_with(|| {
        all_commit(&[(1, 9), (2, 9)]);
        pass(2);
        events();
        assert_ok!(commit(3, 9));
        assert!(matches!(
            events()[1],
            RuntimeEvent::Results(ResultsEvent::PhaseChanged {
                phase: PhaseName::Auditing,
                ..
            })
        ));
        pass(1);
        assert!(round().unwrap().awaits_seed());
        assert_eq!(events(), []);
        pass(1);
        let until = 5 + AUDIT_WINDOW;
        assert_eq!(phase(), Some((PhaseName::Auditing, until)));
        assert_eq!(MockClock::last_wake(TASK), Some(until));
        let entropy = MockEntropy::output_of(4);
        let seed = audit_seed(&genesis(), TASK, &EpochRandomness::get(), Some(&entropy));
        assert_eq!(
            events(),
            [RuntimeEvent::Results(ResultsEvent::AuditorsSeeded {
                task: TASK,
                seed,
                entropy: Some((entropy, 4)),
                until
            })]
        );
    });
}

#[test]
fn only_an_agent_may_commit() {
    TestExt::new().round_of(1).execute_with(|| {
        let sealed = seal(1, &claim(9));
        let stash = RuntimeOrigin::signed(1);
        assert_noop!(
            Results::commit(stash, TASK, sealed),
            ResultsError::NotProviderAgent
        );
        assert_noop!(
            Results::commit(RuntimeOrigin::none(), TASK, sealed),
            DispatchError::BadOrigin
        );

        MockStake::bond(90, agent_of(90), Role::Verifier, BOND);
        assert_noop!(commit(90, 9), ResultsError::NotProviderAgent);
    });
}

#[test]
fn a_task_without_round_takes_no_commitment() {
    TestExt::new().execute_with(|| {
        assert_noop!(commit(1, 9), ResultsError::UnknownRound);
    });
}

#[test]
fn only_members_may_commit() {
    TestExt::new().round_of(2).execute_with(|| {
        assert_noop!(commit(3, 9), ResultsError::NotMember);
    });
}

#[test]
fn a_commitment_cannot_be_changed() {
    TestExt::new().round_of(2).execute_with(|| {
        assert_ok!(commit(1, 9));
        assert_noop!(commit(1, 8), ResultsError::AlreadyCommitted);
        assert_noop!(commit(1, 9), ResultsError::AlreadyCommitted);
    });
}

#[test]
fn the_last_block_of_the_window_counts() {
    TestExt::new().round_of(1).execute_with(|| {
        pass(COMMIT_WINDOW);
        assert_ok!(commit(1, 9));
    });
}

#[test]
fn a_late_commitment_is_refused_though_nobody_has_advanced_the_round() {
    TestExt::new().round_of(1).execute_with(|| {
        pass_unattended(COMMIT_WINDOW + 1);
        assert_noop!(commit(1, 9), ResultsError::WrongPhase);
    });
}

#[test]
fn later_phases_take_no_commitment() {
    TestExt::new().round_of(2).execute_with(|| {
        all_commit(&[(1, 9), (2, 9)]);
        assert_noop!(commit(1, 9), ResultsError::WrongPhase);
        pass(AUDIT_WINDOW + 1);
        assert_noop!(commit(1, 9), ResultsError::WrongPhase);
        all_reveal(&[(1, 9), (2, 9)]);
        assert_noop!(commit(1, 9), ResultsError::WrongPhase);
    });
}

#[test]
fn a_copied_commitment_opens_for_nobody_but_its_author() {
    TestExt::new().round_of(2).execute_with(|| {
        let copied = seal(1, &claim(9));
        assert_ok!(commit(1, 9));
        assert_ok!(Results::commit(RuntimeOrigin::signed(agent_of(2)), TASK, copied));
        pass(AUDITING + 1);
        assert_ok!(reveal(1, 9));
        assert_noop!(send_opening(copied_opening()), ResultsError::CommitmentMismatch);
    });
}

#[test]
fn any_hash_can_be_committed_to() {
    TestExt::new().round_of(1).execute_with(|| {
        assert_ok!(Results::commit(
            RuntimeOrigin::signed(agent_of(1)),
            TASK,
            H256::zero()
        ));
    });
}
