//! Whether the devices that were chosen can be used, and how they are.

use surety_engine::{Choice, Device, Devices};
use surety_host::gpus::{self, GpuSource};
use tokio::task::spawn_blocking;

use super::{Checks, Context, DoctorRole, Grade};
use crate::{commands::devices::wanted, config::Participation};

/// Opens them as a worker does: what is missing is named. Of the processor only what was found wrong is.
/// Returns the name of the first.
pub(super) async fn check_devices(
    context: &Context,
    role: DoctorRole,
    checks: &mut Checks,
) -> Option<String> {
    let work = match role {
        DoctorRole::Provider => &context.config.provider.work,
        DoctorRole::Verifier => &context.config.verifier,
        DoctorRole::Client | DoctorRole::Validator => return None,
    };
    if let Some(refused) = surety_engine::refused_kernels() {
        checks.warn("processor", refused.to_string());
    }
    let (choice, memory) = (work.device.clone(), work.device_memory_bytes_max);
    let has_graphs = work.device_graphs;
    if choice == Choice::Cpu {
        return None;
    }
    let chosen = wanted(&choice);
    // The driver compiles the kernels: seconds.
    let looked = spawn_blocking(move || {
        let devices = Devices::open(&chosen, memory, has_graphs)?;
        let driver = gpus::driver().ok();
        let found = devices.iter().map(|device| described(device, driver.as_deref()));
        let first = devices.iter().next().map(|device| device.name().to_owned());
        Ok::<(Vec<_>, _), surety_engine::EngineError>((found.collect(), first))
    });
    match looked.await {
        Ok(Ok((devices, first))) => {
            for (finding, grade) in devices {
                checks.add("device", grade, finding);
            }
            return first;
        }
        Ok(Err(reason)) if choice == Choice::Auto => {
            checks.ok("device", format!("{reason}: auto takes the processor"));
        }
        Ok(Err(reason)) => checks.fail("device", reason.to_string()),
        Err(e) => checks.fail("device", format!("{e}; run this again")),
    }
    None
}

/// Whether the chain measures this machine, on what, and how that is shown.
pub(super) fn check_benchmark(wanted: Participation, device: Option<&str>, checks: &mut Checks) {
    let on = match (wanted, device) {
        (Participation::Off, _) => {
            let finding = "off: this machine is not measured, and weighs as tier C in the auction; --benchmark auto \
                           takes part on a device";
            return checks.ok("benchmark", finding);
        }
        (Participation::Auto, None) => {
            let finding = "off, as no device is used, and weighs as tier C in the auction; --benchmark on measures the \
                           processor";
            return checks.ok("benchmark", finding);
        }
        (_, Some(device)) => format!("{device}, over the memory that its models leave"),
        (Participation::On, None) => "the processor, over a quarter of the free memory".into(),
    };
    let finding = format!(
        "on {on}, for a minute whenever the chain asks: tier A from 20, B from 5, C below, in 10^12 operations on \
         8-bit integers a second; surety provider status shows what it has measured"
    );
    checks.ok("benchmark", finding);
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
