//! Pools where there are none.

use sp_runtime::{Perquintill, Weight};
use surety_types::traits::{PoolLedger, SessionIndex};

use crate::{AccountId, Balance};

/// [`PoolLedger`] of a chain without validators that stake.
pub struct NoPools;

impl PoolLedger<AccountId, Balance> for NoPools {
    fn backing(_: &AccountId) -> Balance {
        0
    }

    fn own(_: &AccountId) -> Balance {
        0
    }

    fn is_pending(_: &AccountId) -> bool {
        false
    }

    fn pot() -> AccountId {
        AccountId::MAX
    }

    fn reward(_: &AccountId, _: Balance) -> Balance {
        0
    }

    fn note_pending(_: &AccountId, _: SessionIndex) {}

    fn spare(_: &AccountId) {}

    fn slash(_: &AccountId, _: Perquintill, _: SessionIndex) -> Balance {
        0
    }

    fn slash_weight() -> Weight {
        Weight::zero()
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn open_for_benchmark(_: &AccountId, _: Balance) {}
}
