use super::anything::other_entry;
use super::*;
use alloc::vec::Vec;
use sp_core::{H256, bounded::BoundedVec};

/// What becomes of a game about `defender` in which both do what they should, move by move, from its begin.
fn course(defender: &Work, challenger: &Work) -> Vec<Match> {
    let mut course = Vec::new();
    let mut game = Match::new(defender);
    let (mut defender, mut challenger) = (defender.clone(), challenger.clone());
    while let Some(side) = game.game.to_move() {
        let played = match side {
            Side::Defender => game.faithful(side, &mut defender),
            Side::Challenger => game.faithful(side, &mut challenger),
        };
        let mut next = Match::new(&defender);
        next.game = game.game.clone();
        assert_eq!(next.step(side, played.unwrap()), Ok(()));
        course.push(core::mem::replace(&mut game, next));
    }
    course.push(game);
    course
}

/// A fault that a block can compute again, and one that it cannot.
fn courses() -> Vec<Match> {
    let mut truth = Work::new(Toy::new(3, 6, 6, 8, 3), &mut Dice::seeded(5));
    let wrong = truth.altered((9, 17, 0, 1), 0, 1, true);
    let mut courses = course(&wrong, &truth);
    truth.toy.too_large = Some(9);
    let wrong = truth.altered((9, 17, 0, 1), 0, 1, true);
    courses.extend(course(&wrong, &truth));
    courses
}

fn find(wanted: impl Fn(&State) -> bool) -> Match {
    courses()
        .into_iter()
        .find(|game| wanted(game.game.state()))
        .unwrap()
}

fn refused(game: &mut Match, side: Side, played: Move) -> GameError {
    game.step(side, played).unwrap_err()
}

#[test]
fn every_state_ends_by_time_alone_or_needs_a_committee() {
    let mut seen = [false; 9];
    for game in courses() {
        let mut game = game.game;
        seen[game.state().encode()[0] as usize] = true;
        match (game.to_move(), game.state().clone()) {
            (Some(side), _) => {
                assert_eq!(game.decided(side), Err(GameError::NotNow));
                game.tick(BLOCKS);
                assert_eq!(game.outcome(), Some(ended(side.other(), Reason::TimeOut)));
                assert_eq!(game.decided(side), Err(GameError::Over));
            }
            (None, State::NeedsCommittee { .. }) => {
                let clocks = game.clocks();
                game.tick(u32::MAX);
                assert_eq!((game.clocks(), game.outcome()), (clocks, None));
                for winner in [Side::Defender, Side::Challenger] {
                    let mut game = game.clone();
                    game.decided(winner).unwrap();
                    assert_eq!(game.outcome(), Some(ended(winner, Reason::Decided)));
                }
            }
            (None, state) => assert_eq!(state, State::Over(ended(Side::Challenger, Reason::Judged))),
        }
    }
    assert_eq!(seen, [true; 9]);
}

#[test]
fn what_is_wrong_with_a_posting_or_a_name_is_said() {
    let mut truth = Work::new(Toy::new(3, 6, 1, 4, 2), &mut Dice::seeded(1));
    // 20 leaves are a node of 16 and one of 4.
    let mut game = Match::new(&truth);
    let Some(Move::Post(right)) = game.faithful(Side::Defender, &mut truth) else {
        panic!("nothing to post")
    };
    assert_eq!(right.len(), 2);
    let post = |children: Vec<H256>| Move::Post(children.try_into().unwrap());
    for count in [0, 1, 3, 16] {
        let posted = post(vec![right[0]; count]);
        assert_eq!(refused(&mut game, Side::Defender, posted), GameError::WrongCount);
    }
    let turned = post(vec![right[1], right[0]]);
    assert_eq!(refused(&mut game, Side::Defender, turned), GameError::WrongHash);
    let right = post(right.to_vec());
    assert_eq!(
        refused(&mut game, Side::Challenger, right.clone()),
        GameError::NotNow
    );
    assert_eq!(
        refused(&mut game, Side::Defender, Move::Name(0)),
        GameError::NotNow
    );
    assert_eq!(game.step(Side::Defender, right), Ok(()));
    assert_eq!(
        refused(&mut game, Side::Challenger, Move::Name(2)),
        GameError::NoSuchChild
    );
    assert_eq!(game.step(Side::Challenger, Move::Name(1)), Ok(()));
    assert_eq!(game.game.leaves_in_dispute(), 16..20);
}

