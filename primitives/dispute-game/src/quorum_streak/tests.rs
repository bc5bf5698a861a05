#![allow(clippy::unwrap_used)]

mod simulation;

use super::*;
use scale_info::{Registry, meta_type};

type Panel = Committee<u32, 100>;

const WINDOWS: Windows = Windows {
    draw: 5,
    commit: 10,
    reveal: 10,
};
const QUESTION: H256 = H256::repeat_byte(7);
const SALT: H256 = H256::repeat_byte(9);

fn value(byte: u8) -> H256 {
    H256::repeat_byte(byte)
}

fn panel() -> Panel {
    Committee::new(QUESTION, WINDOWS)
}

/// Has every member of the ballot answer; None keeps silent.
fn answer(panel: &mut Panel, answers: impl Fn(u32) -> Option<H256>) {
    let (number, members): (u32, Vec<u32>) = match panel.stage() {
        Stage::Round(ballot) => (
            ballot.number(),
            ballot.seats().iter().map(|seat| seat.member).collect(),
        ),
        Stage::Voting(ballot) => (
            ballot.number(),
            ballot.seats().iter().map(|seat| seat.member).collect(),
        ),
        stage => panic!("nobody is asked while {stage:?}"),
    };
    let mut silent = false;
    for member in &members {
        match answers(*member) {
            Some(value) => panel
                .commit(member, seal(QUESTION, number, member, value, SALT))
                .unwrap(),
            None => silent = true,
        }
    }
    if silent {
        panel.tick(WINDOWS.commit);
    }
    for member in &members {
        if let Some(value) = answers(*member) {
            panel.reveal(member, value, SALT).unwrap();
        }
    }
}

/// A round in which `agreeing` of 20 give `value`, and the others something else.
fn round(panel: &mut Panel, agreeing: u32, wanted: u8) {
    panel.draw(0..SEATS).unwrap();
    answer(panel, |member| {
        Some(if member < agreeing {
            value(wanted)
        } else {
            value(100 + member as u8)
        })
    });
}

#[test]
fn three_quorums_in_a_row_decide() {
    let mut panel = panel();
    for _ in 0..2 {
        round(&mut panel, 15, 1);
        assert_eq!(panel.decision(), None);
    }
    round(&mut panel, 15, 1);
    assert_eq!(panel.decision(), Some(Decision::Committee(value(1))));
    assert!(panel.absent().is_empty());
}

#[test]
fn fourteen_are_no_quorum_and_break_a_streak() {
    let mut panel = panel();
    for agreeing in [15, 20, 14, 20, 15] {
        round(&mut panel, agreeing, 1);
        assert_eq!(panel.decision(), None);
    }
    round(&mut panel, 16, 1);
    assert_eq!(panel.decision(), Some(Decision::Committee(value(1))));
}

#[test]
fn eight_rounds_without_a_streak_summon_everybody() {
    let mut panel = panel();
    for _ in 0..4 {
        round(&mut panel, 20, 1);
        assert_eq!(panel.stage(), &Stage::Drawing);
        round(&mut panel, 14, 1);
    }
    assert_eq!(panel.rounds(), 8);
    assert_eq!(panel.stage(), &Stage::Summoning);
}

/// Eight rounds without a streak, and then a vote of as many as have room, of whom `agreeing` agree, out of
/// voters that count three times as much.
fn crowded(panel: &mut Panel, agreeing: u32) {
    for _ in 0..ROUNDS_MAX {
        round(panel, 0, 1);
    }
    let electorate = Electorate {
        all: 300,
        corrupt: 99,
    };
    panel
        .summon_weighed((0..100).map(|voter| (voter, 1)), electorate)
        .unwrap();
    answer(panel, |member| Some(value(if member < agreeing { 1 } else { 2 })));
}

