//! The devices of a program, and whether each is still used.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use surety_cuda::Capped;

use super::{
    Backend, Choice, CudaBackend, Fault, Patience,
    answers::{Call, Calls},
    cuda::Machine,
};
use crate::error::EngineError;

/// Why a device is used no more, until the program is started again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Dropped {
    /// It has computed something else than the processor.
    #[error("it gives other numbers than the processor")]
    Differs,
    /// It refused, or it has vanished.
    #[error(transparent)]
    Failed(surety_cuda::Error),
}

/// What all models on a device know of it.
#[derive(Clone)]
pub(in crate::exact) struct Standing(Arc<State>);

struct State {
    /// What a person knows it by.
    name: String,
    dropped: OnceLock<Dropped>,
    /// Why it works slower than it could.
    slower: OnceLock<surety_cuda::Error>,
    /// Jobs and passes that it was given and that have not ended.
    running: AtomicUsize,
    calls: Calls,
}

impl Standing {
    fn new(name: String, patience: Patience) -> Self {
        Self(Arc::new(State {
            name,
            dropped: OnceLock::new(),
            slower: OnceLock::new(),
            running: AtomicUsize::new(0),
            calls: Calls::new(patience),
        }))
    }

    /// Whether both are of one device.
    pub(in crate::exact) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Notes that it is asked something, until the answer is dropped.
    pub(super) fn call(&self) -> Call<'_> {
        self.0.calls.begin()
    }

    /// Whether it answers: nobody waits for longer than work takes. Nothing new is given to it otherwise.
    pub(in crate::exact) fn answers(&self) -> bool {
        self.0.calls.silence() < self.0.calls.patience.silent
    }

    /// Whether it answers nobody, and who is at something for so long may wait for it, used or not.
    pub(super) fn may_keep(&self, time: Duration) -> bool {
        !self.answers() && time >= self.0.calls.patience.silent
    }

    /// Why it is used no more. Who does not answer for too long is not, whether its driver ever returns or
    /// not.
    fn why_dropped(&self) -> Option<&Dropped> {
        let silence = self.0.calls.silence();
        if silence >= self.0.calls.patience.lost {
            let why = format!("it has not answered for {} s", silence.as_secs());
            let lost = Dropped::Failed(surety_cuda::Error::Lost(why));
            self.0.dropped.set(lost).ok();
        }
        self.0.dropped.get()
    }

    /// Why it is used no more, if it is not.
    pub(in crate::exact) fn dropped(&self) -> Option<EngineError> {
        let device = self.0.name.clone();
        Some(match self.why_dropped()? {
            Dropped::Differs => EngineError::DeviceDiffers { device },
            Dropped::Failed(error) => EngineError::Device {
                device,
                error: error.clone(),
            },
        })
    }

    /// It has computed something else than the processor: no model uses it any more.
    pub(in crate::exact) fn differs(&self) -> EngineError {
        // The first reason is the one that is told.
        self.0.dropped.set(Dropped::Differs).ok();
        EngineError::DeviceDiffers {
            device: self.0.name.clone(),
        }
    }

    /// Why a pass on it gave nothing. It is used again only if others have its memory, which may end, or wait
    /// for it, which it may answer.
    pub(in crate::exact) fn fault(&self, error: surety_cuda::Error) -> Fault {
        use surety_cuda::Error;
        match error {
            Error::Arithmetic(fault) => return Fault::Arithmetic(fault),
            Error::NoAnswer => {}
            _ if error.is_memory() => {}
            _ => drop(self.0.dropped.set(Dropped::Failed(error.clone()))),
        }
        Fault::Device {
            device: self.0.name.clone(),
            error,
        }
    }

    /// It computes what it has to, slower than it could. The first reason is the one that is told.
    pub(super) fn is_slower(&self, why: surety_cuda::Error) {
        self.0.slower.set(why).ok();
    }

    pub(super) fn running(&self) -> usize {
        self.0.running.load(Ordering::Relaxed)
    }

    pub(super) fn began(&self) {
        self.0.running.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn ended(&self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One device, once it is open.
#[derive(Clone)]
pub struct Device {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) standing: Standing,
    name: String,
    number: Option<usize>,
    uuid: Option<[u8; 16]>,
    memory_bytes: Option<u64>,
    memory_taken: Arc<AtomicU64>,
}

impl Device {
    #[cfg(feature = "cuda")]
    fn open_cuda(
        number: usize,
        memory_bytes_max: Option<u64>,
        has_graphs: bool,
    ) -> Result<Self, EngineError> {
        let refused = |error| EngineError::Device {
            device: format!("cuda:{number}"),
            error,
        };
        let device = surety_cuda::Device::open(number).map_err(refused)?;
        let name = device.name().map_err(refused)?;
        let (_, all) = device.memory().map_err(refused)?;
        let memory = memory_bytes_max.unwrap_or(u64::MAX).min(all as u64);
        let uuid = device.uuid().map_err(refused)?;
        let standing = Standing::new(format!("cuda:{number} ({name})"), Patience::default());
        let machine = surety_cuda::Graphs::new(device, has_graphs);
        let opened = Self::capped(machine, memory, (name, standing))?;
        Ok(opened.known_as(number, uuid))
    }

    #[cfg(not(feature = "cuda"))]
    fn open_cuda(number: usize, _: Option<u64>, _: bool) -> Result<Self, EngineError> {
        Err(EngineError::Device {
            device: format!("cuda:{number}"),
            error: surety_cuda::Error::NotBuilt,
        })
    }

    /// A machine of whose memory so many bytes may be taken.
    fn capped(
        machine: impl Machine,
        memory: u64,
        (name, standing): (String, Standing),
    ) -> Result<Self, EngineError> {
        let machine = Capped::new(machine, memory);
        let memory_taken = machine.used();
        Ok(Self {
            backend: Arc::new(CudaBackend::new(machine, standing.clone())?),
            standing,
            name,
            number: None,
            uuid: None,
            memory_bytes: Some(memory),
            memory_taken,
        })
    }

    /// Any machine that runs the CUDA kernels: a device, or a program that plays one.
    ///
    /// # Errors
    /// [`EngineError::Device`] when it has no memory at all.
    pub fn on(machine: impl Machine, name: &str) -> Result<Self, EngineError> {
        Self::patient(machine, name, Patience::default())
    }

    /// The same, with which one has so much patience.
    ///
    /// # Errors
    /// Those of [`Device::on`].
    pub fn patient(machine: impl Machine, name: &str, patience: Patience) -> Result<Self, EngineError> {
        let standing = Standing::new(name.to_owned(), patience);
        let known = (name.to_owned(), standing);
        let device = Self::capped(machine, u64::MAX, known)?;
        Ok(Self {
            memory_bytes: None,
            ..device
        })
    }

    /// The same, by its number, and by what the driver knows it.
    pub fn known_as(self, number: usize, uuid: [u8; 16]) -> Self {
        Self {
            number: Some(number),
            uuid: Some(uuid),
            ..self
        }
    }

    /// What it calls itself.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its number, where it was chosen by one.
    pub fn number(&self) -> Option<usize> {
        self.number
    }

    /// By what the driver knows it.
    pub fn uuid(&self) -> Option<[u8; 16]> {
        self.uuid
    }

    /// Bytes of its own memory that may be taken, where that is known.
    pub fn memory_bytes(&self) -> Option<u64> {
        self.memory_bytes
    }

    /// Bytes of its own memory that models here have now: not what the driver needs, nor other programs.
    pub fn memory_taken(&self) -> u64 {
        self.memory_taken.load(Ordering::Relaxed)
    }

    /// Why it is used no more, if it is not.
    pub fn dropped(&self) -> Option<&Dropped> {
        self.standing.why_dropped()
    }

    /// Whether somebody waits for it for longer than work takes. It is used again once it answers.
    pub fn is_silent(&self) -> bool {
        !self.standing.answers()
    }

    /// Why it works slower than it could, if something was refused to it. What it computes is the same.
    pub fn slower(&self) -> Option<&surety_cuda::Error> {
        self.standing.0.slower.get()
    }
}

/// What exact models run on, each of them whole on every device. Without any: the processor.
#[derive(Clone, Default)]
pub struct Devices(Vec<Device>);

impl FromIterator<Device> for Devices {
    fn from_iter<I: IntoIterator<Item = Device>>(devices: I) -> Self {
        Self(devices.into_iter().collect())
    }
}

impl From<Device> for Devices {
    fn from(device: Device) -> Self {
        Self(vec![device])
    }
}

impl Devices {
    /// Opens what was chosen. No more than `memory_bytes_max` is taken of each device's own memory, where
    /// that is said. With `has_graphs` launches that come again are given to a device as graphs.
    ///
    /// # Errors
    /// [`EngineError::Device`], which says what is missing of which: with [`Choice::Auto`] never.
    pub fn open(
        choice: &Choice,
        memory_bytes_max: Option<u64>,
        has_graphs: bool,
    ) -> Result<Self, EngineError> {
        let open = |number: &usize| Device::open_cuda(*number, memory_bytes_max, has_graphs);
        match choice {
            Choice::Cpu => Ok(Self::default()),
            Choice::Cuda(numbers) => numbers.iter().map(open).collect(),
            Choice::Auto => Ok(open(&0).map(Self::from).unwrap_or_default()),
        }
    }

    /// Each of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Device> {
        self.0.iter()
    }

    /// How many there are, used or not.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none: all runs on the processor.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> IntoIterator for &'a Devices {
    type Item = &'a Device;
    type IntoIter = std::slice::Iter<'a, Device>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
