//! What runtime APIs answer with.

use codec::{Decode, Encode};
use scale_info::TypeInfo;

use crate::task::{Round, Task};

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
