//! Members of a committee are paid by whoever loses the dispute, however it ends, and nobody can send them
//! home.

use frame_support::{assert_noop, assert_ok};
use sp_core::H256;
use sp_runtime::DispatchError;
use surety_dispute_game::bisection::{Move, Side};
use surety_pallet_test_kit::MockStake;
use surety_types::{stake::Role, traits::Jail, trust::FaultKind};

use super::{after, revealed_with};
use surety_pallet_integration_tests::*;

const WRONG: u8 = TOO_LARGE + 1;
const SEATED: BlockNumber = SEAT_WINDOW as BlockNumber + 1;
const VOTED: BlockNumber = VOTE_WINDOW as BlockNumber + 1;

/// Stashes 1, who is right, and 2 contradict each other.
fn referred(test: impl FnOnce()) {
    after(&[9, WRONG], || {
        play_out(&[(1, 9), (2, WRONG)]);
        test();
    });
}

fn seal_all(votes: &[(AccountId, H256)]) {
    for (verifier, value) in votes {
        assert_ok!(join(*verifier, *value));
    }
}

fn open_all(votes: &[(AccountId, H256)]) {
    for (verifier, value) in votes {
        assert_ok!(reveal_vote(*verifier, *value));
    }
}

/// The stake of `stash` that is left, and what of it is locked.
fn stake(stash: AccountId) -> (Balance, Balance) {
    (MockStake::bonded(stash), MockStake::locked(stash))
}

#[test]
fn members_that_are_right_are_paid_once_and_out_of_free_stake_of_the_loser() {
    referred(|| {
        let claimed = claimed();
        // One of nine is wrong.
        ballot(&votes(9, |who| {
            if who == FIRST_VERIFIER {
                other_value()
            } else {
                claimed
            }
        }));
        assert_eq!(faults(), [(2, FaultKind::LostDispute)]);
        assert_eq!(stake(2), (BOND, LOCK + COMMITTEE_POT));
        wind_up();
        assert_eq!(
            paid(),
            (1..9).map(|place| FIRST_VERIFIER + place).collect::<Vec<_>>()
        );
        assert_eq!(MockStake::awarded(FIRST_VERIFIER + 1), MEMBER_PAY);
        // The lock is whole, and what nobody earned is free again.
        assert_eq!(stake(2), (BOND - 8 * MEMBER_PAY, LOCK));
        assert_eq!(MockStake::bonded(1), BOND);
        assert_eq!(
            Committees::<Test>::iter().count() + DisputeStorage::<Test>::iter().count(),
            0
        );
    });
}

#[test]
fn a_fund_of_more_than_was_set_aside_or_of_a_strangers_is_noticed() {
    referred(|| {
        let claimed = claimed();
        ballot(&votes(9, |_| claimed));
        let (id, sound) = Committees::<Test>::iter().next().unwrap();
        let fund = sound.fund.clone().unwrap();
        assert_ok!(try_state());
        let (mut more, mut of_stranger) = (fund.clone(), fund.clone());
        more.left = fund.pot + 1;
        of_stranger.payer = FIRST_STRANGER;
        for damaged in [more, of_stranger] {
            Committees::<Test>::mutate(id, |committee| committee.as_mut().unwrap().fund = Some(damaged));
            let noticed = try_state();
            assert!(
                matches!(noticed, Err(DispatchError::Other(text)) if text.starts_with("DISPUTES-7")),
                "{noticed:?}"
            );
        }
        Committees::<Test>::insert(id, sound);
    });
}

#[test]
fn a_loser_without_free_stake_pays_out_of_its_lock() {
    referred(|| {
        // Everything else is behind something else.
        MockStake::bond(2, agent_of(2), Role::Provider, 0);
        let free = BOND - LOCK;
        assert_ok!(<MockStake as surety_types::traits::StakeLedger<_, _>>::lock(
            &2, free
        ));
        let claimed = claimed();
        ballot(&votes(7, |_| claimed));
        let fund = committee().unwrap().fund.unwrap();
        assert_eq!((fund.pot, slashes()[0].lock), (LOCK, 0));
        let each = LOCK / 60;
        wind_up();
        assert_eq!(MockStake::awarded(FIRST_VERIFIER), each);
        // A small committee is no shield: what its members leave of the lock is lost like the rest of it.
        assert_eq!(slashes()[0].lock, LOCK - 7 * each);
        assert_eq!(stake(2), (BOND - 7 * each, BOND - 7 * each));
        <MockStake as surety_types::traits::StakeLedger<_, _>>::unlock(&2, free);
    });
}

