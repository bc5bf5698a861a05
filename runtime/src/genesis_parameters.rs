//! Parameter values in the genesis configuration.
//!
//! pallet-parameters 0.21 cannot be configured at genesis, and a dev chain needs short windows from block 1
//! on. This pallet has a genesis configuration and nothing else: no storage, no calls, no hooks. See ADR
//! 0003.

#![warn(missing_docs)]

pub use pallet::*;

// The lint takes the macro's `pallet::genesis_build` for a path that could be shorter.
#[allow(unused_qualifications)]
#[frame_support::pallet]
pub mod pallet {
    use frame_support::{DefaultNoBound, pallet_prelude::*, traits::dynamic_params::AggregatedKeyValue};

    use crate::{RuntimeParameters, genesis_parameters::Overrides, next_version::STORAGE_VERSION};

    #[pallet::pallet]
    #[pallet::storage_version(STORAGE_VERSION)]
    pub struct Pallet<T>(_);

    /// Needs the parameters' store.
    #[pallet::config]
    pub trait Config:
        frame_system::Config + pallet_parameters::Config<RuntimeParameters = RuntimeParameters>
    {
    }

    /// Parameters that differ from production at genesis.
    #[pallet::genesis_config]
    #[derive(DefaultNoBound)]
    pub struct GenesisConfig<T: Config> {
        /// The values, by pallet.
        pub overrides: Overrides,
        #[serde(skip)]
        #[doc(hidden)]
        pub _config: PhantomData<T>,
    }

    #[pallet::genesis_build]
    impl<T: Config> BuildGenesisConfig for GenesisConfig<T> {
        fn build(&self) {
            for parameter in self.overrides.parameters() {
                let (key, value) = parameter.into_parts();
                pallet_parameters::Parameters::<T>::set(key, value);
            }
        }
    }
}

use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use sp_runtime::{FixedU128, Permill};

use crate::{
    Balance, BlockNumber, RuntimeParameters,
    params::{AssetId, dynamic},
};

/// Makes, for each parameter, an optional genesis field that is named like it.
macro_rules! overrides {
    ($($group:ident: $Group:ident { $($field:ident: $Key:ident($type:ty),)* })*) => {
        $(
            #[doc = concat!("Overrides of [`dynamic::", stringify!($group), "`].")]
            #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
            #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
            pub struct $Group {
                $(
                    #[doc = concat!("[`dynamic::", stringify!($group), "::", stringify!($Key), "`].")]
                    #[serde(skip_serializing_if = "Option::is_none")]
                    pub $field: Option<$type>,
                )*
            }
        )*

        /// Parameters that differ from production, by pallet. What is left out stays at its default.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
        pub struct Overrides {
            $(
                #[doc = concat!("Overrides of [`dynamic::", stringify!($group), "`].")]
                pub $group: $Group,
            )*
        }

        impl Overrides {
            /// The overrides as pallet-parameters stores them.
            pub fn parameters(&self) -> Vec<RuntimeParameters> {
                let mut parameters = Vec::new();
                $($(
                    if let Some(value) = self.$group.$field {
                        parameters.push(RuntimeParameters::$Group(dynamic::$group::Parameters::$Key(
                            dynamic::$group::$Key,
                            Some(value),
                        )));
                    }
                )*)*
                parameters
            }
        }
    };
}

