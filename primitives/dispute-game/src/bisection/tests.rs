#![allow(clippy::unwrap_used)]

mod anything;
mod bytes;
mod cut;
mod forged;
mod honest;
mod longest;
mod rules;
mod showing;
mod toy;
mod work;

use self::anything::anything;
use self::toy::{At, Toy};
use self::work::{Judge, Work};
use super::*;
use crate::testsuite::dice::Dice;
use codec::{Decode, Encode};
use proptest::prelude::*;

const BLOCKS: u32 = 40;

/// Content that is shown, and what shows it.
const SHOWING_BYTES_MAX: usize = (PARTS_MAX as usize) * (8 * 1024 + 80);

/// A game about the work of a defender.
struct Match {
    game: Game,
    judge: Judge,
    /// The cell that it came to.
    cell: Option<Cell>,
    bytes: usize,
    /// Bytes of what was asked for and shown.
    shown: usize,
    blocks: u32,
}

impl Match {
    fn new(defender: &Work) -> Self {
        let game = Game::new(defender.root(), &defender.toy, Clocks::equal(BLOCKS)).unwrap();
        Self {
            game,
            judge: Judge(defender.toy),
            cell: None,
            bytes: 0,
            shown: 0,
            blocks: 0,
        }
    }

    fn step(&mut self, side: Side, played: Move) -> Result<(), GameError> {
        let before = self.game.clone();
        let size = played.encoded_size();
        let played_is_showing = matches!(played, Move::Ask(_) | Move::Supply(_));
        assert_eq!(Move::decode(&mut &played.encode()[..]).as_ref(), Ok(&played));
        let refused = self.game.step(side, played, &self.judge.0, &self.judge).err();
        if let Some(error) = refused {
            assert_eq!(self.game, before, "a refused move changes nothing");
            return Err(error);
        }
        assert_eq!(
            Game::decode(&mut &self.game.encode()[..]).as_ref(),
            Ok(&self.game)
        );
        match played_is_showing {
            true => self.shown += size,
            false => self.bytes += size,
        }
        assert!(self.bytes <= BYTES_MAX as usize);
        // What a committee needs may have been asked for before: a driver has it shown once.
        assert!(self.shown <= 1 + 2 * SHOWING_BYTES_MAX);
        if let State::Opening { cell } | State::Evidence { cell, .. } | State::NeedsCommittee { cell } =
            self.game.state()
        {
            self.cell = Some(*cell);
        }
        Ok(())
    }

    /// What a side does by its work, in its turn.
    fn faithful(&self, side: Side, work: &mut Work) -> Option<Move> {
        match side {
            Side::Defender => defend(&self.game, &self.judge.0, work).ok(),
            Side::Challenger => challenge(&self.game, work).ok(),
        }
    }

    /// Plays to the end with both sides by their work. What needs a committee is won by `right`.
    fn play_faithfully(&mut self, defender: &mut Work, challenger: &mut Work, right: Side) -> Outcome {
        loop {
            let side = match self.game.to_move() {
                Some(side) => side,
                None => {
                    let _ = self.game.decided(right);
                    return self.game.outcome().unwrap();
                }
            };
            let work = match side {
                Side::Defender => &mut *defender,
                Side::Challenger => &mut *challenger,
            };
            let played = self.faithful(side, work).unwrap();
            assert_eq!(self.step(side, played), Ok(()));
        }
    }

    /// Plays to the end, which time alone brings, with one side by its work and at once, and the other doing
    /// anything and taking a block for each try.
    fn play(&mut self, honest: Side, own: &mut Work, other: &mut Work, dice: &mut Dice) -> Outcome {
        let dishonest = honest.other();
        let gives_up_after = dice.below(BLOCKS * 2);
        loop {
            match self.game.to_move() {
                None => {
                    let _ = self.game.decided(honest);
                    return self.game.outcome().unwrap();
                }
                // Out of turn: refused, unless it concedes.
                Some(side) if side == honest && dice.below(4) == 0 => {
                    let played = anything(&self.game, None, dice);
                    let _ = self.step(dishonest, played);
                }
                Some(side) if side == honest => {
                    let played = self.faithful(honest, own).unwrap();
                    assert_eq!(
                        self.step(honest, played),
                        Ok(()),
                        "an honest move is never refused"
                    );
                }
                Some(_) => {
                    if self.blocks < gives_up_after {
                        let played = anything(&self.game, self.faithful(dishonest, other), dice);
                        let _ = self.step(dishonest, played);
                    }
                    self.game.tick(1);
                    self.blocks += 1;
                    assert!(self.blocks <= 2 * BLOCKS);
                }
            }
        }
    }

    fn at(&self) -> Option<At> {
        self.cell.map(|cell| (cell.leaf, cell.step, cell.row, cell.cell))
    }
}

fn ended(winner: Side, reason: Reason) -> Outcome {
    Outcome { winner, reason }
}

/// Models of all kinds: trees of one and of several levels, rows of one and of several segments.
fn toys() -> impl Strategy<Value = Toy> {
    let width = prop_oneof![1u32..5, 60u32..70, 120u32..140].prop_map(|quarter| 4 * quarter);
    (1u32..5, 1u32..6, 1u32..7, width, 1u32..5).prop_map(|(items, strides, layers, width, positions)| {
        Toy::new(items, strides, layers, width, positions)
    })
}
