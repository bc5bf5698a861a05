//! What tests wait for.

use std::time::Duration;

use surety_network::DataPlane;
use surety_types::{
    ContentHash, TaskId,
    task::{MemberProgress, TaskState},
};
use tokio::time::Instant;

use super::World;

impl World {
    /// The provider has looked at so many further finalised blocks.
    pub async fn pass(&self, blocks: u32) {
        for _ in 0..blocks {
            let number = self.chain.finalize().number;
            let seen = || self.vitals().health.report(Instant::now()).finalized;
            self.until(|| seen() >= Some(number)).await;
        }
    }

    /// Waits for the bid, opens it, and gives the provider the task; the last is not final yet.
    pub async fn bid_and_assign_unfinalized(&self, task: TaskId) {
        self.until_bid(task, false).await;
        self.chain.change(|state| {
            let until = state.number + 9;
            let task = state.tasks.get_mut(&task).unwrap();
            task.state = TaskState::Revealing { until };
        });
        self.chain.finalize();
        self.until_bid(task, true).await;
        self.chain.assign(task, 99);
    }

    pub async fn bid_and_assign(&self, task: TaskId) {
        self.bid_and_assign_unfinalized(task).await;
        self.chain.finalize();
    }

    pub async fn until_bid(&self, task: TaskId, opened: bool) {
        let key = (task, self.stash().clone());
        let bid = || self.chain.change(|state| state.bids.get(&key).cloned());
        self.until(|| bid().is_some_and(|bid| bid.opened.is_some() == opened))
            .await;
    }

    /// Waits until a provider has committed.
    pub async fn until_committed(&self, task: TaskId) {
        let is_committed = || {
            self.chain.change(|state| {
                let mut members = state.rounds[&task].members.iter();
                members.any(|member| matches!(member.progress, MemberProgress::Committed(_)))
            })
        };
        self.until(is_committed).await;
    }

    /// The same, opens the audit window, and waits until the client is served. Returns what.
    pub async fn until_audited(&self, task: TaskId) -> ContentHash {
        self.until_committed(task).await;
        self.chain.open_audits(task, 999);
        self.chain.finalize();
        self.output(task).await
    }

    pub async fn until_revealed(&self, task: TaskId) {
        self.until(|| {
            self.chain.change(|state| {
                let round = state.rounds.get(&task);
                round.is_some_and(|round| {
                    let revealed = |p: &MemberProgress| matches!(p, MemberProgress::Revealed(_));
                    round.members.iter().all(|member| revealed(&member.progress))
                })
            })
        })
        .await;
    }

    /// Waits until something holds; a test that waits for ever fails.
    pub async fn until(&self, holds: impl Fn() -> bool) {
        for _ in 0..6000 {
            if holds() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("waited for a minute; calls so far: {:#?}", self.chain.calls());
    }

    /// The same, with a block that becomes final at each look.
    pub async fn until_final(&self, holds: impl Fn() -> bool) {
        let look = || {
            self.chain.finalize();
            holds()
        };
        self.until(look).await;
    }

    /// Where the client finds the output, once it is served: of a round that is audited.
    pub async fn output(&self, task: TaskId) -> ContentHash {
        for _ in 0..500 {
            let found = self
                .client_plane
                .locate_output(task, &self.provider_endpoint(), None)
                .await;
            if let Ok(found) = found {
                return found.hash;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the output is not served");
    }
}