#[test]
fn two_thirds_of_as_many_voters_as_have_room_decide_where_they_are_more_than_may_be_corrupt() {
    // Their two thirds are 67, and of all more than 99 may not be corrupt.
    for (agreeing, decision) in [(99, None), (100, Some(Decision::Voters(value(1))))] {
        let mut panel = panel();
        crowded(&mut panel, agreeing);
        assert_eq!(panel.decision(), decision, "{agreeing}");
    }
    for (agreeing, decision) in [(66, None), (67, Some(Decision::Voters(value(1))))] {
        let mut panel = Panel::of_all(QUESTION, WINDOWS);
        let electorate = Electorate {
            all: 200,
            corrupt: 66,
        };
        panel
            .summon_weighed((0..100).map(|voter| (voter, 1)), electorate)
            .unwrap();
        answer(&mut panel, |member| {
            Some(value(if member < agreeing { 1 } else { 2 }))
        });
        assert_eq!(
            panel.decision(),
            decision.or(Some(Decision::Undecided)),
            "{agreeing}"
        );
    }
}

#[test]
fn rounds_go_on_after_a_vote_that_had_no_room_for_all_and_end_without_another() {
    let mut panel = panel();
    crowded(&mut panel, 60);
    assert_eq!((panel.stage(), panel.rounds()), (&Stage::Drawing, 9));
    let mut decided = panel.clone();
    for _ in 0..3 {
        round(&mut decided, 15, 1);
    }
    assert_eq!(decided.decision(), Some(Decision::Committee(value(1))));
    for rounds in 9..BALLOTS_MAX {
        assert_eq!((panel.decision(), panel.rounds()), (None, rounds));
        round(&mut panel, 14, 1);
    }
    assert_eq!(panel.decision(), Some(Decision::Undecided));
}

#[test]
fn quorums_that_contradict_each_other_end_rounds_for_good() {
    let mut panel = panel();
    for agreeing in [(15, 1), (15, 2)] {
        round(&mut panel, agreeing.0, agreeing.1);
    }
    panel.summon(0..100).unwrap();
    answer(&mut panel, |member| Some(value(member as u8)));
    assert_eq!(panel.decision(), Some(Decision::Undecided));

    let mut later = Committee::new(QUESTION, WINDOWS);
    crowded(&mut later, 60);
    round(&mut later, 15, 1);
    round(&mut later, 15, 2);
    assert_eq!(later.decision(), Some(Decision::Undecided));
}

#[test]
fn a_streak_that_ends_with_the_eighth_round_decides() {
    let mut panel = panel();
    for agreeing in [0, 0, 0, 0, 0, 15, 15, 15] {
        round(&mut panel, agreeing, 1);
    }
    assert_eq!(panel.decision(), Some(Decision::Committee(value(1))));
}

#[test]
fn contradictory_quorums_summon_everybody_even_with_a_round_between() {
    let mut panel = panel();
    round(&mut panel, 15, 1);
    round(&mut panel, 0, 1);
    round(&mut panel, 15, 2);
    assert_eq!(panel.stage(), &Stage::Summoning);
}

#[test]
fn the_vote_of_all_needs_more_than_two_thirds() {
    assert_eq!([1, 2, 3, 4, 99, 100].map(supermajority), [1, 2, 3, 3, 67, 67]);
    for (agreeing, decision) in [(66, Decision::Undecided), (67, Decision::Voters(value(1)))] {
        let mut panel = Panel::of_all(QUESTION, WINDOWS);
        panel.summon(0..100).unwrap();
        answer(&mut panel, |member| {
            Some(value(if member < agreeing { 1 } else { 2 }))
        });
        assert_eq!(panel.decision(), Some(decision));
    }
}

#[test]
fn a_vote_by_stake_needs_two_thirds_of_all_stake_and_not_of_heads() {
    // One rich voter against ten poor ones, and voters who stay away.
    for (rich, electorate, decision) in [
        (67, 100, Decision::Voters(value(1))),
        (66, 100, Decision::Undecided),
        (67, 102, Decision::Undecided),
        // Never less than those who vote count together.
        (21, 0, Decision::Voters(value(1))),
        (20, 0, Decision::Undecided),
    ] {
        let mut panel = Panel::of_all(QUESTION, WINDOWS);
        let voters = (0..11).map(|voter| (voter, if voter == 0 { rich } else { 1 }));
        let electorate = Electorate {
            all: electorate,
            corrupt: 0,
        };
        panel.summon_weighed(voters, electorate).unwrap();
        answer(&mut panel, |member| Some(value(if member == 0 { 1 } else { 2 })));
        assert_eq!(panel.decision(), Some(decision), "{rich} of {electorate:?}");
    }
}

