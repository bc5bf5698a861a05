//! What runtime APIs answer with.

use codec::{Decode, Encode};
use scale_info::TypeInfo;

use crate::task::{AuditTerms, Round, SecurityLevel, Task};

/// A task with everything the chain knows of it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct TaskView<AccountId, Balance, BlockNumber> {
    /// The task.
    pub task: Task<AccountId, Balance, BlockNumber>,
    /// Its checking, while that lasts.
    pub round: Option<Round<AccountId, Balance, BlockNumber>>,
    /// What is still in escrow for it, in plancks.
    pub escrow: Balance,
}

/// A task as its auction knows it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct AuctionView<AccountId, Balance, BlockNumber> {
    /// The task.
    pub task: Task<AccountId, Balance, BlockNumber>,
    /// Bids that have a place, sealed or opened.
    pub placed: u32,
    /// Those of them that were opened.
    pub opened: u32,
    /// What is still in escrow for it, in plancks.
    pub escrow: Balance,
    /// What a bid for it can come to; nothing when its cap is below the fee by now.
    pub terms: Option<BidTerms<Balance>>,
}

/// What a task would come to that is posted now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct Quote<Balance> {
    /// How closely it would be watched: not below the level that is asked for.
    pub level: SecurityLevel,
    /// How its results would be audited.
    pub audits: AuditTerms,
    /// What a bid for it could come to.
    pub terms: BidTerms<Balance>,
}

/// What a bid for a task can come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct BidTerms<Balance> {
    /// The most that each of its providers can be paid, in plancks.
    pub price_limit: Balance,
    /// Stake that a provider has to have free in the draw, whatever it asks for, in plancks.
    pub lock: Balance,
}

/// Parameters that providers and verifiers work by, as they are now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct ProviderTerms<BlockNumber> {
    /// Blocks since its last heartbeat for which a provider counts as available.
    pub heartbeat_window: BlockNumber,
    /// Blocks of the running clock for computing and committing.
    pub commit_window: BlockNumber,
    /// The same for opening the seal of an audit, from the verdict on, at least.
    pub opening_window: BlockNumber,
}
