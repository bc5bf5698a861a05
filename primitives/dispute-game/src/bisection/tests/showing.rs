//! What a challenger has not got, and its defender shows.

use super::*;
use alloc::vec::Vec;
use surety_proofs::{PartOpening, content_hash, row_digest};

/// A prompt, an answer, and a leaf between them that is computed.
struct Answer {
    prompt: Vec<u8>,
    answer: Vec<u8>,
}

impl Answer {
    fn new(prompt: usize, answer: usize) -> Self {
        Self {
            prompt: vec![3; prompt],
            answer: (0..answer).map(|at| (at / 5) as u8).collect(),
        }
    }

    fn game(&self) -> Game {
        let leaves = [
            content_hash(&self.prompt),
            row_digest(&[1]),
            content_hash(&self.answer),
        ];
        let root = surety_proofs::merkle_root(leaves.into_iter());
        let mut game = Game::new(root, self, Clocks::equal(BLOCKS)).unwrap();
        let post = Move::Post(leaves.to_vec().try_into().unwrap());
        game.step(Side::Defender, post, self, &NoCell).unwrap();
        game
    }

    fn part(&self, blob: &[u8], part: u32) -> Move {
        Move::Supply(PartOpening::new(blob, part).unwrap())
    }
}

impl Shape for Answer {
    fn leaves(&self) -> u32 {
        3
    }

    fn leaf(&self, leaf: u32) -> Option<LeafShape> {
        let kind = match leaf {
            0 => LeafKind::Fixed(content_hash(&self.prompt)),
            1 => LeafKind::Computed,
            _ => LeafKind::Fixed(content_hash(&self.answer)),
        };
        let length = Length::Known(1);
        Some(LeafShape { length, kind })
    }

    fn steps(&self, leaf: u32, _: u32) -> Option<u32> {
        (leaf == 1).then_some(1)
    }

    fn rows(&self, leaf: u32, _: u32, _: u32) -> Option<RowsShape> {
        let row_bytes = match leaf {
            0 => self.prompt.len(),
            1 => 4,
            _ => self.answer.len(),
        };
        Some(RowsShape {
            rows: 1,
            row_bytes: row_bytes as u32,
            quantized: None,
        })
    }
}

struct NoCell;

impl Referee for NoCell {
    fn opening_bytes(&self, _: &Cell) -> Option<u32> {
        None
    }

    fn judge(&self, _: &Cell, _: &Roots, _: &[u8]) -> Judgement {
        Judgement::Unproven
    }
}

fn step(game: &mut Game, side: Side, played: Move, shape: &Answer) -> Result<(), GameError> {
    game.step(side, played, shape, &NoCell).map(drop)
}

#[test]
fn the_defender_shows_all_that_was_asked_for_before_the_challenger_goes_on() {
    let shape = Answer::new(700, 16_392);
    let mut game = shape.game();
    assert_eq!(
        step(&mut game, Side::Challenger, Move::Ask(Missing::Both), &shape),
        Ok(())
    );
    let parts = [
        (&shape.prompt, 0),
        (&shape.answer, 0),
        (&shape.answer, 1),
        (&shape.answer, 2),
    ];
    for (blob, part) in parts {
        assert_eq!(game.to_move(), Some(Side::Defender));
        let early = step(&mut game, Side::Challenger, Move::Name(1), &shape);
        assert_eq!(early, Err(GameError::NotNow));
        let due = game.due_part(&shape).unwrap();
        assert_eq!((due.blob.content, due.part), (content_hash(blob), part));
        let other = vec![9; blob.len()];
        let wrong = step(&mut game, Side::Defender, shape.part(&other, part), &shape);
        assert_eq!(wrong, Err(GameError::WrongHash));
        assert_eq!(
            step(&mut game, Side::Defender, shape.part(blob, part), &shape),
            Ok(())
        );
    }
    assert_eq!(game.to_move(), Some(Side::Challenger));
    assert_eq!(game.due_part(&shape), None);
    let again = step(&mut game, Side::Challenger, Move::Ask(Missing::Output), &shape);
    assert_eq!(again, Err(GameError::NotNow), "it has asked");
    let late = step(&mut game, Side::Defender, shape.part(&shape.prompt, 0), &shape);
    assert_eq!(late, Err(GameError::NotNow));
    assert_eq!(step(&mut game, Side::Challenger, Move::Name(1), &shape), Ok(()));
}

#[test]
fn who_shows_nothing_loses_by_its_own_time() {
    let shape = Answer::new(10, 5_000);
    let mut game = shape.game();
    game.tick(BLOCKS - 1);
    step(&mut game, Side::Challenger, Move::Ask(Missing::Output), &shape).unwrap();
    assert_eq!(game.outcome(), None);
    game.tick(BLOCKS - 1);
    assert_eq!(game.outcome(), None, "the challenger's time stands still");
    game.tick(1);
    let lost = Outcome {
        winner: Side::Challenger,
        reason: Reason::TimeOut,
    };
    assert_eq!(game.outcome(), Some(lost));
    assert_eq!(game.due_part(&shape), None);
}

#[test]
fn nobody_has_to_show_more_than_32_kib() {
    for (prompt, answer, missing, fits) in [
        (8_192, 24_576, Missing::Both, true),
        (8_193, 24_576, Missing::Both, false),
        (8_193, 24_576, Missing::Output, true),
        (1, 32_769, Missing::Output, false),
        (32_768, 32_769, Missing::Input, true),
    ] {
        let shape = Answer::new(prompt, answer);
        let asked = step(&mut shape.game(), Side::Challenger, Move::Ask(missing), &shape);
        assert_eq!(asked.is_ok(), fits, "{prompt} {answer} {missing:?}");
        assert!(fits || asked == Err(GameError::NotShowable));
    }
}

#[test]
fn only_who_names_asks_and_nobody_for_a_leaf_of_unknown_length() {
    let shape = Answer::new(10, 10);
    let mut game = shape.game();
    let asked = step(&mut game, Side::Defender, Move::Ask(Missing::Output), &shape);
    assert_eq!(asked, Err(GameError::NotNow));
    step(&mut game, Side::Challenger, Move::Name(1), &shape).unwrap();
    let asked = step(&mut game, Side::Challenger, Move::Ask(Missing::Output), &shape);
    assert_eq!(asked, Err(GameError::NotNow), "the defender is to move");

    let truth = Work::new(Toy::new(1, 1, 1, 4, 1), &mut Dice::seeded(3));
    let wrong = truth.altered((1, 0, 0, 2), 0, 1, true);
    let mut game = Match::new(&wrong);
    let mut defender = wrong.clone();
    let post = game.faithful(Side::Defender, &mut defender).unwrap();
    game.step(Side::Defender, post).unwrap();
    let asked = game.step(Side::Challenger, Move::Ask(Missing::Output));
    assert_eq!(asked, Err(GameError::NotShowable));
    // The input can be had, and the honest player shows it.
    game.step(Side::Challenger, Move::Ask(Missing::Input)).unwrap();
    let supply = game.faithful(Side::Defender, &mut defender).unwrap();
    game.step(Side::Defender, supply).unwrap();
    let mut challenger = truth;
    let outcome = game.play_faithfully(&mut defender, &mut challenger, Side::Challenger);
    assert_eq!(outcome.winner, Side::Challenger);
}
