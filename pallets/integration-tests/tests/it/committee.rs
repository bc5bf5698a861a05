//! Cells that no block can compute are decided by verifiers. Here all at once, because they are few.

use frame_support::{
    assert_noop, assert_ok,
    pallet_prelude::{InvalidTransaction, TransactionValidityError},
};
use sp_core::H256;
use sp_runtime::DispatchError;
use surety_dispute_game::{bisection::Side, quorum_streak::Decision};
use surety_pallet_test_kit::MockStake;
use surety_types::{
    stake::Role,
    task::{FailureReason, Verdict},
    traits::Jail,
    trust::FaultKind,
};

use super::{after, revealed_with};
use surety_pallet_integration_tests::*;

/// Wrong in the tokens.
const WRONG: u8 = TOO_LARGE + 1;

/// Stashes 1, who is right, and 2 contradict each other about the tokens.
fn referred(test: impl FnOnce()) {
    after(&[9, WRONG], || {
        play_out(&[(1, 9), (2, WRONG)]);
        test();
    });
}

/// The windows of a ballot, and the block after them.
fn time_of_a_ballot() -> BlockNumber {
    BlockNumber::from(SEAT_WINDOW + VOTE_WINDOW) + 1
}

#[test]
fn a_cell_that_no_block_can_compute_calls_verifiers_together() {
    after(&[9, WRONG], || {
        events();
        play_out(&[(1, 9), (2, WRONG)]);
        let question = committee().unwrap().state.question();
        let convened = RuntimeEvent::Disputes(DisputesEvent::CommitteeConvened {
            dispute: DISPUTE,
            question,
            all_at_once: true,
        });
        assert!(events().contains(&convened));
    });
}

#[test]
fn two_thirds_of_the_stake_decide_for_the_defender() {
    referred(|| {
        events();
        let claimed = claimed();
        ballot(&votes(7, |_| claimed));
        assert_eq!(pairs(), []);
        assert_eq!(faults(), [(2, FaultKind::LostDispute)]);
        let events = events();
        assert!(
            events.contains(&RuntimeEvent::Disputes(DisputesEvent::CommitteeEnded {
                dispute: DISPUTE,
                decision: Decision::Voters(claimed),
                winner: Some(Side::Defender),
            }))
        );
        assert!(
            events.contains(&RuntimeEvent::Disputes(DisputesEvent::BallotOpened {
                dispute: DISPUTE,
                ballot: 0,
                members: 7
            }))
        );
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(agreed(9, &[1], &[2], &[])));
    });
}

#[test]
fn another_value_proves_the_defender_wrong() {
    referred(|| {
        ballot(&votes(7, |_| other_value()));
        assert_eq!(faults(), [(1, FaultKind::WrongResult)]);
    });
}

#[test]
fn less_than_two_thirds_of_all_stake_decide_nothing_and_cost_nothing() {
    referred(|| {
        let claimed = claimed();
        ballot(&votes(6, |_| claimed));
        // The committee is over, and the dispute still waits for others to decide.
        assert_eq!((sitting(), pairs()), (None, vec![(1, 2)]));
        pass(DECISION_WINDOW);
        assert_eq!(pairs(), []);
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(Verdict::Failed(FailureReason::NoAgreement)));
        assert_eq!((faults(), MockStake::locked_in_all()), (vec![], 0));
    });
}

#[test]
fn whoever_votes_against_what_is_decided_loses_nothing() {
    referred(|| {
        let claimed = claimed();
        let other = [FIRST_VERIFIER, FIRST_VERIFIER + 3];
        ballot(&votes(9, |who| {
            if other.contains(&who) {
                other_value()
            } else {
                claimed
            }
        }));
        assert_eq!(faults(), [(2, FaultKind::LostDispute)]);
        pass(DEFERRAL + 1);
        for verifier in other {
            assert_eq!(MockStake::slashed(verifier), 0);
            assert!(!TrustLock::is_jailed(&verifier));
        }
    });
}

#[test]
fn a_seal_that_is_not_opened_suspends_and_costs_no_stake() {
    referred(|| {
        let claimed = claimed();
        for (verifier, value) in votes(8, |_| claimed) {
            assert_ok!(join(verifier, value));
        }
        pass(u64::from(SEAT_WINDOW) + 1);
        for (verifier, value) in votes(7, |_| claimed) {
            assert_ok!(reveal_vote(verifier, value));
        }
        let silent = FIRST_VERIFIER + 7;
        pass(u64::from(VOTE_WINDOW) + 1);
        assert_eq!(faults(), [(2, FaultKind::LostDispute)]);
        pass(1);
        assert!(TrustLock::is_suspended(&silent));
        pass(DEFERRAL + 1);
        assert_eq!(MockStake::slashed(silent), 0);
    });
}

