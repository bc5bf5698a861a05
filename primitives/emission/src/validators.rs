//! What an operator's pool is paid: for its backing by the session, and in full only to those who make the
//! blocks that are expected of them.

use sp_arithmetic::{PerThing, Perquintill};

use crate::{RATE_PERCENT, product_over};

/// Sessions of five minutes in 365.25 days.
pub const SESSIONS_PER_YEAR: u32 = 105_192;

/// Who makes so many percent of the blocks that are expected of it is paid in full: whose turn it is, is
/// drawn.
pub const PUNCTUAL_PERCENT: u32 = 90;

/// Blocks have no halves, but what is expected of a validator does.
const MILLIONTHS: u128 = 1_000_000;

/// What a pool of so much backing is owed for a session, in plancks.
pub fn session_pay(backing: u128, tau: Perquintill) -> u128 {
    let rate = u128::from(tau.deconstruct()).saturating_mul(RATE_PERCENT.into());
    // 10^18 * 100 * 105,192: 84 bits.
    let year = u128::from(Perquintill::ACCURACY)
        .saturating_mul(100)
        .saturating_mul(SESSIONS_PER_YEAR.into());
    product_over(backing, rate, year)
}

/// What is paid of `owed` plancks to whoever made so many blocks, where so many millionths of a block were
/// expected of it.
pub fn earned(owed: u128, made: u32, expected_millionths: u64) -> u128 {
    let made = u128::from(made).saturating_mul(MILLIONTHS).saturating_mul(100);
    let enough = u128::from(expected_millionths).saturating_mul(PUNCTUAL_PERCENT.into());
    if enough == 0 {
        // Nothing is owed to whom no session counted for.
        return 0;
    }
    if made >= enough {
        return owed;
    }
    product_over(owed, made, enough)
}

/// What whoever made so many of all blocks gets of `fees` plancks.
pub fn fees_of(fees: u128, made: u32, made_in_all: u64) -> u128 {
    let in_all = u128::from(made_in_all).max(made.into()).max(1);
    product_over(fees, made.into(), in_all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CAP, SURE};
    use proptest::prelude::*;

    #[test]
    fn a_year_pays_seven_percent_of_what_backs_an_operator() {
        let backing = 1_000_000 * SURE;
        let year = session_pay(backing, Perquintill::one()) * u128::from(SESSIONS_PER_YEAR);
        let promised = 70_000 * SURE;
        assert!(year <= promised && promised - year < u128::from(SESSIONS_PER_YEAR));
        let half = session_pay(backing, Perquintill::from_percent(50));
        assert_eq!(half, session_pay(backing / 2, Perquintill::one()));
        assert_eq!(session_pay(backing, Perquintill::zero()), 0);
    }

    #[test]
    fn nine_of_ten_expected_blocks_are_paid_in_full_and_fewer_in_proportion() {
        let expected = 10 * 1_000_000;
        assert_eq!(earned(900, 12, expected), 900);
        assert_eq!(earned(900, 9, expected), 900);
        assert_eq!(earned(900, 8, expected), 800);
        assert_eq!(earned(900, 1, expected), 100);
        assert_eq!(earned(900, 0, expected), 0);
        assert_eq!(earned(900, 1, 0), 0);
    }

    #[test]
    fn fees_go_by_blocks_made() {
        assert_eq!(fees_of(100, 1, 3), 33);
        assert_eq!(fees_of(100, 3, 3), 100);
        assert_eq!(fees_of(100, 0, 3), 0);
        assert_eq!(fees_of(100, 0, 0), 0);
        // Never more than all, whatever is said of the others.
        assert_eq!(fees_of(100, 3, 1), 100);
    }

    fn part() -> impl Strategy<Value = Perquintill> {
        (0..=Perquintill::ACCURACY).prop_map(Perquintill::from_parts)
    }

    proptest! {
        #[test]
        fn more_backing_is_never_owed_less(a in 0..=CAP, b in 0..=CAP, c in part(), d in part()) {
            prop_assert!(session_pay(a.min(b), c.min(d)) <= session_pay(a.max(b), c.max(d)));
        }

        #[test]
        fn splitting_backing_over_operators_is_owed_nothing_more(
            parts in prop::collection::vec(0..=CAP / 16, 1..16), tau in part(),
        ) {
            let together = session_pay(parts.iter().sum(), tau);
            let apart: u128 = parts.iter().map(|part| session_pay(*part, tau)).sum();
            prop_assert!(apart <= together && together < apart + parts.len() as u128);
        }

        #[test]
        fn nobody_is_paid_more_than_it_is_owed(
            owed in any::<u128>(), made in any::<u32>(), more in any::<u32>(), expected in any::<u64>(),
        ) {
            let paid = earned(owed, made, expected);
            prop_assert!(paid <= owed);
            prop_assert!(paid <= earned(owed, made.saturating_add(more), expected));
        }

        #[test]
        fn all_together_get_no_more_fees_than_there_are(
            fees in any::<u128>(), made in prop::collection::vec(any::<u32>(), 1..100),
        ) {
            let in_all = made.iter().map(|made| u64::from(*made)).sum();
            let mut left = fees;
            for made in made {
                let share = fees_of(fees, made, in_all);
                prop_assert!(share <= left);
                left -= share;
            }
        }
    }
}
