//! Disputes, played to the end over the [`Toy`](crate::toy) computation.

use codec::Encode;
use surety_dispute_game::{
    bisection::{
        Clocks, Game, Missing, Move, Outcome, Referee, Shape, Side, State, Trace, challenge, defend,
    },
    testsuite::{
        dice::Dice,
        generation::{Generated, WithOutput, any_output},
        toy::{Alteration, Computed, Toy},
    },
};

/// How a challenger plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Challenger {
    /// It has computed everything itself.
    Computes,
    /// It has computed nothing and names whatever comes to its mind.
    Guesses,
    /// It makes no move before its time is nearly up, and then names whatever comes to its mind.
    Delays,
    /// It leads into the input, which no block can compute: a committee has to.
    Overloads,
    /// It gives up at once.
    Concedes,
}

/// Whether a challenger has got what the result is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// It has been served, or can be computed.
    Served,
    /// It has not, and asks for it. It is shown.
    Shown,
    /// It has not, and asks for it. The defender makes every other move.
    Withheld,
}

/// A dispute that is over.
#[derive(Clone, Copy, Debug)]
pub struct Played {
    /// Who won, and why.
    pub outcome: Outcome,
    /// Moves made.
    pub moves: u32,
    /// Bytes of them, in SCALE.
    pub bytes: u32,
    /// Blocks that it took.
    pub blocks: u32,
}

/// What a dispute is between, and how long moves take.
#[derive(Clone, Copy, Debug)]
pub struct Dispute {
    /// Whether the defender's result is right.
    pub right: bool,
    /// How the challenger plays.
    pub challenger: Challenger,
    /// Blocks of each side's clock.
    pub clock: u32,
    /// Part of the blocks whose authors leave out the moves of this side.
    pub censored: Option<(Side, f64)>,
    /// The defender never moves.
    pub silent: bool,
    /// What the challenger has got.
    pub output: Output,
}

impl Dispute {
    /// Between one with this clock and an honest one that has computed it all, uncensored.
    pub const fn of(right: bool, challenger: Challenger, clock: u32) -> Self {
        Self {
            right,
            challenger,
            clock,
            censored: None,
            silent: false,
            output: Output::Served,
        }
    }

    /// Plays it. None when a move was refused that should not have been: a bug.
    pub fn play(&self, dice: &mut Dice) -> Option<Played> {
        let seed = dice.number();
        let alteration = (!self.right).then(|| Alteration::any(dice));
        let defender = Computed::new(seed, alteration);
        let computes = self.challenger == Challenger::Computes;
        let challenger = computes.then(|| Computed::new(seed, None));
        if self.output == Output::Served {
            let game = Game::new(defender.root(), &Toy, Clocks::equal(self.clock)).ok()?;
            return self.play_game(game, &Toy, (defender, challenger), dice);
        }
        let output = any_output(dice);
        let shape = Generated::new(&output);
        let defender = WithOutput::new(defender, output.clone());
        let challenger = challenger.map(|computed| WithOutput::new(computed, output));
        let game = Game::new(defender.root(), &shape, Clocks::equal(self.clock)).ok()?;
        self.play_game(game, &shape, (defender, challenger), dice)
    }

    fn play_game<S: Shape + Referee, T: Trace>(
        &self,
        mut game: Game,
        shape: &S,
        (mut defender, mut challenger): (T, Option<T>),
        dice: &mut Dice,
    ) -> Option<Played> {
        let (mut moves, mut bytes, mut blocks) = (0, 0, 0);
        loop {
            if let Some(outcome) = game.outcome() {
                return Some(Played {
                    outcome,
                    moves,
                    bytes,
                    blocks,
                });
            }
            let Some(side) = game.to_move() else {
                // Not computable in a block: the input, on which a committee of the task's verifiers sees
                // that the honest is right.
                let winner = if self.right {
                    Side::Defender
                } else {
                    Side::Challenger
                };
                game.decided(winner).ok()?;
                continue;
            };
            let waited = self.waits(side, &game, dice);
            blocks += waited.min(game.clocks().left(side));
            game.tick(waited);
            if game.outcome().is_some() {
                continue;
            }
            let next = match side {
                Side::Defender => defend(&game, shape, &mut defender).ok()?,
                Side::Challenger => self.challenge(&game, challenger.as_mut(), dice)?,
            };
            moves += 1;
            // What is shown of an output has a limit of its own.
            if !matches!(next, Move::Supply(_)) {
                bytes += u32::try_from(next.encoded_size()).ok()?;
            }
            game.step(side, next, shape, shape).ok()?;
        }
    }

    /// Blocks until a move of `side` is in: one, and one more for each whose author leaves it out.
    fn waits(&self, side: Side, game: &Game, dice: &mut Dice) -> u32 {
        if side == Side::Challenger && self.challenger == Challenger::Delays {
            // As long as it can without losing, at the first time of asking.
            return game.clocks().left(side).saturating_sub(1).max(1);
        }
        let is_asked = game.asked().is_some_and(|asked| asked.is_owed());
        let withholds = self.output == Output::Withheld && is_asked;
        if side == Side::Defender && (self.silent || withholds) {
            return game.clocks().left(side);
        }
        let left_out = self.censored.filter(|(whose, _)| *whose == side);
        let mut blocks = 1;
        while left_out.is_some_and(|(_, share)| dice.chance(share)) {
            blocks += 1;
        }
        blocks
    }

    fn challenge<T: Trace>(&self, game: &Game, own: Option<&mut T>, dice: &mut Dice) -> Option<Move> {
        if self.output != Output::Served && game.asked().is_none() {
            return Some(Move::Ask(Missing::Output));
        }
        match self.challenger {
            Challenger::Computes => challenge(game, own?).ok(),
            Challenger::Concedes => Some(Move::Concede),
            Challenger::Guesses | Challenger::Delays => guess(game, dice),
            Challenger::Overloads => Some(match game.state() {
                State::Picking { .. } => Move::Pick(0),
                _ => Move::Name(0),
            }),
        }
    }
}

fn guess(game: &Game, dice: &mut Dice) -> Option<Move> {
    match game.state() {
        State::Naming { children } => {
            let count = u32::try_from(children.len()).ok()?;
            Some(Move::Name(u8::try_from(dice.below(count)).ok()?))
        }
        State::Picking { bytes } => {
            let count = u32::try_from(bytes.len()).ok()?;
            Some(Move::Pick(u16::try_from(dice.below(count)).ok()?))
        }
        _ => None,
    }
}
