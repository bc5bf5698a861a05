//! Who keeps a place where more bid for a task than it has places.
//!
//! *Sequential Poisson sampling* (Ohlsson, 1998): every bidder has a number `u` that is uniform and nobody's
//! choice, and those with the lowest `u / stake` keep the places, in whatever order they came. As long as a
//! bidder's chance of one is below 1 it is in proportion to its stake, so that a stake in parts has as many
//! places to expect as those parts together would be due; many names alone have none.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::H256;
use sp_crypto_hashing::blake2_128;
use surety_types::TaskId;

/// What `u` is drawn out of: `2^127`. Ranks above it are of those without stake.
const WITHOUT_STAKE: u128 = 1 << 127;

/// A bidder's rank among those of a task: the lowest ones keep the places.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Encode,
    Decode,
    DecodeWithMemTracking,
    MaxEncodedLen,
    TypeInfo,
)]
pub struct PlaceRank(u128);

impl PlaceRank {
    /// `u / stake`, where `u` is `blake2_128(SCALE("bid place", task, stash, entropy))`, read little endian,
    /// without its lowest bit, and `stake` what the bidder had bonded before anybody could know `entropy`, in
    /// plancks. Who had none ranks behind everybody who had some, by `u` alone.
    pub fn new<AccountId: Encode>(task: TaskId, stash: &AccountId, entropy: &H256, stake: u128) -> Self {
        let drawn = blake2_128(&(b"bid place", task, stash, entropy).encode());
        let uniform = u128::from_le_bytes(drawn) >> 1;
        Self(uniform.checked_div(stake).unwrap_or(WITHOUT_STAKE | uniform))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entropy(byte: u8) -> H256 {
        H256::repeat_byte(byte)
    }

    /// Which of some bidders, each with its stake, have one of so many places.
    fn kept(task: TaskId, stakes: &[u128], places: usize) -> Vec<usize> {
        let rank = |(stash, stake): (usize, &u128)| {
            let rank = PlaceRank::new(task, &(stash as u64), &entropy(1), *stake);
            (rank, stash)
        };
        let mut ranked: Vec<_> = stakes.iter().enumerate().map(rank).collect();
        ranked.sort();
        ranked.into_iter().take(places).map(|(_, stash)| stash).collect()
    }

    /// Places that bidders `first..` have in the mean of many tasks.
    fn mean_of(stakes: &[u128], first: usize) -> f64 {
        let tasks = 4_000;
        let places = (0..tasks).map(|task| {
            let kept = kept(task, stakes, 64).into_iter();
            kept.filter(|stash| *stash >= first).count()
        });
        places.sum::<usize>() as f64 / tasks as f64
    }

    #[test]
    fn task_stash_entropy_and_stake_all_count_in_a_rank() {
        let rank = PlaceRank::new(1, &7u64, &entropy(1), 10);
        assert_eq!(PlaceRank::new(1, &7u64, &entropy(1), 10), rank);
        let others = [
            PlaceRank::new(2, &7u64, &entropy(1), 10),
            PlaceRank::new(1, &8u64, &entropy(1), 10),
            PlaceRank::new(1, &7u64, &entropy(2), 10),
            PlaceRank::new(1, &7u64, &entropy(1), 11),
        ];
        assert!(others.iter().all(|other| *other != rank));
    }

    #[test]
    fn more_stake_never_makes_a_rank_worse_and_none_is_behind_all_others() {
        for stash in 0..1_000u64 {
            let rank = |stake| PlaceRank::new(5, &stash, &entropy(3), stake);
            assert!(rank(2) <= rank(1) && rank(u128::MAX) <= rank(1_000));
            assert!((0..10u64).all(|other| PlaceRank::new(5, &other, &entropy(3), 1) < rank(0)));
        }
    }

    #[test]
    fn places_go_by_stake_however_many_names_it_has() {
        // 90 with 64 each, and 640 in other hands: of 10 names, of 160, and of 640.
        let honest = vec![64u128; 90];
        // They are due as many, of 64, as a tenth of the stake is: each a deviation of less than 3 a task.
        let error = 5.0 * 3.0 / 4_000f64.sqrt();
        for names in [10, 160, 640] {
            let all = [honest.clone(), vec![640 / names; names as usize]].concat();
            let mean = mean_of(&all, honest.len());
            assert!((mean - 6.4).abs() < error, "{names}: {mean}");
        }
    }

    #[test]
    fn a_thousand_names_without_stake_have_what_the_others_leave() {
        let all = [vec![1u128; 60], vec![0; 1_000]].concat();
        for task in 0..100 {
            let kept = kept(task, &all, 64);
            assert!((0..60).all(|stash| kept.contains(&stash)));
        }
        // Which of them have the rest is drawn as well.
        assert_ne!(kept(1, &all, 64)[60..], kept(2, &all, 64)[60..]);
    }
}
