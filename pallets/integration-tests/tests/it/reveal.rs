//! Opening a commitment.

use frame_support::{assert_noop, assert_ok};
use sp_core::H256;
use sp_runtime::DispatchError;
use surety_pallet_test_kit::MockStake;
use surety_types::task::{MemberProgress, ResultClaim};

use surety_pallet_integration_tests::*;

/// A round of three in which everybody committed to 9, in the first block of its reveal phase.
fn revealing(test: impl FnOnce()) {
    TestExt::new().round_of(3).execute_with(|| {
        all_commit(&[(1, 9), (2, 9), (3, 9)]);
        pass(AUDIT_WINDOW + 1);
        assert_eq!(phase(), Some((PhaseName::Revealing, 7 + REVEAL_WINDOW)));
        events();
        test();
    });
}

#[test]
fn a_reveal_is_written_down_and_announced() {
    revealing(|| {
        assert_ok!(reveal(2, 9));
        assert_eq!(
            round().unwrap().members[1].progress,
            MemberProgress::Revealed(claim(9))
        );
        assert_eq!(
            events(),
            [RuntimeEvent::Results(ResultsEvent::Revealed {
                task: TASK,
                provider: 2,
                claim: claim(9)
            })]
        );
    });
}

#[test]
fn nobody_reveals_before_the_audit_window_is_over() {
    TestExt::new().round_of(2).execute_with(|| {
        assert_ok!(commit(1, 9));
        assert_noop!(reveal(1, 9), ResultsError::WrongPhase);
        assert_ok!(commit(2, 9));
        assert_noop!(reveal(1, 9), ResultsError::WrongPhase);
        pass(AUDITING);
        assert_noop!(reveal(1, 9), ResultsError::WrongPhase);
        pass(1);
        assert_ok!(reveal(1, 9));
    });
}

#[test]
fn a_reveal_opens_its_phase_itself_when_nobody_has_advanced_the_round() {
    TestExt::new().round_of(2).execute_with(|| {
        all_commit(&[(1, 9), (2, 9)]);
        pass_unattended(AUDIT_WINDOW + 5);
        assert_ok!(reveal(1, 9));
        let now = System::block_number();
        assert_eq!(phase(), Some((PhaseName::Revealing, now + REVEAL_WINDOW)));
    });
}

#[test]
fn a_reveal_that_fails_opens_nothing() {
    TestExt::new().round_of(2).execute_with(|| {
        all_commit(&[(1, 9), (2, 9)]);
        pass_unattended(AUDIT_WINDOW + 1);
        assert_noop!(reveal(1, 8), ResultsError::CommitmentMismatch);
        assert_eq!(phase(), Some((PhaseName::Auditing, 3 + AUDIT_WINDOW)));
    });
}

#[test]
fn a_reveal_in_the_last_block_of_the_window_is_in_time() {
    revealing(|| {
        pass_unattended(REVEAL_WINDOW);
        assert_ok!(reveal(1, 9));
        assert!(!round().unwrap().members[0].missed_reveal);
        pass_unattended(1);
        assert_ok!(reveal(2, 9));
        assert!(round().unwrap().members[1].missed_reveal);
        assert_ok!(reveal(3, 9));
    });
}

#[test]
fn a_signed_reveal_is_none() {
    revealing(|| {
        for account in [1, agent_of(1), FIRST_STRANGER] {
            let signed = RuntimeOrigin::signed(account);
            let refused = Results::reveal(signed, TASK, 1, claim(9), salt_of(1));
            assert_noop!(refused, DispatchError::BadOrigin);
        }
        let unchecked = Results::reveal(RuntimeOrigin::none(), TASK, 1, claim(9), salt_of(1));
        assert_noop!(unchecked, DispatchError::BadOrigin);
    });
}

#[test]
fn who_has_lost_its_agent_can_reveal_all_the_same() {
    revealing(|| {
        MockStake::dismiss_agent(1);
        assert_ok!(reveal(1, 9));
    });
}

#[test]
fn a_task_without_round_takes_no_reveal() {
    TestExt::new().execute_with(|| {
        assert_noop!(reveal(1, 9), ResultsError::UnknownRound);
    });
}

