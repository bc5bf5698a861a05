//! A machine that fails when it is told to.

use std::{
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU8, AtomicUsize, Ordering},
    },
    time::Duration,
};

use surety_cuda::{Argument, Capture, Error, GpuBackend, NoLanding, Product, Shape};

/// How it fails.
#[derive(Clone, Copy, Debug)]
pub enum Fails {
    /// Not at all.
    Nothing,
    /// What is read from it has other bits, one for each digest's bytes.
    FlipsBits,
    /// Of all that leaves it at once a byte has another bit.
    FlipsOne,
    /// It computes what it should, and says the hashes of something else.
    HashesNothing,
    /// It leaves states and vectors out of what it hashes.
    RecordsNothing,
    /// It computes other vectors, and hashes those.
    NormsNothing,
    /// It takes no work any more.
    Vanishes,
    /// It has no memory for what launches need.
    IsFull,
    /// The logits of a model of [`VOCABULARY`] tokens have the other sign.
    TurnsLogits,
    /// They are no numbers.
    LosesLogits,
    /// It says of all that it computes that it is not finite.
    FindsNothing,
}

/// That of the models of `synthetic`.
const VOCABULARY: usize = 260;

/// Bytes of a row's digest.
const DIGEST: usize = 32;

/// The word of faults where something is not finite.
const NOT_FINITE: u32 = 1;

/// Longer than anybody takes to come to a gate.
const COMES_MAX: Duration = Duration::from_secs(120);

/// Where a machine waits for as long as it is told to.
#[derive(Debug, Default)]
pub struct Gate {
    /// Whether it is shut, and who waits before it.
    state: Mutex<(bool, usize)>,
    changed: Condvar,
}

impl Gate {
    pub fn shut(&self, is_shut: bool) {
        self.state.lock().unwrap().0 = is_shut;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        state.1 += 1;
        self.changed.notify_all();
        while state.0 {
            state = self.changed.wait(state).unwrap();
        }
        state.1 -= 1;
    }

    /// Until somebody waits before it.
    pub fn until_blocked(&self) {
        let state = self.state.lock().unwrap();
        let blocked = self
            .changed
            .wait_timeout_while(state, COMES_MAX, |(_, waiting)| *waiting == 0);
        assert!(!blocked.unwrap().1.timed_out(), "nobody came to the gate");
    }

    pub fn waiting(&self) -> usize {
        self.state.lock().unwrap().1
    }
}

/// Tells it, and how much it has done.
#[derive(Clone)]
pub struct Switch {
    /// While it is shut, nothing is said of what was computed.
    pub answers: Arc<Gate>,
    fails: Arc<AtomicU8>,
    flipped: Arc<AtomicUsize>,
    launches: Arc<AtomicUsize>,
    replays: Arc<AtomicUsize>,
}

impl Switch {
    /// Which byte [`Fails::FlipsOne`] is about.
    pub fn flip_at(&self, byte: usize) {
        self.flipped.store(byte, Ordering::Relaxed);
    }

    pub fn set(&self, fails: Fails) {
        self.fails.store(fails as u8, Ordering::Relaxed);
    }

    /// Kernels that were launched since the last time that was asked.
    pub fn take_launches(&self) -> usize {
        self.launches.swap(0, Ordering::Relaxed)
    }

    /// The same of graphs.
    pub fn take_replays(&self) -> usize {
        self.replays.swap(0, Ordering::Relaxed)
    }
}

#[derive(Debug)]
pub struct Failing<M> {
    machine: M,
    answers: Arc<Gate>,
    fails: Arc<AtomicU8>,
    flipped: Arc<AtomicUsize>,
    launches: Arc<AtomicUsize>,
    replays: Arc<AtomicUsize>,
}

