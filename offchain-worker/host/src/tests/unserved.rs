//! A verifier that is served nothing, and a provider that has to show it on chain.

use surety_chain_client::Call;
use surety_types::{TaskId, model::Operation, trust::Content};

use super::{
    audits::{announced, committed_to, until_audit_revealed},
    generation::request,
    world::World,
};

/// Blocks of an audit window. One passes in each look of a test at its world.
const WINDOW: u32 = 600;

fn demands(world: &World) -> usize {
    let calls = world.chain.calls().into_iter();
    calls
        .filter(|(_, call)| matches!(call, Call::Demand { .. }))
        .count()
}

fn shown(world: &World) -> Vec<Content> {
    let calls = world.chain.calls().into_iter();
    calls
        .filter_map(|(_, call)| match call {
            Call::Supply { content, .. } => Some(content),
            _ => None,
        })
        .collect()
}

/// A generation that its provider has committed to. Nobody can be reached any more.
async fn committed(world: &World) -> (super::world::Running, TaskId) {
    let provider = world.start();
    let task = world.post_for(Operation::Generate, &request(3)).await;
    world.bid_and_assign(task).await;
    // Also for whoever audits it.
    world.let_tokens(6);
    world.output(task).await;
    world.net.set_down(&world.client_endpoint(), true);
    world.net.set_down(&world.provider_endpoint(), true);
    let until = world.chain.change(|state| state.number) + WINDOW;
    world.chain.open_audits(task, until);
    world.chain.finalize();
    (provider, task)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_serves_an_auditor_is_demanded_shown_on_chain_read_and_audited() {
    let world = World::new().await;
    let (provider, task) = committed(&world).await;
    let verifier = world.start_verifier();
    world.until_final(|| demands(&world) > 0).await;
    // It goes on where it was, whoever is killed.
    verifier.kill().await;
    provider.kill().await;
    let (provider, verifier) = (world.start(), world.start_verifier());
    // What is shown begins the window anew.
    world.until_final(|| announced(&world) == 1).await;
    assert_eq!(demands(&world), 1);
    let mut shown = shown(&world);
    shown.sort();
    assert_eq!(shown, [Content::Input, Content::Output]);
    until_audit_revealed(&world, task).await;
    verifier.stop().await;
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_neither_its_client_nor_its_provider_serves_is_shown_on_chain_whole_however_long() {
    let world = World::new().await;
    // Fifty kilobytes: more than the parts that a game can ask for.
    let input: String = (0..10)
        .map(|line| format!("{line}{}\n", "-".repeat(5_000)))
        .collect();
    let (provider, task) = committed_to(&world, input.as_bytes(), u32::MAX).await;
    world.net.set_down(&world.client_endpoint(), true);
    world.net.set_down(&world.provider_endpoint(), true);
    let until = world.chain.change(|state| state.number) + WINDOW;
    world.chain.open_audits(task, until);
    world.chain.finalize();
    let verifier = world.start_verifier();
    world.until_final(|| announced(&world) == 1).await;
    assert_eq!(demands(&world), 1);
    assert_eq!(shown(&world), [Content::Input; 7]);
    until_audit_revealed(&world, task).await;
    verifier.stop().await;
    provider.stop().await;
}
