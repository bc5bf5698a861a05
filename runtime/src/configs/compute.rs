//! Our own pallets, and what each of them gets from the others.

use frame_support::{PalletId, parameter_types, traits::Get, weights::Weight};
use frame_system::EnsureRoot;
use sp_runtime::traits::AccountIdConversion;
use surety_pallet_staking::AssetCollateral;
use surety_types::{
    TaskId,
    traits::Escrow,
    view::{ProviderTerms, TaskView},
};

use super::{
    consensus::RunningClock,
    history::PostedTasks,
    providers::{Collateral, JudgedIdentity},
    stake::UnbondingPeriod,
    treasury::TreasuryId,
    trust::ExactReferee,
};
use crate::{
    AccountId, AssetsHolder, Balance, Balances, Billing, BlockEntropy, BlockNumber, Delegation, Emission,
    GpuProofs, ModelRegistry, ProviderRegistry, Results, Runtime, RuntimeHoldReason, Staking, TrustLock,
    params::{UpTo, UpToADay, dynamic},
    units::DAYS,
    weights,
};

parameter_types! {
    /// The treasury. Governance spends from it.
    pub TreasuryAccount: AccountId = TreasuryId::get().into_account_truncating();
    /// Where validators' part of the protocol fees waits until a day is paid.
    pub ValidatorPot: AccountId = PalletId(*b"sur/vpot").into_account_truncating();
    /// Where escrow of tasks is.
    pub const EscrowPot: PalletId = PalletId(*b"sur/escr");
    /// A round's dearest step. What the auction adds for its own part is more than what channels do for
    /// theirs.
    pub TrustWeight: Weight = Results::advance_weight();
}

impl surety_pallet_staking::Config for Runtime {
    type Currency = Balances;
    type RuntimeHoldReason = RuntimeHoldReason;
    type MinBond = dynamic::staking::MinBond;
    type BlockNumberProvider = RunningClock;
    type Jail = TrustLock;
    type UnbondingPeriod = UnbondingPeriod;
    type Admission = JudgedIdentity;
    type Collateral = AssetCollateral<AssetsHolder, Collateral>;
    type Pools = Delegation;
    type OnClosed = (ProviderRegistry, TrustLock, (Emission, GpuProofs));
    type WeightInfo = weights::surety_pallet_staking::WeightInfo<Runtime>;
}

impl surety_pallet_provider_registry::Config for Runtime {
    type Balance = Balance;
    type Stake = Staking;
    type HeartbeatWindow = dynamic::provider_registry::HeartbeatWindow;
    type Admission = JudgedIdentity;
    type Jail = TrustLock;
    type Speed = GpuProofs;
    type Tasks = PostedTasks;
    type WeightInfo = weights::surety_pallet_provider_registry::WeightInfo<Runtime>;
}

impl surety_pallet_model_registry::Config for Runtime {
    type Currency = Balances;
    type RuntimeHoldReason = RuntimeHoldReason;
    type ModelDeposit = dynamic::model_registry::ModelDeposit;
    type Referee = ExactReferee;
    type Stake = Staking;
    // Audits have as long, and cost as much, as it says.
    type SpeedOrigin = EnsureRoot<AccountId>;
    type WeightInfo = weights::surety_pallet_model_registry::WeightInfo<Runtime>;
}

impl surety_pallet_task_auction::Config for Runtime {
    type WeightInfo = weights::surety_pallet_task_auction::WeightInfo<Runtime>;
    type BlockNumberProvider = RunningClock;
    type Entropy = BlockEntropy;
    type Stake = Staking;
    type Providers = ProviderRegistry;
    type Models = ModelRegistry;
    type Escrow = Billing;
    type Trust = Results;
    type TrustWeight = TrustWeight;
    type BidWindow = UpToADay<dynamic::auction::BidWindow>;
    type RevealWindow = UpToADay<dynamic::auction::RevealWindow>;
    type LateRevealWindow = dynamic::auction::LateRevealWindow;
    type BidDeposit = dynamic::auction::BidDeposit;
    // What anybody can know of a block's entropy is the same for all draws.
    type BidderSeasoning = dynamic::disputes::SeatSeasoning;
    type UnitsMax = dynamic::auction::UnitsMax;
    type InputBytesMax = dynamic::auction::InputBytesMax;
    type RedundancyMax = dynamic::auction::RedundancyMax;
    type FinishedRetention = UpTo<{ 30 * DAYS }, dynamic::auction::FinishedRetention>;
}

impl surety_pallet_billing::Config for Runtime {
    type RuntimeHoldReason = RuntimeHoldReason;
    type Currency = Balances;
    type PotId = EscrowPot;
    type FeeRate = dynamic::billing::FeeRate;
    type FeeMin = dynamic::billing::FeeMin;
    type TreasuryShare = dynamic::billing::TreasuryShare;
    type ValidatorShare = dynamic::billing::ValidatorShare;
    type TreasuryAccount = TreasuryAccount;
    type ValidatorPot = ValidatorPot;
    type ClientLock = dynamic::billing::ClientLock;
    type Tasks = PostedTasks;
    type Work = Emission;
}

/// A task with its round and what is left in escrow for it.
pub(crate) fn task_view(id: TaskId) -> Option<TaskView<AccountId, Balance, BlockNumber>> {
    let task = surety_pallet_task_auction::Tasks::<Runtime>::get(id)?;
    let round = surety_pallet_results::Rounds::<Runtime>::get(id);
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

/// Parameters that providers work by.
pub(crate) fn provider_terms() -> ProviderTerms<BlockNumber> {
    ProviderTerms {
        heartbeat_window: dynamic::provider_registry::HeartbeatWindow::get(),
        commit_window: UpToADay::<dynamic::results::CommitWindow>::get(),
        opening_window: dynamic::results::OpeningWindow::get(),
    }
}