#[test]
fn two_thirds_of_those_who_may_vote_decide_nothing_where_all_of_them_may_be_corrupt() {
    // 40 of 100 may vote, 28 of them agree, and 33 of all may be corrupt.
    for (agreeing, corrupt, decision) in [
        (28, 0, Decision::Voters(value(1))),
        (28, 27, Decision::Voters(value(1))),
        (28, 28, Decision::Undecided),
        (33, 33, Decision::Undecided),
        (34, 33, Decision::Voters(value(1))),
    ] {
        let mut panel = Panel::of_all(QUESTION, WINDOWS);
        let electorate = Electorate { all: 40, corrupt };
        let voters = [(0, agreeing), (1, 40 - agreeing)];
        panel.summon_weighed(voters, electorate).unwrap();
        answer(&mut panel, |member| Some(value(if member == 0 { 1 } else { 2 })));
        assert_eq!(panel.decision(), Some(decision), "{agreeing} against {corrupt}");
    }
}

#[test]
fn stake_of_nothing_decides_nothing() {
    let mut panel = Panel::of_all(QUESTION, WINDOWS);
    panel
        .summon_weighed((0..3).map(|voter| (voter, 0)), Electorate::default())
        .unwrap();
    answer(&mut panel, |_| Some(value(1)));
    assert_eq!(panel.decision(), Some(Decision::Undecided));
}

#[test]
fn what_a_member_has_said_can_be_asked() {
    let mut panel = panel();
    assert_eq!((panel.vote_of(&1), panel.left()), (None, WINDOWS.draw));
    panel.draw(0..SEATS).unwrap();
    let sealed = seal(QUESTION, 0, &1u32, value(1), SALT);
    panel.commit(&1, sealed).unwrap();
    assert_eq!(panel.vote_of(&1), Some(Vote::Committed(sealed)));
    assert_eq!(panel.vote_of(&SEATS), None);
    panel.tick(WINDOWS.commit);
    assert!(panel.is_revealing());
    panel.reveal(&1, value(1), SALT).unwrap();
    assert_eq!(panel.leader(), None);
    round(&mut panel, 15, 2);
    assert_eq!(panel.leader(), Some((value(2), 1)));
}

#[test]
fn who_keeps_silent_is_absent_and_supports_nobody() {
    let mut panel = panel();
    panel.draw(0..SEATS).unwrap();
    answer(&mut panel, |member| (member >= 6).then_some(value(1)));
    assert_eq!(panel.rounds(), 1);
    assert_eq!(panel.absent(), [0, 1, 2, 3, 4, 5]);
    for _ in 0..3 {
        panel.draw(0..SEATS).unwrap();
        answer(&mut panel, |member| (member >= 6).then_some(value(1)));
    }
    assert_eq!(panel.decision(), None);
}

#[test]
fn a_commitment_without_a_reveal_is_absence() {
    let mut panel = panel();
    panel.draw(0..SEATS).unwrap();
    for member in 0..SEATS {
        panel
            .commit(&member, seal(QUESTION, 0, &member, value(1), SALT))
            .unwrap();
    }
    for member in 1..SEATS {
        panel.reveal(&member, value(1), SALT).unwrap();
    }
    assert_eq!(panel.rounds(), 0);
    panel.tick(WINDOWS.reveal);
    assert_eq!(panel.rounds(), 1);
    assert_eq!(panel.absent(), [0]);
}

