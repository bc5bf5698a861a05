#![allow(clippy::unwrap_used)]

use super::*;
use crate::quorum_streak::{Decision, Vote, seal};

type Panel = DisputeCommittee<u32, u128, u32>;

const QUESTION: H256 = H256::repeat_byte(7);
const SALT: H256 = H256::repeat_byte(9);

fn panel(state: CommitteeState<u32>) -> Panel {
    Panel {
        state,
        claimed: H256::zero(),
        draw: SeatDraw {
            begun_at: 0,
            settled_by: 0,
            epoch_randomness: H256::zero(),
            verifier_stake: 1,
            corrupt_stake: 0,
            seed: None,
        },
        candidates: Default::default(),
        ticked_at: 0,
        suspended: 0,
        fund: None,
    }
}

fn drawing() -> Panel {
    panel(CommitteeState::new(QUESTION, windows(5, 5)))
}

fn candidate(verifier: u32, rank: u128) -> Candidate<u32> {
    let seal = seal(QUESTION, 0, &verifier, value_hash(None), SALT);
    Candidate {
        verifier,
        rank,
        stake: 10 + u128::from(verifier),
        seal,
    }
}

#[test]
fn the_best_draws_are_seated_whoever_comes_first() {
    let mut panel = drawing();
    for verifier in 0..SEATS {
        let entry = panel.enter(candidate(verifier, 100 + u128::from(verifier)));
        assert_eq!(entry, Entry::Seated);
    }
    assert_eq!(panel.enter(candidate(50, 500)), Entry::Outranked);
    // As good as the last is not better.
    assert_eq!(panel.enter(candidate(51, 119)), Entry::Outranked);
    assert_eq!(panel.enter(candidate(52, 3)), Entry::InsteadOf(19));
    assert_eq!(panel.candidates.first().unwrap().verifier, 52);
    assert!(panel.candidates.is_sorted_by_key(|candidate| candidate.rank));
    assert!(panel.seat());
    assert!(panel.state.is_revealing() && panel.candidates.is_empty());
    assert!(matches!(panel.state.vote_of(&52), Some(Vote::Committed(_))));
    assert_eq!((panel.state.vote_of(&19), panel.room()), (None, 0));
    assert_eq!(panel.enter(candidate(53, 0)), Entry::Outranked);
}

#[test]
fn many_names_with_a_third_of_the_stake_are_no_quorum_beside_a_few_with_the_rest() {
    // Four with two thirds of the stake, and sixteen of those that have the rest: each takes a seat.
    for (stake_of_few, decision) in [(1_000, None), (50, Some(Decision::Committee(value_hash(None))))] {
        let mut panel = drawing();
        panel.draw.verifier_stake = 6_000;
        for ballot in 0..3 {
            for verifier in 0..SEATS {
                let is_few = verifier < 4;
                panel.enter(Candidate {
                    stake: if is_few { stake_of_few } else { 50 },
                    seal: seal(QUESTION, ballot, &verifier, answer_of(verifier), SALT),
                    ..candidate(verifier, 1)
                });
            }
            assert!(panel.seat());
            for verifier in 0..SEATS {
                let opened = panel.state.reveal(&verifier, answer_of(verifier), SALT);
                assert_eq!(opened, Ok(()));
            }
        }
        assert_eq!(panel.state.decision(), decision, "{stake_of_few}");
    }
}

/// What the few say, and what all others say.
fn answer_of(verifier: u32) -> H256 {
    if verifier < 4 {
        H256::repeat_byte(5)
    } else {
        value_hash(None)
    }
}

#[test]
fn nineteen_are_too_few_for_a_round() {
    let mut panel = drawing();
    for verifier in 1..SEATS {
        panel.enter(candidate(verifier, 1));
    }
    assert!(!panel.seat());
    assert_eq!(panel.state.stage(), &Stage::Drawing);
}

#[test]
fn all_that_come_vote_with_what_they_count() {
    let mut panel = panel(CommitteeState::of_all(QUESTION, windows(5, 5)));
    assert!(!panel.summon());
    for verifier in 0..3 {
        panel.enter(candidate(verifier, vote_rank(verifier.into())));
    }
    assert_eq!(panel.candidates.first().unwrap().verifier, 2);
    assert!(panel.summon());
    for verifier in 0..3 {
        let opened = panel.state.reveal(&verifier, value_hash(None), SALT);
        assert_eq!(opened, Ok(()));
    }
    assert_eq!(panel.state.decision(), Some(Decision::Voters(value_hash(None))));
}

