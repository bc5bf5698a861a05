//! Tasks that ask for what a provider has to be.

use std::collections::BTreeSet;

use surety_chain_client::{AccountId, Call};
use surety_types::{
    TaskId,
    model::Operation,
    region::Region,
    speed::{MeasuredView, Requirements, Tier},
    task::TaskState,
};

use super::world::World;

fn measure(world: &World, tier: Tier, memory_mib: u32) {
    let measured = MeasuredView {
        tier,
        giga_operations: 1,
        memory_mib,
        rounds_missed: 0,
    };
    let stash = world.stash().clone();
    world
        .chain
        .change(|state| state.gpu_proofs.measured.insert(stash, measured));
}

/// Whether the chain's list says that the provider is there.
fn is_listed(world: &World, letters: &str) -> bool {
    let (stash, region) = (world.stash(), letters.parse::<Region>().ok());
    world
        .chain
        .change(|state| state.providers[stash].device.region == region)
}

fn bids(world: &World) -> BTreeSet<(TaskId, AccountId)> {
    world.chain.change(|state| state.bids.keys().cloned().collect())
}

/// Bids that these have handed over, carried out or not.
fn tried(worlds: [&World; 2]) -> BTreeSet<(TaskId, AccountId)> {
    let attempts = worlds[0].chain.attempts().into_iter();
    let bids = attempts.filter_map(|(who, call, _)| {
        let of = worlds.iter().find(|world| *world.agent().account() == who)?;
        match call {
            Call::Bid { task, .. } => Some((task, of.stash().clone())),
            _ => None,
        }
    });
    bids.collect()
}

/// Of no region where the letters are none.
fn asks(tier: Option<Tier>, memory_mib: u32, letters: &str) -> Requirements {
    Requirements {
        tier,
        memory_mib,
        region: letters.parse().ok(),
    }
}

/// Posts a task that takes bids for longer than the test takes.
async fn post(world: &World, input: &str, requirements: Requirements) -> TaskId {
    let work = (Operation::Embed, input.as_bytes());
    let task = world.post_requiring(work, requirements).await;
    world.chain.change(|state| {
        let until = state.clock + 100_000;
        state.tasks.get_mut(&task).unwrap().state = TaskState::Bidding { until };
    });
    task
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_bid_for_by_who_is_what_it_asks_for_and_by_nobody_else() {
    let here = World::new().await;
    let there = here.neighbour().await;
    here.say_region("DE");
    there.say_region("FR");
    measure(&here, Tier::B, 1_000);
    measure(&there, Tier::A, 2_000);
    let hosts = [here.start(), there.start()];
    let are_listed = || is_listed(&here, "DE") && is_listed(&there, "FR");
    here.until_final(are_listed).await;

    let asked = [
        // Nobody is there, or is that and there, or has so much.
        (asks(None, 0, "AQ"), [false, false]),
        (asks(Some(Tier::A), 0, "DE"), [false, false]),
        (asks(None, 2_001, ""), [false, false]),
        (asks(None, 0, "DE"), [true, false]),
        (asks(None, 0, "FR"), [false, true]),
        (asks(Some(Tier::A), 0, ""), [false, true]),
        (asks(None, 1_001, ""), [false, true]),
        (asks(Some(Tier::B), 1_000, "DE"), [true, false]),
        // Whoever bids for the last one has seen all before it.
        (Requirements::default(), [true, true]),
    ];
    let mut expected = BTreeSet::new();
    for (at, (requirements, bids)) in asked.into_iter().enumerate() {
        let task = post(&here, &format!("{at}\n"), requirements).await;
        for (world, _) in [&here, &there].into_iter().zip(bids).filter(|(_, bids)| *bids) {
            expected.insert((task, world.stash().clone()));
        }
    }
    here.until_final(|| bids(&here).len() >= expected.len()).await;
    assert_eq!(bids(&here), expected);
    // Nor has anybody paid a fee for a bid that is refused.
    assert_eq!(tried([&here, &there]), expected);
    for host in hosts {
        host.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_moves_bids_for_the_tasks_of_where_it_is_now() {
    let world = World::new().await;
    for (letters, input) in [("FR", "one\n"), ("DE", "two\n")] {
        world.say_region(letters);
        let host = world.start();
        world.until_final(|| is_listed(&world, letters)).await;
        let task = post(&world, input, asks(None, 0, letters)).await;
        let bid = (task, world.stash().clone());
        world.until_final(|| bids(&world).contains(&bid)).await;
        host.stop().await;
    }
}
