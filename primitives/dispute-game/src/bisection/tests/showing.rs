//! What a challenger has not got, and its defender shows.

use super::*;
use alloc::vec::Vec;
use sp_core::H256;
use surety_proofs::{PartOpening, content_hash, row_digest};

/// A prompt, an answer, and a leaf between them that is computed.
#[derive(Clone)]
struct Answer {
    prompt: Vec<u8>,
    answer: Vec<u8>,
    leaves: [H256; 3],
}

impl Answer {
    fn new(prompt: usize, answer: usize) -> Self {
        let prompt = vec![3; prompt];
        let answer: Vec<u8> = (0..answer).map(|at| (at / 5) as u8).collect();
        let between = surety_proofs::rows_digest(core::iter::once(&ROW[..]));
        Self {
            leaves: [content_hash(&prompt), between, content_hash(&answer)],
            prompt,
            answer,
        }
    }

    fn game(&self) -> Game {
        let root = surety_proofs::merkle_root(self.leaves.into_iter());
        let mut game = Game::new(root, self, Clocks::equal(BLOCKS)).unwrap();
        let post = Move::Post(self.leaves.to_vec().try_into().unwrap());
        game.step(Side::Defender, post, self, &NoCell::default()).unwrap();
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

/// No block computes a cell of it, and who does needs this.
#[derive(Default)]
struct NoCell(Option<Missing>);

impl Referee for NoCell {
    fn opening_bytes(&self, _: &Cell) -> Option<u32> {
        None
    }

    fn needed(&self, _: &Cell) -> Option<Missing> {
        self.0
    }

    fn judge(&self, _: &Cell, _: &Roots, _: &[u8]) -> Judgement {
        Judgement::Unproven
    }
}

fn step(game: &mut Game, side: Side, played: Move, shape: &Answer) -> Result<(), GameError> {
    game.step(side, played, shape, &NoCell::default()).map(drop)
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

/// The only row of the leaf between prompt and answer.
const ROW: [u8; 4] = [1, 0, 0, 0];

impl Trace for Answer {
    type Error = core::convert::Infallible;

    fn leaves(&mut self) -> Result<&[H256], Self::Error> {
        Ok(&self.leaves)
    }

    fn steps(&mut self, leaf: u32) -> Result<Vec<H256>, Self::Error> {
        Ok(vec![self.leaves[leaf as usize]])
    }

    fn rows(&mut self, leaf: u32, step: u32) -> Result<Vec<H256>, Self::Error> {
        self.row(leaf, step, 0).map(|row| vec![row_digest(&row)])
    }

    fn row(&mut self, leaf: u32, _: u32, _: u32) -> Result<Vec<u8>, Self::Error> {
        Ok(match leaf {
            0 => self.prompt.clone(),
            1 => ROW.to_vec(),
            _ => self.answer.clone(),
        })
    }

    fn open(&mut self, _: &Cell) -> Result<Vec<u8>, Self::Error> {
        Ok(Vec::new())
    }
}

/// A game in which the challenger has picked a cell of the leaf between prompt and answer, for members who
/// need this.
fn referred(mut trace: Answer, needed: Option<Missing>) -> (Answer, Game) {
    let shape = trace.clone();
    let mut game = shape.game();
    while !matches!(
        game.state(),
        State::Evidence { .. } | State::NeedsCommittee { .. }
    ) {
        let (side, played) = match game.state() {
            State::Naming { .. } => (Side::Challenger, Move::Name(1)),
            State::Picking { .. } => (Side::Challenger, Move::Pick(0)),
            _ => (Side::Defender, defend(&game, &shape, &mut trace).unwrap()),
        };
        game.step(side, played, &shape, &NoCell(needed)).unwrap();
    }
    (shape, game)
}

#[test]
fn no_committee_is_asked_before_it_can_read_all_that_it_needs() {
    let (shape, mut game) = referred(Answer::new(700, 16_392), Some(Missing::Both));
    let mut trace = shape.clone();
    for _ in 0..4 {
        assert_eq!(game.to_move(), Some(Side::Defender));
        assert_eq!(game.decided(Side::Defender), Err(GameError::NotNow));
        let early = step(&mut game, Side::Challenger, Move::Pick(0), &shape);
        assert_eq!(early, Err(GameError::NotNow));
        let other = shape.part(&[9; 700], 0);
        assert_eq!(
            step(&mut game, Side::Defender, other, &shape),
            Err(GameError::WrongHash)
        );
        let part = defend(&game, &shape, &mut trace).unwrap();
        step(&mut game, Side::Defender, part, &shape).unwrap();
    }
    assert!(matches!(game.state(), State::NeedsCommittee { .. }));
    assert_eq!((game.to_move(), game.due_part(&shape)), (None, None));
}

#[test]
fn who_keeps_from_a_committee_what_it_needs_loses_by_time() {
    let (shape, mut game) = referred(Answer::new(700, 300), Some(Missing::Output));
    // What it has not shown, but others have, it need not show.
    let mut shown = game.clone();
    shown.note_part_shown();
    assert!(matches!(shown.state(), State::NeedsCommittee { .. }));
    game.tick(BLOCKS);
    assert_eq!(game.outcome(), Some(ended(Side::Challenger, Reason::TimeOut)));
    assert_eq!(game.due_part(&shape), None);
}

#[test]
fn what_cannot_be_shown_in_a_game_holds_up_no_committee() {
    for needed in [None, Some(Missing::Both)] {
        let (_, game) = referred(Answer::new(700, 40_000), needed);
        assert!(matches!(game.state(), State::NeedsCommittee { .. }));
    }
}
