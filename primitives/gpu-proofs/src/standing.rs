//! How long what was measured counts.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;

/// A provider may miss one round in so many without losing what it has shown. Who could miss every other one
/// would share a device with somebody who misses the others.
pub const GRACE_ROUNDS: u32 = 8;

/// When a provider was measured last, by how many rounds were over then that count for who misses them: those
/// in which the chain itself was too slow do not.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Standing {
    /// Rounds over after the one that it has passed last.
    pub rounds_over: u32,
    /// Rounds over before the first that it may miss.
    pub grace_from: u32,
}

impl Standing {
    /// That of a provider that has passed a round before which so many were over, by what it was before. Who
    /// passes a round that does not count may miss the next as little as before.
    pub const fn passed(before: Option<Self>, rounds_over: u32, is_counted: bool) -> Self {
        let grace_from = match before {
            Some(before) if before.missed(rounds_over) == 0 => before.grace_from,
            _ => rounds_over.saturating_add(GRACE_ROUNDS),
        };
        Self {
            rounds_over: rounds_over.saturating_add(is_counted as u32),
            grace_from,
        }
    }

    /// Whether it still counts once so many rounds are over.
    pub const fn holds(self, rounds_over: u32) -> bool {
        match self.missed(rounds_over) {
            0 => true,
            1 => self.grace_from < rounds_over,
            _ => false,
        }
    }

    /// How many rounds it has missed since, of so many that are over.
    pub const fn missed(self, rounds_over: u32) -> u32 {
        rounds_over.saturating_sub(self.rounds_over)
    }
}
