//! What is measured on: the processor, a device, or a program that plays one.

use surety_cuda::Graphs;
use surety_engine::{Device, Devices};

use crate::Result;

// Its faults are for tests, and for trying a bench out.
#[allow(dead_code, clippy::expect_used, clippy::panic)]
#[path = "../../../cuda/tests/emulator/mod.rs"]
mod emulator;

use emulator::{Emulator, Order};
use serde_json::json;

use crate::talk::say;

/// Where nothing is said.
pub const PROCESSOR: &str = "cpu";
/// A device that is played by a program: its figures say nothing.
const EMULATED: &str = "emulated";
/// Behind a device's name: launches are given to it one by one.
const WITHOUT_GRAPHS: &str = "-without-graphs";

/// A machine that plays a device, if that is what a name says.
pub fn emulated(name: &str) -> Option<Emulator> {
    (name == EMULATED).then(|| Emulator::start(Order::Forwards))
}

/// `cpu`, `cuda:N`, `cuda:N-without-graphs`, or `emulated`, for trying a bench out.
pub fn open(name: &str) -> Result<Devices> {
    let (name, has_graphs) = match name.strip_suffix(WITHOUT_GRAPHS) {
        Some(name) => (name, false),
        None => (name, true),
    };
    Ok(match emulated(name) {
        Some(machine) => Device::on(Graphs::new(machine, has_graphs), EMULATED)?.into(),
        None => Devices::open(&name.parse()?, None, has_graphs)?,
    })
}

/// Says what it is.
pub fn describe(name: &str) -> Result<()> {
    let devices = open(name)?;
    let found = devices.iter().map(|device| {
        json!({
            "name": device.name(),
            "memory_bytes": device.memory_bytes(),
        })
    });
    say(&json!({"ready": true, "devices": found.collect::<Vec<_>>()}))
}
