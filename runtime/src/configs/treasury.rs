//! What is paid out of the account that the treasury's part of the fees goes to.

#![allow(clippy::arithmetic_side_effects, reason = "constants of the configuration")]

use frame_support::{
    PalletId, parameter_types,
    traits::{
        ConstU32,
        fungible::Mutate,
        tokens::{Pay, PaymentStatus, Preservation, UnityAssetBalanceConversion},
    },
};
use sp_runtime::{DispatchError, Permill};

use super::{
    compute::TreasuryAccount,
    origins::{RootOr, SpendLimit, Treasurer},
};
use crate::{AccountId, Balance, Balances, Runtime, RuntimeEvent, System, units::DAYS};

parameter_types! {
    /// Whose account [`TreasuryAccount`] is.
    pub const TreasuryId: PalletId = PalletId(*b"sur/trsy");
    /// What is not spent stays.
    pub const Burn: Permill = Permill::zero();
}

/// Pays out of the treasury, which keeps its existential deposit as every pot does.
pub struct FromTreasury;

impl Pay for FromTreasury {
    type Balance = Balance;
    type Beneficiary = AccountId;
    type AssetKind = ();
    type Id = ();
    type Error = DispatchError;

    fn pay(who: &AccountId, _: (), amount: Balance) -> Result<(), DispatchError> {
        Balances::transfer(&TreasuryAccount::get(), who, amount, Preservation::Preserve).map(|_| ())
    }

    fn check_payment(_: ()) -> PaymentStatus {
        PaymentStatus::Success
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn ensure_successful(_: &AccountId, _: (), amount: Balance) {
        let with_deposit = amount.saturating_add(crate::units::EXISTENTIAL_DEPOSIT);
        frame_support::assert_ok!(Balances::mint_into(&TreasuryAccount::get(), with_deposit));
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn ensure_concluded(_: ()) {}
}

impl pallet_treasury::Config for Runtime {
    type Currency = Balances;
    type RejectOrigin = RootOr<Treasurer>;
    type RuntimeEvent = RuntimeEvent;
    // Nothing is paid by itself: these are of what `spend_local` queues, and its queue has no room.
    type SpendPeriod = ConstU32<{ 7 * DAYS }>;
    type MaxApprovals = ConstU32<0>;
    type SpendFunds = ();
    type Burn = Burn;
    type BurnDestination = ();
    type PalletId = TreasuryId;
    type WeightInfo = pallet_treasury::weights::SubstrateWeight<Runtime>;
    type SpendOrigin = SpendLimit;
    type AssetKind = ();
    type Beneficiary = AccountId;
    type BeneficiaryLookup = <Runtime as frame_system::Config>::Lookup;
    type Paymaster = FromTreasury;
    type BalanceConverter = UnityAssetBalanceConversion;
    type PayoutPeriod = ConstU32<{ 30 * DAYS }>;
    #[cfg(feature = "runtime-benchmarks")]
    type BenchmarkHelper = ();
    type BlockNumberProvider = System;
}
