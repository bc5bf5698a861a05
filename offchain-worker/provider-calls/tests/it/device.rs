//! Answers whose tokens a device chooses, played by the C++ program of `surety-cuda`'s tests.

#[allow(dead_code)]
#[path = "../../../cuda/tests/emulator/mod.rs"]
mod emulator;
#[allow(dead_code)]
#[path = "../../../engine/tests/device/failing.rs"]
mod failing;

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use emulator::{Emulator, Order};
use failing::{Failing, Fails, Switch};
use surety_channel_calls::Refusal;
use surety_channels::End;
use surety_engine::{Device, Devices, Engine, EngineError, Job, Outcome, Patience, Sink, exact::ExactLlama};
use surety_types::model::ModelManifest;
use tokio::{task::block_in_place, time::sleep};

use crate::{
    generating::engine_stopped_by,
    synthetic::{self, END},
    world::World,
};

/// Runs another model than it says.
struct Pretends {
    manifest: ModelManifest,
    engine: Arc<ExactLlama>,
}

impl Engine for Pretends {
    fn manifest(&self) -> &ModelManifest {
        &self.manifest
    }

    fn run(&self, job: &Job, sink: &mut dyn Sink) -> Result<Outcome, EngineError> {
        self.engine.run(job, sink)
    }

    fn decoder(self: Arc<Self>) -> Option<Arc<ExactLlama>> {
        self.engine.clone().decoder()
    }
}

/// A provider with a device that fails when it is told to.
async fn with_device() -> (World, Switch) {
    with_patience(Patience::default()).await
}

/// The same, with which it has so much patience.
async fn with_patience(patience: Patience) -> (World, Switch) {
    let (machine, fails) = Failing::new(Emulator::start(Order::Forwards));
    let device = Device::patient(machine, "one that fails", patience).unwrap();
    let devices: Devices = device.into();
    let mut world = World::new(&[]).await;
    let there = engine_stopped_by(synthetic::llama(30, true), &[END]).on(&devices);
    world.elsewhere = Some(Arc::new(there.unwrap()));
    world.devices = devices;
    world.config.device_serves = true;
    (world, fails)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_answers_where_that_was_switched_on_and_says_what_the_processor_would() {
    let (mut world, fails) = with_device().await;
    for serves in [false, true] {
        world.config.device_serves = serves;
        let process = world.start().await;
        let client = world.client(&process).await;
        fails.take_launches();
        let wanted = world.text(1, 10, 20, 8);
        let call = client.finish(client.ask(wanted.clone()).await).await;
        let receipt = call.receipt.unwrap();
        assert_ne!(receipt.statement.end.unwrap().how, End::Cut);
        world.assert_is_alone(&wanted, &call.said, &receipt);
        assert_eq!(fails.take_launches() > 0, serves);
        let models = format!("surety_calls_device_models {}", u8::from(serves));
        assert!(process.shows(&models), "{models}");
        process.stop().await;
    }
}

/// What was said until then has its receipt, and is all that is signed; the processor answers what is asked
/// next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_device_that_fails_in_the_middle_of_an_answer_nothing_wrong_is_signed() {
    for (how, fault) in [
        (Fails::TurnsLogits, "differs"),
        (Fails::LosesLogits, "differs"),
        (Fails::Vanishes, "failed"),
    ] {
        let (mut world, fails) = with_device().await;
        let process = world.start().await;
        let client = world.client(&process).await;
        let wanted = world.text(1, 10, 200, 8);
        let mut call = client.ask(wanted.clone()).await;
        while call.said.is_empty() {
            assert!(client.hear(&mut call).await);
        }
        fails.set(how);
        let call = client.finish(call).await;
        let receipt = call.receipt.unwrap();
        assert_eq!(receipt.statement.end.unwrap().how, End::Cut, "{how:?}");
        world.assert_is_alone(&wanted, &call.said, &receipt);
        fails.take_launches();
        let wanted = world.text(2, 10, 20, 8);
        let call = client.finish(client.ask(wanted.clone()).await).await;
        world.assert_is_alone(&wanted, &call.said, &call.receipt.unwrap());
        assert_eq!(fails.take_launches(), 0);
        let counted = format!("surety_calls_device_faults_total{{fault=\"{fault}\"}} 1");
        assert!(process.shows(&counted), "{counted}");
        assert!(process.shows("surety_calls_device_models 0"));
        process.stop().await;
    }
}

