//! The pure part of the draw, for any bids.

use std::collections::BTreeSet;

use proptest::prelude::*;
use sp_core::H256;
use surety_types::limits;

use crate::{
    draw::{Candidate, Drawn, draw, metered, seed},
    mock::Balance,
};

type Bidder = Candidate<u64>;

/// Bids of different providers with few different prices and weights, so that ties are common, or with any.
fn bidders() -> impl Strategy<Value = Vec<Bidder>> {
    let price = prop_oneof![0..5u128, 0..2_000u128, any::<u128>()];
    let weight = prop_oneof![Just(1_000u32), 0..3u32, any::<u32>()];
    let bid = (price, 0..3u32, weight);
    prop::collection::vec(bid, 0..=limits::BIDS_MAX as usize).prop_map(|bids| {
        let with_provider = |(provider, (price, seconds, weight))| Candidate {
            provider,
            price,
            seconds,
            weight,
        };
        (0..).zip(bids).map(with_provider).collect()
    })
}

fn redundancy() -> impl Strategy<Value = u32> {
    1..=limits::REDUNDANCY_MAX
}

fn limit() -> impl Strategy<Value = Balance> {
    prop_oneof![1..5u128, 1..2_000u128, 1..=u128::MAX]
}

fn any_seed() -> impl Strategy<Value = H256> {
    any::<[u8; 32]>().prop_map(H256)
}

fn acceptable(bidders: &[Bidder], limit: Balance) -> Vec<Bidder> {
    let fits = |bidder: &&Bidder| bidder.price <= limit && bidder.weight > 0;
    bidders.iter().filter(fits).cloned().collect()
}

fn all(drawn: &Drawn<u64>) -> impl Iterator<Item = (u64, Balance)> + '_ {
    drawn
        .winners
        .iter()
        .chain(&drawn.reserves)
        .map(|a| (a.provider, a.price))
}

fn neutral(prices: &[Balance]) -> Vec<Bidder> {
    let bid = |(provider, price): (u64, &Balance)| Candidate {
        provider,
        price: *price,
        seconds: 1,
        weight: 1_000,
    };
    (0..).zip(prices).map(bid).collect()
}

proptest! {
    #[test]
    fn there_is_a_draw_exactly_when_enough_are_acceptable(
        bidders in bidders(), k in redundancy(), limit in limit(), seed in any_seed()
    ) {
        let enough = acceptable(&bidders, limit).len() >= k as usize;
        prop_assert_eq!(draw(&bidders, k, limit, seed).is_some(), enough);
    }

    #[test]
    fn k_different_win_and_everybody_else_acceptable_is_in_reserve(
        bidders in bidders(), k in redundancy(), limit in limit(), seed in any_seed()
    ) {
        if let Some(drawn) = draw(&bidders, k, limit, seed) {
            prop_assert_eq!(drawn.winners.len(), k as usize);
            let found: Vec<_> = all(&drawn).map(|(provider, _)| provider).collect();
            let different: BTreeSet<_> = found.iter().copied().collect();
            prop_assert_eq!(different.len(), found.len());
            let expected: BTreeSet<_> = acceptable(&bidders, limit).iter().map(|b| b.provider).collect();
            prop_assert_eq!(different, expected);
        }
    }

    #[test]
    fn nobody_is_paid_above_the_limit_below_its_price_or_nothing(
        bidders in bidders(), k in redundancy(), limit in limit(), seed in any_seed()
    ) {
        if let Some(drawn) = draw(&bidders, k, limit, seed) {
            for (provider, price) in all(&drawn) {
                let asked = bidders[provider as usize].price;
                prop_assert!(price <= limit && price >= asked && price >= 1);
            }
        }
    }

    #[test]
    fn the_order_of_the_bids_does_not_matter(
        bidders in bidders(), k in redundancy(), limit in limit(), seed in any_seed()
    ) {
        let mut turned = bidders.clone();
        turned.reverse();
        prop_assert_eq!(draw(&bidders, k, limit, seed), draw(&turned, k, limit, seed));
    }

    #[test]
    fn the_drawn_are_of_the_shortlist(
        prices in prop::collection::btree_set(1..10_000u128, 1..=64), k in 2..=16u32, seed in any_seed()
    ) {
        // Neutral weights and different prices: the provider's number is its rank.
        let prices: Vec<_> = prices.into_iter().collect();
        if let Some(drawn) = draw(&neutral(&prices), k, 10_000, seed) {
            let shortlisted = u64::from(2 * k);
            prop_assert!(drawn.winners.iter().all(|winner| winner.provider < shortlisted));
            prop_assert!(drawn.reserves.is_sorted_by_key(|reserve| reserve.provider));
            let rule = prices.get(2 * k as usize).copied().unwrap_or(10_000);
            prop_assert!(drawn.winners.iter().all(|winner| winner.price == rule));
        }
    }

    #[test]
    fn a_lonely_provider_gets_the_task_at_the_second_price(
        prices in prop::collection::btree_set(1..10_000u128, 2..=64), seed in any_seed()
    ) {
        let prices: Vec<_> = prices.into_iter().collect();
        let drawn = draw(&neutral(&prices), 1, 10_000, seed).unwrap();
        prop_assert_eq!((drawn.winners[0].provider, drawn.winners[0].price), (0, prices[1]));
    }

    #[test]
    fn with_k_1_asking_less_keeps_the_win_and_its_pay(
        bidders in bidders(), limit in limit(), seed in any_seed(), less in any::<prop::sample::Index>()
    ) {
        if let Some(drawn) = draw(&bidders, 1, limit, seed) {
            let winner = drawn.winners[0].clone();
            let mut lower = bidders.clone();
            let price = &mut lower[winner.provider as usize].price;
            *price = less.index(usize::try_from(*price).unwrap_or(usize::MAX).max(1)) as u128;
            prop_assert_eq!(&draw(&lower, 1, limit, seed).unwrap().winners[0], &winner);
        }
    }

    #[test]
    fn more_redundancy_never_lowers_a_price(
        bidders in bidders(), k in 1..limits::REDUNDANCY_MAX, limit in limit(), seed in any_seed()
    ) {
        let fewer = draw(&bidders, k, limit, seed);
        let more = draw(&bidders, k + 1, limit, seed);
        if let (Some(fewer), Some(more)) = (fewer, more) {
            let before: std::collections::BTreeMap<_, _> = all(&fewer).collect();
            prop_assert!(all(&more).all(|(provider, price)| price >= before[&provider]));
        }
    }

    #[test]
    fn pay_is_in_proportion_to_the_units_and_never_nothing(
        price in any::<u128>(), units in any::<u32>(), units_max in 1..=u32::MAX
    ) {
        let pay = metered(price, units, units_max);
        prop_assert!(pay >= 1 && pay <= price.max(1));
        prop_assert!(pay <= metered(price, units.saturating_add(1), units_max));
        prop_assert_eq!(metered(price, units_max, units_max), price.max(1));
        if let Some(product) = price.checked_mul(units.min(units_max).into()) {
            prop_assert_eq!(pay, (product / u128::from(units_max)).max(1));
        }
    }
}

