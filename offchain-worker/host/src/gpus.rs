//! What an operator sees of the devices that exact models run on: whether each is still used, and what the
//! driver says of it. Nothing of it decides anything: a driver that says nothing costs a warning.

#[cfg(feature = "cuda")]
mod nvml;
#[cfg(test)]
pub(crate) mod tests;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use prometheus::{Error, GaugeVec, Opts, Registry};
use surety_engine::{Device, Devices};
use tokio::{
    sync::oneshot::{self, error::TryRecvError},
    time::{MissedTickBehavior, interval},
};

use crate::error::{HostError, Result};

/// How often they are looked at: as often as Prometheus asks by default.
const EVERY: Duration = Duration::from_secs(15);

/// A driver's version that nobody tells.
const UNKNOWN: &str = "unknown";

/// What a driver says, or why it does not.
pub type Said<T> = std::result::Result<T, String>;

/// What a driver says of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Degrees Celsius.
    pub temperature_celsius: Said<u32>,
    /// What it draws, in watts.
    pub power_watts: Said<f64>,
    /// Bytes of memory that programs have, this one and others.
    pub memory_used_bytes: Said<u64>,
    /// Whether its memory corrects errors.
    pub is_ecc_on: Said<bool>,
}

/// Who knows how devices are: the driver, or in tests whoever plays it.
pub trait GpuSource: Send + Sync {
    /// The driver's version.
    ///
    /// # Errors
    /// The driver's reason.
    fn driver(&self) -> Said<String>;

    /// How a device is.
    ///
    /// # Errors
    /// The driver's reason, where it does not know the device, or has lost it.
    fn read(&self, uuid: [u8; 16]) -> Said<Reading>;
}

/// This machine's driver.
///
/// # Errors
/// Why it tells nothing of its devices.
pub fn driver() -> Said<Arc<dyn GpuSource>> {
    #[cfg(feature = "cuda")]
    return Ok(Arc::new(nvml::Driver::open()?));
    #[cfg(not(feature = "cuda"))]
    Err("this program was built without CUDA".into())
}

/// The devices of a worker, and who knows how they are.
pub struct Gpus {
    devices: Devices,
    source: Option<Arc<dyn GpuSource>>,
    gauges: Gauges,
    /// What was said already.
    told: Mutex<BTreeSet<(String, &'static str)>>,
}

struct Gauges {
    info: GaugeVec,
    used: GaugeVec,
    ecc: GaugeVec,
    temperature: GaugeVec,
    power: GaugeVec,
    memory_used: GaugeVec,
    memory: GaugeVec,
}

impl Gauges {
    fn new(registry: &Registry) -> std::result::Result<Self, Error> {
        let gauge = |name: &str, help: &str, labels: &[&str]| {
            let gauge = GaugeVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok::<_, Error>(gauge)
        };
        let device = &["device"];
        Ok(Self {
            info: gauge(
                "surety_gpu_info",
                "A device that exact models run on.",
                &["device", "name", "driver"],
            )?,
            used: gauge(
                "surety_gpu_up",
                "Whether the device is used: not after it has vanished, or differed from the processor.",
                device,
            )?,
            ecc: gauge(
                "surety_gpu_ecc_enabled",
                "Whether its memory corrects errors.",
                device,
            )?,
            temperature: gauge("surety_gpu_temperature_celsius", "How hot it is.", device)?,
            power: gauge("surety_gpu_power_watts", "What it draws.", device)?,
            memory_used: gauge(
                "surety_gpu_memory_used_bytes",
                "Its memory that programs have, this one and others.",
                device,
            )?,
            memory: gauge(
                "surety_gpu_memory_bytes",
                "Its memory that this worker may take.",
                device,
            )?,
        })
    }
}

impl Gpus {
    /// Of a worker, whose figures are in `registry`. Without a source nothing is known but whether they are
    /// used.
    ///
    /// # Errors
    /// Only by a defect.
    pub fn new(devices: Devices, source: Option<Arc<dyn GpuSource>>, registry: &Registry) -> Result<Self> {
        let gauges = Gauges::new(registry).map_err(|e| HostError::Internal(e.to_string()))?;
        Ok(Self {
            devices,
            source,
            gauges,
            told: Mutex::default(),
        })
    }

    /// Whether there is anything to look at.
    pub(super) fn is_empty(&self) -> bool {
        self.devices.is_empty()
    }

    /// Looks again and again, for as long as it is polled.
    pub(super) async fn watch(self: Arc<Self>) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut asked = None;
        loop {
            ticks.tick().await;
            asked = self.look(asked);
            if asked.is_none() {
                return;
            }
        }
    }

