#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::unwrap_used
    )
)]

mod providers;
mod validators;

pub use providers::{
    ALLOWANCE_BLOCKS, BLOCKS_PER_YEAR, claimed, fee_factor, fee_part, replenished, work_pay,
};
pub use validators::{PUNCTUAL_PERCENT, SESSIONS_PER_YEAR, earned, fees_of, session_pay};

use sp_arithmetic::{PerThing, Perquintill, Rounding, helpers_128bit::multiply_by_rational_with_rounding};

/// One SURE, in plancks: 12 decimals.
pub const SURE: u128 = 1_000_000_000_000;

/// All that may ever be minted, genesis included, in plancks: 21 million SURE.
pub const CAP: u128 = 21_000_000 * SURE;

/// While more than that is left to be minted, all of the rate is paid, in plancks: 5.25 million SURE.
pub const TAPER: u128 = 5_250_000 * SURE;

/// What a year pays for stake that works, in percent of it.
pub const RATE_PERCENT: u32 = 7;

/// Who has what when the chain begins, in plancks.
pub mod genesis {
    use crate::SURE;

    /// Founders: a tenth of the cap. It vests.
    pub const FOUNDERS: u128 = 2_100_000 * SURE;

    /// Blocks until the founders' vesting begins: a year.
    pub const FOUNDERS_CLIFF_BLOCKS: u32 = crate::BLOCKS_PER_YEAR;

    /// Blocks that it lasts from then on, in equal parts: three years.
    pub const FOUNDERS_VESTING_BLOCKS: u32 = 3 * crate::BLOCKS_PER_YEAR;

    /// The treasury's.
    pub const TREASURY: u128 = 2_100_000 * SURE;

    /// First bonds, sale, faucet.
    pub const LAUNCH: u128 = 5_250_000 * SURE;

    /// All of it.
    pub const ALL: u128 = FOUNDERS + TREASURY + LAUNCH;
}

/// What may still be minted after so much, in plancks.
pub fn left(minted: u128) -> u128 {
    CAP.saturating_sub(minted)
}

/// How much of `wanted` may be minted after so much, in plancks.
pub fn granted(wanted: u128, minted: u128) -> u128 {
    wanted.min(left(minted))
}

/// Part of the rate that is paid after so much was minted.
pub fn tau(minted: u128) -> Perquintill {
    let left = left(minted).min(TAPER);
    let parts = product_over(left, Perquintill::ACCURACY.into(), TAPER);
    Perquintill::from_parts(parts.try_into().unwrap_or(0))
}

/// `value * factor / divisor`, rounded down; nothing where that is no number of 128 bits.
fn product_over(value: u128, factor: u128, divisor: u128) -> u128 {
    multiply_by_rational_with_rounding(value, factor, divisor, Rounding::Down).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_genesis_is_nine_million_and_leaves_more_than_half_to_work() {
        assert_eq!(genesis::ALL, 9_450_000 * SURE);
        assert_eq!(left(genesis::ALL), 11_550_000 * SURE);
        assert_eq!(genesis::FOUNDERS * 10, CAP);
        assert_eq!(
            (genesis::FOUNDERS_CLIFF_BLOCKS, genesis::FOUNDERS_VESTING_BLOCKS),
            (15_778_800, 47_336_400)
        );
    }

    #[test]
    fn all_of_the_rate_is_paid_until_a_quarter_of_the_cap_is_left() {
        assert_eq!(tau(0), Perquintill::one());
        assert_eq!(tau(CAP - TAPER), Perquintill::one());
        assert!(tau(CAP - TAPER + 6) < Perquintill::one());
        assert_eq!(tau(CAP - TAPER / 2), Perquintill::from_percent(50));
        assert_eq!(tau(CAP), Perquintill::zero());
        assert_eq!(tau(u128::MAX), Perquintill::zero());
    }

    #[test]
    fn the_last_planck_can_be_minted_and_no_other() {
        assert_eq!(granted(7, CAP - 5), 5);
        assert_eq!(granted(u128::MAX, 0), CAP);
        assert_eq!(granted(1, CAP), 0);
        assert_eq!(granted(u128::MAX, u128::MAX), 0);
    }

    proptest! {
        #[test]
        fn what_is_minted_never_goes_beyond_the_cap(wanted in prop::collection::vec(any::<u128>(), 0..40)) {
            let mut minted = 0u128;
            for wanted in wanted {
                // Of any size, often small beside the cap.
                for wanted in [wanted, wanted % CAP, wanted % SURE] {
                    minted += granted(wanted, minted);
                    prop_assert!(minted <= CAP);
                }
            }
        }

        #[test]
        fn the_more_was_minted_the_less_of_the_rate_is_paid(a in 0..2 * CAP, b in 0..2 * CAP) {
            prop_assert!(tau(a.min(b)) >= tau(a.max(b)));
        }

        #[test]
        fn the_part_is_never_above_the_true_one_and_less_than_a_quintillionth_below(minted in 0..CAP) {
            let (parts, of) = (u128::from(tau(minted).deconstruct()), left(minted).min(TAPER));
            // 10^18 of at most 5.25 * 10^18 plancks: 124 bits.
            let exact = of * u128::from(Perquintill::ACCURACY);
            prop_assert!(parts * TAPER <= exact && exact < (parts + 1) * TAPER);
        }
    }
}