#[test]
fn only_members_may_reveal() {
    revealing(|| {
        assert_noop!(reveal(4, 9), ResultsError::NotMember);
    });
}

#[test]
fn who_committed_nothing_has_nothing_to_reveal() {
    TestExt::new().round_of(3).execute_with(|| {
        all_commit(&[(1, 9), (2, 9)]);
        pass(COMMIT_WINDOW + 1);
        pass(AUDITING + 1);
        assert_noop!(reveal(3, 9), ResultsError::NotCommitted);
    });
}

#[test]
fn a_commitment_is_opened_once() {
    revealing(|| {
        assert_ok!(reveal(1, 9));
        assert_noop!(reveal(1, 9), ResultsError::AlreadyRevealed);
    });
}

#[test]
fn only_the_committed_claim_and_salt_open_a_commitment() {
    revealing(|| {
        let refused = |claim: ResultClaim, salt: H256| {
            let call = ResultsCall::reveal {
                task: TASK,
                provider: 1,
                claim,
                salt,
            };
            assert_noop!(send_opening(call), ResultsError::CommitmentMismatch);
        };
        refused(claim(8), salt_of(1));
        refused(claim(9), salt_of(2));
        refused(ResultClaim { units: 6, ..claim(9) }, salt_of(1));
        refused(
            ResultClaim {
                trace_root: H256::zero(),
                ..claim(9)
            },
            salt_of(1),
        );
        assert_ok!(reveal(1, 9));
    });
}

#[test]
fn more_units_than_the_client_pays_for_cannot_be_claimed() {
    TestExt::new().round_of(2).execute_with(|| {
        let at_most = ResultClaim {
            units: UNITS_MAX,
            ..claim(9)
        };
        let too_many = ResultClaim {
            units: UNITS_MAX + 1,
            ..claim(9)
        };
        for (stash, claim) in [(1, &at_most), (2, &too_many)] {
            let agent = RuntimeOrigin::signed(agent_of(stash));
            assert_ok!(Results::commit(agent, TASK, seal(stash, claim)));
        }
        pass(AUDITING + 1);
        assert_ok!(send_opening(opening(1, at_most)));
        assert_noop!(send_opening(opening(2, too_many)), ResultsError::TooManyUnits);
    });
}

#[test]
fn the_last_reveal_brings_the_verdict_early() {
    revealing(|| {
        all_reveal(&[(1, 9), (2, 9)]);
        events();
        assert_ok!(reveal(3, 9));
        let until = 7 + CHALLENGE_WINDOW;
        let phase_now = PhaseName::Challengeable;
        assert_eq!(phase(), Some((phase_now, until)));
        assert_eq!(
            events()[1..],
            [
                RuntimeEvent::Results(ResultsEvent::VerdictReached {
                    task: TASK,
                    verdict: agreed(9, &[1, 2, 3], &[], &[])
                }),
                RuntimeEvent::Results(ResultsEvent::PhaseChanged {
                    task: TASK,
                    phase: phase_now,
                    until
                }),
            ]
        );
        assert_noop!(reveal(3, 9), ResultsError::AlreadyRevealed);
    });
}

#[test]
fn who_committed_nothing_is_not_waited_for() {
    TestExt::new().round_of(3).execute_with(|| {
        all_commit(&[(1, 9), (2, 9)]);
        pass(COMMIT_WINDOW + 1);
        pass(AUDITING + 1);
        all_reveal(&[(1, 9), (2, 9)]);
        assert_eq!(phase().map(|(name, _)| name), Some(PhaseName::Challengeable));
    });
}

#[test]
fn a_claim_that_no_result_can_be_like_cannot_be_revealed() {
    TestExt::new().round_of(1).execute_with(|| {
        let impossible = ResultClaim {
            units: IMPOSSIBLE_UNITS,
            ..claim(9)
        };
        let agent = RuntimeOrigin::signed(agent_of(1));
        assert_ok!(Results::commit(agent, TASK, seal(1, &impossible)));
        pass(AUDITING + 1);
        assert_noop!(
            send_opening(opening(1, impossible)),
            ResultsError::ImpossibleClaim
        );
    });
}