#[test]
fn conceding_does_not_send_members_home_unpaid() {
    // The defender, or the challenger, as soon as they have sealed or when some have opened.
    for (conceding, opened) in [(1, 0), (1, 3), (2, 0), (2, 3)] {
        referred(|| {
            let claimed = claimed();
            let right = if conceding == 2 { claimed } else { other_value() };
            let wrong = if conceding == 2 { other_value() } else { claimed };
            let all = votes(8, |who| if who == FIRST_VERIFIER { wrong } else { right });
            seal_all(&all);
            if opened > 0 {
                pass(SEATED);
                open_all(&all[..opened]);
            }
            assert_ok!(play(agent_of(conceding), DISPUTE, Move::Concede));
            // It is decided at once.
            assert_eq!(
                (faults(), pairs()),
                (vec![(conceding, FaultKind::LostDispute)], vec![])
            );
            assert_noop!(join(FIRST_VERIFIER + 9, right), DisputesError::NotNow);
            // One never opens.
            open_all(&all[opened..7]);
            pass(VOTED);
            wind_up();
            let members: Vec<_> = (1..7).map(|place| FIRST_VERIFIER + place).collect();
            assert_eq!(paid(), members, "{conceding} {opened}");
            assert!(members.iter().all(|who| MockStake::awarded(*who) == MEMBER_PAY));
            let silent = FIRST_VERIFIER + 7;
            assert!(TrustLock::is_suspended(&silent));
            assert!(!TrustLock::is_suspended(&FIRST_VERIFIER));
            assert_eq!(
                (MockStake::slashed(silent), MockStake::slashed(FIRST_VERIFIER)),
                (0, 0)
            );
            assert_eq!(MockStake::slashed(conceding), 6 * MEMBER_PAY);
        });
    }
}

#[test]
fn losing_to_a_friend_elsewhere_saves_nothing_either() {
    after(&[9, WRONG, 8], || {
        play_out(&[(1, 9), (2, WRONG)]);
        let claimed = claimed();
        let all = votes(4, |_| claimed);
        seal_all(&all);
        assert_ok!(challenge(FIRST_STRANGER, 2));
        let (second, _) = *disputes().last().unwrap();
        assert_ok!(play(agent_of(2), second, Move::Concede));
        assert_noop!(join(FIRST_VERIFIER + 5, claimed), DisputesError::Moot);
        pass(2);
        open_all(&all);
        wind_up();
        assert_eq!(paid(), all.iter().map(|(who, _)| *who).collect::<Vec<_>>());
    });
}

#[test]
fn where_the_question_was_decided_elsewhere_those_are_paid_who_gave_what_most_gave() {
    referred(|| {
        // Nobody knows yet which other number is the right one: a guess is none.
        let guess = H256::repeat_byte(0x77);
        let all = votes(5, |who| match who - FIRST_VERIFIER {
            0 => guess,
            1 => claimed(),
            _ => other_value(),
        });
        seal_all(&all);
        assert_ok!(play(agent_of(1), DISPUTE, Move::Concede));
        open_all(&all);
        wind_up();
        assert_eq!(
            paid(),
            (2..5).map(|place| FIRST_VERIFIER + place).collect::<Vec<_>>()
        );
    });
}

