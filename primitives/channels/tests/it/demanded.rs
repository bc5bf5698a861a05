//! What demands of a channel cost, and what showing them can cost its provider.

use super::*;
use proptest::prelude::*;

/// The least price of a demand.
const PRICE: u128 = 1_000;

proptest! {
    /// A demand is worth half of the least price to who shows, and what it costs beside that.
    #[test]
    fn whatever_is_demanded_however_often_costs_a_provider_no_more_than_its_requests_allow(
        nonces in prop::collection::vec(0u32..50, 1..600),
        fee in 500u128..20_000,
    ) {
        let mut demanded = Demanded::default();
        let mut lost = 0;
        for nonce in &nonces {
            let surplus = demanded.demand(*nonce, PRICE);
            lost += fee.saturating_sub(PRICE / 2 + surplus);
        }
        let requests = nonces.iter().max().unwrap() + 1;
        let of_one: u128 = (0..30).map(|round| fee.saturating_sub(PRICE / 2 + round * PRICE)).sum();
        prop_assert!(lost <= u128::from(requests.min(DEMANDS_AT_BASE)) * of_one);
        prop_assert_eq!(demanded.times, nonces.len() as u32);
    }

    #[test]
    fn each_of_few_costs_the_least_once_in_whatever_order(
        nonces in Just((0..DEMANDS_AT_BASE).collect::<Vec<_>>()).prop_shuffle(),
        first in 0u32..1_000,
    ) {
        let mut demanded = Demanded::default();
        for nonce in nonces {
            prop_assert_eq!(demanded.demand(first + nonce, PRICE), 0);
        }
        prop_assert_eq!(demanded.demand(first, PRICE), PRICE);
    }
}

#[test]
fn no_number_is_too_large_to_count() {
    let mut demanded = Demanded {
        times: u32::MAX,
        requests: 1,
    };
    assert_eq!(demanded.demand(0, u128::MAX), u128::MAX);
    assert_eq!(
        demanded.demand(u32::MAX, 1),
        u128::from(u32::MAX / DEMANDS_AT_BASE)
    );
    assert_eq!(demanded.times, u32::MAX);
}
