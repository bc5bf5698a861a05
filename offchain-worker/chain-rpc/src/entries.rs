//! The storage entries that we read, and what as.

use codec::Decode;
use scale_info::TypeInfo;
use sp_core::crypto::AccountId32;
use surety_types::TaskId;

use super::{
    stake::{Delegator, Queued},
    transcode::Shape,
};
use surety_chain_client::{
    Balance, BidRecord, BlockNumber, CandidateRecord, CommitRecord, CommitteeRecord, DelegatedStake,
    DemandRecord, DisputeRecord, FixedU128, OperatorPool, PendingSlashes, ProviderRecord, RegisteredModel,
    RoundRecord, ServiceRecord, SessionKeys, SlashRecord, StakeFund, StakeInfo, TaskRecord, TrustInfo,
};

/// The pallets of stake behind validators. Runtimes before them lack them, and fit all the same.
pub(super) const STAKE: [&str; 3] = ["Delegation", "Validators", "Session"];

/// The storage entries that we read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Account,
    FeeMultiplier,
    Events,
    Parameters,
    Ledgers,
    Agents,
    PendingAgents,
    Providers,
    Models,
    Auditors,
    AuditSpeeds,
    Tasks,
    Bids,
    Rounds,
    Disputes,
    Demands,
    CommitNotes,
    Shown,
    Slashes,
    Records,
    Committees,
    OpenTasks,
    NextTaskId,
    Number,
    Elapsed,
    Pools,
    Delegators,
    DelegatedStakes,
    Buckets,
    Pending,
    Candidates,
    Services,
    Authored,
    CurrentIndex,
    Validators,
    QueuedKeys,
    NextKeys,
}

impl Entry {
    pub const ALL: [Self; 37] = [
        Self::Account,
        Self::FeeMultiplier,
        Self::Events,
        Self::Parameters,
        Self::Ledgers,
        Self::Agents,
        Self::PendingAgents,
        Self::Providers,
        Self::Models,
        Self::Auditors,
        Self::AuditSpeeds,
        Self::Tasks,
        Self::Bids,
        Self::Rounds,
        Self::Disputes,
        Self::Demands,
        Self::CommitNotes,
        Self::Shown,
        Self::Slashes,
        Self::Records,
        Self::Committees,
        Self::OpenTasks,
        Self::NextTaskId,
        Self::Number,
        Self::Elapsed,
        Self::Pools,
        Self::Delegators,
        Self::DelegatedStakes,
        Self::Buckets,
        Self::Pending,
        Self::Candidates,
        Self::Services,
        Self::Authored,
        Self::CurrentIndex,
        Self::Validators,
        Self::QueuedKeys,
        Self::NextKeys,
    ];

    /// Pallet, entry, number of keys.
    pub fn name(self) -> (&'static str, &'static str, usize) {
        match self {
            Self::Account => ("System", "Account", 1),
            Self::FeeMultiplier => ("TransactionPayment", "NextFeeMultiplier", 0),
            Self::Events => ("System", "Events", 0),
            Self::Parameters => ("Parameters", "Parameters", 1),
            Self::Ledgers => ("Staking", "Ledgers", 1),
            Self::Agents => ("Staking", "Agents", 1),
            Self::PendingAgents => ("Staking", "PendingAgents", 1),
            Self::Providers => ("ProviderRegistry", "Providers", 1),
            Self::Models => ("ModelRegistry", "Models", 1),
            Self::Auditors => ("ModelRegistry", "Auditors", 1),
            Self::AuditSpeeds => ("ModelRegistry", "AuditSpeeds", 1),
            Self::Tasks => ("TaskAuction", "Tasks", 1),
            Self::Bids => ("TaskAuction", "Bids", 2),
            Self::Rounds => ("Results", "Rounds", 1),
            Self::Disputes => ("Disputes", "Disputes", 1),
            Self::Demands => ("Results", "Demands", 2),
            Self::CommitNotes => ("Results", "CommitNotes", 2),
            Self::Shown => ("Results", "Shown", 2),
            Self::Slashes => ("TrustLock", "Slashes", 1),
            Self::Records => ("TrustLock", "Records", 1),
            Self::Committees => ("Disputes", "Committees", 1),
            Self::OpenTasks => ("TaskAuction", "OpenTasks", 1),
            Self::NextTaskId => ("TaskAuction", "NextTaskId", 0),
            Self::Number => ("System", "Number", 0),
            Self::Elapsed => ("FinalityClock", "Elapsed", 0),
            Self::Pools => ("Delegation", "Pools", 1),
            Self::Delegators => ("Delegation", "Delegators", 1),
            Self::DelegatedStakes => ("Delegation", "Stakes", 1),
            Self::Buckets => ("Delegation", "Buckets", 2),
            Self::Pending => ("Delegation", "Pending", 1),
            Self::Candidates => ("Validators", "Candidates", 1),
            Self::Services => ("Validators", "Services", 1),
            Self::Authored => ("Validators", "Authored", 1),
            Self::CurrentIndex => ("Session", "CurrentIndex", 0),
            Self::Validators => ("Session", "Validators", 0),
            Self::QueuedKeys => ("Session", "QueuedKeys", 0),
            Self::NextKeys => ("Session", "NextKeys", 1),
        }
    }

