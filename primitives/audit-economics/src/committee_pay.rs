//! What the members of a committee are paid.
//!
//! By whoever loses the dispute, for the dispute and not for a round of it: a member computes the number once
//! and says the same in every ballot. What there is for all of them is fixed before the first of them comes,
//! so that nobody gains by making it longer.

use sp_arithmetic::{FixedPointNumber, FixedU128};

/// How members of committees are paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitteePay {
    /// What computing is paid, as a multiple of its cost.
    pub premium: FixedU128,
    /// How many are expected to compute in the fewest rounds that decide: who is drawn does, and whether
    /// others have drawn better is seen when seats are filled.
    pub computing: u32,
    /// How many seats those rounds have.
    pub seats: u32,
}

impl CommitteePay {
    /// What all members are paid at most, where computing costs each of them `cost`, in plancks: with the
    /// premium, what it costs all who are expected to.
    pub fn pot(&self, cost: u128) -> u128 {
        let all = cost.saturating_mul(self.computing.into());
        self.premium.saturating_mul_int(all)
    }

    /// What each of `members` that gave the answer gets of a pot, rounded down: equal parts, and no more than
    /// where all seats of the fewest rounds that decide have different members.
    pub fn each(&self, pot: u128, members: u32) -> u128 {
        let among = members.max(self.seats);
        pot.checked_div(among.into()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAY: CommitteePay = CommitteePay {
        premium: FixedU128::from_u32(2),
        computing: 120,
        seats: 60,
    };

    #[test]
    fn all_members_together_never_get_more_than_the_pot() {
        let pot = PAY.pot(997);
        for members in 1..300 {
            assert!(PAY.each(pot, members) * u128::from(members) <= pot);
        }
        assert_eq!(PAY.pot(u128::MAX), u128::MAX);
    }

    #[test]
    fn a_member_is_paid_above_its_cost_as_long_as_no_more_compute_than_are_expected() {
        let pot = PAY.pot(1_000);
        for members in 1..=PAY.computing {
            assert!(PAY.each(pot, members) > 1_000, "{members}");
        }
        // And no more for being few: it is the price of work.
        assert_eq!(PAY.each(pot, 1), PAY.each(pot, PAY.seats));
    }

    #[test]
    fn further_rounds_pay_nobody_more() {
        let pot = PAY.pot(1_000);
        let paid = |members| PAY.each(pot, members);
        assert!((PAY.seats..300).all(|members| paid(members + 1) <= paid(members)));
    }
}
