//! Rounds of a committee that is drawn: there are enough verifiers for it.

use frame_support::{assert_noop, assert_ok};
use sp_core::H256;
use sp_runtime::Permill;
use surety_dispute_game::quorum_streak::{Decision, QUORUM, ROUNDS_MAX, SEATS, Stage};
use surety_pallet_test_kit::{MockClock, MockEntropy, MockStake};
use surety_types::{
    limits::VOTERS_MAX,
    stake::Role,
    traits::{BlockEntropy, ENTROPY_PATIENCE_BLOCKS, TaskTrust},
    trust::FaultKind,
};

use super::after;
use surety_pallet_integration_tests::*;

const WRONG: u8 = TOO_LARGE + 1;
const MANY: AccountId = 50;

/// Stashes 1, who is right, and 2 contradict each other, and there are many verifiers.
fn drawing(test: impl FnOnce()) {
    after(&[9, WRONG], || {
        bond_verifiers(MANY);
        play_out(&[(1, 9), (2, WRONG)]);
        pass(SEED_BLOCKS);
        assert_eq!(committee().unwrap().state.stage(), &Stage::Drawing);
        test();
    });
}

/// A full round in which `agreeing` say `value`, and each of the others something of its own.
fn round_of(agreeing: u32, value: H256) {
    let agreeing = FIRST_VERIFIER + AccountId::from(agreeing);
    let answer = |who| {
        if who < agreeing {
            value
        } else {
            H256::from_low_u64_be(who)
        }
    };
    ballot(&votes(SEATS.into(), answer));
}

fn stage_is_drawing() -> bool {
    committee().is_some_and(|committee| *committee.state.stage() == Stage::Drawing)
}

#[test]
fn three_quorums_in_a_row_decide() {
    drawing(|| {
        let claimed = claimed();
        events();
        for round in 1..=2 {
            round_of(QUORUM, claimed);
            assert!(
                events().contains(&RuntimeEvent::Disputes(DisputesEvent::BallotEnded {
                    dispute: DISPUTE,
                    rounds: round,
                    leader: Some(claimed),
                    streak: round,
                }))
            );
        }
        assert_eq!(faults(), []);
        round_of(QUORUM, claimed);
        assert_eq!(pairs(), []);
        // Five gave other answers. That is nothing to punish.
        assert_eq!(faults(), [(2, FaultKind::LostDispute)]);
    });
}

#[test]
fn a_round_without_a_quorum_breaks_the_streak() {
    drawing(|| {
        let claimed = claimed();
        for agreeing in [15, 20, 14, 15, 15] {
            round_of(agreeing, claimed);
            assert!(stage_is_drawing());
        }
        round_of(15, claimed);
        assert_eq!((sitting(), pairs()), (None, vec![]));
    });
}

#[test]
fn quorums_that_contradict_each_other_summon_everybody() {
    drawing(|| {
        let claimed = claimed();
        round_of(15, claimed);
        round_of(15, other_value());
        let state = committee().unwrap().state;
        assert_eq!((state.stage(), state.rounds()), (&Stage::Summoning, 2));
        // Now everybody may come, without a proof, and 34 of 50 decide.
        for (verifier, value) in votes(34, |_| claimed) {
            let call = DisputesCall::join_committee {
                dispute: DISPUTE,
                ballot: 2,
                proof: None,
                seal: vote_seal(verifier, value),
            };
            assert_ok!(send(verifier, call));
        }
        pass(u64::from(SEAT_WINDOW) + 1);
        events();
        for (verifier, value) in votes(34, |_| claimed) {
            assert_ok!(reveal_vote(verifier, value));
        }
        let ended = |event: &RuntimeEvent| matches!(event, RuntimeEvent::Disputes(DisputesEvent::CommitteeEnded { decision: Decision::Voters(value), .. }) if *value == claimed);
        assert!(events().iter().any(ended));
        assert_eq!(faults(), [(2, FaultKind::LostDispute)]);
    });
}