    /// Whether older runtimes of the supported window may lack it.
    pub fn is_optional(self) -> bool {
        matches!(self, Self::OpenTasks | Self::Elapsed | Self::FeeMultiplier)
            || STAKE.contains(&self.name().0)
    }

    /// What we read it as; nothing for what is read with the metadata's own types.
    pub fn shape(self) -> Option<Shape> {
        Some(match self {
            Self::Events | Self::Parameters => return None,
            Self::OpenTasks => Shape::of::<()>(),
            Self::NextTaskId => Shape::of::<TaskId>(),
            Self::Number | Self::Elapsed => Shape::of::<BlockNumber>(),
            Self::Account => Shape::of::<AccountInfo>(),
            Self::FeeMultiplier => Shape::of::<FixedU128>(),
            Self::Ledgers => Shape::of::<StakeInfo>(),
            Self::Agents | Self::PendingAgents => Shape::of::<AccountId32>(),
            Self::Providers => Shape::of::<ProviderRecord>(),
            Self::Models => Shape::of::<RegisteredModel>(),
            Self::Auditors => Shape::of::<Vec<AccountId32>>(),
            Self::AuditSpeeds => Shape::of::<u32>(),
            Self::Tasks => Shape::of::<TaskRecord>(),
            Self::Bids => Shape::of::<BidRecord>(),
            Self::Rounds => Shape::of::<RoundRecord>(),
            Self::Disputes => Shape::of::<DisputeRecord>(),
            Self::Demands => Shape::of::<Vec<DemandRecord>>(),
            Self::CommitNotes => Shape::of::<CommitRecord>(),
            Self::Shown => Shape::of::<Vec<u8>>(),
            Self::Slashes => Shape::of::<SlashRecord>(),
            Self::Records => Shape::of::<TrustInfo>(),
            Self::Committees => Shape::of::<CommitteeRecord>(),
            Self::Pools => Shape::of::<OperatorPool>(),
            Self::Delegators => Shape::of::<Vec<Delegator>>(),
            Self::DelegatedStakes => Shape::of::<DelegatedStake>(),
            Self::Buckets => Shape::of::<StakeFund>(),
            Self::Pending => Shape::of::<PendingSlashes>(),
            Self::Candidates => Shape::of::<CandidateRecord>(),
            Self::Services => Shape::of::<ServiceRecord>(),
            Self::Authored | Self::CurrentIndex => Shape::of::<u32>(),
            Self::Validators => Shape::of::<Vec<AccountId32>>(),
            Self::QueuedKeys => Shape::of::<Vec<Queued>>(),
            Self::NextKeys => Shape::of::<SessionKeys>(),
        })
    }
}

/// What we read of `frame_system::AccountInfo`.
#[derive(Debug, Default, Decode, TypeInfo)]
pub(super) struct AccountInfo {
    pub nonce: u32,
    pub data: AccountData,
}

/// What we read of `pallet_balances::AccountData`.
#[derive(Debug, Default, Decode, TypeInfo)]
pub(super) struct AccountData {
    pub free: Balance,
    pub reserved: Balance,
    pub frozen: Balance,
}

impl AccountData {
    /// What is not held, and neither votes nor vests: what is frozen counts what is held first.
    pub const fn spendable(&self) -> Balance {
        self.free
            .saturating_sub(self.frozen.saturating_sub(self.reserved))
    }
}
