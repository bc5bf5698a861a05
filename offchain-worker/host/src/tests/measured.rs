//! What is bid by was measured on what computes now, and nothing is bid for that could not be in time.

use std::time::Duration;

use surety_engine::Devices;
use surety_types::{TaskId, task::TaskState};

use super::world::{Running, World};
use crate::gpus::tests::{device, lose};

/// Posts a task that is bid for until the test is over.
async fn post(world: &World) -> TaskId {
    let task = world.post(b"one\n").await;
    world.chain.change(|state| {
        let until = state.clock + 1_000_000;
        state.tasks.get_mut(&task).unwrap().state = TaskState::Bidding { until };
    });
    task
}

fn has_bid(world: &World, task: TaskId) -> bool {
    let bid = (task, world.stash().clone());
    world.chain.change(|state| state.bids.contains_key(&bid))
}

/// How many kinds of work were measured on a machine.
fn measured_on(world: &World, machine: &str) -> usize {
    world.speeds_text().matches(machine).count()
}

/// A provider that has measured its device, embedding and generating.
async fn on_a_device() -> (Devices, World, Running) {
    let devices = Devices::from(device(0, 0));
    let world = World::on(devices.clone()).await;
    world.let_tokens(1_000);
    let host = world.start_measuring();
    world
        .until_final(|| measured_on(&world, "NVIDIA Played") == 2)
        .await;
    (devices, world, host)
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_new_is_bid_for_while_a_pause_is_waited_for() {
    let world = World::new().await;
    let (host, pauses) = world.start_with_pauses();
    let before = post(&world).await;
    world.until_final(|| has_bid(&world, before)).await;
    let hold = pauses.hold(Duration::from_secs(600));
    let after = post(&world).await;
    world.pass(3).await;
    assert!(!has_bid(&world, after));
    drop(hold);
    world.until_final(|| has_bid(&world, after)).await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn once_a_device_is_lost_nothing_is_bid_for_until_what_is_left_is_measured() {
    let (devices, world, host) = on_a_device().await;
    let before = post(&world).await;
    world.until_final(|| has_bid(&world, before)).await;
    world.let_no_tokens();
    lose(&devices);
    let after = post(&world).await;
    world.pass(3).await;
    assert!(!has_bid(&world, after));
    world.let_tokens(1_000);
    world.until_final(|| has_bid(&world, after)).await;
    let machines = [r#"["cpu"]"#, "NVIDIA Played"];
    assert_eq!(machines.map(|machine| measured_on(&world, machine)), [2, 0]);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_measured_on_a_device_that_is_not_used_at_the_next_start_is_measured_again() {
    let (devices, world, host) = on_a_device().await;
    host.stop().await;
    lose(&devices);
    world.let_no_tokens();
    let host = world.start_measuring();
    let task = post(&world).await;
    world.pass(3).await;
    assert!(!has_bid(&world, task), "by the speed of the device");
    world.let_tokens(1_000);
    world.until_final(|| has_bid(&world, task)).await;
    assert_eq!(measured_on(&world, r#"["cpu"]"#), 2);
    host.stop().await;
}
