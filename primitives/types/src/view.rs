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
