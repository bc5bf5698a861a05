//! What a unit costs at least, by how much of what is offered is taken.
//!
//! Each period that is over moves the price: by nothing where half of its places were taken in the mean, by
//! an eighth where all or none of them were, and in proportion between that. The mean is over time, so that
//! it does not matter what somebody says at a period's end.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_arithmetic::{Rounding, helpers_128bit::multiply_by_rational_with_rounding};
use surety_channels::Time;

/// A period moves the price by this part of it at most.
const STEP: u128 = 8;

/// Most periods that one look at a pool makes up for, so that it ends: more of them have moved nothing.
const CAUGHT_UP: u32 = 256;

/// Where a price has to be, in plancks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PriceBounds {
    /// Not below.
    pub(crate) floor: u128,
    /// Not above.
    pub(crate) ceiling: u128,
}

impl PriceBounds {
    /// From what a unit is worth at least to so many times that.
    pub(crate) fn new(floor: u128, multiple: u32) -> Self {
        Self {
            floor,
            ceiling: floor.saturating_mul(multiple.max(1).into()),
        }
    }

    fn clamp(&self, price: u128) -> u128 {
        price.min(self.ceiling).max(self.floor)
    }
}

/// All that is offered of an operation of a model.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Pool {
    /// What a unit costs at least, in plancks.
    pub price: u128,
    /// Offers in it.
    pub offers: u32,
    /// Their places.
    pub places: u32,
    /// How many of those are taken.
    pub busy: u32,
    /// Until when what follows is counted.
    pub at: Time,
    /// Places that there were in the present period, each times how long.
    pub there: u64,
    /// The same of those that were taken.
    pub taken: u64,
}

impl Pool {
    /// One that nobody offers anything in.
    pub(crate) const fn new(price: u128, now: Time) -> Self {
        Self {
            price,
            offers: 0,
            places: 0,
            busy: 0,
            at: now,
            there: 0,
            taken: 0,
        }
    }

    /// Carries out what has become due by time, with what is said of places as it is. Asked before anything
    /// of that changes.
    pub(crate) fn advance(&mut self, now: Time, period: Time, bounds: PriceBounds) {
        self.price = bounds.clamp(self.price);
        for _ in 0..CAUGHT_UP {
            let end = period_of(self.at, period)
                .saturating_add(1)
                .saturating_mul(period.max(1));
            if now < end || self.at == Time::MAX {
                break;
            }
            self.count_to(end);
            let moved = bounds.clamp(moved(self.price, self.taken, self.there));
            (self.there, self.taken) = (0, 0);
            self.price = moved;
        }
        let begun = period_of(now, period).saturating_mul(period.max(1));
        // What nobody has made up for moves nothing.
        self.at = self.at.max(begun);
        self.count_to(now);
    }

    fn count_to(&mut self, time: Time) {
        let long: u64 = time.saturating_sub(self.at).into();
        let there = u64::from(self.places).saturating_mul(long);
        let taken = u64::from(self.busy).saturating_mul(long);
        self.there = self.there.saturating_add(there);
        self.taken = self.taken.saturating_add(taken);
        self.at = self.at.max(time);
    }
}

/// The number of the period that a time is in.
pub(crate) const fn period_of(time: Time, period: Time) -> u32 {
    match time.checked_div(period) {
        Some(number) => number,
        None => time,
    }
}

/// A price after a period in which `taken` of `there` were taken. Where there was nothing to be taken,
/// nothing is known.
fn moved(price: u128, taken: u64, there: u64) -> u128 {
    let (twice, there) = (u128::from(taken).saturating_mul(2), u128::from(there));
    let by = |part: u128| {
        let all = there.saturating_mul(STEP);
        multiply_by_rational_with_rounding(price, part.min(there), all, Rounding::Up).unwrap_or(0)
    };
    if twice > there {
        price.saturating_add(by(twice.saturating_sub(there)))
    } else {
        price.saturating_sub(by(there.saturating_sub(twice)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PERIOD: Time = 10;
    const BOUNDS: PriceBounds = PriceBounds {
        floor: 800,
        ceiling: 80_000,
    };

    fn pool(places: u32, busy: u32) -> Pool {
        Pool {
            places,
            busy,
            ..Pool::new(8_000, 0)
        }
    }

    fn after(mut pool: Pool, now: Time) -> u128 {
        pool.advance(now, PERIOD, BOUNDS);
        pool.price
    }

    #[test]
    fn a_period_moves_the_price_by_how_far_from_half_of_the_places_are_taken() {
        for (busy, price) in [(0, 7_000), (25, 7_500), (50, 8_000), (75, 8_500), (100, 9_000)] {
            assert_eq!(after(pool(100, busy), 9), 8_000, "not before a period is over");
            assert_eq!(after(pool(100, busy), 10), price, "{busy} of 100");
            assert_eq!(after(pool(100, busy), 19), price, "{busy} of 100, once");
        }
        assert_eq!(after(pool(0, 0), 1_000), 8_000, "nothing is known of no places");
    }

    #[test]
    fn what_counts_is_how_long_places_were_taken_not_what_is_said_at_the_end() {
        let mut pool = pool(100, 0);
        pool.advance(9, PERIOD, BOUNDS);
        pool.busy = 100;
        pool.advance(10, PERIOD, BOUNDS);
        // A tenth of the time: an eighth of 80 % less.
        assert_eq!(pool.price, 7_200);
    }

    #[test]
    fn a_pool_that_nobody_has_looked_at_for_long_ends_where_it_would_have() {
        assert_eq!(after(pool(1, 1), Time::MAX), BOUNDS.ceiling);
        assert_eq!(after(pool(1, 0), Time::MAX), BOUNDS.floor);
        let mut late = pool(1, 1);
        late.advance(Time::MAX, PERIOD, BOUNDS);
        late.advance(Time::MAX, PERIOD, BOUNDS);
        assert_eq!((late.at, late.price), (Time::MAX, BOUNDS.ceiling));
    }

    proptest! {
        #[test]
        fn the_price_keeps_its_bounds_and_moves_by_an_eighth_a_period_whatever_happens(
            start in any::<u128>(),
            floor in 1..u128::MAX / 64,
            multiple in 1..64u32,
            period in 0..50u32,
            looks in prop::collection::vec((0..400u32, 0..2_000u32, 0..2_000u32), 1..60),
        ) {
            let bounds = PriceBounds::new(floor, multiple);
            let mut pool = Pool::new(start, 0);
            pool.advance(0, period, bounds);
            let mut now = 0;
            for (later, places, busy) in looks {
                let (price, begun) = (pool.price, period_of(now, period));
                now += later;
                pool.advance(now, period, bounds);
                prop_assert!(bounds.floor <= pool.price && pool.price <= bounds.ceiling);
                prop_assert_eq!(pool.at, now);
                let (mut most, mut least) = (price, price);
                for _ in begun..period_of(now, period) {
                    most = most.saturating_add(most.div_ceil(8));
                    least = least.saturating_sub(least.div_ceil(8));
                }
                prop_assert!(least <= pool.price && pool.price <= most);
                (pool.places, pool.busy) = (places, busy.min(places));
            }
        }

        #[test]
        fn looking_more_often_changes_nothing(
            busy in 0..=100u32,
            looks in prop::collection::vec(0..30u32, 1..40),
        ) {
            let (mut often, once) = (pool(100, busy), pool(100, busy));
            let mut now = 0;
            for later in looks {
                now += later;
                often.advance(now, PERIOD, BOUNDS);
            }
            prop_assert_eq!(often.price, after(once, now));
        }
    }
}
