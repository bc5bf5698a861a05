//! What a worker looks after beside its loop.

use std::{collections::BTreeMap, sync::Arc};

use surety_types::speed::{MeasuredView, Tier};
use surety_worker_core::Event;
use tokio::sync::mpsc;

use super::world::World;
use crate::{Tools, upkeep};

#[tokio::test(flavor = "multi_thread")]
async fn what_was_measured_is_known_with_the_block_that_says_it() {
    let world = World::new().await;
    world.chain.finalize();
    let (sender, mut events) = mpsc::channel(16);
    let upkeep = tokio::spawn(upkeep::see_to(Arc::new(world.tools()), true, sender));
    let last_of_look = Event::OpeningWindow { seconds: 21_600 };
    while events.recv().await.as_ref() != Some(&last_of_look) {}
    let shown = MeasuredView {
        tier: Tier::B,
        giga_operations: 6_000,
        memory_mib: 1_000,
        rounds_missed: 0,
    };
    // Nothing else is looked at for some blocks.
    for measured in [Some(shown), None] {
        let of_stash = measured.map(|view| (world.stash().clone(), view));
        let all: BTreeMap<_, _> = of_stash.into_iter().collect();
        world.chain.change(|state| state.gpu_proofs.measured = all);
        world.chain.finalize();
        assert_eq!(events.recv().await, Some(Event::Benchmarked { measured }));
    }
    upkeep.abort();
}

/// Accounts whose free money an operator sees after a look with these tools.
async fn told_of(tools: Tools) -> Vec<String> {
    let vitals = tools.vitals.clone();
    let (sender, mut events) = mpsc::channel(16);
    let upkeep = tokio::spawn(upkeep::see_to(Arc::new(tools), true, sender));
    let last_of_look = Event::OpeningWindow { seconds: 21_600 };
    while events.recv().await.as_ref() != Some(&last_of_look) {}
    upkeep.abort();
    let text = String::from_utf8(vitals.metrics.text().unwrap().0).unwrap();
    let of = |line: &str| {
        let rest = line.strip_prefix("surety_funds_plancks{account=\"")?;
        let (account, rest) = rest.split_once('"')?;
        rest.contains("free").then(|| account.to_owned())
    };
    text.lines().filter_map(of).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn money_of_an_account_that_is_stash_and_agent_is_told_once() {
    let world = World::new().await;
    world.chain.finalize();
    assert_eq!(told_of(world.tools()).await, ["agent", "stash"]);
    let world = World::new().await;
    world.chain.finalize();
    let mut tools = world.tools();
    tools.stash = tools.signer.account().clone();
    assert_eq!(told_of(tools).await, ["stash"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_looked_after_again_and_the_rest_meanwhile() {
    let world = World::new().await;
    world.chain.change(|state| state.unreadable_funds = true);
    world.chain.finalize();
    let (sender, mut events) = mpsc::channel(16);
    let upkeep = tokio::spawn(upkeep::see_to(Arc::new(world.tools()), true, sender));
    let unmeasured = Event::Benchmarked { measured: None };
    assert_eq!(events.recv().await, Some(unmeasured));
    let nowhere = Event::Declared { region: None };
    assert_eq!(events.recv().await, Some(nowhere));
    for _ in 0..2 {
        assert_eq!(events.recv().await, Some(Event::Stake { free: 1000 }));
        assert_eq!(events.recv().await, Some(Event::Barred { until: None }));
        assert_eq!(events.recv().await, Some(Event::CommitWindow { seconds: 600 }));
        assert_eq!(
            events.recv().await,
            Some(Event::OpeningWindow { seconds: 21_600 })
        );
        for _ in 0..10 {
            world.chain.finalize();
        }
    }
    upkeep.abort();
}