#[test]
fn whoever_is_silent_gets_no_seat_for_a_while_and_twice_as_long_the_next_time() {
    for (missed, windows) in [(0, 1), (1, 2)] {
        referred(|| {
            let silent = FIRST_VERIFIER;
            Records::<Test>::mutate(silent, |record| record.missed = missed);
            assert_ok!(join(silent, claimed()));
            pass(u64::from(SEAT_WINDOW) + 1 + u64::from(VOTE_WINDOW) + 1);
            let at = System::block_number();
            let until = Records::<Test>::get(silent).suspended_until.unwrap();
            assert_eq!(until - at, windows * SUSPENSION, "{at}");
        });
    }
}

#[test]
fn a_vote_that_is_opened_makes_good_for_a_missed_one() {
    referred(|| {
        Records::<Test>::mutate(FIRST_VERIFIER, |record| record.missed = 2);
        let claimed = claimed();
        ballot(&votes(7, |_| claimed));
        assert_eq!(Records::<Test>::get(FIRST_VERIFIER).missed, 1);
    });
}

#[test]
fn stake_counts_and_not_heads() {
    referred(|| {
        // One has as much as all others together twice over, and is right.
        MockStake::bond(
            FIRST_VERIFIER,
            agent_of(FIRST_VERIFIER),
            Role::Verifier,
            19 * BOND,
        );
        let claimed = claimed();
        ballot(&votes(10, |who| {
            if who == FIRST_VERIFIER {
                claimed
            } else {
                other_value()
            }
        }));
        assert_eq!((faults(), pairs()), (vec![(2, FaultKind::LostDispute)], vec![]));
    });
}

#[test]
fn many_that_are_silent_are_suspended_in_several_steps_before_the_dispute_ends() {
    referred(|| {
        let all = votes(10, |_| claimed());
        for (verifier, value) in &all {
            assert_ok!(join(*verifier, *value));
        }
        pass(u64::from(SEAT_WINDOW) + 1);
        pass(u64::from(VOTE_WINDOW) + 1);
        let suspended = || {
            let silent = all
                .iter()
                .filter(|(verifier, _)| TrustLock::is_suspended(verifier));
            silent.count()
        };
        assert_eq!((suspended(), committee().is_some()), (8, true));
        assert_noop!(join(FIRST_VERIFIER, claimed()), DisputesError::InJail);
        assert_noop!(reveal_vote(FIRST_VERIFIER, claimed()), DisputesError::NotNow);
        pass(1);
        assert_eq!((suspended(), committee().is_some()), (10, false));
        assert_eq!(faults(), []);
    });
}

#[test]
fn stake_that_comes_or_goes_after_a_committee_was_called_counts_neither_in_votes_nor_in_the_total() {
    referred(|| {
        let claimed = claimed();
        let bond = |stash, amount| {
            MockStake::bond(stash, agent_of(stash), Role::Verifier, amount);
            MockStake::settle(stash, 0);
        };
        // Who hears of the question and bonds for it has no vote.
        let late = FIRST_VERIFIER + VERIFIERS;
        bond(late, 100 * BOND);
        assert_noop!(join(late, other_value()), DisputesError::Unsettled);
        for (verifier, value) in votes(6, |_| claimed) {
            assert_ok!(join(verifier, value));
        }
        // Who joins small and bonds large has as small a one, and does not keep others from theirs.
        let grown = FIRST_VERIFIER + 9;
        assert_ok!(join(grown, other_value()));
        bond(grown, 100 * BOND);
        // What is taken away after it was brought is not missed, or the others would be made fewer.
        assert_ok!(join(FIRST_VERIFIER + 6, claimed));
        MockStake::remove(FIRST_VERIFIER + 6);
        pass(u64::from(SEAT_WINDOW) + 1);
        assert_ok!(reveal_vote(grown, other_value()));
        for (verifier, value) in votes(7, |_| claimed) {
            assert_ok!(reveal_vote(verifier, value));
        }
        assert_eq!(faults(), [(2, FaultKind::LostDispute)]);
    });
}

#[test]
fn a_party_cannot_vote_and_does_not_count() {
    TestExt::new().round_of(1).execute_with(|| {
        let auditor = FIRST_VERIFIER;
        revealed_with(&[(auditor, 1, WRONG)], &[9]);
        assert_ok!(reveal_audit(auditor, 1, WRONG));
        play_out(&[(1, 9), (auditor, WRONG)]);
        assert_noop!(join(auditor, other_value()), DisputesError::IsParty);
        // Of the nine others more than two thirds are seven, and six with stake of eleven tenths.
        let claimed = claimed();
        ballot(&votes(8, |_| claimed)[1..]);
        assert_eq!(faults(), [(auditor, FaultKind::FalseAudit)]);
    });
}