#[test]
fn twice_the_stake_is_drawn_twice_as_often() {
    // Who of two comes first, over many draws: one has twice the other's stake. Of independent uniform draws
    // u and v, u / 2 < v three times out of four.
    let first = (0..40_000u32).filter(|n| {
        let output = |who: u8| blake2_256(&(n, who).encode());
        seat_rank(&output(0), 2_000) < seat_rank(&output(1), 1_000)
    });
    let first = first.count();
    // Mean 30,000, standard deviation 87: five of them.
    assert!((29_565..30_435).contains(&first), "{first}");
    assert_eq!(seat_rank(&[0; 32], 0), u128::MAX);
}

#[test]
fn no_two_questions_and_no_two_values_are_alike() {
    let claim = ResultClaim {
        output: H256::zero(),
        trace_root: H256::zero(),
        units: 1,
    };
    let cell = Cell {
        leaf: 0,
        length: 1,
        step: 0,
        row: 0,
        cell: 0,
        value: CellValue::Word([0; 4]),
    };
    let asked = question(1, 2, &claim, &cell);
    assert_ne!(asked, question(2, 2, &claim, &cell));
    assert_ne!(asked, question(1, 3, &claim, &cell));
    assert_ne!(asked, question(1, 2, &claim, &Cell { cell: 1, ..cell }));
    let values = [
        None,
        Some(CellValue::Byte(0)),
        Some(CellValue::Word([0; 4])),
        Some(CellValue::Word([1, 0, 0, 0])),
    ];
    for (place, value) in values.iter().enumerate() {
        assert_eq!(
            values
                .iter()
                .filter(|other| value_hash(**other) == value_hash(values[place]))
                .count(),
            1
        );
        assert_eq!(value_hash(*value), value_hash(values[place]));
    }
}

/// A candidate that has sealed this answer for the first ballot.
fn answering(verifier: u32, value: H256) -> Candidate<u32> {
    Candidate {
        seal: seal(QUESTION, 0, &verifier, value, SALT),
        ..candidate(verifier, verifier.into())
    }
}

#[test]
fn whoever_sealed_before_it_was_dismissed_opens_its_answer_and_that_is_all() {
    let (right, wrong) = (value_hash(None), H256::repeat_byte(5));
    for state in [
        CommitteeState::new(QUESTION, windows(5, 6)),
        CommitteeState::of_all(QUESTION, windows(5, 6)),
    ] {
        let mut panel = panel(state);
        for verifier in 0..5 {
            panel.enter(answering(verifier, if verifier == 0 { wrong } else { right }));
        }
        panel.dismiss();
        assert!(panel.state.is_revealing() && panel.candidates.is_empty());
        assert_eq!((panel.room(), panel.state.left()), (0, 6));
        for (verifier, value) in [(0, wrong), (1, right), (2, right)] {
            assert_eq!(panel.state.reveal(&verifier, value, SALT), Ok(()));
        }
        assert!(panel.state.reveal(&3, wrong, SALT).is_err());
        panel.state.tick(6);
        assert_eq!(panel.state.decision(), Some(Decision::Dismissed));
        assert_eq!(panel.state.absent(), [3, 4]);
        assert_eq!(panel.state.most_given(|_| true), Some(right));
        assert_eq!(panel.state.most_given(|value| *value != right), Some(wrong));
        assert_eq!(
            (panel.state.gave(&right), panel.state.gave(&wrong)),
            (vec![1, 2], vec![0])
        );
    }
}

#[test]
fn one_that_nobody_came_to_is_over_when_it_is_dismissed() {
    for state in [
        CommitteeState::new(QUESTION, windows(5, 6)),
        CommitteeState::of_all(QUESTION, windows(5, 6)),
    ] {
        let mut panel = panel(state);
        panel.dismiss();
        assert_eq!(panel.state.decision(), Some(Decision::Dismissed));
        assert!(!panel.state.has_members());
        assert_eq!(panel.state.most_given(|_| true), None);
    }
}

#[test]
fn a_ballot_that_would_have_decided_decides_nothing_after_it_was_dismissed() {
    let right = value_hash(None);
    let mut panel = panel(CommitteeState::of_all(QUESTION, windows(5, 6)));
    panel.enter(answering(1, right));
    assert!(panel.summon());
    panel.dismiss();
    assert_eq!(panel.state.reveal(&1, right, SALT), Ok(()));
    assert_eq!(panel.state.decision(), Some(Decision::Dismissed));
    assert_eq!(panel.state.gave(&right), [1]);
}
