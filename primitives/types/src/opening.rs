//! Calls that open a salted commitment of the chain: the opening proves itself, so that they need neither
//! signature nor fee. How they stand in the pool of transactions.

use alloc::vec;
use codec::Encode;
use sp_runtime::transaction_validity::{TransactionLongevity, TransactionPriority, ValidTransaction};

use crate::TaskId;

/// Before everything that is paid for, tips and all: who is kept from opening loses stake. Nobody is kept out
/// by it for long, because every opening stands for one commitment that somebody paid for and that took as
/// much room. Among openings those go first that came first.
pub const PRIORITY: TransactionPriority = TransactionPriority::MAX;

/// An opening that `account` may make now.
///
/// It stays in a pool for as long as it is good: how many blocks that is nobody knows, because the clock may
/// stand still. Nodes throw out what has become stale when they look at it again. It provides (call, task,
/// account): a second one with other bytes around it does not enter a pool beside it.
pub fn pooled(call: &'static str, task: TaskId, account: &impl Encode) -> ValidTransaction {
    ValidTransaction {
        priority: PRIORITY,
        requires: vec![],
        provides: vec![(call, task, account).encode()],
        longevity: TransactionLongevity::MAX,
        propagate: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_openings_exclude_each_other_when_call_task_and_account_are_the_same() {
        let tags = |call, task, account: u32| pooled(call, task, &account).provides;
        assert_eq!(tags("reveal", 1, 2), tags("reveal", 1, 2));
        for other in [
            tags("reveal_bid", 1, 2),
            tags("reveal", 2, 2),
            tags("reveal", 1, 1),
        ] {
            assert_ne!(tags("reveal", 1, 2), other);
        }
    }

    #[test]
    fn no_count_of_blocks_takes_an_opening_out_of_a_pool() {
        assert_eq!(pooled("reveal", 1, &1u32).longevity, TransactionLongevity::MAX);
    }
}