/// Nobody has come to any round of a dispute, and so many equal verifiers are summoned. A third of all may be
/// corrupt.
fn summoned_of(verifiers: AccountId, test: impl FnOnce()) {
    after(&[9, WRONG], || {
        VerifiersCorrupt::set(Permill::from_parts(333_334));
        bond_verifiers(verifiers);
        play_out(&[(1, 9), (2, WRONG)]);
        pass(SEED_BLOCKS + u64::from(ROUNDS_MAX * (SEAT_WINDOW + 1)));
        assert_eq!(committee().unwrap().state.stage(), &Stage::Summoning);
        test();
    });
}

/// The verifiers that have room in a vote of all, of whom `agreeing` agree with the defender.
fn voters(agreeing: AccountId) -> Vec<(AccountId, H256)> {
    let claimed = claimed();
    let answer = |who| {
        if who < FIRST_VERIFIER + agreeing {
            claimed
        } else {
            other_value()
        }
    };
    votes(VOTERS_MAX.into(), answer)
}

#[test]
fn of_more_verifiers_than_have_room_two_thirds_of_those_who_have_it_decide() {
    summoned_of(200, || {
        ballot(&voters(67));
        assert_eq!((faults(), pairs()), (vec![(2, FaultKind::LostDispute)], vec![]));
    });
    summoned_of(200, || {
        ballot(&voters(66));
        assert!(stage_is_drawing());
        assert_eq!(faults(), []);
    });
}

#[test]
fn rounds_go_on_where_as_many_as_have_room_could_all_be_corrupt() {
    summoned_of(310, || {
        ballot(&voters(VOTERS_MAX.into()));
        assert!(stage_is_drawing());
        assert_eq!(faults(), []);
        let claimed = claimed();
        for _ in 0..3 {
            round_of(QUORUM, claimed);
        }
        assert_eq!((faults(), pairs()), (vec![(2, FaultKind::LostDispute)], vec![]));
    });
}

#[test]
fn rounds_that_nobody_comes_to_end_in_a_vote_of_all_and_that_by_time() {
    drawing(|| {
        for rounds in 0..ROUNDS_MAX {
            assert_eq!(committee().unwrap().state.rounds(), rounds);
            pass(u64::from(SEAT_WINDOW) + 1);
        }
        assert_eq!(committee().unwrap().state.stage(), &Stage::Summoning);
        pass(u64::from(SEAT_WINDOW) + 1);
        // More time has passed than others would have had to decide.
        assert_eq!((sitting(), pairs()), (None, vec![]));
        assert_eq!(faults(), []);
    });
}

#[test]
fn who_did_not_open_its_answer_gets_no_seat_of_this_committee_again() {
    drawing(|| {
        let claimed = claimed();
        let all = votes(SEATS.into(), |_| claimed);
        for (verifier, value) in &all {
            assert_ok!(join(*verifier, *value));
        }
        pass(u64::from(SEAT_WINDOW) + 1);
        for (verifier, value) in &all[1..] {
            assert_ok!(reveal_vote(*verifier, *value));
        }
        pass(u64::from(VOTE_WINDOW) + 1);
        assert!(stage_is_drawing());
        // It is not suspended before the committee has decided.
        assert_noop!(join(FIRST_VERIFIER, claimed), DisputesError::WasAbsent);
        assert_ok!(join(FIRST_VERIFIER + 1, claimed));
    });
}

#[test]
fn too_few_for_a_round_are_a_round_without_a_quorum_and_nobody_is_fined() {
    drawing(|| {
        let claimed = claimed();
        for (verifier, value) in votes(u64::from(SEATS) - 1, |_| claimed) {
            assert_ok!(join(verifier, value));
        }
        pass(u64::from(SEAT_WINDOW) + 1);
        let committee = committee().unwrap();
        assert_eq!((committee.state.rounds(), committee.candidates.len()), (1, 0));
        // They may come again.
        round_of(20, claimed);
        assert_eq!(faults(), []);
    });
}