#[test]
fn every_stage_ends_by_time_alone() {
    let mut panel = panel();
    let mut blocks = 0;
    while panel.decision().is_none() {
        // Draws that come, and members that do nothing.
        if blocks % 3 == 0 && panel.stage() == &Stage::Drawing {
            panel.draw(0..SEATS).unwrap();
        }
        panel.tick(1);
        blocks += 1;
        assert!(blocks <= 8 * 25 + 25);
    }
    assert_eq!(panel.decision(), Some(Decision::Undecided));

    let mut panel = Panel::of_all(QUESTION, WINDOWS);
    panel.summon(0..4).unwrap();
    panel.commit(&0, H256::zero()).unwrap();
    for _ in 0..2 {
        panel.tick(WINDOWS.commit);
    }
    assert_eq!(panel.decision(), Some(Decision::Undecided));
    assert_eq!(panel.absent(), [0, 1, 2, 3]);
}

#[test]
fn no_phase_ends_while_nothing_finalizes() {
    let mut panel = Panel::new(
        QUESTION,
        Windows {
            draw: 0,
            commit: 0,
            reveal: 0,
        },
    );
    panel.tick(0);
    assert_eq!(panel.rounds(), 0);
    panel.tick(1);
    assert_eq!(panel.rounds(), 1);
}

#[test]
fn what_is_wrong_with_an_input_is_said() {
    let mut panel = panel();
    assert_eq!(panel.commit(&1, SALT), Err(CommitteeError::NotNow));
    assert_eq!(panel.summon(0..3), Err(CommitteeError::NotNow));
    assert_eq!(panel.draw(0..19), Err(CommitteeError::BadDraw));
    assert_eq!(panel.draw(0..21), Err(CommitteeError::BadDraw));
    assert_eq!(panel.draw((0..19).chain([3])), Err(CommitteeError::BadDraw));
    panel.draw(0..20).unwrap();
    assert_eq!(panel.draw(0..20), Err(CommitteeError::NotNow));
    assert_eq!(panel.reveal(&1, value(1), SALT), Err(CommitteeError::NotNow));
    assert_eq!(panel.commit(&20, SALT), Err(CommitteeError::NotDrawn));
    let sealed = seal(QUESTION, 0, &1u32, value(1), SALT);
    panel.commit(&1, sealed).unwrap();
    // A copy: it will open for nobody else.
    panel.commit(&2, sealed).unwrap();
    assert_eq!(panel.commit(&1, SALT), Err(CommitteeError::Twice));
    panel.tick(WINDOWS.commit);
    assert_eq!(panel.commit(&3, SALT), Err(CommitteeError::NotNow));
    for (member, byte) in [(1, 2), (2, 1), (3, 1)] {
        assert_eq!(
            panel.reveal(&member, value(byte), SALT),
            Err(CommitteeError::WrongOpening)
        );
    }
    panel.reveal(&1, value(1), SALT).unwrap();
    assert_eq!(panel.reveal(&1, value(1), SALT), Err(CommitteeError::Twice));

    let mut all = Panel::of_all(QUESTION, WINDOWS);
    for voters in [0..0, 0..101] {
        assert_eq!(all.summon(voters), Err(CommitteeError::BadDraw));
    }
}

#[test]
fn an_answer_of_another_round_or_question_does_not_open() {
    let right = seal(QUESTION, 0, &1u32, value(1), SALT);
    for other in [
        seal(value(8), 0, &1u32, value(1), SALT),
        seal(QUESTION, 1, &1u32, value(1), SALT),
        seal(QUESTION, 0, &2u32, value(1), SALT),
        seal(QUESTION, 0, &1u32, value(2), SALT),
        seal(QUESTION, 0, &1u32, value(1), value(1)),
    ] {
        assert_ne!(right, other);
    }
}

#[test]
fn a_committee_can_be_stored_and_described() {
    // 320 answers and 100 votes, twice while they are cast, of 53 bytes with members of four.
    assert!(
        Panel::max_encoded_len() < 28 * 1024,
        "{}",
        Panel::max_encoded_len()
    );
    Registry::new().register_type(&meta_type::<Panel>());
    let mut panel = panel();
    round(&mut panel, 15, 1);
    assert_eq!(Panel::decode(&mut &panel.encode()[..]), Ok(panel));
}
