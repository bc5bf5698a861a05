//! What a provider is paid beyond its price: for stake by the block, claimed by work whose fees others had a
//! part of.
//!
//! Its stake earns an allowance, which fees of its work claim. So neither stake without work is paid for, nor
//! work without stake; and as what a fee claims is less than what the fee costs, whoever buys its own work
//! loses.

use sp_arithmetic::{Permill, Perquintill, traits::Saturating};

use crate::{RATE_PERCENT, product_over};

/// Blocks of two seconds in 365.25 days, when no slot stays empty.
pub const BLOCKS_PER_YEAR: u32 = 15_778_800;

/// So many blocks' worth of allowance waits for work at most: 30 days.
pub const ALLOWANCE_BLOCKS: u32 = 30 * 24 * 60 * 30;

/// What `bonded` plancks earn in so many blocks.
fn accrued(bonded: u128, blocks: u32) -> u128 {
    let rate = u128::from(blocks).saturating_mul(RATE_PERCENT.into());
    product_over(bonded, rate, u128::from(BLOCKS_PER_YEAR).saturating_mul(100))
}

/// An allowance after `bonded` plancks of stake were there for so many blocks more: 30 days' worth of what is
/// bonded now at most, so that it goes with the stake.
pub fn replenished(allowance: u128, bonded: u128, blocks: u32) -> u128 {
    let more = accrued(bonded, blocks.min(ALLOWANCE_BLOCKS));
    allowance
        .saturating_add(more)
        .min(accrued(bonded, ALLOWANCE_BLOCKS))
}

/// The part of a task's `fee` that is for one of its prices, where all of them come to `paid`. All parts
/// together are never more than the fee.
pub fn fee_part(fee: u128, price: u128, paid: u128) -> u128 {
    product_over(fee, price, paid.max(price).max(1))
}

/// What a fee claims, as a part of it. With what validators get of the fee it is nine tenths at most.
pub fn fee_factor(validator_share: Permill) -> Permill {
    Permill::from_percent(90)
        .saturating_sub(validator_share)
        .min(Permill::from_percent(50))
}

/// What a fee claims of an allowance, in plancks.
pub fn claimed(fee: u128, validator_share: Permill, allowance: u128) -> u128 {
    fee_factor(validator_share).mul_floor(fee).min(allowance)
}

