//! Who keeps a place where more bid for a task than it has places.

use sp_core::{H256, crypto::AccountId32};
use surety_audit_economics::PlaceRank;
use surety_types::{TaskId, limits::BIDS_MAX};

use super::state::{Applied, FakeState, fault, task_event};
use crate::{Balance, BlockNumber};

impl FakeState {
    /// Makes room for a bid of `stash`, if it ranks better than another where there is none.
    pub(super) fn make_room(&mut self, task: TaskId, stash: &AccountId32) -> Applied {
        let of_task = self.bids.keys().filter(|(of, _)| *of == task);
        let bidders: Vec<_> = of_task.map(|(_, who)| who.clone()).collect();
        if bidders.len() < BIDS_MAX as usize {
            return Ok(Vec::new());
        }
        let posted_at = self.tasks.get(&task).map_or(0, |task| task.posted_at);
        let drawn_at = posted_at.saturating_add(1);
        // What the author of a block has given is known in the next.
        if self.number <= drawn_at {
            return Err(fault("TaskAuction", "PlacesUndecided"));
        }
        let entropy = H256::from_low_u64_be(drawn_at.into());
        let rank = |who: &AccountId32| {
            let rank = PlaceRank::new(task, who, &entropy, self.seasoned_stake(who, posted_at));
            (rank, who.clone())
        };
        let worst = bidders.iter().map(rank).max();
        let Some((_, worst)) = worst.filter(|worst| rank(stash) < *worst) else {
            return Err(fault("TaskAuction", "Outranked"));
        };
        self.bids.remove(&(task, worst));
        Ok(vec![task_event("TaskAuction", "BidDisplaced", task)])
    }

    /// Stake that a stash had bonded when a task was posted: nothing, if it got more later.
    fn seasoned_stake(&self, stash: &AccountId32, posted_at: BlockNumber) -> Balance {
        let stake = self.stakes.get(stash);
        let seasoned = stake.filter(|stake| stake.settled_at <= posted_at);
        seasoned.map_or(0, |stake| stake.bonded)
    }
}
