//! Audits of a real provider's batches.

use std::sync::Arc;

use surety_chain_client::{ChannelChain, FakeState, When};
use surety_engine::Engine;
use surety_network::DataPlane;
use surety_provider_calls::Line;
use tokio::sync::mpsc;

use crate::{
    client::Client,
    setup::{MONEY, Setup},
    world::{Process as Provider, World},
};

/// Rules under which a batch has time for all of its life.
fn slow(state: &mut FakeState) {
    state.channels.rules.announce_window = 300;
    state.channels.rules.batch_window = 500;
    state.channels.rules.closing_period = 1_500;
}

/// Passes on to the provider who calls it over the network.
fn listen(setup: &Setup, lines: mpsc::Sender<Line>) {
    let plane = setup.provider();
    let mut listener = plane.calls().unwrap();
    tokio::spawn(async move {
        let _plane = plane;
        while let Some(stream) = listener.next().await {
            let (to, from) = stream.split();
            let line = Line {
                from: Box::new(from),
                to: Box::new(to),
            };
            if lines.send(line).await.is_err() {
                return;
            }
        }
    });
}

async fn start(setup_price: u128) -> (World, Provider, Arc<Client>, Setup) {
    let mut world = World::new(&[7, 70, 170]).await;
    world.chain.change(slow);
    let provider = world.start().await;
    let setup = Setup::new(&world.chain, world.stash.account(), setup_price);
    listen(&setup, provider.lines.clone());
    let client = world.client(&provider).await;
    (world, provider, client, setup)
}

fn engines(world: &World) -> Vec<Arc<dyn Engine>> {
    vec![world.decoder.clone(), world.encoder.clone()]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_honest_batch_is_audited_opened_and_paid() {
    let (world, provider, client, setup) = start(2_000).await;
    for wanted in [world.text(1, 10, 40, 8), world.items(9), world.text(2, 30, 20, 4)] {
        let call = client.ask(wanted).await;
        assert_eq!(call.refused, None);
        assert!(client.finish(call).await.receipt.is_some());
    }
    let verifier = setup.start(engines(&world)).await;
    setup.until("it is paid", |_| setup.count("end_points") > 0).await;
    for call in ["announce_points", "open_points", "end_points"] {
        assert_eq!(setup.count(call), 1, "{:?}", setup.calls());
    }
    assert_eq!(setup.count("dispute") + setup.count("demand_point"), 0);
    let stash = setup.stash.account().clone();
    assert!(setup.chain.change(|state| state.funds[&stash].free) > MONEY);
    verifier.stop().await;
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_verifier_that_dies_and_loses_its_disk_still_opens_what_it_has_announced() {
    let (world, provider, client, setup) = start(1_000).await;
    let call = client.ask(world.text(3, 10, 40, 8)).await;
    assert!(client.finish(call).await.receipt.is_some());
    let verifier = setup.start(engines(&world)).await;
    setup
        .until("it is announced", |_| setup.count("announce_points") > 0)
        .await;
    verifier.kill().await;
    std::fs::remove_file(setup.home().join("points.redb")).unwrap();
    let verifier = setup.start(engines(&world)).await;
    setup.until("it is paid", |_| setup.count("end_points") > 0).await;
    assert_eq!(
        (setup.count("announce_points"), setup.count("open_points")),
        (1, 1)
    );
    verifier.stop().await;
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_not_drawn_a_point_is_shown_nothing() {
    use codec::Encode;
    use surety_audit_economics::channels::ReceiptsInput;
    use surety_channel_calls::message::{self, FromVerifier, Message, NotShown, PointAsk, ToVerifier};

    use crate::{setup::endpoint, world::signer};

    let (world, provider, client, setup) = start(1_000).await;
    let call = client.ask(world.text(3, 10, 40, 8)).await;
    assert!(client.finish(call).await.receipt.is_some());
    let stash = world.stash.account().clone();
    let is_committed = |state: &FakeState| !state.channels.batches.is_empty();
    setup.until("there is a batch", is_committed).await;
    world.settled().await;
    let batches = ChannelChain::batches(&setup.chain, When::Finalized, &stash).await;
    let view = batches.unwrap().remove(0);
    let input = ReceiptsInput {
        seed: view.draw.seed.unwrap(),
        provider: stash,
        batch: view.batch,
    };
    let plane = setup.net.join(endpoint("curious"));
    let ask = async |agent: &surety_chain_client::Signer, place: u32, batch: u32| {
        let mut call = plane.open_call(&[endpoint("provider")]).await.unwrap();
        let ask = PointAsk {
            batch,
            place,
            agent: agent.account().clone(),
            proof: agent.draw_points(&input).unwrap().proof,
        };
        call.send(&FromVerifier::Show(ask).encode()).await.unwrap();
        let frame = call.recv(ToVerifier::bytes_max()).await.unwrap().unwrap();
        message::read::<ToVerifier>(&frame).unwrap()
    };
    let drawn = ask(&setup.agent, 0, view.batch).await;
    assert!(matches!(drawn, ToVerifier::Point(_)), "{drawn:?}");
    let not_drawn = ToVerifier::NotShown(NotShown::NotDrawn);
    assert_eq!(ask(&setup.agent, 63, view.batch).await, not_drawn);
    assert_eq!(ask(&signer("//Stranger"), 0, view.batch).await, not_drawn);
    // However many ask who may not, they keep nobody who may from being shown something.
    let stranger = signer("//Stranger");
    let frame = FromVerifier::Show(PointAsk {
        batch: view.batch,
        place: 0,
        agent: stranger.account().clone(),
        proof: stranger.draw_points(&input).unwrap().proof,
    })
    .encode();
    let mut strangers = Vec::new();
    for _ in 0..24 {
        strangers.push(plane.open_call(&[endpoint("provider")]).await.unwrap());
    }
    for call in &mut strangers {
        call.send(&frame).await.unwrap();
    }
    for mut call in strangers {
        let frame = call.recv(ToVerifier::bytes_max()).await.unwrap().unwrap();
        assert_eq!(message::read::<ToVerifier>(&frame).unwrap(), not_drawn);
    }
    let unknown = ToVerifier::NotShown(NotShown::NoBatch);
    assert_eq!(ask(&setup.agent, 0, view.batch + 1).await, unknown);
    provider.stop().await;
}