#[test]
fn equal_scores_go_to_the_faster_promise() {
    let mut bidders = neutral(&[100, 100, 200]);
    bidders[0].seconds = 9;
    bidders[1].seconds = 8;
    for byte in 0..32 {
        let drawn = draw(&bidders, 1, 1_000, H256::repeat_byte(byte)).unwrap();
        assert_eq!(drawn.winners[0].provider, 1);
    }
}

#[test]
fn exact_ties_and_lots_fall_evenly() {
    let bidders = neutral(&[100; 4]);
    let mut tie = [0u32; 4];
    let mut lot = [0u32; 4];
    for round in 0..4_000u32 {
        let seed = H256(sp_crypto_hashing::blake2_256(&round.to_le_bytes()));
        for winner in draw(&bidders, 1, 1_000, seed).unwrap().winners {
            tie[winner.provider as usize] += 1;
        }
        for winner in draw(&bidders, 2, 1_000, seed).unwrap().winners {
            lot[winner.provider as usize] += 1;
        }
    }
    // Six standard deviations of 4,000 draws at a quarter, and at a half.
    assert!(tie.iter().all(|wins| wins.abs_diff(1_000) < 165), "{tie:?}");
    assert!(lot.iter().all(|wins| wins.abs_diff(2_000) < 190), "{lot:?}");
}

#[test]
fn the_task_every_salt_and_the_entropy_count_in_the_seed() {
    let salts = [H256::repeat_byte(1), H256::repeat_byte(2)];
    let (entropy, other) = (H256::repeat_byte(3), H256::repeat_byte(4));
    let reference = seed(7, &salts, &entropy);
    assert_eq!(seed(7, &salts, &entropy), reference);
    assert_ne!(seed(7, &salts[..1], &entropy), reference);
    assert_ne!(seed(7, &[salts[1], salts[0]], &entropy), reference);
    assert_ne!(seed(7, &salts, &other), reference);
    assert_ne!(seed(8, &salts, &entropy), reference);
}

#[test]
fn nobody_asked_for_is_no_draw() {
    assert_eq!(draw(&neutral(&[1, 2]), 0, 100, H256::zero()), None);
    assert_eq!(draw::<u64>(&[], 1, 100, H256::zero()), None);
}