/// What it is at ends, and nobody pays for what would wait: until it answers, requests are refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_taken_while_what_makes_tokens_waits_for_a_device() {
    let silent = Duration::from_secs(3);
    let lost = Duration::from_secs(600);
    let (mut world, fails) = with_patience(Patience { silent, lost }).await;
    let process = world.start().await;
    let client = world.client(&process).await;
    fails.answers.shut(true);
    let call = client.ask(world.text(1, 10, 20, 8)).await;
    block_in_place(|| fails.answers.until_blocked());
    let receipt = client.finish(call).await.receipt.unwrap().statement;
    assert_eq!((receipt.units, receipt.end.unwrap().how), (0, End::Cut));
    assert!(process.shows("surety_calls_device_faults_total{fault=\"silent\"} 1"));
    let refused = client.ask(world.text(2, 10, 20, 8)).await.refused;
    assert_eq!(refused, Some(Refusal::Busy));
    assert_eq!(
        fails.answers.waiting(),
        1,
        "the device has not answered meanwhile"
    );
    // Vectors are not made there.
    let vectors = client.finish(client.ask(world.items(3)).await).await;
    assert!(vectors.receipt.is_some());
    fails.answers.shut(false);
    let wanted = world.text(3, 10, 20, 8);
    let mut whole = None;
    for _ in 0..500 {
        let call = client.ask(wanted.clone()).await;
        if call.refused.is_some() {
            sleep(Duration::from_millis(10)).await;
            continue;
        }
        let call = client.finish(call).await;
        // The device that is played here may be as slow again, where others compute beside it.
        if call.receipt.as_ref().unwrap().statement.end.unwrap().how != End::Cut {
            whole = Some(call);
            break;
        }
    }
    let call = whole.expect("it answers again");
    world.assert_is_alone(&wanted, &call.said, &call.receipt.unwrap());
    process.stop().await;
}

/// Whoever has wrong words may have the lock for them. Its channel pays nothing more, and nothing more is
/// answered over it; over others it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_channel_over_which_something_wrong_was_said_nothing_more_is_taken() {
    let mut world = World::new(&[]).await;
    let mut weights = synthetic::llama(30, true);
    weights.layers.reverse();
    world.elsewhere = Some(Arc::new(Pretends {
        manifest: world.decoder.manifest().clone(),
        engine: Arc::new(engine_stopped_by(weights, &[END])),
    }));
    let process = world.start().await;
    let client = world.client(&process).await;
    client.pays.store(false, Ordering::Relaxed);
    let mut call = client.ask(world.text(1, 10, 200, 8)).await;
    while call.said.len() < 8 * 4 {
        assert!(client.hear(&mut call).await);
    }
    process.kill().await;
    drop(client.payer.lock().unwrap().lost(call.nonce));

    world.elsewhere = None;
    let process = world.start().await;
    client.connect(&process);
    let other = world.client(&process).await;
    let wanted = world.text(3, 10, 20, 8);
    let call = other.finish(other.ask(wanted.clone()).await).await;
    world.assert_is_alone(&wanted, &call.said, &call.receipt.unwrap());
    for _ in 0..500 {
        if process.shows("surety_calls_open 0") {
            break;
        }
        sleep(Duration::from_millis(10)).await;
    }
    assert!(process.shows("surety_calls_open 0"), "it is not given up");
    let refused = client.ask(world.text(2, 10, 20, 8)).await.refused;
    assert_eq!(refused, Some(Refusal::Closing));
    process.stop().await;
}
