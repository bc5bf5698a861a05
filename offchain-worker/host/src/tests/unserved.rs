//! A verifier that is served nothing, and a provider that has to show it on chain.

use surety_chain_client::Call;
use surety_types::{
    TaskId,
    model::Operation,
    trust::{Content, FaultKind},
};

use super::{
    audits::{
        announced, announced_items, committed_to, conclude, items_revealed, until_audit_revealed,
        until_revealed,
    },
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
    world.until_committed(task).await;
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

/// An audit of three of ten items is sealed, and its provider has revealed. Nobody serves anything any more.
async fn sealed(world: &World) -> (super::world::Running, super::world::Running, TaskId, usize) {
    let (provider, verifier, task, runs) = announced_items(world).await;
    // Some minutes for all of it: to demand costs less.
    world
        .chain
        .change(|state| state.tasks.get_mut(&task).unwrap().audits.speed = 100);
    world.net.set_down(&world.client_endpoint(), true);
    world.net.set_down(&world.provider_endpoint(), true);
    until_revealed(world, task).await;
    conclude(world, task, WINDOW);
    (provider, verifier, task, runs)
}

#[tokio::test(flavor = "multi_thread")]
async fn leaves_that_nobody_serves_are_demanded_shown_on_chain_and_compared_and_nothing_else_is_computed() {
    let world = World::new().await;
    let (provider, verifier, _, runs) = sealed(&world).await;
    world.until_final(|| demands(&world) > 0).await;
    // It goes on where it was, whoever is killed.
    verifier.kill().await;
    provider.kill().await;
    let (provider, verifier) = (world.start(), world.start_verifier());
    world.until_final(|| !items_revealed(&world).is_empty()).await;
    let opened = items_revealed(&world);
    assert_eq!((opened[0].0, opened[0].1.agrees), (3, true));
    assert_eq!((demands(&world), shown(&world)), (1, vec![Content::Leaves]));
    assert_eq!(world.engine_runs(), runs);
    verifier.stop().await;
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_down_for_a_while_shows_its_leaves_when_it_is_back() {
    let world = World::new().await;
    let (provider, verifier, _, runs) = sealed(&world).await;
    provider.stop().await;
    world.until_final(|| demands(&world) > 0).await;
    for _ in 0..20 {
        world.chain.finalize();
    }
    assert_eq!(shown(&world), []);
    let provider = world.start();
    world.until_final(|| !items_revealed(&world).is_empty()).await;
    assert_eq!((demands(&world), shown(&world)), (1, vec![Content::Leaves]));
    assert_eq!(world.engine_runs(), runs);
    verifier.stop().await;
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_convicted_for_showing_no_leaves_is_not_computed_again() {
    let world = World::new().await;
    let (provider, verifier, task, runs) = sealed(&world).await;
    provider.stop().await;
    world.until_final(|| demands(&world) > 0).await;
    world.chain.change(|state| {
        let of = (task, world.stash().clone());
        assert_eq!(state.demands.remove(&of).map(|open| open.len()), Some(1));
        let round = state.rounds.get_mut(&task).unwrap();
        round.demands = 0;
        round.members[0].fault = Some(FaultKind::WithheldData);
    });
    let number = || world.chain.change(|state| state.number);
    let until = number() + 300;
    world.until_final(|| number() > until).await;
    assert_eq!((demands(&world), items_revealed(&world).len()), (1, 0));
    assert_eq!(world.engine_runs(), runs);
    verifier.stop().await;
}