    /// Looks once, and has the driver asked, unless it was asked before and has not answered. What comes back
    /// tells when it has; nothing, that it cannot be asked.
    fn look(self: &Arc<Self>, asked: Option<oneshot::Receiver<()>>) -> Option<oneshot::Receiver<()>> {
        for (label, device) in self.labelled() {
            self.show_use(&label, device);
        }
        if let Some(mut asked) = asked {
            match asked.try_recv() {
                Ok(()) => {}
                // A driver that has lost a device may never answer: nothing waits for it but its thread.
                Err(TryRecvError::Empty) => {
                    for (label, _) in self.labelled() {
                        self.show(&label, Err("it does not answer".into()));
                    }
                    return Some(asked);
                }
                Err(TryRecvError::Closed) => return None,
            }
        }
        let (gpus, (done, answered)) = (self.clone(), oneshot::channel());
        let ask = move || {
            gpus.ask();
            done.send(()).ok();
        };
        let started = thread::Builder::new().name("gpus".into()).spawn(ask);
        started.is_ok().then_some(answered)
    }

    /// Each device, by what it is called in figures.
    fn labelled(&self) -> impl Iterator<Item = (String, &Device)> {
        let devices = self.devices.iter().enumerate();
        devices.map(|(place, device)| (device.number().unwrap_or(place).to_string(), device))
    }

    /// Shows what the driver says.
    fn ask(&self) {
        let driver = self.source.as_ref().map(|source| source.driver());
        for (label, device) in self.labelled() {
            let version = match &driver {
                Some(Ok(version)) => version,
                Some(Err(reason)) => {
                    self.refused(&label, "its driver's version", reason);
                    UNKNOWN
                }
                None => UNKNOWN,
            };
            let labels = [label.as_str(), device.name(), version];
            self.gauges.info.with_label_values(&labels).set(1.0);
            if let (Some(source), Some(uuid)) = (&self.source, device.uuid()) {
                self.show(&label, source.read(uuid));
            }
        }
    }

    fn show_use(&self, label: &str, device: &Device) {
        let dropped = device.dropped();
        let used = self.gauges.used.with_label_values(&[label]);
        used.set(f64::from(u8::from(dropped.is_none())));
        if let Some(bytes) = device.memory_bytes() {
            self.gauges.memory.with_label_values(&[label]).set(bytes as f64);
        }
        if let Some(reason) = device.slower()
            && self.is_news(label, "slower")
        {
            tracing::warn!(
                device = label,
                name = device.name(),
                %reason,
                "this device works slower than it could; what it computes is the same"
            );
        }
        if let Some(reason) = dropped
            && self.is_news(label, "used no more")
        {
            tracing::error!(
                device = label,
                name = device.name(),
                %reason,
                "this device is used no more, until the worker is started again; what else there is goes on alone"
            );
        }
    }

    fn show(&self, label: &str, reading: Said<Reading>) {
        let gauges = &self.gauges;
        let reading = match reading {
            Ok(reading) => reading,
            Err(reason) => {
                self.refused(label, "how it is", &reason);
                for gauge in [
                    &gauges.ecc,
                    &gauges.temperature,
                    &gauges.power,
                    &gauges.memory_used,
                ] {
                    forget(gauge, label);
                }
                return;
            }
        };
        let ecc = reading.is_ecc_on;
        if ecc == Ok(false) && self.is_news(label, "no ECC") {
            tracing::warn!(
                device = label,
                "its memory corrects no errors (ECC is off), and a bit that flips there may cost stake: \
                 `nvidia-smi -e 1` turns it on where the device can"
            );
        }
        self.set(
            &gauges.ecc,
            label,
            "whether its memory corrects errors",
            ecc.map(u8::from),
        );
        let celsius = reading.temperature_celsius;
        self.set(&gauges.temperature, label, "its temperature", celsius);
        self.set(&gauges.power, label, "its power", reading.power_watts);
        // A double has 15 digits.
        let used = reading.memory_used_bytes.map(|bytes| bytes as f64);
        self.set(&gauges.memory_used, label, "its memory", used);
    }

    /// Shows what is said, and nothing old where nothing is.
    fn set(&self, gauge: &GaugeVec, label: &str, what: &'static str, said: Said<impl Into<f64>>) {
        match said {
            Ok(value) => gauge.with_label_values(&[label]).set(value.into()),
            Err(reason) => {
                self.refused(label, what, &reason);
                forget(gauge, label);
            }
        }
    }

    fn refused(&self, label: &str, what: &'static str, reason: &str) {
        if self.is_news(label, what) {
            tracing::warn!(device = label, reason, "the driver does not tell {what}");
        }
    }

    /// Whether this was not said yet.
    fn is_news(&self, label: &str, what: &'static str) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.insert((label.to_owned(), what))
    }
}

/// What was shown of a device before, if anything.
fn forget(gauge: &GaugeVec, label: &str) {
    gauge.remove_label_values(&[label]).ok();
}
