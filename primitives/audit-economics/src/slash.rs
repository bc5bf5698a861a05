//! How much is slashed, and where it goes.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_arithmetic::{
    PerThing, Perquintill, Rounding,
    helpers_128bit::multiply_by_rational_with_rounding as multiply_by_rational, traits::Saturating,
};

/// Part of its stake that a convicted provider loses on top of its lock.
///
/// `base` for a fault that stands alone; all of the stake once `others`, the stake of everybody else
/// convicted in the same window, is a third of `total`, all providers' stake. In between the rest of the
/// stake is lost in proportion to `(3 others / total)^2`: an accident that hits a few costs little more than
/// the base, an attack that could turn votes costs everything. Slashes are to be computed when they are
/// carried out, not when the fault is proven, so that it makes no difference who of the convicted was first.
pub fn correlated_fraction(base: Perquintill, others: u128, total: u128) -> Perquintill {
    let one = Perquintill::one();
    let tripled = others.saturating_mul(3);
    if tripled >= total {
        // A total of nothing, too: nobody is left whose stake could dilute the fault, unless there is no
        // other.
        return if others == 0 { base } else { one };
    }
    let parts = multiply_by_rational(tripled, one.deconstruct().into(), total, Rounding::Up);
    let share = parts
        .and_then(|parts| u64::try_from(parts).ok())
        .map_or(one, Perquintill::from_parts);
    let growth = base.left_from_one().deconstruct();
    let growth = share.mul_ceil(share.mul_ceil(growth));
    Perquintill::from_parts(base.deconstruct().saturating_add(growth))
}

/// Where a slash goes; what is left of it is burned.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct SlashSplit {
    /// For whoever proved the fault.
    pub finder: Perquintill,
    /// For the client, or the insurance pool.
    pub client: Perquintill,
}

impl Default for SlashSplit {
    /// 50 % burned, 30 % finder, 20 % client.
    fn default() -> Self {
        Self {
            finder: Perquintill::from_percent(30),
            client: Perquintill::from_percent(20),
        }
    }
}

/// One slash, taken apart. The three add up to it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct SlashShares {
    /// Destroyed, in plancks.
    pub burned: u128,
    /// For the finder, in plancks.
    pub finder: u128,
    /// For the client, in plancks.
    pub client: u128,
}

impl SlashSplit {
    /// Takes `amount` plancks apart. Rounding goes to the burned part, which is never less than its
    /// percentage: the honesty condition counts on it. Shares of more than the whole are cut, the client's
    /// first.
    pub fn shares(&self, amount: u128) -> SlashShares {
        let finder = self.finder.mul_floor(amount);
        let rest = amount.saturating_sub(finder);
        let client = self.client.mul_floor(amount).min(rest);
        SlashShares {
            burned: rest.saturating_sub(client),
            finder,
            client,
        }
    }

    /// Part of a slash that is burned at least.
    pub fn burned(&self) -> Perquintill {
        self.finder.left_from_one().saturating_sub(self.client)
    }
}