#[test]
fn a_better_draw_takes_the_seat_of_a_worse_one() {
    drawing(|| {
        let claimed = claimed();
        for (verifier, value) in votes(SEATS.into(), |_| claimed) {
            assert_ok!(send(verifier, joining(verifier, value, 10)));
        }
        let late = FIRST_VERIFIER + u64::from(SEATS);
        assert_noop!(send(late, joining(late, claimed, 11)), DisputesError::Outranked);
        events();
        assert_ok!(send(late, joining(late, claimed, 9)));
        let last = FIRST_VERIFIER + u64::from(SEATS) - 1;
        let lost = |event: &RuntimeEvent| matches!(event, RuntimeEvent::Disputes(DisputesEvent::SeatTaken { verifier, instead_of, .. }) if *verifier == late && *instead_of == Some(last));
        assert!(events().iter().any(lost));
        // It may come back with a draw that is as good as the newcomer's, but its own is not.
        assert_noop!(send(last, joining(last, claimed, 10)), DisputesError::Outranked);
        pass(u64::from(SEAT_WINDOW) + 1);
        assert_noop!(reveal_vote(last, claimed), DisputesError::NotSeated);
        assert_ok!(reveal_vote(late, claimed));
    });
}

#[test]
fn a_draw_above_the_threshold_is_none_unless_there_is_more_stake_behind_it() {
    drawing(|| {
        // 40 of 50 equal ones are expected: the threshold is 0.8, and 0xd0 is above it.
        let (who, value) = (FIRST_VERIFIER, claimed());
        assert_noop!(send(who, joining(who, value, 0xd0)), DisputesError::NotDrawn);
        assert_ok!(send(who + 1, joining(who + 1, value, 0xc0)));
        MockStake::bond(who, agent_of(who), Role::Verifier, BOND);
        assert_ok!(send(who, joining(who, value, 0xd0)));
    });
}

#[test]
fn a_proof_counts_for_one_key_one_dispute_and_one_ballot() {
    drawing(|| {
        let (one, other, value) = (FIRST_VERIFIER, FIRST_VERIFIER + 1, claimed());
        let borrowed = joining(other, value, 1);
        assert_noop!(send(one, borrowed), DisputesError::NotDrawn);
        let mut without = joining(one, value, 1);
        if let DisputesCall::join_committee { proof, .. } = &mut without {
            *proof = None;
        }
        assert_noop!(send(one, without), DisputesError::NotDrawn);

        let old = joining(one, value, 1);
        pass(u64::from(SEAT_WINDOW) + 1);
        // Another ballot: neither the call as it is, nor its proof with the new number.
        assert_noop!(send(one, old.clone()), DisputesError::StaleBallot);
        let mut renamed = old;
        if let DisputesCall::join_committee { ballot, .. } = &mut renamed {
            *ballot = 1;
        }
        assert_noop!(send(one, renamed), DisputesError::NotDrawn);
        assert_ok!(join(one, value));
    });
}

#[test]
fn keys_and_stake_that_came_after_the_committee_was_called_draw_nothing_in_any_of_its_rounds() {
    drawing(|| {
        let (who, value) = (FIRST_VERIFIER, claimed());
        // It was called as many blocks ago as it takes to find out the seed.
        let since = SEASONING + u32::try_from(SEED_BLOCKS).unwrap();
        MockStake::settle(who, since - 1);
        assert_noop!(join(who, value), DisputesError::Unsettled);
        MockStake::settle(who, since);
        assert_ok!(join(who, value));
        pass(u64::from(SEAT_WINDOW) + 1);
        // Another round, and what is drawn with is as old as in the first.
        assert_eq!(committee().unwrap().state.rounds(), 1);
        MockStake::settle(who, since);
        assert_noop!(join(who, value), DisputesError::Unsettled);
    });
}

