//! Which batches can have what was counted.
//!
//! A final batch is counted for a channel by how many requests it has of it: what it says of them the chain
//! does not see. Whoever holds something else than that has to be able to ask for it, for as long as its
//! provider can be asked: while all batches are kept that can have it.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;

use crate::{BatchNumber, Nonce, Time};

/// Time for which what was counted can be demanded at least, where what is demanded is shown within `supply`.
/// Something else may be demanded just before: there is time left when that is shown at the last moment.
pub const fn demandable_for(supply: Time) -> Time {
    supply.saturating_add(supply / 2)
}

/// Time for which a final batch can be counted, where it is kept for `redeem_by`.
pub const fn counted_for(redeem_by: Time, supply: Time) -> Time {
    let shown = demandable_for(supply).saturating_mul(2).saturating_add(supply);
    redeem_by.saturating_sub(shown)
}

/// Time from when something is counted until it is paid, where what is demanded is shown within `supply`. In
/// it whoever was told something else asks for that, and demands it: so nobody is paid before it is missed.
pub const fn paid_after(supply: Time) -> Time {
    supply / 4
}

/// Time from when something is counted until it is paid whatever is demanded: longer than a demand can be
/// open that was made before it was due, with half a `supply` for having it ended. So none keeps it back for
/// ever.
pub const fn kept_back_for(supply: Time) -> Time {
    paid_after(supply)
        .saturating_add(supply)
        .saturating_add(supply / 2)
}

/// Time after which a deposit counts as one that has always been there: whatever was asked before it was
/// shown by then, or demanded and withheld.
pub const fn deposit_season(supply: Time) -> Time {
    supply.saturating_add((supply / 3).saturating_mul(2))
}

/// From which batch on requests are, that were not counted at a time.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
struct Mark {
    at: Time,
    /// The first request that was not counted then.
    next: Nonce,
    /// It is in this batch: later ones are in this or later ones.
    batch: BatchNumber,
}

/// What is known of the batches that were counted for a channel. Two marks are enough: a request that was
/// just counted stands behind the older one for a period at least, however often more is counted.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Counted {
    older: Mark,
    newer: Mark,
}

impl Counted {
    /// Of a channel that was just opened, when its payee's next batch was `batch`.
    pub const fn new(batch: BatchNumber) -> Self {
        Self::since(0, batch)
    }

    /// Of a channel whose requests from `next` on are in this batch or in later ones, and of whose earlier
    /// ones nothing is known.
    pub const fn since(next: Nonce, batch: BatchNumber) -> Self {
        let mark = Mark { at: 0, next, batch };
        Self {
            older: mark,
            newer: mark,
        }
    }

    /// A batch was counted, whose first request of the channel is `next`.
    pub fn note(&mut self, now: Time, next: Nonce, batch: BatchNumber, period: Time) {
        if now >= self.newer.at.saturating_add(period) {
            self.older = self.newer;
            self.newer = Mark { at: now, next, batch };
        }
    }

    /// The oldest batch that can have a request that was counted; nothing where that was too long ago.
    pub fn oldest(&self, nonce: Nonce) -> Option<BatchNumber> {
        let marks = [self.newer, self.older];
        let mark = marks.into_iter().find(|mark| mark.next <= nonce);
        mark.map(|mark| mark.batch)
    }
}