#[test]
fn only_the_right_entry_is_one() {
    let mut game = find(|state| *state == State::Entering);
    let truth = Work::new(Toy::new(3, 6, 6, 8, 3), &mut Dice::seeded(5));
    let mut wrong = truth.altered((9, 17, 0, 1), 0, 1, true);
    let Some(Move::Enter(entry)) = game.faithful(Side::Defender, &mut wrong) else {
        panic!("nothing to enter")
    };
    assert!(entry.length.is_some() && entry.steps.is_some());
    for seed in 0..100 {
        let other = other_entry(entry.clone(), &mut Dice::seeded(seed));
        let error = refused(&mut game, Side::Defender, Move::Enter(other));
        assert!(
            matches!(error, GameError::WrongLength | GameError::WrongSteps),
            "{error}"
        );
    }
    assert_eq!(game.step(Side::Defender, Move::Enter(entry.clone())), Ok(()));
    assert_eq!(game.game.place().length, truth.length(9));
    assert_eq!(game.game.roots().steps, entry.steps.map(|steps| steps.root));
    assert_eq!(game.game.leaves_in_dispute(), 0..19);
}

/// How a defender enters a leaf to which the challenger has led it.
fn entry_of(game: &mut Match, leaf: u32, work: &mut Work) -> Entry {
    loop {
        let played = match game.game.to_move().unwrap() {
            Side::Challenger => {
                let leaves = game.game.leaves_in_dispute();
                Move::Name(if leaves.len() > 16 { leaf / 16 } else { leaf % 16 } as u8)
            }
            Side::Defender => game.faithful(Side::Defender, work).unwrap(),
        };
        if let Move::Enter(entry) = played {
            return entry;
        }
        game.step(game.game.to_move().unwrap(), played).unwrap();
    }
}

/// A toy whose leaves have lengths that follow from the claim.
struct Settled(Toy, u32);

impl Shape for Settled {
    fn leaves(&self) -> u32 {
        self.0.leaves()
    }

    fn leaf(&self, leaf: u32) -> Option<LeafShape> {
        let length = Length::Known(self.1);
        self.0.leaf(leaf).map(|shape| LeafShape { length, ..shape })
    }

    fn steps(&self, leaf: u32, length: u32) -> Option<u32> {
        self.0.steps(leaf, length)
    }

    fn rows(&self, leaf: u32, length: u32, step: u32) -> Option<RowsShape> {
        self.0.rows(leaf, length, step)
    }
}

#[test]
fn a_length_that_is_known_is_not_shown() {
    let mut work = Work::new(Toy::new(1, 2, 1, 4, 2), &mut Dice::seeded(4));
    let shape = Settled(work.toy, work.length(1));
    let shown = entry_of(&mut Match::new(&work), 1, &mut work);
    let judge = Judge(work.toy);
    let mut game = Game::new(work.root(), &shape, Clocks::equal(1)).unwrap();
    game.step(
        Side::Defender,
        defend(&game, &shape, &mut work).unwrap(),
        &shape,
        &judge,
    )
    .unwrap();
    game.step(Side::Challenger, Move::Name(1), &shape, &judge)
        .unwrap();
    let error = game
        .step(Side::Defender, Move::Enter(shown), &shape, &judge)
        .unwrap_err();
    assert_eq!(error, GameError::WrongLength);
    let entry = defend(&game, &shape, &mut work).unwrap();
    game.step(Side::Defender, entry, &shape, &judge).unwrap();
    assert_eq!(game.place().length, work.length(1));
    // What is fixed is not entered at all.
    let mut game = Game::new(work.root(), &shape, Clocks::equal(1)).unwrap();
    game.step(
        Side::Defender,
        defend(&game, &shape, &mut work).unwrap(),
        &shape,
        &judge,
    )
    .unwrap();
    game.step(Side::Challenger, Move::Name(0), &shape, &judge)
        .unwrap();
    assert_eq!(
        (game.state(), game.place().level),
        (&State::Posting, Level::Segments)
    );
}

#[test]
fn a_segment_is_shown_whole_and_picked_from() {
    let mut game = find(|state| *state == State::Showing);
    let mut wrong =
        Work::new(Toy::new(3, 6, 6, 8, 3), &mut Dice::seeded(5)).altered((9, 17, 0, 1), 0, 1, true);
    let Some(Move::Show(right)) = game.faithful(Side::Defender, &mut wrong) else {
        panic!("nothing to show")
    };
    let show = |bytes: Vec<u8>| Move::Show(bytes.try_into().unwrap());
    let mut other = right.to_vec();
    other[3] ^= 1;
    assert_eq!(
        refused(&mut game, Side::Defender, show(other)),
        GameError::WrongHash
    );
    let longer = [right.to_vec(), vec![0]].concat();
    assert_eq!(
        refused(&mut game, Side::Defender, show(longer)),
        GameError::WrongCount
    );
    let shorter = show(right[1..].to_vec());
    assert_eq!(refused(&mut game, Side::Defender, shorter), GameError::WrongCount);
    assert_eq!(game.step(Side::Defender, show(right.to_vec())), Ok(()));
    for none in [right.len() as u16, 1024, u16::MAX] {
        assert_eq!(
            refused(&mut game, Side::Challenger, Move::Pick(none)),
            GameError::NoSuchChild
        );
    }
    // Any byte of a word is the word's.
    assert_eq!(game.step(Side::Challenger, Move::Pick(7)), Ok(()));
    let value = CellValue::Word(right[4..8].try_into().unwrap());
    assert_eq!(game.cell.map(|cell| (cell.cell, cell.value)), Some((1, value)));
    let opening = Move::Open(BoundedVec::new());
    assert_eq!(refused(&mut game, Side::Defender, opening), GameError::Unproven);
    let opening = game.faithful(Side::Defender, &mut wrong).unwrap();
    assert_eq!(game.step(Side::Defender, opening), Ok(()));
    assert_eq!(
        refused(&mut game, Side::Challenger, Move::Concede),
        GameError::Over
    );
}

