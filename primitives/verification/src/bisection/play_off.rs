//! More than two claims: pairs play until one claim stands.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use core::fmt;
use scale_info::TypeInfo;
use sp_core::{bounded::BoundedVec, ConstU32};

use super::{Side, CLAIMS_MAX};

/// One game of a play-off. Claims are known by their number in the order they were given, from 0.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Pairing {
    /// The claim whose trace is played over.
    pub defender: u32,
    /// The claim against it.
    pub challenger: u32,
    /// Who won, once it is known.
    pub winner: Option<Side>,
}

impl Pairing {
    fn winning_claim(&self) -> Option<u32> {
        self.winner.map(|side| match side {
            Side::Defender => self.defender,
            Side::Challenger => self.challenger,
        })
    }
}

/// Why a play-off, or a result, is refused.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum PlayOffError {
    /// No claim, or more than [`CLAIMS_MAX`].
    Claims,
    /// There is no such game now, or it has been decided.
    NoSuchGame,
}

impl fmt::Display for PlayOffError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Claims => "no claims, or too many of them",
            Self::NoSuchGame => "there is no such game now",
        })
    }
}

impl core::error::Error for PlayOffError {}

/// Which claims play each other.
///
/// Knock-out: the games of a round are played at the same time, the winners and whoever had no opponent go on. A right
/// claim wins every game, on either side, so if there is one, it is what stands at the end; `n` claims take `n - 1`
/// games in `ceil(log2 n)` rounds. When all claims are wrong, what stands has only outlived the others.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct PlayOff {
    pairings: BoundedVec<Pairing, ConstU32<{ CLAIMS_MAX / 2 }>>,
    /// Has no opponent in this round.
    idle: Option<u32>,
}

impl PlayOff {
    /// A play-off among claims 0 to `claims - 1`, which all differ.
    ///
    /// # Errors
    /// [`PlayOffError::Claims`] for none, or more than [`CLAIMS_MAX`].
    pub fn new(claims: u32) -> Result<Self, PlayOffError> {
        if claims == 0 || claims > CLAIMS_MAX {
            return Err(PlayOffError::Claims);
        }
        Ok(Self::round(0..claims))
    }

    fn round(mut claims: impl Iterator<Item = u32>) -> Self {
        let mut round = Self {
            pairings: BoundedVec::new(),
            idle: None,
        };
        while let Some(defender) = claims.next() {
            match claims.next() {
                // At most half as many pairs as claims: all fit.
                Some(challenger) => {
                    let pairing = Pairing {
                        defender,
                        challenger,
                        winner: None,
                    };
                    let pushed = round.pairings.try_push(pairing);
                    debug_assert!(pushed.is_ok());
                }
                None => round.idle = Some(defender),
            }
        }
        round
    }

    /// The games of this round, decided or not. None once one claim stands.
    pub fn pairings(&self) -> &[Pairing] {
        &self.pairings
    }

    /// The claim that stands, when it is the only one.
    pub fn champion(&self) -> Option<u32> {
        self.idle.filter(|_| self.pairings.is_empty())
    }

    /// Takes down who won the game that `defender` defends. The next round begins with the last result of this one.
    ///
    /// # Errors
    /// [`PlayOffError::NoSuchGame`] when this round has no undecided game of that defender.
    pub fn report(&mut self, defender: u32, winner: Side) -> Result<(), PlayOffError> {
        let mut games = self.pairings.iter_mut();
        let game = games.find(|game| game.defender == defender && game.winner.is_none());
        game.ok_or(PlayOffError::NoSuchGame)?.winner = Some(winner);
        if self.pairings.iter().all(|game| game.winner.is_some()) {
            // Whoever was idle comes first, so that it is not idle again.
            let winners = self.pairings.iter().filter_map(Pairing::winning_claim);
            *self = Self::round(self.idle.into_iter().chain(winners));
        }
        Ok(())
    }
}
