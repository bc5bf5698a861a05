//! The devices that exact models run on.

use surety_engine::{Choice, Devices};
use surety_host::{
    Tools,
    gpus::{self, Gpus},
};

use crate::{config::WorkConfig, error::Result};

/// What is tried first: of `auto`, the first device.
pub(super) fn wanted(choice: &Choice) -> Choice {
    match choice {
        Choice::Auto => Choice::Cuda(vec![0]),
        chosen => chosen.clone(),
    }
}

/// What exact models run on. With `auto` it is the processor where no device can be used.
pub(super) fn open(config: &WorkConfig) -> Result<Devices> {
    // Devices are held against the processor, and what has none runs on it.
    if let Some(refused) = surety_engine::refused_kernels() {
        tracing::warn!(%refused, "this processor works slower than it could; what it computes is the same");
    }
    let (memory, has_graphs) = (config.device_memory_bytes_max, config.device_graphs);
    let devices = match Devices::open(&wanted(&config.device), memory, has_graphs) {
        Err(reason) if config.device == Choice::Auto => {
            tracing::info!(%reason, "no device is used");
            Devices::default()
        }
        opened => opened?,
    };
    for device in &devices {
        tracing::info!(
            device = device.number(),
            name = device.name(),
            "exact models run on this device"
        );
    }
    Ok(devices)
}

/// How they are, as the driver tells it. That it tells nothing keeps nobody from work.
pub(super) fn shown(tools: &Tools) -> Result<Gpus> {
    let devices = tools.engines.devices().clone();
    let silent = |reason: &String| {
        let lacking = "the driver does not tell how the devices are: no temperature, no power, no ECC";
        tracing::warn!(reason, "{lacking}");
    };
    let source = (!devices.is_empty()).then(|| gpus::driver().inspect_err(silent).ok());
    Ok(Gpus::new(devices, source.flatten(), tools.vitals.registry())?)
}
