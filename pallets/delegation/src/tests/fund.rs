//! The arithmetic of shares.

use proptest::prelude::*;
use sp_runtime::Perquintill;

use crate::Fund;

fn funds() -> impl Strategy<Value = Fund> {
    let shares = prop_oneof![1..100u128, 1..1_000_000_000_000_000_000_000u128];
    (shares, 0..=1_000u64).prop_map(|(shares, kept)| Fund {
        amount: Perquintill::from_rational(kept, 1_000u64).mul_floor(shares),
        shares,
    })
}

/// Whether a share of `after` is worth no more than one of `before`.
fn is_no_dearer(before: &Fund, after: &Fund) -> bool {
    let product = |a: u128, b: u128| sp_core::U256::from(a) * sp_core::U256::from(b);
    product(after.amount, before.shares) <= product(before.amount, after.shares)
}

proptest! {
    #![proptest_config(proptest::test_runner::contextualize_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) }))]

    #[test]
    fn nobody_gains_by_coming_and_going(fund in funds(), amount in 1..1_000_000_000_000_000_000_000u128, parts in 1..5u128) {
        let mut fund = fund;
        let before = fund;
        let Some(shares) = fund.add(amount) else {
            prop_assert!(before.is_depleted());
            return Ok(());
        };
        prop_assert!(fund.amount <= fund.shares && is_no_dearer(&before, &fund));
        // Two plancks at most are left behind.
        prop_assert!(fund.worth(shares) <= amount && fund.worth(shares) + 2 >= amount);
        let mut back = 0;
        for part in 0..parts {
            let before = fund;
            back += fund.remove(if part + 1 < parts { shares / parts } else { shares - shares / parts * (parts - 1) });
            prop_assert!(fund.amount <= fund.shares && is_no_dearer(&before, &fund));
        }
        prop_assert!(back <= amount);
        prop_assert_eq!(fund.shares, before.shares);
        prop_assert!(fund.amount <= before.amount);
    }

    #[test]
    fn the_fewest_shares_that_are_worth_an_amount_are_worth_just_that(fund in funds(), part in 0..=1_000u64) {
        let amount = Perquintill::from_rational(part, 1_000u64).mul_floor(fund.amount);
        prop_assume!(fund.amount > 0);
        let shares = fund.shares_worth(amount).unwrap();
        prop_assert_eq!(fund.worth(shares), amount);
        prop_assert!(shares == 0 || fund.worth(shares - 1) < amount);
        prop_assert_eq!(fund.shares_worth(fund.amount + 1), None);
    }

    #[test]
    fn what_has_lost_nothing_is_exact(first in 1..1_000_000u128, second in 1..1_000_000u128, back in 0..1_000_000u128) {
        let mut fund = Fund::default();
        prop_assert_eq!(fund.add(first), Some(first));
        prop_assert_eq!(fund.add(second), Some(second));
        let back = back.min(first);
        prop_assert_eq!((fund.shares_worth(back), fund.remove(back)), (Some(back), back));
        prop_assert_eq!(fund, Fund { amount: first + second - back, shares: first + second - back });
    }

    #[test]
    fn a_slash_is_rounded_up(fund in funds(), parts in 0..=1_000_000_000_000_000_000u64) {
        let mut slashed = fund;
        let part = Perquintill::from_parts(parts);
        let lost = slashed.slash(part);
        prop_assert_eq!(slashed.amount + lost, fund.amount);
        let exact = sp_core::U256::from(fund.amount) * parts;
        let unit = sp_core::U256::from(1_000_000_000_000_000_000u64);
        prop_assert_eq!(sp_core::U256::from(lost), (exact + unit - 1) / unit);
    }
}
