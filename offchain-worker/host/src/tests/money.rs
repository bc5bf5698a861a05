//! A provider that could not pay for showing what may be demanded of it.

use surety_chain_client::{Call, FakeState};
use surety_types::task::TaskState;
use surety_worker_core::LARGEST_DEMAND;

use super::world::World;

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
    give(LARGEST_DEMAND);
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
