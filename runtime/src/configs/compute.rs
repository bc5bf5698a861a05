//! Our own pallets, and what each of them gets from the others.

use frame_support::{parameter_types, weights::Weight, PalletId};
use frame_system::EnsureRoot;
use sp_runtime::traits::AccountIdConversion;
use surety_types::{traits::Escrow, view::TaskView, TaskId};

use super::courts::{AgentDraws, Courts, EpochRandomness};
use crate::{
    params::dynamic, weights, AccountId, Balance, Balances, Billing, BlockNumber, FinalityClock,
    ModelRegistry, ProviderRegistry, Runtime, RuntimeHoldReason, Staking, TaskAuction, TrustLock,
};

parameter_types! {
    /// The treasury. Governance spends from it.
    pub TreasuryAccount: AccountId = PalletId(*b"sur/trsy").into_account_truncating();
    /// Where validators' part of the protocol fees waits until rewards are paid out.
    pub ValidatorPot: AccountId = PalletId(*b"sur/vpot").into_account_truncating();
    /// Pays clients that were told a wrong result.
    pub InsurancePool: AccountId = PalletId(*b"sur/insu").into_account_truncating();
    /// A round's dearest step.
    pub TrustWeight: Weight = TrustLock::advance_weight();
}

impl surety_pallet_staking::Config for Runtime {
    type Currency = Balances;
    type RuntimeHoldReason = RuntimeHoldReason;
    type MinBond = dynamic::staking::MinBond;
    type UnbondingPeriod = dynamic::staking::UnbondingPeriod;
    type OnClosed = ProviderRegistry;
    type WeightInfo = weights::surety_pallet_staking::WeightInfo<Runtime>;
}

impl surety_pallet_provider_registry::Config for Runtime {
    type Balance = Balance;
    type Stake = Staking;
    type HeartbeatWindow = dynamic::provider_registry::HeartbeatWindow;
    type Jail = TrustLock;
    type WeightInfo = weights::surety_pallet_provider_registry::WeightInfo<Runtime>;
}

impl surety_pallet_model_registry::Config for Runtime {
    type Currency = Balances;
    type RuntimeHoldReason = RuntimeHoldReason;
    type ModelDeposit = dynamic::model_registry::ModelDeposit;
    type WeightInfo = weights::surety_pallet_model_registry::WeightInfo<Runtime>;
}

impl surety_pallet_task_auction::Config for Runtime {
    type WeightInfo = weights::surety_pallet_task_auction::WeightInfo<Runtime>;
    // Only the draw of providers uses it. Its authors know it early, so auditors are never drawn from it.
    type Randomness = pallet_babe::ParentBlockRandomness<Runtime>;
    type Stake = Staking;
    type Providers = ProviderRegistry;
    type Models = ModelRegistry;
    type Escrow = Billing;
    type Trust = TrustLock;
    type TrustWeight = TrustWeight;
    type BidWindow = dynamic::auction::BidWindow;
    type RevealWindow = dynamic::auction::RevealWindow;
    type BidDeposit = dynamic::auction::BidDeposit;
    type UnitsMax = dynamic::auction::UnitsMax;
    type InputBytesMax = dynamic::auction::InputBytesMax;
    type RedundancyMax = dynamic::auction::RedundancyMax;
    type FinishedRetention = dynamic::auction::FinishedRetention;
}

impl surety_pallet_trust_lock::Config for Runtime {
    type Balance = Balance;
    type Currency = Balances;
    type RuntimeHoldReason = RuntimeHoldReason;
    type Stake = Staking;
    type Outcome = TaskAuction;
    type Clock = TaskAuction;
    type CommitWindow = dynamic::trust_lock::CommitWindow;
    type AuditWindow = dynamic::trust_lock::AuditWindow;
    type RevealWindow = dynamic::trust_lock::RevealWindow;
    type ChallengeWindow = dynamic::trust_lock::ChallengeWindow;
    type LockMultiple = dynamic::trust_lock::LockMultiple;
    type Referee = Courts;
    type Draws = AgentDraws;
    type EpochRandomness = EpochRandomness;
    type FinalisedBlock = FinalityClock;
    type AuditorsExpected = dynamic::trust_lock::AuditorsExpected;
    type AuditorsNewcomer = dynamic::trust_lock::AuditorsNewcomer;
    type ProbationTasks = dynamic::trust_lock::ProbationTasks;
    type AuditBondMultiple = dynamic::trust_lock::AuditBondMultiple;
    type AbsencesMax = dynamic::trust_lock::AbsencesMax;
    type ChallengeBondMultiple = dynamic::trust_lock::ChallengeBondMultiple;
    type DefenceCost = dynamic::trust_lock::DefenceCost;
    type DisputeClock = dynamic::trust_lock::DisputeClock;
    type DecisionWindow = dynamic::trust_lock::DecisionWindow;
    type SupplyPrice = dynamic::trust_lock::SupplyPrice;
    type SupplyWindow = dynamic::trust_lock::SupplyWindow;
    type SlashDeferral = dynamic::trust_lock::SlashDeferral;
    type StakePart = dynamic::trust_lock::StakePart;
    type NoRevealPart = dynamic::trust_lock::NoRevealPart;
    type FinderShare = dynamic::trust_lock::FinderShare;
    type ClientShare = dynamic::trust_lock::ClientShare;
    type CorrelationWindow = dynamic::trust_lock::CorrelationWindow;
    type JailPeriod = dynamic::trust_lock::JailPeriod;
    type InsurancePool = InsurancePool;
    // Root until referenda come; the dev preset alone has a key for it.
    type VetoOrigin = EnsureRoot<AccountId>;
    type DecideOrigin = EnsureRoot<AccountId>;
    type WeightInfo = weights::surety_pallet_trust_lock::WeightInfo<Runtime>;
}

impl surety_pallet_billing::Config for Runtime {
    type RuntimeHoldReason = RuntimeHoldReason;
    type Currency = Balances;
    type FeeRate = dynamic::billing::FeeRate;
    type FeeMin = dynamic::billing::FeeMin;
    type TreasuryShare = dynamic::billing::TreasuryShare;
    type ValidatorShare = dynamic::billing::ValidatorShare;
    type TreasuryAccount = TreasuryAccount;
    type ValidatorPot = ValidatorPot;
}

/// A task with its round and what is left in escrow for it.
pub(crate) fn task_view(id: TaskId) -> Option<TaskView<AccountId, Balance, BlockNumber>> {
    let task = surety_pallet_task_auction::Tasks::<Runtime>::get(id)?;
    let round = surety_pallet_trust_lock::Rounds::<Runtime>::get(id);
    Some(TaskView {
        task,
        round,
        escrow: Billing::held(id),
    })
}

/// The most each of `redundancy` providers can be paid out of `cap`.
pub(crate) fn price_limit(cap: Balance, redundancy: u32) -> Option<Balance> {
    Billing::price_limit(cap, redundancy).ok()
}
