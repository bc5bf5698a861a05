//! Whether the devices that were chosen can be used, and how they are.

use surety_engine::{Choice, Device, Devices};
use surety_host::gpus::{self, GpuSource};
use tokio::task::spawn_blocking;

use super::{Checks, Context, DoctorRole, Grade};
use crate::commands::devices::wanted;

/// Opens them as a worker does: what is missing is named. The processor needs no check of its own.
pub(super) async fn check_devices(context: &Context, role: DoctorRole, checks: &mut Checks) {
    let work = match role {
        DoctorRole::Provider => &context.config.provider.work,
        DoctorRole::Verifier => &context.config.verifier,
        DoctorRole::Client | DoctorRole::Validator => return,
    };
    let (choice, memory) = (work.device.clone(), work.device_memory_bytes_max);
    if choice == Choice::Cpu {
        return;
    }
    let chosen = wanted(&choice);
    // The driver compiles the kernels: seconds.
    let looked = spawn_blocking(move || {
        let devices = Devices::open(&chosen, memory)?;
        let driver = gpus::driver().ok();
        let found = devices.iter().map(|device| described(device, driver.as_deref()));
        Ok::<Vec<_>, surety_engine::EngineError>(found.collect())
    });
    match looked.await {
        Ok(Ok(devices)) => devices
            .into_iter()
            .for_each(|(finding, grade)| checks.add("device", grade, finding)),
        Ok(Err(reason)) if choice == Choice::Auto => {
            checks.ok("device", format!("{reason}: auto takes the processor"));
        }
        Ok(Err(reason)) => checks.fail("device", reason.to_string()),
        Err(e) => checks.fail("device", format!("{e}; run this again")),
    }
}

/// A device in one line.
fn described(device: &Device, driver: Option<&dyn GpuSource>) -> (String, Grade) {
    let mut words = vec![device.name().to_owned()];
    if let Some(bytes) = device.memory_bytes() {
        words.push(format!("{} MiB to take", bytes >> 20));
    }
    let Some((driver, uuid)) = driver.zip(device.uuid()) else {
        words.push("the driver does not tell how it is".into());
        return (words.join(", "), Grade::Warn);
    };
    if let Ok(version) = driver.driver() {
        words.push(format!("driver {version}"));
    }
    let reading = match driver.read(uuid) {
        Ok(reading) => reading,
        Err(reason) => {
            words.push(format!("the driver does not tell how it is: {reason}"));
            return (words.join(", "), Grade::Warn);
        }
    };
    if let Ok(celsius) = reading.temperature_celsius {
        words.push(format!("{celsius} \u{b0}C"));
    }
    if let Ok(watts) = reading.power_watts {
        words.push(format!("{watts:.0} W"));
    }
    let is_ecc_on = reading.is_ecc_on == Ok(true);
    words.push(if is_ecc_on {
        "ECC".into()
    } else {
        "no ECC: a bit that flips in its memory may cost stake (nvidia-smi -e 1, where it can)".into()
    });
    (words.join(", "), if is_ecc_on { Grade::Ok } else { Grade::Warn })
}
