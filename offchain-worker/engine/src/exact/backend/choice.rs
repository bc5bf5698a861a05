//! Which backend a program takes, and what a person calls it.

use std::{
    fmt,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{Backend, CudaBackend, cuda::Machine};
use crate::error::EngineError;

/// What a person chooses: `auto`, `cpu`, or `cuda:N`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The first CUDA device, or the processor where none can be used.
    Auto,
    /// The processor.
    #[default]
    Cpu,
    /// A CUDA device, by its number from 0, or nothing.
    Cuda(usize),
}

/// A text that chooses nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no device: say auto, cpu, or cuda:N, such as cuda:0")]
pub struct ChoiceError(String);

impl FromStr for Choice {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        let number = |text: &str| text.strip_prefix("cuda:")?.parse().ok();
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            _ => number(text)
                .map(Self::Cuda)
                .ok_or_else(|| ChoiceError(text.to_owned())),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(number) => write!(f, "cuda:{number}"),
        }
    }
}

/// Whether a device is used at all: once it has vanished, or has computed something else than the processor,
/// the processor goes on alone until the program is started again.
#[derive(Clone, Default)]
pub(in crate::exact) struct Trust(Arc<AtomicBool>);

impl Trust {
    /// Whether it was lost.
    pub(in crate::exact) fn is_lost(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Of all models on the device.
    pub(in crate::exact) fn lose(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What exact models run on, once it is open. The processor if nobody says otherwise.
#[derive(Clone)]
pub struct Device {
    /// Of the processor there is none: models run there as they are.
    pub(in crate::exact) backend: Option<Arc<dyn Backend>>,
    pub(in crate::exact) trust: Trust,
    name: String,
    /// Bytes of memory, where it has its own.
    memory_bytes: Option<u64>,
}

impl Default for Device {
    fn default() -> Self {
        Self {
            backend: None,
            trust: Trust::default(),
            name: "cpu".into(),
            memory_bytes: None,
        }
    }
}

impl Device {
    /// Opens what was chosen. No more than `memory_bytes_max` of a device's own memory is taken, where that
    /// is said.
    ///
    /// # Errors
    /// [`EngineError::Device`], which says what is missing: with [`Choice::Auto`] never.
    pub fn open(choice: Choice, memory_bytes_max: Option<u64>) -> Result<Self, EngineError> {
        match choice {
            Choice::Cpu => Ok(Self::default()),
            Choice::Cuda(number) => Self::open_cuda(number, memory_bytes_max),
            Choice::Auto => Ok(Self::open_cuda(0, memory_bytes_max).unwrap_or_default()),
        }
    }

    #[cfg(feature = "cuda")]
    fn open_cuda(number: usize, memory_bytes_max: Option<u64>) -> Result<Self, EngineError> {
        let device = surety_cuda::Device::open(number).map_err(EngineError::Device)?;
        let name = device.name().map_err(EngineError::Device)?;
        let (_, all) = device.memory().map_err(EngineError::Device)?;
        let memory = memory_bytes_max.unwrap_or(u64::MAX).min(all as u64);
        let opened = Self::on(surety_cuda::Capped::new(device, memory), &name)?;
        Ok(Self {
            memory_bytes: Some(memory),
            ..opened
        })
    }

    #[cfg(not(feature = "cuda"))]
    fn open_cuda(_: usize, _: Option<u64>) -> Result<Self, EngineError> {
        Err(EngineError::Device(surety_cuda::Error::NotBuilt))
    }

    /// Any machine that runs the CUDA kernels: a device, or a program that plays one.
    ///
    /// # Errors
    /// [`EngineError::Device`] when it has no memory at all.
    pub fn on(machine: impl Machine, name: &str) -> Result<Self, EngineError> {
        let trust = Trust::default();
        Ok(Self {
            backend: Some(Arc::new(CudaBackend::new(machine, trust.clone())?)),
            trust,
            name: name.to_owned(),
            memory_bytes: None,
        })
    }

    /// What it calls itself.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of its own memory that may be taken; nothing of the processor.
    pub fn memory_bytes(&self) -> Option<u64> {
        self.memory_bytes
    }
}
