//! Whole lives of tasks: the real core, journal and loop against a chain, a network and an engine in memory.
#![allow(clippy::unwrap_used)]

mod audits;
mod confirmations;
mod device;
mod drain;
mod engine;
mod generation;
mod inputs;
mod measured;
mod money;
mod offers;
mod openings;
mod registration;
mod requiring;
mod served;
mod sharing;
mod showing;
mod speeds;
pub(crate) mod tiny;
mod troubles;
mod unserved;
mod upkeep;
mod world;

use surety_chain_client::{Call, Chain, Signer, When, is_signed};
use surety_network::{DataPlane, FetchOptions};
use surety_types::{
    TaskId,
    model::Operation,
    task::{FailureReason, MemberProgress, RoundMember, RoundPhase, TaskState, Verdict},
};

use tokio::time::Instant;

use world::World;

fn commits(world: &World) -> Vec<Call> {
    let calls = world.chain.calls().into_iter().map(|(_, call)| call);
    calls.filter(|call| matches!(call, Call::Commit { .. })).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_computed_committed_served_and_revealed() {
    let world = World::new().await;
    let host = world.start();
    let task = world.post(b"one\ntwo\n").await;
    world.bid_and_assign(task).await;
    let client = world.client_plane();

    let found = world.until_audited(task).await;
    let output = client
        .fetch(found, &[world.provider_endpoint()], &FetchOptions::default())
        .await
        .unwrap();
    assert_eq!(&output[..], b"2 items");
    let said = client.locate_output(task, &world.provider_endpoint(), None).await;
    let signed = said.unwrap().statement.unwrap();
    assert!(is_signed(&signed, &world.chain.info().genesis));
    assert_eq!(
        (&signed.statement.provider, signed.statement.output),
        (world.stash(), found)
    );
    assert_eq!(Some(signed.statement.commitment), world.commitment(task));
    let rival = world.rival_plane();
    assert!(
        rival
            .locate_output(task, &world.provider_endpoint(), None)
            .await
            .is_err()
    );

    world.chain.open_reveals(task, 99);
    world.chain.finalize();
    world.until_revealed(task).await;
    world.chain.finalize();
    world.chain.settle(task);
    world.chain.finalize();
    let info = world.chain.task(When::Finalized, task).await.unwrap().unwrap();
    let TaskState::Settled { claim, .. } = info.task.state else {
        panic!("not settled: {:?}", info.task.state);
    };
    assert_eq!((claim.output, claim.units), (found, 2));
    world.until_final(|| world.is_finished(task)).await;
    let provider = world.provider_endpoint();
    let served = client.locate_output(task, &provider, None).await.unwrap();
    assert_eq!(served.hash, found);
    let refused = rival.locate_output(task, &provider, None).await;
    assert!(refused.is_err(), "what a client has paid for is the client's");
    host.stop().await;
    assert_eq!(commits(&world).len(), 1);
}

/// The round of a task with two seats, of which the provider has taken one.
async fn half_committed(world: &World) -> TaskId {
    let task = world.post(b"one\n").await;
    world.bid_and_assign(task).await;
    let clients = Signer::from_uri("//Friend").unwrap().account().clone();
    world.chain.change(|state| {
        let members = &mut state.rounds.get_mut(&task).unwrap().members;
        members.try_push(RoundMember::new(clients, 1, 0)).unwrap();
    });
    world.until_committed(task).await;
    task
}

/// Whether the client is served the output of a task: at its own endpoint, and with a ticket elsewhere.
async fn is_served(world: &World, task: TaskId) -> [bool; 2] {
    let (here, elsewhere) = (world.client_plane(), world.rival_plane());
    let genesis = world.chain.info().genesis;
    let ticket = surety_access::ticket(world.client(), &genesis, &elsewhere.peer_id(), task, None).unwrap();
    let at = world.provider_endpoint();
    [
        here.locate_output(task, &at, None).await.is_ok(),
        elsewhere.locate_output(task, &at, Some(&ticket)).await.is_ok(),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_reads_no_output_before_the_round_is_audited() {
    let world = World::new().await;
    let host = world.start();
    let task = half_committed(&world).await;
    world.pass(3).await;
    assert_eq!(is_served(&world, task).await, [false; 2]);
    // A block that may still be replaced opens nothing.
    world.chain.open_audits(task, 99);
    assert_eq!(is_served(&world, task).await, [false; 2]);
    world.pass(2).await;
    assert_eq!(is_served(&world, task).await, [true; 2]);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_whose_own_provider_commits_to_nothing_has_its_money_back_and_no_output() {
    let world = World::new().await;
    let host = world.start();
    let task = half_committed(&world).await;
    let reason = FailureReason::NotEnoughResults;
    world.chain.change(|state| {
        let until = state.clock + 50;
        let verdict = Verdict::Failed(reason);
        state.rounds.get_mut(&task).unwrap().phase = RoundPhase::Challengeable { until, verdict };
    });
    world.pass(3).await;
    assert_eq!(is_served(&world, task).await, [false; 2]);
    world.chain.change(|state| {
        state.rounds.remove(&task);
        state.tasks.get_mut(&task).unwrap().state = TaskState::Failed { at: 9, reason };
    });
    world.pass(3).await;
    assert_eq!(is_served(&world, task).await, [false; 2]);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_sends_the_very_commitment_that_the_journal_holds() {
    let world = World::new().await;
    let host = world.start();
    let task = world.post(b"one\n").await;
    world.bid_and_assign_unfinalized(task).await;
    // The commitment gets lost on its way to the chain.
    world.chain.lose_next();
    world.chain.finalize();
    world.until(|| world.commitment(task).is_some()).await;
    host.kill().await;
    assert!(commits(&world).is_empty());
    let promised = world.commitment(task).unwrap();

    let host = world.start();
    world.chain.finalize();
    world.until_final(|| !commits(&world).is_empty()).await;
    world.pass(3).await;
    host.stop().await;
    let expected = Call::Commit {
        task,
        commitment: promised,
    };
    assert_eq!(commits(&world), [expected]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_client_costs_retries_and_then_works() {
    let world = World::new().await;
    let host = world.start();
    let task = world.post(b"one\n").await;
    world.net.set_down(&world.client_endpoint(), true);
    world.bid_and_assign(task).await;
    world.pass(3).await;
    assert!(commits(&world).is_empty());
    world.net.set_down(&world.client_endpoint(), false);
    world.until_final(|| !commits(&world).is_empty()).await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_comes_back_is_followed_again() {
    let world = World::new().await;
    world.chain.set_unreachable(true);
    let host = world.start();
    let parts = || world.vitals().health.report(Instant::now()).parts;
    world.until(|| parts().contains_key("finalized_blocks")).await;
    world.chain.set_unreachable(false);
    let task = world.post(b"one\n").await;
    world.bid_and_assign(task).await;
    world.until(|| !commits(&world).is_empty()).await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_provider_beats() {
    let world = World::new().await;
    let host = world.start_beating(3);
    let beats = || {
        let calls = world.chain.calls();
        calls.iter().filter(|(_, call)| *call == Call::Heartbeat).count()
    };
    for _ in 0..3 {
        world.chain.finalize();
    }
    world.until(|| beats() > 0).await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_no_engine_can_use_is_given_up() {
    let world = World::new().await;
    let host = world.start();
    let task = world.post(b"refuse me\n").await;
    world.bid_and_assign(task).await;
    world.until(|| world.engine_runs() == 1).await;
    world.pass(5).await;
    let info = world.chain.task(When::Finalized, task).await.unwrap().unwrap();
    let round = info.round.unwrap();
    assert!(
        round
            .members
            .iter()
            .all(|m| m.progress == MemberProgress::Working)
    );
    assert_eq!(world.engine_runs(), 1, "tried once, and never again");
    host.stop().await;
}

/// What the processor has not confirmed is never committed to. It is computed again.
#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_differs_ends_the_job_and_what_the_next_attempt_gives_is_committed() {
    let world = World::new().await;
    let host = world.start();
    let task = world.post(b"differ\n").await;
    world.bid_and_assign(task).await;
    world.until_final(|| !commits(&world).is_empty()).await;
    assert_eq!(world.engine_runs(), 2);
    let found = world.until_audited(task).await;
    assert_eq!(found, surety_engine::content_hash(b"1 items"));
    host.stop().await;
    assert_eq!(commits(&world).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_offered_for_the_first_time_is_measured_before_anything_is_posted() {
    let world = World::new().await;
    let host = world.start_measuring();
    let is_known = || world.speeds().knows(engine::manifest().id(), Operation::Embed);
    assert!(!is_known());
    world.until_final(is_known).await;
    host.stop().await;
}
