#![allow(clippy::unwrap_used)]
use surety_chain_client::{FakeChain, sample};

use super::*;

/// So many tasks, of which every hundredth, from the first on, is ours.
fn chain(tasks: u64) -> (FakeChain, AccountId) {
    let (chain, ours) = (FakeChain::new(), AccountId::new([7; 32]));
    chain.change(|state| {
        for id in 0..tasks {
            let mut task = sample::records::tasks().remove(0);
            task.client = match id % 100 {
                0 => ours.clone(),
                _ => AccountId::new([8; 32]),
            };
            state.tasks.insert(id, task);
        }
    });
    chain.finalize();
    (chain, ours)
}

async fn ids(chain: &FakeChain, owner: Option<&AccountId>, limit: u32) -> Vec<TaskId> {
    let tasks = newest_tasks(chain, owner, limit).await.unwrap();
    tasks.into_iter().map(|(id, _)| id).collect()
}

#[tokio::test]
async fn own_tasks_are_found_however_many_of_others_came_since() {
    let (chain, ours) = chain(2_000);
    // The first look is at 64 tasks at most.
    assert_eq!(ids(&chain, Some(&ours), 3).await, [1_900, 1_800, 1_700]);
    let all: Vec<TaskId> = (0..20).rev().map(|id| id * 100).collect();
    assert_eq!(ids(&chain, Some(&ours), 50).await, all);
    let nobody = AccountId::new([9; 32]);
    assert!(ids(&chain, Some(&nobody), 50).await.is_empty());
    assert_eq!(ids(&chain, None, 2).await, [1_999, 1_998]);
}

#[test]
fn a_cap_that_numbers_of_json_do_not_hold_is_listed_digit_by_digit() {
    let mut task = sample::records::tasks().remove(0);
    task.cap = (1 << 53) + 1;
    let json = serde_json::to_value(Listed::new(1, &task)).unwrap();
    assert_eq!(json["cap"], "9007199254740993");
}

#[test]
fn what_a_task_asks_of_its_providers_is_listed() {
    let mut task = sample::records::tasks().remove(0);
    task.spec.requirements = Requirements {
        tier: Some(Tier::B),
        memory_mib: 24_576,
        region: "DE".parse().ok(),
    };
    let listed = Listed::new(1, &task);
    assert_eq!(listed.requirements.text(), "tier B, 24576 MiB, DE");
    let json = serde_json::to_value(listed).unwrap();
    let asked = serde_json::json!({"min_tier": "B", "min_memory_mib": 24_576, "region": "DE"});
    assert_eq!(json["requirements"], asked);
    task.spec.requirements = Requirements::default();
    assert_eq!(Listed::new(1, &task).requirements.text(), "");
}
