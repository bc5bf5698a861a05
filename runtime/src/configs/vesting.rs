//! SURE that its owner may stake and vote with, and spend bit by bit.

#![allow(clippy::arithmetic_side_effects, reason = "constants of the configuration")]

use frame_support::{
    parameter_types,
    traits::{ConstU128, WithdrawReasons},
};
use sp_runtime::traits::ConvertInto;

use crate::{Balances, Runtime, RuntimeEvent, System, units::SURE};

parameter_types! {
    /// The currency makes no difference: what is locked can be held and seized, and not spent.
    pub UnvestedFundsAllowedWithdrawReasons: WithdrawReasons =
        WithdrawReasons::except(WithdrawReasons::TRANSFER | WithdrawReasons::RESERVE);
}

impl pallet_vesting::Config for Runtime {
    type RuntimeEvent = RuntimeEvent;
    type Currency = Balances;
    type BlockNumberToBalance = ConvertInto;
    // An account has few schedules: strangers pay so much for each that they take.
    type MinVestedTransfer = ConstU128<{ 100 * SURE }>;
    type WeightInfo = pallet_vesting::weights::SubstrateWeight<Runtime>;
    type UnvestedFundsAllowedWithdrawReasons = UnvestedFundsAllowedWithdrawReasons;
    type BlockNumberProvider = System;
    const MAX_VESTING_SCHEDULES: u32 = 8;
}