overrides! {
    staking: Staking {
        min_bond: MinBond(Balance),
        unbonding_period: UnbondingPeriod(BlockNumber),
        collateral: Collateral(Option<(AssetId, Balance)>),
    }
    provider_registry: ProviderRegistry {
        heartbeat_window: HeartbeatWindow(BlockNumber),
        identity_required: IdentityRequired(bool),
    }
    model_registry: ModelRegistry {
        model_deposit: ModelDeposit(Balance),
    }
    auction: Auction {
        bid_window: BidWindow(BlockNumber),
        reveal_window: RevealWindow(BlockNumber),
        late_reveal_window: LateRevealWindow(BlockNumber),
        bid_deposit: BidDeposit(Balance),
        units_max: UnitsMax(u32),
        input_bytes_max: InputBytesMax(u32),
        redundancy_max: RedundancyMax(u32),
        finished_retention: FinishedRetention(BlockNumber),
    }
    results: Results {
        commit_window: CommitWindow(BlockNumber),
        audit_window: AuditWindow(BlockNumber),
        reveal_window: RevealWindow(BlockNumber),
        challenge_window: ChallengeWindow(BlockNumber),
        lock_multiple: LockMultiple(u32),
        auditors_expected: AuditorsExpected(FixedU128),
        auditors_newcomer: AuditorsNewcomer(FixedU128),
        audit_bond_multiple: AuditBondMultiple(u32),
        supply_price: SupplyPrice(Balance),
        supply_window: SupplyWindow(BlockNumber),
        input_window: InputWindow(BlockNumber),
        opening_window: OpeningWindow(BlockNumber),
        auditors_basic: AuditorsBasic(FixedU128),
        auditors_high: AuditorsHigh(FixedU128),
        verifiers_corrupt: VerifiersCorrupt(Permill),
        audit_accuracy: AuditAccuracy(Permill),
        audit_window_max: AuditWindowMax(BlockNumber),
        audit_premium: AuditPremium(FixedU128),
        generation_audit_cost: GenerationAuditCost(Permill),
        verifiers_able: VerifiersAble(Permill),
        work_price: WorkPrice(Balance),
    }
    disputes: Disputes {
        challenge_bond_multiple: ChallengeBondMultiple(u32),
        defense_cost: DefenseCost(Balance),
        dispute_clock: DisputeClock(u32),
        decision_window: DecisionWindow(BlockNumber),
        seat_window: SeatWindow(u32),
        vote_window: VoteWindow(u32),
        seat_seasoning: SeatSeasoning(u32),
    }
    trust_lock: TrustLock {
        probation_tasks: ProbationTasks(u32),
        slash_deferral: SlashDeferral(BlockNumber),
        stake_part: StakePart(Permill),
        finder_share: FinderShare(Permill),
        client_share: ClientShare(Permill),
        correlation_window: CorrelationWindow(BlockNumber),
        jail_period: JailPeriod(BlockNumber),
        suspension_period: SuspensionPeriod(BlockNumber),
    }
    billing: Billing {
        fee_rate: FeeRate(Permill),
        fee_min: FeeMin(Balance),
        treasury_share: TreasuryShare(Permill),
        validator_share: ValidatorShare(Permill),
        client_lock: ClientLock(Permill),
    }
    channels: Channels {
        point_rate: PointRate(FixedU128),
        at_risk: AtRisk(FixedU128),
        verifiers_able: VerifiersAble(Permill),
        point_cost: PointCost(Balance),
        point_bond: PointBond(Balance),
        demand_price: DemandPrice(Balance),
        supply_window: SupplyWindow(BlockNumber),
        announce_window: AnnounceWindow(BlockNumber),
        batch_window: BatchWindow(BlockNumber),
        dispute_window: DisputeWindow(BlockNumber),
        refute_window: RefuteWindow(BlockNumber),
        closing_period: ClosingPeriod(BlockNumber),
        max_life: MaxLife(BlockNumber),
        redeem_by: RedeemBy(BlockNumber),
    }
    delegation: Delegation {
        min_self_bond: MinSelfBond(Balance),
        min_delegation: MinDelegation(Balance),
        unbonding_period: UnbondingPeriod(BlockNumber),
    }
    validators: Validators {
        validators_min: ValidatorsMin(u32),
        validators_max: ValidatorsMax(u32),
    }
    emission: Emission {
        reward_sessions: RewardSessions(u32),
    }
    governance: Governance {
        governance_unit: GovernanceUnit(BlockNumber),
    }
    gpu_proofs: GpuProofs {
        round_every: RoundEvery(u32),
        open_window: OpenWindow(BlockNumber),
    }
}