#[test]
fn a_challenger_does_not_vote_as_an_agent() {
    after(&[9, 9], || {
        let agent = agent_of(FIRST_VERIFIER);
        let _ = <Balances as frame_support::traits::fungible::Mutate<_>>::mint_into(&agent, MONEY);
        assert_ok!(challenge(agent, 1));
        play_out(&[(1, 9), (agent, WRONG)]);
        assert_noop!(join(FIRST_VERIFIER, other_value()), DisputesError::IsParty);
    });
}

#[test]
fn who_may_not_take_a_seat_is_told_why() {
    referred(|| {
        let value = claimed();
        let of_provider = joining(1, value, 1);
        assert_noop!(send(1, of_provider), ResultsError::NotVerifierAgent);
        TrustLock::jail(&FIRST_VERIFIER, 0);
        assert_noop!(join(FIRST_VERIFIER, value), DisputesError::InJail);
        // Here all vote, and its stake counts: who has only missed a deadline may.
        let late = FIRST_VERIFIER + 4;
        TrustLock::note_missed(&late);
        assert_ok!(join(late, value));
        let second = FIRST_VERIFIER + 1;
        assert_ok!(join(second, value));
        assert_noop!(join(second, other_value()), DisputesError::AlreadySeated);
        let third = FIRST_VERIFIER + 2;
        MockStake::settle(third, SEASONING - 1);
        assert_noop!(join(third, value), DisputesError::Unsettled);
        MockStake::settle(third, SEASONING);
        assert_ok!(join(third, value));
        // What was long enough before the committee was called is no longer so as time goes on.
        pass(1);
        let fourth = FIRST_VERIFIER + 3;
        MockStake::settle(fourth, SEASONING);
        assert_noop!(join(fourth, value), DisputesError::Unsettled);
        MockStake::settle(fourth, SEASONING + 1);
        assert_ok!(join(fourth, value));
    });
}

#[test]
fn a_ballot_has_its_time_and_not_more_whoever_looks() {
    referred(|| {
        let claimed = claimed();
        for (verifier, value) in votes(7, |_| claimed) {
            assert_ok!(join(verifier, value));
        }
        assert_noop!(reveal_vote(FIRST_VERIFIER, claimed), DisputesError::NotNow);
        let advance = || {
            send_as(
                FIRST_STRANGER,
                DisputesCall::advance_committee { dispute: DISPUTE },
            )
        };
        assert_noop!(advance(), DisputesError::NotDue);
        pass_unattended(u64::from(SEAT_WINDOW));
        // Nobody has looked, and it is over all the same.
        assert_noop!(join(FIRST_VERIFIER + 8, claimed), DisputesError::NotNow);
        assert_noop!(reveal_vote(FIRST_VERIFIER, claimed), DisputesError::NotNow);
        assert_ok!(advance());
        assert_noop!(join(FIRST_VERIFIER + 8, claimed), DisputesError::NotNow);
        assert_ok!(reveal_vote(FIRST_VERIFIER, claimed));
        pass_unattended(u64::from(VOTE_WINDOW));
        assert_noop!(reveal_vote(FIRST_VERIFIER + 1, claimed), DisputesError::NotNow);
        assert_ok!(advance());
        let silent = (0..7).filter(|place| TrustLock::is_suspended(&(FIRST_VERIFIER + place)));
        assert_eq!((silent.count(), faults()), (6, vec![]));
        assert_noop!(advance(), DisputesError::NotDue);
    });
}

#[test]
fn what_is_opened_is_what_was_sealed_and_only_once() {
    referred(|| {
        let claimed = claimed();
        for (verifier, value) in votes(7, |_| claimed) {
            assert_ok!(join(verifier, value));
        }
        pass(u64::from(SEAT_WINDOW) + 1);
        assert_noop!(
            reveal_vote(FIRST_VERIFIER, other_value()),
            DisputesError::SealMismatch
        );
        assert_noop!(reveal_vote(FIRST_VERIFIER + 9, claimed), DisputesError::NotSeated);
        assert_ok!(reveal_vote(FIRST_VERIFIER, claimed));
        assert_noop!(
            reveal_vote(FIRST_VERIFIER, claimed),
            DisputesError::AlreadyRevealed
        );
    });
}

