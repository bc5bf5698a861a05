//! Whole generations on a device that is given launches as graphs.

use surety_cuda::{Error, Graphs};
use surety_engine::{Device, Devices, Engine};
use surety_types::model::Pooling;

use super::{
    Emulator, Failing, Fails, Order, Switch,
    common::{
        embed_job,
        generating::{job, quiet, request},
        synthetic,
    },
    decoder, device_error, encoder, short,
};

fn with_graphs() -> (Devices, Switch) {
    let (machine, switch) = Failing::new(Emulator::start(Order::Forwards));
    let device = Device::on(Graphs::new(machine, true), "one with graphs").unwrap();
    (device.into(), switch)
}

#[test]
fn a_generation_by_graphs_has_the_bits_of_the_processor() {
    let weights = short(synthetic::llama(4, false));
    let (devices, switch) = with_graphs();
    let there = decoder(&weights).on(&devices).unwrap();
    // Whoever tries the device before may have had graphs, too.
    switch.take_replays();
    let job = job(&request("Once upon a time", 16));
    let expected = decoder(&weights).run(&job, &mut quiet).unwrap();
    assert_eq!(there.run(&job, &mut quiet).unwrap(), expected);
    assert!(switch.take_replays() > 0);
    assert!(devices.iter().all(|device| device.slower().is_none()));
}

/// Batches of as many rows, and as long a sequence: which words those are is in memory that is written again.
#[test]
fn batches_of_an_encoder_that_come_again_are_given_as_graphs() {
    let (devices, switch) = with_graphs();
    let there = encoder(2, Pooling::Mean).on(&devices).unwrap();
    let here = encoder(2, Pooling::Mean);
    switch.take_replays();
    for text in ["a b c\nq w e r t", "z x c v b\nm m m", "c c c\na b c d e"].repeat(3) {
        let job = embed_job(text);
        assert_eq!(
            there.run(&job, &mut quiet).unwrap(),
            here.run(&job, &mut quiet).unwrap(),
            "{text}"
        );
    }
    assert!(switch.take_replays() > 0);
    assert!(devices.iter().all(|device| device.slower().is_none()));
}

#[test]
fn a_device_that_vanishes_among_graphs_ends_the_job() {
    let weights = short(synthetic::llama(4, false));
    let (devices, switch) = with_graphs();
    let there = decoder(&weights).on(&devices).unwrap();
    let job = job(&request("Once upon a time", 16));
    let expected = decoder(&weights).run(&job, &mut quiet).unwrap();
    switch.set(Fails::Vanishes);
    let error = device_error(there.run(&job, &mut quiet));
    assert!(matches!(error, Error::Lost(_)), "{error}");
    assert_eq!(there.run(&job, &mut quiet).unwrap(), expected, "on the processor");
}
