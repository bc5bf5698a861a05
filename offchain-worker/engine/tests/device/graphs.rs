//! Whole generations on a device that is given launches as graphs.

use surety_cuda::{Error, Graphs};
use surety_engine::{Device, Devices, Engine, EngineError};

use super::{
    Emulator, Failing, Fails, Order, Switch,
    common::{
        generating::{job, quiet, request},
        synthetic,
    },
    decoder, short,
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

#[test]
fn a_device_that_vanishes_among_graphs_ends_the_job() {
    let weights = short(synthetic::llama(4, false));
    let (devices, switch) = with_graphs();
    let there = decoder(&weights).on(&devices).unwrap();
    let job = job(&request("Once upon a time", 16));
    let expected = decoder(&weights).run(&job, &mut quiet).unwrap();
    switch.set(Fails::Vanishes);
    let found = there.run(&job, &mut quiet);
    assert!(
        matches!(
            found,
            Err(EngineError::Device {
                error: Error::Lost(_),
                ..
            })
        ),
        "{found:?}"
    );
    assert_eq!(there.run(&job, &mut quiet).unwrap(), expected, "on the processor");
}