#[test]
fn a_copied_seal_opens_for_nobody_else() {
    referred(|| {
        let (one, other, value) = (FIRST_VERIFIER, FIRST_VERIFIER + 1, claimed());
        let copied = vote_seal(one, value);
        let mut call = joining(other, value, 1);
        if let DisputesCall::join_committee { seal, .. } = &mut call {
            *seal = copied;
        }
        assert_ok!(join(one, value));
        assert_ok!(send(other, call));
        pass(u64::from(SEAT_WINDOW) + 1);
        assert_ok!(reveal_vote(one, value));
        let salt = salt_of(one);
        let call = DisputesCall::reveal_vote {
            dispute: DISPUTE,
            verifier: other,
            value,
            salt,
        };
        assert_noop!(send_opening(call), DisputesError::SealMismatch);
    });
}

#[test]
fn anybody_may_carry_an_answer_and_nobody_sign_it() {
    referred(|| {
        let (member, value) = (FIRST_VERIFIER, claimed());
        let refused = |call: &DisputesCall| match validity_of(call) {
            Err(TransactionValidityError::Invalid(why)) => why,
            other => panic!("{other:?}"),
        };
        let call = opening_vote(DISPUTE, member, value);
        assert_eq!(refused(&call), InvalidTransaction::Future);
        assert_ok!(join(member, value));
        assert_eq!(refused(&call), InvalidTransaction::Future);
        pass(u64::from(SEAT_WINDOW) + 1);
        assert_noop!(send(member, call.clone()), DispatchError::BadOrigin);
        let other = opening_vote(DISPUTE, member, other_value());
        assert_eq!(refused(&other), InvalidTransaction::BadProof);
        let unseated = opening_vote(DISPUTE, member + 1, value);
        assert_eq!(refused(&unseated), InvalidTransaction::Call);
        let unknown = opening_vote(DISPUTE + 1, member, value);
        assert_eq!(refused(&unknown), InvalidTransaction::Call);
        MockStake::dismiss_agent(member);
        assert_ok!(send_opening(call));
    });
}

#[test]
fn committees_stand_still_with_finality() {
    referred(|| {
        FinalityStoppedAt::set(Some(System::block_number()));
        pass(100);
        let claimed = claimed();
        // Long after the window by the number of blocks.
        for (verifier, value) in votes(7, |_| claimed) {
            assert_ok!(join(verifier, value));
        }
        FinalityStoppedAt::set(None);
        assert_ok!(send_as(
            FIRST_STRANGER,
            DisputesCall::advance_committee { dispute: DISPUTE }
        ));
        for (verifier, value) in votes(7, |_| claimed) {
            assert_ok!(reveal_vote(verifier, value));
        }
        assert_eq!(faults(), [(2, FaultKind::LostDispute)]);
    });
}

#[test]
fn root_decides_while_a_committee_sits_and_nobody_is_fined_for_it() {
    referred(|| {
        let value = other_value();
        for (verifier, value) in votes(7, |_| value) {
            assert_ok!(join(verifier, value));
        }
        pass(u64::from(SEAT_WINDOW) + 1);
        assert_ok!(reveal_vote(FIRST_VERIFIER, value));
        assert_ok!(Disputes::decide_dispute(
            RuntimeOrigin::root(),
            DISPUTE,
            Side::Defender
        ));
        assert_eq!(faults(), [(2, FaultKind::LostDispute)]);
        // Whoever has sealed opens, and is paid if it has said what root says.
        assert_ok!(reveal_vote(FIRST_VERIFIER + 1, value));
        pass(u64::from(VOTE_WINDOW) + 1);
        wind_up();
        assert!(paid().is_empty());
        assert_eq!(Committees::<Test>::iter().count(), 0);
    });
}

#[test]
fn it_ends_by_time_alone() {
    referred(|| {
        pass(time_of_a_ballot());
        assert_eq!(sitting(), None);
        pass(DECISION_WINDOW + CHALLENGE_WINDOW + 2);
        assert_eq!((round(), committee()), (None, None));
    });
}

#[test]
fn committees_of_disputes_that_are_not_there_say_so() {
    after(&[9, 8], || {
        let join = DisputesCall::join_committee {
            dispute: 0,
            ballot: 0,
            proof: None,
            seal: H256::zero(),
        };
        assert_noop!(send(FIRST_VERIFIER, join.clone()), DisputesError::NoCommittee);
        let reveal = |dispute| DisputesCall::reveal_vote {
            dispute,
            verifier: FIRST_VERIFIER,
            value: H256::zero(),
            salt: H256::zero(),
        };
        assert_noop!(send_opening(reveal(0)), DisputesError::NoCommittee);
        assert_noop!(send_opening(reveal(9)), DisputesError::UnknownDispute);
    });
}