impl<M> Failing<M> {
    pub fn new(machine: M) -> (Self, Switch) {
        let answers = Arc::<Gate>::default();
        let fails = Arc::new(AtomicU8::new(Fails::Nothing as u8));
        let [flipped, launches, replays] = [(); 3].map(|()| Arc::<AtomicUsize>::default());
        let switch = Switch {
            answers: answers.clone(),
            fails: fails.clone(),
            flipped: flipped.clone(),
            launches: launches.clone(),
            replays: replays.clone(),
        };
        let failing = Self {
            machine,
            answers,
            fails,
            flipped,
            launches,
            replays,
        };
        (failing, switch)
    }

    fn is(&self, fails: Fails) -> bool {
        self.fails.load(Ordering::Relaxed) == fails as u8
    }

    fn there(&self) -> Result<(), Error> {
        match self.is(Fails::Vanishes) {
            true => Err(Error::Lost("it was told to".into())),
            false => Ok(()),
        }
    }
}

impl<M: GpuBackend> GpuBackend for Failing<M> {
    type Memory = M::Memory;
    type Landing = NoLanding;

    fn allocate(&mut self, bytes: usize) -> Result<M::Memory, Error> {
        self.there()?;
        self.machine.allocate(bytes)
    }

    fn write(&mut self, into: &mut M::Memory, bytes: &[u8]) -> Result<(), Error> {
        self.there()?;
        self.machine.write(into, bytes)
    }

    fn read(&mut self, from: &M::Memory, bytes: &mut [u8]) -> Result<(), Error> {
        self.there()?;
        self.answers.pass();
        self.machine.read(from, bytes)?;
        // The word of faults is right.
        if self.is(Fails::FlipsBits) && bytes.len() > 4 {
            bytes.iter_mut().step_by(DIGEST).for_each(|byte| *byte ^= 1);
        }
        if self.is(Fails::FlipsOne) && bytes.len() > 4 {
            let at = self.flipped.load(Ordering::Relaxed);
            bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1);
        }
        let is_logits = bytes.len().is_multiple_of(size_of::<f32>() * VOCABULARY);
        if self.is(Fails::TurnsLogits) && is_logits {
            bytes.iter_mut().skip(3).step_by(4).for_each(|byte| *byte ^= 0x80);
        }
        if self.is(Fails::LosesLogits) && is_logits {
            bytes.fill(0xff);
        }
        if self.is(Fails::FindsNothing) && bytes.len() == size_of::<u32>() {
            bytes.copy_from_slice(&NOT_FINITE.to_le_bytes());
        }
        Ok(())
    }

    fn launch(
        &mut self,
        kernel: &str,
        shape: Shape,
        arguments: &[Argument<'_, M::Memory>],
    ) -> Result<(), Error> {
        self.there()?;
        if self.is(Fails::IsFull) {
            return Err(Error::OutOfMemory(0));
        }
        self.launches.fetch_add(1, Ordering::Relaxed);
        let left_out = [
            (Fails::HashesNothing, "digest_rows"),
            (Fails::RecordsNothing, "record"),
            (Fails::NormsNothing, "l2_normalize"),
        ];
        if left_out
            .iter()
            .any(|(fails, name)| self.is(*fails) && kernel == *name)
        {
            return Ok(());
        }
        self.machine.launch(kernel, shape, arguments)
    }

    fn product(&mut self, product: &Product<'_, M::Memory>) -> Result<bool, Error> {
        self.there()?;
        self.machine.product(product)
    }
}

impl<M: Capture> Capture for Failing<M> {
    type Graph = M::Graph;

    fn begin_capture(&mut self) -> Result<(), Error> {
        self.there()?;
        self.machine.begin_capture()
    }

    fn end_capture(&mut self) -> Result<M::Graph, Error> {
        self.machine.end_capture()
    }

    fn replay(&mut self, graph: &M::Graph) -> Result<(), Error> {
        self.there()?;
        self.replays.fetch_add(1, Ordering::Relaxed);
        self.machine.replay(graph)
    }
}
