//! A verifier beside a provider.

use surety_chain_client::Call;
use surety_types::{TaskId, task::ResultClaim};

use super::world::{Running, World};

fn announced(world: &World) -> usize {
    let calls = world.chain.calls().into_iter().map(|(_, call)| call);
    calls
        .filter(|call| matches!(call, Call::AnnounceAudit { .. }))
        .count()
}

fn claims_revealed(world: &World) -> Vec<ResultClaim> {
    let calls = world.chain.calls().into_iter();
    calls
        .filter_map(|(_, call)| match call {
            Call::RevealAudit { claim, .. } => Some(claim),
            _ => None,
        })
        .collect()
}

/// A task of which the audit window is open, its provider still at work.
async fn committed(world: &World) -> (Running, TaskId) {
    let provider = world.start();
    let task = world.post(b"one\ntwo\n").await;
    world.bid_and_assign(task).await;
    world.output(task).await;
    world.chain.open_audits(task, 999);
    world.chain.finalize();
    (provider, task)
}

async fn until_audit_revealed(world: &World, task: TaskId) {
    world.chain.open_reveals(task, 999);
    world.chain.finalize();
    world.until_revealed(task).await;
    world
        .until(|| {
            world.chain.finalize();
            !claims_revealed(world).is_empty()
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_computed_again_sealed_and_opened() {
    let world = World::new().await;
    let (provider, task) = committed(&world).await;
    let verifier = world.start_verifier();
    world.until(|| announced(&world) == 1).await;
    until_audit_revealed(&world, task).await;
    let claims = claims_revealed(&world);
    let output = world.output(task).await;
    assert_eq!((claims.len(), claims[0].output, claims[0].units), (1, output, 2));
    verifier.stop().await;
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_auditor_reads_an_input_whose_client_is_gone_from_who_has_committed() {
    let world = World::new().await;
    let (provider, task) = committed(&world).await;
    world.net.set_down(&world.client_endpoint(), true);
    let verifier = world.start_verifier();
    world.until(|| announced(&world) == 1).await;
    until_audit_revealed(&world, task).await;
    assert_eq!(claims_revealed(&world)[0].output, world.output(task).await);
    verifier.stop().await;
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verifier_that_was_killed_opens_the_seal_that_it_had_made() {
    let world = World::new().await;
    let (provider, task) = committed(&world).await;
    let verifier = world.start_verifier();
    world.until(|| announced(&world) == 1).await;
    verifier.kill().await;
    let verifier = world.start_verifier();
    until_audit_revealed(&world, task).await;
    assert_eq!((announced(&world), claims_revealed(&world).len()), (1, 1));
    verifier.stop().await;
    provider.stop().await;
}