/// A referee whose openings take so many bytes.
struct Takes(Option<u32>, Judgement);

impl Referee for Takes {
    fn opening_bytes(&self, _: &Cell) -> Option<u32> {
        self.0
    }

    fn needed(&self, _: &Cell) -> Option<Missing> {
        None
    }

    fn judge(&self, _: &Cell, _: &Roots, _: &[u8]) -> Judgement {
        self.1
    }
}

#[test]
fn a_cell_whose_opening_has_no_room_needs_a_committee() {
    let game = find(|state| matches!(state, State::Picking { .. }));
    let (toy, place) = (game.judge.0, *game.game.place());
    let room = opening_room(&toy, place.leaf, place.length, place.step).unwrap();
    let pick = |referee: &Takes| {
        let mut game = game.game.clone();
        game.step(Side::Challenger, Move::Pick(0), &toy, referee).unwrap();
        game
    };
    for bytes in [None, Some(room + 1), Some(u32::MAX)] {
        let game = pick(&Takes(bytes, Judgement::Holds));
        assert!(matches!(game.state(), State::NeedsCommittee { .. }));
        assert_eq!(game.to_move(), None);
    }
    for (judgement, winner) in [
        (Judgement::Holds, Side::Defender),
        (Judgement::Refuted, Side::Challenger),
    ] {
        let referee = Takes(Some(room), judgement);
        let mut game = pick(&referee);
        let opening = Move::Open(vec![0; room as usize].try_into().unwrap());
        game.step(Side::Defender, opening, &toy, &referee).unwrap();
        assert_eq!(game.outcome(), Some(ended(winner, Reason::Judged)));
    }
}

#[test]
fn an_only_child_is_taken_without_asking() {
    let truth = Work::new(Toy::new(1, 1, 1, 4, 1), &mut Dice::seeded(3));
    let wrong = truth.altered((1, 0, 0, 2), 0, 1, true);
    let course = course(&wrong, &truth);
    let turns: Vec<Side> = course.iter().filter_map(|game| game.game.to_move()).collect();
    use Side::{Challenger, Defender};
    // The leaves, the entry, the steps; the row, the segment and its bytes.
    let expected = [
        Defender, Challenger, Defender, Defender, Challenger, Defender, Defender, Defender, Challenger,
        Defender,
    ];
    assert_eq!(turns, expected);
}

#[test]
fn who_concedes_loses_even_out_of_turn() {
    for game in courses() {
        for side in [Side::Defender, Side::Challenger] {
            let mut next = Match::new(&Work::new(game.judge.0, &mut Dice::seeded(0)));
            next.game = game.game.clone();
            match game.game.outcome() {
                Some(_) => assert_eq!(refused(&mut next, side, Move::Concede), GameError::Over),
                None => {
                    assert_eq!(next.step(side, Move::Concede), Ok(()));
                    assert_eq!(next.game.outcome(), Some(ended(side.other(), Reason::Conceded)));
                }
            }
        }
    }
}

#[test]
fn clocks_run_only_in_the_own_turn_and_while_blocks_finalize() {
    let mut truth = Work::new(Toy::new(1, 1, 1, 4, 1), &mut Dice::seeded(5));
    let clocks = |defender, challenger| Clocks { defender, challenger };
    let mut game = Game::new(truth.root(), &truth.toy, clocks(10, 5)).unwrap();
    game.tick(0);
    game.tick(9);
    assert_eq!(game.clocks(), clocks(1, 5));
    let toy = truth.toy;
    let posted = defend(&game, &toy, &mut truth).unwrap();
    game.step(Side::Defender, posted, &toy, &Judge(toy)).unwrap();
    game.tick(4);
    assert_eq!(game.clocks(), clocks(1, 1));
    game.tick(u32::MAX);
    let outcome = Some(ended(Side::Defender, Reason::TimeOut));
    assert_eq!(game.outcome(), outcome);
    game.tick(1);
    assert_eq!(game.outcome(), outcome);
}
