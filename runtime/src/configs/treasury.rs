//! What is paid out of the account that the treasury's part of the fees goes to.

#![allow(clippy::arithmetic_side_effects, reason = "constants of the configuration")]

use frame_support::{
    PalletId, parameter_types,
    traits::{
        ConstU32,
        tokens::{PayFromAccount, UnityAssetBalanceConversion},
    },
};
use sp_runtime::Permill;

use super::{
    compute::TreasuryAccount,
    origins::{RootOr, SpendLimit, Treasurer},
};
use crate::{AccountId, Balances, Runtime, RuntimeEvent, System, units::DAYS};

parameter_types! {
    /// Whose account [`TreasuryAccount`] is.
    pub const TreasuryId: PalletId = PalletId(*b"sur/trsy");
    /// What is not spent stays.
    pub const Burn: Permill = Permill::zero();
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
    type Paymaster = PayFromAccount<Balances, TreasuryAccount>;
    type BalanceConverter = UnityAssetBalanceConversion;
    type PayoutPeriod = ConstU32<{ 30 * DAYS }>;
    #[cfg(feature = "runtime-benchmarks")]
    type BenchmarkHelper = ();
    type BlockNumberProvider = System;
}
