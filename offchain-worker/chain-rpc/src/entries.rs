//! The storage entries that we read, and what as.

use codec::Decode;
use scale_info::TypeInfo;
use sp_core::crypto::AccountId32;
use surety_types::TaskId;

use super::transcode::Shape;
use surety_chain_client::{
    Balance, BidRecord, BlockNumber, CommitRecord, CommitteeRecord, DemandRecord, DisputeRecord,
    ProviderRecord, RegisteredModel, RoundRecord, SlashRecord, StakeInfo, TaskRecord, TrustInfo,
};

/// The storage entries that we read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Account,
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
}

impl Entry {
    pub const ALL: [Self; 24] = [
        Self::Account,
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
    ];

    /// Pallet, entry, number of keys.
    pub fn name(self) -> (&'static str, &'static str, usize) {
        match self {
            Self::Account => ("System", "Account", 1),
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
        }
    }

    /// Whether older runtimes of the supported window may lack it.
    pub fn is_optional(self) -> bool {
        matches!(self, Self::OpenTasks | Self::Elapsed)
    }

    /// What we read it as; nothing for what is read with the metadata's own types.
    pub fn shape(self) -> Option<Shape> {
        Some(match self {
            Self::Events | Self::Parameters => return None,
            Self::OpenTasks => Shape::of::<()>(),
            Self::NextTaskId => Shape::of::<TaskId>(),
            Self::Number | Self::Elapsed => Shape::of::<BlockNumber>(),
            Self::Account => Shape::of::<AccountInfo>(),
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
}
