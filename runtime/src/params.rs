//! Windows and prices that governance changes without an upgrade.
//!
//! The values here are production's. Genesis presets override some of them through
//! [`genesis_parameters`](crate::genesis_parameters); ADR 0003 says why.

use frame_support::dynamic_params::{dynamic_pallet_params, dynamic_params};
use sp_runtime::Permill;

use crate::{
    units::{DAYS, HOURS, MILLI_SURE, MINUTES, SURE},
    Balance, BlockNumber, Runtime,
};

#[dynamic_params(RuntimeParameters, pallet_parameters::Parameters::<Runtime>)]
pub mod dynamic {
    use super::*;

    /// Parameters of staking.
    #[dynamic_pallet_params]
    #[codec(index = 0)]
    pub mod staking {
        /// Least stake of a stash, in plancks.
        #[codec(index = 0)]
        pub static MinBond: Balance = 1_000 * SURE;

        /// Blocks from unbonding to withdrawal. Longer than the longest challenge.
        #[codec(index = 1)]
        pub static UnbondingPeriod: BlockNumber = 7 * DAYS;
    }

    /// Parameters of provider-registry.
    #[dynamic_pallet_params]
    #[codec(index = 1)]
    pub mod provider_registry {
        /// Blocks since its last heartbeat for which a provider counts as available.
        #[codec(index = 0)]
        pub static HeartbeatWindow: BlockNumber = 10 * MINUTES;
    }

    /// Parameters of model-registry.
    #[dynamic_pallet_params]
    #[codec(index = 2)]
    pub mod model_registry {
        /// Held while a model is registered, in plancks.
        #[codec(index = 0)]
        pub static ModelDeposit: Balance = 10 * SURE;
    }

    /// Parameters of task-auction.
    #[dynamic_pallet_params]
    #[codec(index = 3)]
    pub mod auction {
        /// Blocks for sealed bids.
        #[codec(index = 0)]
        pub static BidWindow: BlockNumber = 15;

        /// Blocks for opening bids.
        #[codec(index = 1)]
        pub static RevealWindow: BlockNumber = 15;

        /// Stake that a sealed bid locks and an unopened one loses, in plancks.
        #[codec(index = 2)]
        pub static BidDeposit: Balance = SURE;

        /// Most units of a task: as many vectors as fit into one output blob of 64 MiB.
        #[codec(index = 3)]
        pub static UnitsMax: u32 = 40_000;

        /// Largest input of a task, in bytes.
        #[codec(index = 4)]
        pub static InputBytesMax: u32 = 16 * 1024 * 1024;

        /// Most providers of a task.
        #[codec(index = 5)]
        pub static RedundancyMax: u32 = 16;

        /// Blocks for which a finished task can be read.
        #[codec(index = 6)]
        pub static FinishedRetention: BlockNumber = 7 * DAYS;
    }

    /// Parameters of trust-lock.
    #[dynamic_pallet_params]
    #[codec(index = 4)]
    pub mod trust_lock {
        /// Blocks for computing and committing.
        #[codec(index = 0)]
        pub static CommitWindow: BlockNumber = 10 * MINUTES;

        /// Blocks for auditors, between the last commitment and the first reveal.
        #[codec(index = 1)]
        pub static AuditWindow: BlockNumber = 2 * MINUTES;

        /// Blocks for opening commitments.
        #[codec(index = 2)]
        pub static RevealWindow: BlockNumber = MINUTES;

        /// Blocks for challenging a verdict.
        #[codec(index = 3)]
        pub static ChallengeWindow: BlockNumber = HOURS;

        /// Stake locked for a task, as a multiple of its price.
        #[codec(index = 4)]
        pub static LockMultiple: u32 = 40;
    }

    /// Parameters of billing.
    #[dynamic_pallet_params]
    #[codec(index = 5)]
    pub mod billing {
        /// Protocol fee, as a part of what providers are paid.
        #[codec(index = 0)]
        pub static FeeRate: Permill = Permill::from_percent(5);

        /// Smallest protocol fee of a settled task, in plancks.
        #[codec(index = 1)]
        pub static FeeMin: Balance = 10 * MILLI_SURE;

        /// The treasury's part of the fee.
        #[codec(index = 2)]
        pub static TreasuryShare: Permill = Permill::from_percent(40);

        /// The validators' part of the fee. What is left is burned.
        #[codec(index = 3)]
        pub static ValidatorShare: Permill = Permill::from_percent(40);
    }
}

/// What `set_parameter` is benchmarked with: the longest key and value.
#[cfg(feature = "runtime-benchmarks")]
impl Default for RuntimeParameters {
    fn default() -> Self {
        RuntimeParameters::Staking(dynamic::staking::Parameters::MinBond(
            dynamic::staking::MinBond,
            Some(1_000 * SURE),
        ))
    }
}
