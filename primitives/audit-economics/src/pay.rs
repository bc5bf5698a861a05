//! What an audit is paid.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_arithmetic::{Permill, traits::AtLeast32BitUnsigned};

/// How audits are paid: out of what the provider earns that was audited, so that whoever audits itself pays
/// itself.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct AuditPay {
    /// Part of what the provider earns, for each audit.
    pub each: Permill,
    /// Part of it for all audits together: more of them than that share it equally.
    pub most: Permill,
}

impl AuditPay {
    /// What each of `audits` audits gets of `earned`, rounded down. All of them together never get more than
    /// `earned`.
    pub fn of<Balance: AtLeast32BitUnsigned + Copy>(&self, earned: Balance, audits: u32) -> Balance {
        let shared = self.most.mul_floor(earned).checked_div(&Balance::from(audits));
        // No answer: no audits.
        shared.map_or_else(Balance::zero, |shared| self.each.mul_floor(earned).min(shared))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAY: AuditPay = AuditPay {
        each: Permill::from_percent(12),
        most: Permill::from_percent(50),
    };

    #[test]
    fn few_audits_get_their_part_and_many_share_what_there_is_for_all() {
        assert_eq!(PAY.of(1_000u128, 1), 120);
        assert_eq!(PAY.of(1_000u128, 4), 120);
        assert_eq!(PAY.of(1_000u128, 5), 100);
        assert_eq!(PAY.of(1_000u128, 64), 7);
        assert_eq!(PAY.of(1_000u128, 0), 0);
    }

    proptest! {
        #[test]
        fn audits_never_cost_more_than_their_provider_earns(
            earned in any::<u128>(), audits in 0..100u32, each in 0..=1_000_000u32, most in 0..=1_000_000u32,
        ) {
            let pay = AuditPay { each: Permill::from_parts(each), most: Permill::from_parts(most) };
            let all = pay.of(earned, audits).checked_mul(audits.into());
            prop_assert!(all.is_some_and(|all| all <= pay.most.mul_floor(earned)));
        }
    }
}
