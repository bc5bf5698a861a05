//! Answers whose tokens a device chooses, played by the C++ program of `surety-cuda`'s tests.

#[allow(dead_code)]
#[path = "../../../cuda/tests/emulator/mod.rs"]
mod emulator;
#[allow(dead_code)]
#[path = "../../../engine/tests/device/failing.rs"]
mod failing;

use std::sync::Arc;

use emulator::{Emulator, Order};
use failing::{Failing, Fails, Switch};
use surety_channels::End;
use surety_engine::{Device, Devices};

use crate::{
    generating::engine_stopped_by,
    synthetic::{self, END},
    world::World,
};

/// A provider with a device that fails when it is told to.
async fn with_device() -> (World, Switch) {
    let (machine, fails) = Failing::new(Emulator::start(Order::Forwards));
    let devices: Devices = Device::on(machine, "one that fails").unwrap().into();
    let mut world = World::new(&[]).await;
    let there = engine_stopped_by(synthetic::llama(30, true), &[END]).on(&devices);
    world.elsewhere = Some(Arc::new(there.unwrap()));
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
    for (how, fault) in [(Fails::TurnsLogits, "differs"), (Fails::Vanishes, "failed")] {
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
