//! What a task costs beyond its providers. Pure.

use sp_runtime::{Permill, traits::AtLeast32BitUnsigned};

use crate::FeeTerms;

/// Where a fee goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FeeSplit<Balance> {
    /// Part of the treasury, in plancks.
    pub treasury: Balance,
    /// To the validators' pot.
    pub validators: Balance,
    /// Part that is burned, in plancks.
    pub burned: Balance,
}

impl<Balance: AtLeast32BitUnsigned + Copy> FeeTerms<Balance> {
    /// Fee on top of `paid`.
    pub(crate) fn fee(&self, paid: Balance) -> Balance {
        self.rate.mul_floor(paid).max(self.minimum)
    }

    /// Whether `redundancy` payments of `price` and the fee on them fit into `cap`.
    fn affordable(&self, price: Balance, redundancy: u32, cap: Balance) -> bool {
        price
            .checked_mul(&Balance::from(redundancy))
            .and_then(|paid| paid.checked_add(&self.fee(paid)))
            .is_some_and(|cost| cost <= cap)
    }

    /// The largest price, at least one planck, that can be paid `redundancy` times out of `cap`. `None` when
    /// there is none.
    ///
    /// Looks for it by halving: the cost never falls as the price rises, so that this holds for any rounding
    /// of the fee, in at most as many steps as a balance has bits.
    #[allow(clippy::arithmetic_side_effects, reason = "the divisor is two")]
    pub(crate) fn price_limit(&self, cap: Balance, redundancy: u32) -> Option<Balance> {
        let one = Balance::one();
        let two = one.saturating_add(one);
        if redundancy == 0 || !self.affordable(one, redundancy, cap) {
            return None;
        }
        let mut affordable = one;
        let mut highest = cap.checked_div(&Balance::from(redundancy))?;
        while affordable < highest {
            // Rounded up, so that the interval always shrinks.
            let middle = highest.saturating_sub(highest.saturating_sub(affordable) / two);
            if self.affordable(middle, redundancy, cap) {
                affordable = middle;
            } else {
                highest = middle.saturating_sub(one);
            }
        }
        Some(affordable)
    }
}

/// Splits `fee`. Shares are rounded down and the treasury's comes first; what is left is burned.
pub(crate) fn split<Balance: AtLeast32BitUnsigned + Copy>(
    fee: Balance,
    treasury_share: Permill,
    validator_share: Permill,
) -> FeeSplit<Balance> {
    let treasury = treasury_share.mul_floor(fee);
    let left = fee.saturating_sub(treasury);
    // Shares are parameters that change one at a time: together they may exceed the whole for a while.
    let validators = validator_share.mul_floor(fee).min(left);
    FeeSplit {
        treasury,
        validators,
        burned: left.saturating_sub(validators),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use proptest::prelude::*;

    fn terms(percent: u32, minimum: u128) -> FeeTerms<u128> {
        FeeTerms {
            rate: Permill::from_percent(percent),
            minimum,
        }
    }

    #[test]
    fn the_fee_is_a_part_of_what_is_paid_and_never_below_the_minimum() {
        assert_eq!(terms(5, 10).fee(1_000), 50);
        assert_eq!(terms(5, 10).fee(199), 10);
        assert_eq!(terms(5, 0).fee(19), 0);
        assert_eq!(terms(5, 10).fee(0), 10);
    }

    #[test]
    fn the_limit_leaves_room_for_the_fee() {
        assert_eq!(terms(5, 10).price_limit(1_050, 1), Some(1_000));
        assert_eq!(terms(5, 10).price_limit(1_049, 1), Some(999));
        assert_eq!(terms(5, 10).price_limit(3_150, 3), Some(1_000));
        assert_eq!(terms(0, 0).price_limit(7, 2), Some(3));
    }

    #[test]
    fn the_least_cap_is_the_least_fee_and_one_planck_each() {
        assert_eq!(terms(5, 10).price_limit(13, 3), Some(1));
        assert_eq!(terms(5, 10).price_limit(12, 3), None);
        assert_eq!(terms(5, 10).price_limit(0, 1), None);
        assert_eq!(terms(5, 10).price_limit(1_000, 0), None);
    }

    #[test]
    fn the_largest_numbers_do_no_harm() {
        assert_eq!(terms(0, 0).price_limit(u128::MAX, 1), Some(u128::MAX));
        assert_eq!(terms(100, 0).price_limit(u128::MAX, 1), Some(u128::MAX / 2));
        assert_eq!(terms(5, u128::MAX).price_limit(u128::MAX, 1), None);
    }

    #[test]
    fn what_rounding_leaves_is_burned() {
        let forty = Permill::from_percent(40);
        assert_eq!(
            split(10u128, forty, forty),
            FeeSplit {
                treasury: 4,
                validators: 4,
                burned: 2
            }
        );
        assert_eq!(
            split(1u128, forty, forty),
            FeeSplit {
                treasury: 0,
                validators: 0,
                burned: 1
            }
        );
        assert_eq!(
            split(0u128, forty, forty),
            FeeSplit {
                treasury: 0,
                validators: 0,
                burned: 0
            }
        );
    }

    #[test]
    fn shares_above_the_whole_are_cut() {
        let (most, half) = (Permill::from_percent(80), Permill::from_percent(50));
        assert_eq!(
            split(10u128, most, half),
            FeeSplit {
                treasury: 8,
                validators: 2,
                burned: 0
            }
        );
    }

    fn any_permill() -> impl Strategy<Value = Permill> {
        (0u32..=1_000_000).prop_map(Permill::from_parts)
    }

    /// Small numbers, where rounding matters, and any others.
    fn any_amount() -> impl Strategy<Value = u128> {
        prop_oneof![0u128..2_000, any::<u64>().prop_map(u128::from), any::<u128>()]
    }

    proptest! {
        #[test]
        fn the_limit_is_the_largest_affordable_price(
            rate in any_permill(), minimum in any_amount(), cap in any_amount(), redundancy in 0u32..20,
        ) {
            let terms = FeeTerms { rate, minimum };
            match terms.price_limit(cap, redundancy) {
                Some(price) => {
                    prop_assert!(price >= 1);
                    prop_assert!(terms.affordable(price, redundancy, cap));
                    prop_assert!(price == u128::MAX || !terms.affordable(price + 1, redundancy, cap));
                }
                None => prop_assert!(redundancy == 0 || !terms.affordable(1, redundancy, cap)),
            }
        }

        #[test]
        fn the_limit_falls_as_redundancy_rises(
            rate in any_permill(), minimum in any_amount(), cap in any_amount(), redundancy in 1u32..16,
        ) {
            let terms = FeeTerms { rate, minimum };
            prop_assert!(terms.price_limit(cap, redundancy) >= terms.price_limit(cap, redundancy + 1));
        }

        #[test]
        fn a_split_conserves_every_planck(
            fee in any_amount(), treasury in any_permill(), validators in any_permill(),
        ) {
            let parts = split(fee, treasury, validators);
            let sum = parts.treasury.checked_add(parts.validators).and_then(|s| s.checked_add(parts.burned));
            prop_assert_eq!(sum, Some(fee));
        }
    }
}