/// What is paid for what was claimed, to a provider that has missed so many deadlines and not made good for
/// them.
pub fn work_pay(claimed: u128, tau: Perquintill, missed: u32) -> u128 {
    let of_punctual = tau.mul_floor(claimed);
    let times = u128::from(missed).saturating_add(1);
    of_punctual.checked_div(times).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CAP, SESSIONS_PER_YEAR, SURE, fees_of};
    use proptest::prelude::*;
    use sp_arithmetic::PerThing;

    #[test]
    fn both_years_are_as_long() {
        // 150 blocks are a session.
        assert_eq!(BLOCKS_PER_YEAR, SESSIONS_PER_YEAR * 150);
    }

    #[test]
    fn a_year_of_work_that_paid_fees_of_fourteen_percent_gets_seven() {
        let (bonded, share) = (36_525 * SURE, Permill::from_percent(40));
        let days = BLOCKS_PER_YEAR / 4 / 43_200;
        let (mut allowance, mut paid, mut fees) = (0, 0, 0);
        for _ in 0..days {
            // Four days of work at a time.
            allowance = replenished(allowance, bonded, 4 * 43_200);
            let fee = bonded * 14 / 100 * 4 * 43_200 / u128::from(BLOCKS_PER_YEAR);
            let claim = claimed(fee, share, allowance);
            allowance -= claim;
            paid += work_pay(claim, Perquintill::one(), 0);
            fees += fee;
        }
        let promised = bonded * 7 / 100 * u128::from(4 * days) * 100 / 36_525;
        assert!(paid <= promised && promised - paid < 100 * u128::from(days));
        assert!(fees / 2 >= paid);
        // Twice the fees claim nothing more.
        let allowance = replenished(0, bonded, 43_200);
        assert_eq!(claimed(2 * allowance, share, allowance), allowance);
        assert_eq!(claimed(4 * allowance, share, allowance), allowance);
    }

    #[test]
    fn what_waits_for_work_is_thirty_days_worth_and_goes_with_the_stake() {
        let month = replenished(0, 1_000 * SURE, ALLOWANCE_BLOCKS);
        assert_eq!(replenished(0, 1_000 * SURE, u32::MAX), month);
        assert_eq!(replenished(month, 1_000 * SURE, 1), month);
        assert_eq!(replenished(month, 500 * SURE, 0), month / 2);
        assert_eq!(replenished(month, 0, u32::MAX), 0);
    }

    #[test]
    fn a_missed_deadline_halves_what_is_paid_and_two_leave_a_third() {
        assert_eq!(work_pay(600, Perquintill::one(), 0), 600);
        assert_eq!(work_pay(600, Perquintill::one(), 1), 300);
        assert_eq!(work_pay(600, Perquintill::from_percent(50), 2), 100);
        assert_eq!(work_pay(600, Perquintill::one(), u32::MAX), 0);
    }

    #[test]
    fn a_fee_claims_half_of_it_or_what_validators_leave() {
        let factor = |percent| fee_factor(Permill::from_percent(percent));
        assert_eq!(factor(0), Permill::from_percent(50));
        assert_eq!(factor(40), Permill::from_percent(50));
        assert_eq!(factor(60), Permill::from_percent(30));
        assert_eq!(factor(90), Permill::zero());
        assert_eq!(factor(100), Permill::zero());
    }

    fn part() -> impl Strategy<Value = Perquintill> {
        (0..=Perquintill::ACCURACY).prop_map(Perquintill::from_parts)
    }

    fn share() -> impl Strategy<Value = Permill> {
        (0..=1_000_000u32).prop_map(Permill::from_parts)
    }

    /// Settled work of somebody who is client, provider, auditor and every validator: blocks since the last,
    /// prices, fee, validators' share then, missed deadlines.
    #[derive(Clone, Debug)]
    struct Wash {
        blocks: u32,
        prices: Vec<u128>,
        fee: u128,
        share: Permill,
        missed: u32,
    }

    fn wash() -> impl Strategy<Value = Wash> {
        let fee = prop_oneof![0..100u128, 0..=CAP / 100];
        let prices = prop::collection::vec(0..=CAP / 100, 1..8);
        (0..2 * BLOCKS_PER_YEAR, prices, fee, share(), 0..4u32).prop_map(
            |(blocks, prices, fee, share, missed)| Wash {
                blocks,
                prices,
                fee,
                share,
                missed,
            },
        )
    }

    proptest! {
        /// Whatever stake it has: nine tenths of its fees where validators get less than that of a fee, and
        /// what they get alone where it is more.
        #[test]
        fn a_ring_of_everybody_never_gets_back_its_fees(
            bonded in 0..=CAP, made in 1..u32::MAX, lives in prop::collection::vec(wash(), 1..20),
        ) {
            let (mut paid, mut back, mut most) = (0u128, 0u128, 0u128);
            for wash in lives {
                let all = wash.prices.iter().sum();
                let pot = wash.share.mul_floor(wash.fee);
                paid += wash.fee;
                back += fees_of(pot, made, made.into());
                // Each price is one of as many providers, all of them its own.
                for price in wash.prices {
                    let fee = fee_part(wash.fee, price, all);
                    let allowance = replenished(0, bonded, wash.blocks);
                    let claim = claimed(fee, wash.share, allowance);
                    back += work_pay(claim, Perquintill::one(), wash.missed);
                }
                let bound = Permill::from_percent(90).max(wash.share);
                most += bound.mul_ceil(wash.fee);
                prop_assert!(back <= most && most <= paid);
            }
        }

        #[test]
        fn the_parts_of_a_fee_are_never_more_than_it(
            fee in any::<u128>(), prices in prop::collection::vec(0..=u128::MAX / 8, 1..8),
        ) {
            let all = prices.iter().sum();
            let parts = prices.iter().try_fold(0u128, |sum, price| sum.checked_add(fee_part(fee, *price, all)));
            prop_assert!(parts.is_some_and(|parts| parts <= fee));
        }

        /// At most what stake and fees allow for, however often it is settled; and a settlement costs a
        /// planck of each at most.
        #[test]
        fn settling_more_often_gives_nothing_more(
            bonded in 0..=CAP, share in share(), tau in part(),
            steps in prop::collection::vec((0..ALLOWANCE_BLOCKS / 16, 0..=CAP / 1_000), 1..16),
        ) {
            let blocks = steps.iter().map(|(blocks, _)| *blocks).sum();
            let fees = steps.iter().map(|(_, fee)| *fee).sum();
            let at_once = work_pay(claimed(fees, share, replenished(0, bonded, blocks)), tau, 0);
            let (mut allowance, mut often) = (0, 0);
            for (blocks, fee) in steps {
                allowance = replenished(allowance, bonded, blocks);
                let claim = claimed(fee, share, allowance);
                allowance -= claim;
                often += work_pay(claim, tau, 0);
            }
            prop_assert!(often <= at_once);
        }

        #[test]
        fn splitting_stake_over_accounts_gives_nothing_more(
            parts in prop::collection::vec(0..=CAP / 16, 1..16), blocks in any::<u32>(), share in share(),
            fee in 0..=CAP, tau in part(),
        ) {
            let pay = |fee, bonded| work_pay(claimed(fee, share, replenished(0, bonded, blocks)), tau, 0);
            let all: u128 = parts.iter().sum();
            let together = pay(fee, all);
            // The work goes with the stake, or evenly.
            let by_stake: u128 = parts.iter().map(|part| pay(fee_part(fee, *part, all), *part)).sum();
            let evenly: u128 = parts.iter().map(|part| pay(fee / parts.len() as u128, *part)).sum();
            prop_assert!(by_stake <= together && evenly <= together);
        }

        #[test]
        fn more_stake_time_or_fees_are_never_paid_less(
            a in 0..=CAP, b in 0..=CAP, c in any::<u32>(), d in any::<u32>(), e in 0..=CAP, f in 0..=CAP,
            share in share(), tau in part(), missed in any::<u32>(),
        ) {
            let pay = |bonded, blocks, fee, missed| {
                work_pay(claimed(fee, share, replenished(0, bonded, blocks)), tau, missed)
            };
            let more = pay(a.max(b), c.max(d), e.max(f), missed);
            prop_assert!(pay(a.min(b), c.min(d), e.min(f), missed) <= more);
            prop_assert!(pay(a, c, e, missed.saturating_add(1)) <= pay(a, c, e, missed));
        }

        #[test]
        fn the_largest_numbers_do_no_harm(
            a in any::<u128>(), b in any::<u128>(), c in any::<u32>(), share in share(), tau in part(),
        ) {
            let allowance = replenished(a, b, c);
            prop_assert!(allowance <= b);
            let claim = claimed(a, share, allowance);
            prop_assert!(work_pay(claim, tau, c) <= claim && claim <= a);
        }
    }
}