#[test]
fn what_is_drawn_with_comes_from_a_block_after_the_move_that_called_for_it() {
    after(&[9, WRONG], || {
        bond_verifiers(MANY);
        play_out(&[(1, 9), (2, WRONG)]);
        let draw = committee().unwrap().draw;
        assert_eq!((draw.seed, draw.begun_at), (None, System::block_number()));
        assert_noop!(join(FIRST_VERIFIER, claimed()), DisputesError::NotNow);
        events();
        pass(SEED_BLOCKS);
        let seed = committee().unwrap().draw.seed.unwrap();
        let (output, _) = MockEntropy::first_after(draw.begun_at).unwrap();
        let expected =
            surety_audit_economics::seat_seed(&genesis(), DISPUTE, &draw.epoch_randomness, Some(&output));
        assert_eq!(seed, expected);
        assert!(
            events().contains(&RuntimeEvent::Disputes(DisputesEvent::SeatsSeeded {
                dispute: DISPUTE,
                seed
            }))
        );
        // The whole window is left.
        assert_eq!(committee().unwrap().state.left(), SEAT_WINDOW);
        assert_ok!(join(FIRST_VERIFIER, claimed()));
    });
}

#[test]
fn all_committees_of_a_round_get_their_seeds_by_blocks_though_the_clock_stands_still() {
    after(&[9, WRONG], || {
        bond_verifiers(MANY);
        assert_ok!(challenge(FIRST_STRANGER, 1));
        play_out(&[(1, 9), (2, WRONG), (FIRST_STRANGER, WRONG)]);
        FinalityStoppedAt::set(Some(System::block_number()));
        let unseeded = || {
            let committees = Committees::<Test>::iter_values();
            committees
                .filter(|committee| committee.draw.seed.is_none())
                .count()
        };
        assert_eq!(unseeded(), 2);
        // One in a block, as soon as there is something to draw with.
        for left in [2, 1, 0] {
            pass_unattended(1);
            for task in MockClock::take_with_entropy(System::block_number()) {
                assert_ok!(Results::advance(task));
            }
            assert_eq!(unseeded(), left);
        }
    });
}

#[test]
fn without_entropy_a_committee_is_drawn_with_what_the_epoch_has() {
    after(&[9, WRONG], || {
        bond_verifiers(MANY);
        play_out(&[(1, 9), (2, WRONG)]);
        HasEntropy::set(false);
        MockEntropy::reset();
        pass(u64::from(ENTROPY_PATIENCE_BLOCKS));
        assert_eq!(committee().unwrap().draw.seed, None);
        pass(2);
        assert_ok!(join(FIRST_VERIFIER, claimed()));
    });
}

#[test]
fn a_lost_challenge_by_a_drawn_committee_is_the_challengers() {
    after(&[9, 9], || {
        bond_verifiers(MANY);
        assert_ok!(challenge(FIRST_STRANGER, 1));
        play_out(&[(1, 9), (FIRST_STRANGER, WRONG)]);
        pass(SEED_BLOCKS);
        let claimed = claimed();
        for _ in 0..3 {
            round_of(20, claimed);
        }
        // Its members are paid out of what is on hold for them, and the rest of that comes back.
        wind_up();
        assert_eq!(Committees::<Test>::iter().count(), 0);
        assert_eq!(money(FIRST_STRANGER), MONEY - CHALLENGE_BOND - 20 * MEMBER_PAY);
        assert_eq!(money(FIRST_VERIFIER), MEMBER_PAY);
    });
}

#[test]
fn a_claim_that_was_decided_wrong_is_defended_by_the_next_one_before_a_committee_of_its_own() {
    after(&[WRONG, WRONG], || {
        assert_ok!(challenge(FIRST_STRANGER, 1));
        play_out(&[(1, WRONG), (2, WRONG), (FIRST_STRANGER, 9)]);
        ballot(&votes(7, |_| other_value()));
        assert_eq!(faults(), [(1, FaultKind::WrongResult)]);
        wind_up();
        assert_eq!(pairs(), [(2, FIRST_STRANGER)]);
        play_out(&[(2, WRONG), (FIRST_STRANGER, 9)]);
        assert!(Committees::<Test>::contains_key(1));
    });
}
