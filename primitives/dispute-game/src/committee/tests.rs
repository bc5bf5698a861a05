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
            seed: H256::zero(),
            verifier_stake: 1,
            begun_at: 0,
        },
        candidates: Default::default(),
        ticked_at: 0,
        suspended: 0,
    }
}

fn drawing() -> Panel {
    panel(CommitteeState::new(QUESTION, windows(5, 5)))
}

fn candidate(verifier: u32, rank: u128) -> Candidate<u32> {
    let seal = seal(QUESTION, 0, &verifier, value_hash(None), SALT);
    Candidate { verifier, rank, seal }
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
    assert!(!panel.summon(|_| 1, 3));
    for verifier in 0..3 {
        panel.enter(candidate(verifier, vote_rank(verifier.into())));
    }
    assert_eq!(panel.candidates.first().unwrap().verifier, 2);
    assert!(panel.summon(|verifier| 10 + u128::from(*verifier), 34));
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