#[test]
fn a_member_cannot_open_what_another_has_sealed() {
    referred(|| {
        let claimed = claimed();
        assert_ok!(join(FIRST_VERIFIER, claimed));
        let copied = DisputesCall::join_committee {
            dispute: DISPUTE,
            ballot: 0,
            proof: None,
            seal: vote_seal(FIRST_VERIFIER, claimed),
        };
        assert_ok!(send(FIRST_VERIFIER + 1, copied));
        assert_ok!(play(agent_of(2), DISPUTE, Move::Concede));
        assert_ok!(reveal_vote(FIRST_VERIFIER, claimed));
        // Now it knows what was said, and can still not say it.
        let salt = salt_of(FIRST_VERIFIER);
        let copy = DisputesCall::reveal_vote {
            dispute: DISPUTE,
            verifier: FIRST_VERIFIER + 1,
            value: claimed,
            salt,
        };
        assert_noop!(send_opening(copy), DisputesError::SealMismatch);
        pass(VOTED);
        wind_up();
        assert_eq!(paid(), [FIRST_VERIFIER]);
    });
}

#[test]
fn a_committee_that_nobody_came_to_costs_nobody_anything() {
    referred(|| {
        assert_ok!(play(agent_of(2), DISPUTE, Move::Concede));
        assert_eq!(
            Committees::<Test>::iter().count() + DisputeStorage::<Test>::iter().count(),
            0
        );
        assert_eq!(stake(2), (BOND, LOCK));
    });
}

#[test]
fn nobody_pays_for_a_dispute_that_nobody_could_decide() {
    referred(|| {
        let claimed = claimed();
        ballot(&votes(6, |_| claimed));
        pass(VOTED + DECISION_WINDOW + 2);
        assert_eq!((pairs(), paid(), faults()), (vec![], vec![], vec![]));
        assert_eq!(Committees::<Test>::iter().count(), 0);
    });
}

#[test]
fn members_of_a_vote_that_decided_nothing_are_paid_when_root_decides() {
    referred(|| {
        let claimed = claimed();
        ballot(&votes(6, |_| claimed));
        assert_eq!((pairs(), sitting()), (vec![(1, 2)], None));
        assert_ok!(Disputes::decide_dispute(
            RuntimeOrigin::root(),
            DISPUTE,
            Side::Defender
        ));
        wind_up();
        assert_eq!(paid().len(), 6);
    });
}

#[test]
fn an_auditor_that_loses_pays_beside_its_bond() {
    TestExt::new().round_of(1).execute_with(|| {
        let auditor = FIRST_VERIFIER;
        revealed_with(&[(auditor, 1, WRONG)], &[9]);
        assert_ok!(reveal_audit(auditor, 1, WRONG));
        play_out(&[(1, 9), (auditor, WRONG)]);
        let claimed = claimed();
        ballot(&votes(8, |_| claimed)[1..]);
        assert_eq!(faults(), [(auditor, FaultKind::FalseAudit)]);
        assert_eq!(slashes()[0].lock, AUDIT_BOND);
        wind_up();
        assert_eq!(paid().len(), 7);
        assert_eq!(stake(auditor), (BOND - 7 * MEMBER_PAY, AUDIT_BOND));
    });
}

#[test]
fn a_challenger_that_loses_pays_out_of_what_it_has_on_hold_for_that() {
    after(&[9, 9], || {
        assert_ok!(challenge(FIRST_STRANGER, 1));
        play_out(&[(1, 9), (FIRST_STRANGER, WRONG)]);
        let all = votes(5, |_| claimed());
        seal_all(&all);
        assert_ok!(play(FIRST_STRANGER, DISPUTE, Move::Concede));
        // Its place is free when its members are paid.
        assert_eq!(round().unwrap().challenges, 1);
        open_all(&all);
        wind_up();
        assert_eq!(round().unwrap().challenges, 0);
        assert_eq!(money(FIRST_STRANGER), MONEY - CHALLENGE_BOND - 5 * MEMBER_PAY);
        assert!(all.iter().all(|(who, _)| money(*who) == MEMBER_PAY));
    });
}

#[test]
fn a_task_is_not_settled_before_members_have_opened_what_they_sealed() {
    referred(|| {
        let claimed = claimed();
        seal_all(&votes(3, |_| claimed));
        assert_ok!(play(agent_of(2), DISPUTE, Move::Concede));
        pass(VOTED);
        assert!(round().is_some());
        wind_up();
        pass(CHALLENGE_WINDOW + 2);
        assert!(round().is_none());
    });
}
