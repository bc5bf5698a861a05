//! A provider that could not pay for showing what may be demanded of it.

use surety_chain_client::{Call, FakeState};
use surety_types::task::TaskState;
use surety_worker_core::LARGEST_DEMAND;

use super::world::World;

/// Of an account, on the chain in memory.
const DEPOSIT: u128 = 1;

/// What an operator's metrics have of this name.
fn metric(world: &World, name: &str) -> Option<f64> {
    let text = String::from_utf8(world.vitals().metrics.text().unwrap().0).unwrap();
    let found = text.lines().find_map(|line| line.strip_prefix(name));
    found.map(|value| value.trim().parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_could_not_pay_for_showing_what_may_be_demanded_does_not_bid_until_its_stash_has_money() {
    let world = World::new().await;
    let give = |free| {
        let change = |state: &mut FakeState| state.funds.get_mut(world.stash()).unwrap().free = free;
        world.chain.change(change);
    };
    give(1);
    let host = world.start();
    let free = || metric(&world, r#"surety_funds_plancks{account="stash",kind="free"}"#);
    // It has looked.
    world.until_final(|| free() == Some(1.0)).await;
    world.post(b"one\n").await;
    world.pass(12).await;
    let calls = world.chain.calls();
    assert!(!calls.iter().any(|(_, call)| matches!(call, Call::Bid { .. })));
    // No fee takes the last of an account.
    give(LARGEST_DEMAND + DEPOSIT);
    let task = world.post(b"two\n").await;
    let bid = (task, world.stash().clone());
    world.chain.change(|state| {
        let until = state.clock + 1_000;
        state.tasks.get_mut(&task).unwrap().state = TaskState::Bidding { until };
    });
    let has_bid = || world.chain.change(|state| state.bids.contains_key(&bid));
    world.until_final(has_bid).await;
    // What its operator sees is looked at once a minute.
    let kept = || metric(&world, "surety_demand_reserve_plancks");
    world.until_final(|| kept().is_some_and(|kept| kept > 0.0)).await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn money_that_is_kept_for_channels_or_may_be_is_bid_for_no_task() {
    let world = World::new().await;
    world.chain.change(|state| {
        state.funds.get_mut(world.stash()).unwrap().free = LARGEST_DEMAND + DEPOSIT;
    });
    // The part that sells over channels has seen nothing yet.
    world.kept.channels.send_replace(None);
    let host = world.start();
    let free = || metric(&world, r#"surety_funds_plancks{account="stash",kind="free"}"#);
    world
        .until_final(|| free() == Some((LARGEST_DEMAND + DEPOSIT) as f64))
        .await;
    world.post(b"one\n").await;
    world.pass(12).await;
    let calls = world.chain.calls();
    assert!(!calls.iter().any(|(_, call)| matches!(call, Call::Bid { .. })));
    // It keeps all that there is.
    world.kept.channels.send_replace(Some(LARGEST_DEMAND));
    world.pass(2).await;
    world.post(b"another one\n").await;
    world.pass(12).await;
    let calls = world.chain.calls();
    assert!(!calls.iter().any(|(_, call)| matches!(call, Call::Bid { .. })));
    // Nothing is open over channels any more. The next task is bid for, and its part is told to who sells
    // there.
    world.kept.channels.send_replace(Some(0));
    let task = world.post(b"two\n").await;
    let bid = (task, world.stash().clone());
    world.chain.change(|state| {
        let until = state.clock + 1_000;
        state.tasks.get_mut(&task).unwrap().state = TaskState::Bidding { until };
    });
    world
        .until_final(|| world.chain.change(|state| state.bids.contains_key(&bid)))
        .await;
    world
        .until_final(|| world.kept.tasks.borrow().is_some_and(|kept| kept > 0))
        .await;
    host.stop().await;
}
