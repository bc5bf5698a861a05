//! A client that cannot be reached.

use std::sync::Arc;

use surety_access::{Gate, OwnOutputs};
use surety_chain_client::{Call, Chain, ProviderRecord, Signer, Until};
use surety_network::{Bytes, DataPlane};
use surety_proofs::SegmentOpening;
use surety_types::{
    ContentHash, TaskId,
    task::{MemberProgress, RoundMember, RoundPhase},
};
use surety_worker_core::Record;

use super::{
    commits,
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

#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_is_here_for_another_task_is_not_this_one_s() {
    let world = World::new().await;
    let host = world.start();
    let (first, second) = (world.post(INPUT).await, world.post(INPUT).await);
    world.bid_and_assign(first).await;
    world.until_final(|| commits(&world).len() == 1).await;
    // Who has posted the second knows the input's hash, and has nothing to deliver.
    world.net.set_down(&world.client_endpoint(), true);
    world.bid_and_assign_unfinalized(second).await;
    let missed = |record: &Record| matches!(record, Record::InputMissed { task, .. } if *task == second);
    world.until_final(|| world.records().iter().any(missed)).await;
    assert_eq!(commits(&world).len(), 1);
    host.stop().await;
}
