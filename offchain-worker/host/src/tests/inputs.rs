//! A client that cannot be reached.

use std::sync::Arc;

use surety_access::{Gate, OwnOutputs};
use surety_chain_client::{Call, Chain, ProviderRecord, Signer, Until};
use surety_network::{Bytes, DataPlane};
use surety_proofs::{SegmentOpening, content_hash};
use surety_types::{
    ContentHash, TaskId,
    model::Operation,
    task::{MemberProgress, RoundMember, RoundPhase, TaskState},
};
use surety_worker_core::Record;

use super::{
    commits,
    generation::request,
    world::{World, endpoint},
};

const INPUT: &[u8] = b"one\ntwo\n";

fn demands(world: &World) -> Vec<Call> {
    let calls = world.chain.calls().into_iter().map(|(_, call)| call);
    calls
        .filter(|call| matches!(call, Call::DemandInput { .. }))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_cannot_be_fetched_is_demanded_and_fetched_when_the_piece_was_shown() {
    let world = World::new().await;
    let host = world.start();
    let task = world.post(INPUT).await;
    world.net.set_down(&world.client_endpoint(), true);
    world.bid_and_assign_unfinalized(task).await;
    world.chain.change(|state| {
        let round = state.rounds.get_mut(&task).unwrap();
        round.phase = RoundPhase::Committing { until: 100_000 };
    });
    let missed = |record: &Record| matches!(record, Record::InputMissed { .. });
    world.until_final(|| world.records().iter().any(missed)).await;
    assert_eq!(demands(&world), []);

    // More than half of the time goes by.
    world.chain.change(|state| state.clock = 60_000);
    world.until_final(|| !demands(&world).is_empty()).await;
    assert_eq!(demands(&world), [Call::DemandInput { task, segment: 0 }]);

    world.net.set_down(&world.client_endpoint(), false);
    let opening = SegmentOpening::new(INPUT, 0).unwrap();
    let client = Signer::from_uri("//Client").unwrap();
    let call = Call::SupplyInput { task, opening };
    world
        .chain
        .submit(&client, call, Until::Included.into())
        .await
        .unwrap();
    world.until_final(|| !commits(&world).is_empty()).await;
    assert_eq!(demands(&world).len(), 1);
    host.stop().await;
}

/// Another provider of the round that has committed, and holds the input.
async fn rival_commits(world: &World, task: TaskId) {
    let stash = Signer::from_uri("//Rival").unwrap().account().clone();
    let plane = world.rival_plane();
    plane.publish(Bytes::from_static(INPUT)).await.unwrap();
    let outputs = OwnOutputs::default();
    outputs.insert(task, ContentHash::repeat_byte(9));
    let gate = Gate::of_provider(Arc::new(world.chain.clone()), stash.clone(), Arc::new(outputs));
    plane.set_gate(Arc::new(gate));
    world.chain.change(|state| {
        let mut record = state.providers.values().next().unwrap().clone();
        record.endpoints = vec![endpoint("rival")].try_into().unwrap();
        let _: Option<ProviderRecord> = state.providers.insert(stash.clone(), record);
        let mut member = RoundMember::new(stash, 1, 1);
        member.progress = MemberProgress::Committed(Default::default());
        let round = state.rounds.get_mut(&task).unwrap();
        round.members.try_push(member).unwrap();
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_whose_client_is_gone_reads_the_input_from_one_that_has_committed() {
    let world = World::new().await;
    let host = world.start();
    let task = world.post(INPUT).await;
    world.net.set_down(&world.client_endpoint(), true);
    world.bid_and_assign_unfinalized(task).await;
    rival_commits(&world, task).await;
    world.until_final(|| !commits(&world).is_empty()).await;
    assert_eq!(demands(&world), []);
    host.stop().await;
}

/// A task with an input that we have for another, of somebody who knows its hash and has nothing to deliver:
/// it names the other's client as the source. Returns it once we have tried to fetch that.
async fn copy_is_tried(world: &World) -> TaskId {
    let copy = world.post(INPUT).await;
    let copier = Signer::from_uri("//Copier").unwrap().account().clone();
    world
        .chain
        .change(|state| state.tasks.get_mut(&copy).unwrap().client = copier);
    world.bid_and_assign_unfinalized(copy).await;
    let missed = |record: &Record| matches!(record, Record::InputMissed { task, .. } if *task == copy);
    world.until_final(|| world.records().iter().any(missed)).await;
    copy
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_is_here_for_another_task_is_not_this_one_s() {
    let world = World::new().await;
    let host = world.start();
    let first = world.post(INPUT).await;
    world.bid_and_assign(first).await;
    world.until_final(|| commits(&world).len() == 1).await;
    let copy = copy_is_tried(&world).await;
    assert_eq!(commits(&world).len(), 1);
    // That it ends does not take the other's input from us, which we may have to show.
    world.chain.change(|state| {
        state.rounds.remove(&copy);
        state.tasks.get_mut(&copy).unwrap().state = TaskState::Cancelled { at: 1, fee: 0 };
    });
    world.until_final(|| world.is_finished(copy)).await;
    world.net.fill(&world.provider_endpoint());
    assert!(world.net.has(&world.provider_endpoint(), &content_hash(INPUT)));
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_an_input_that_was_fetched_is_taken_from_here() {
    let world = World::new().await;
    let host = world.start();
    let task = world.post_for(Operation::Generate, &request(3)).await;
    world.bid_and_assign_unfinalized(task).await;
    let fetched = |record: &Record| matches!(record, Record::InputFetched { .. });
    world.until_final(|| world.records().iter().any(fetched)).await;
    host.kill().await;
    // Its client has gone home, as it may once a majority has committed.
    world.net.set_down(&world.client_endpoint(), true);
    let host = world.start();
    world.let_tokens(99);
    world.until_final(|| commits(&world).len() == 1).await;
    host.stop().await;
}
