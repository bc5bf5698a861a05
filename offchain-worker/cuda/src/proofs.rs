//! A benchmark's run, as `surety-gpu-proofs` says it, in a device's memory.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use sp_core::H256;
use surety_exact::LANES;
use surety_gpu_proofs::{BATCHES, Job, Memory, ROW, ROWS_MAX, Row};
use surety_proofs::{Proof, Tree};

use crate::{
    Error,
    backend::{Argument, GpuBackend, Shape},
    kernels::{Kernels, size, warps},
};

/// Bytes of the weights.
const WEIGHTS: usize = ROW * ROW;
/// Bytes of a row's tag, and of its digest.
const TAG: usize = 8;
const DIGEST: usize = 32;
/// Nodes beneath one that a block of `proof_tree` computes, and its threads. The source's `BRANCH`.
const BRANCH: usize = 128;
/// Bytes of as many rows' numbers.
const NUMBERS: usize = 4 * BRANCH;
/// Columns and rows that a block of `proof_product` takes, and its threads. The source has the same.
const TILE_COLUMNS: usize = 128;
const TILE_ROWS: usize = 128;
const TILE_THREADS: u32 = 8 * LANES as u32;
/// What a run leaves of a device at least: a part of all that it has.
#[cfg(feature = "cuda")]
const LEFT_PART: usize = 20;
/// The same where it is made again: what others have taken since is no reason to show nothing.
#[cfg(feature = "cuda")]
const LEFT_AGAIN_PART: usize = 100;

/// Why a device makes no run, or shows nothing of it.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum DeviceMemoryError {
    /// The device's own: no memory, vanished, and others.
    #[error(transparent)]
    Device(#[from] Error),
    /// It was asked to stop.
    #[error("the run on the device was stopped")]
    Stopped,
    /// Another run is held than the one asked for, none, or one without such a batch or row: a defect.
    #[error("the device does not hold the run, batch or row that is asked for: report it as a defect")]
    NotHeld,
}

impl DeviceMemoryError {
    /// Whether others have the memory that is needed.
    pub fn is_memory(&self) -> bool {
        matches!(self, Self::Device(error) if error.is_memory())
    }
}

/// Most bytes of a device that a run over so many rows takes.
pub const fn bytes_needed(rows: u32) -> u64 {
    Sizes::of(rows).all()
}

/// Most rows, a multiple of [`BATCHES`] and at most [`ROWS_MAX`], over which a run takes no more than so many
/// bytes of a device. None: not even the least run fits.
pub const fn rows_within(bytes: u64) -> u32 {
    // What is needed grows with the number of batches' rows: halve until it is found.
    let (mut fits, mut too_many) = (0, ROWS_MAX / BATCHES + 1);
    while too_many - fits > 1 {
        let middle = fits + (too_many - fits) / 2;
        if bytes_needed(middle * BATCHES) <= bytes {
            fits = middle;
        } else {
            too_many = middle;
        }
    }
    fits * BATCHES
}

/// Bytes of each piece of memory.
#[derive(Clone, Copy)]
struct Sizes {
    state: u64,
    tags: u64,
    gathered: u64,
    digests: u64,
    /// Of the nodes above the digests; there are two, each above the other by turns.
    nodes: u64,
}

impl Sizes {
    const fn of(rows: u32) -> Self {
        let (rows, batch) = (rows as u64, rows as u64 / BATCHES as u64);
        Self {
            state: rows * ROW as u64,
            tags: rows * TAG as u64,
            gathered: batch * ROW as u64,
            digests: batch * DIGEST as u64,
            nodes: batch.div_ceil(BRANCH as u64) * DIGEST as u64,
        }
    }

    const fn all(self) -> u64 {
        let weights = WEIGHTS as u64;
        // A row that is read, and numbers of rows.
        let read = (ROW + NUMBERS) as u64;
        self.state + self.tags + self.gathered + self.digests + 2 * self.nodes + weights + read
    }
}

/// What a run is held in.
#[derive(Debug)]
struct Held<M: GpuBackend> {
    rows: u32,
    /// The key of the states that were drawn, once they were: another job of the same size has another.
    states: Option<u64>,
    /// `[rows][ROW]`
    state: M::Memory,
    /// `[rows]`
    tags: M::Memory,
    /// `[ROW][ROW]`, a row for each column.
    weights: M::Memory,
    /// Of the batch that is computed: `[batch rows][ROW]`, `[batch rows]`.
    gathered: M::Memory,
    digests: M::Memory,
    /// Of a level above the digests, and of the next.
    nodes: [M::Memory; 2],
    /// Which rows are read, or digests, and a row's cells.
    numbers: M::Memory,
    row: M::Memory,
    /// Whether a batch was computed, so that there are digests.
    is_begun: bool,
}

impl<M: GpuBackend> Held<M> {
    fn allocate(machine: &mut M, rows: u32) -> Result<Self, Error> {
        let sizes = Sizes::of(rows);
        let mut piece = |bytes: u64| {
            let bytes = usize::try_from(bytes).map_err(|_| Error::OutOfMemory(usize::MAX))?;
            machine.allocate(bytes)
        };
        Ok(Self {
            rows,
            states: None,
            state: piece(sizes.state)?,
            tags: piece(sizes.tags)?,
            weights: piece(WEIGHTS as u64)?,
            gathered: piece(sizes.gathered)?,
            digests: piece(sizes.digests)?,
            nodes: [piece(sizes.nodes)?, piece(sizes.nodes)?],
            numbers: piece(NUMBERS as u64)?,
            row: piece(ROW as u64)?,
            is_begun: false,
        })
    }

    fn batch_rows(&self) -> usize {
        (self.rows / BATCHES) as usize
    }

    /// Draws so many words from a key.
    fn draw(machine: &mut M, key: u64, words: usize, into: &M::Memory) -> Result<(), Error> {
        let arguments = [
            Argument::U64(key),
            Argument::U64(words as u64),
            Argument::Memory(into),
        ];
        Kernels::each(machine, "proof_words", words, &arguments)
    }

    /// Hashes so many rows, from `first` on; all they leave may be their tags.
    fn hash(
        &self,
        machine: &mut M,
        first: u32,
        count: usize,
        digests: Option<&M::Memory>,
    ) -> Result<(), Error> {
        let arguments = [
            Argument::Memory(&self.state),
            Argument::U32(first),
            Argument::U32(size(count)?),
            Argument::Memory(&self.tags),
            digests.map_or(Argument::Null, Argument::Memory),
        ];
        Kernels::each(machine, "proof_hash", count, &arguments)
    }

    /// The batch's rows: first all that they are computed from, then they themselves.
    fn compute(&self, machine: &mut M, job: &Job, layer: u32, first: u32) -> Result<(), Error> {
        let count = self.batch_rows();
        let arguments = [
            Argument::Memory(&self.state),
            Argument::Memory(&self.tags),
            Argument::U64(job.parents_key()),
            Argument::U64(job.masks_key()),
            Argument::U32(layer),
            Argument::U32(self.rows),
            Argument::U32(first),
            Argument::U32(size(count)?),
            Argument::Memory(&self.gathered),
        ];
        machine.launch("proof_gather", warps(count)?, &arguments)?;
        let arguments = [
            Argument::Memory(&self.gathered),
            Argument::Memory(&self.weights),
            Argument::U32(first),
            Argument::U32(size(count)?),
            Argument::Memory(&self.state),
        ];
        let shape = Shape {
            grid: [size(count.div_ceil(TILE_ROWS) * (ROW / TILE_COLUMNS))?, 1, 1],
            block: TILE_THREADS,
        };
        machine.launch("proof_product", shape, &arguments)
    }

    /// The nodes above `count` others, or above leaves, [`BRANCH`] beneath each. Returns how many there are.
    fn level(
        machine: &mut M,
        (from, into): (&M::Memory, &M::Memory),
        count: usize,
        are_leaves: bool,
    ) -> Result<usize, Error> {
        let blocks = count.div_ceil(BRANCH);
        let arguments = [
            Argument::Memory(from),
            Argument::U32(size(count)?),
            Argument::U32(are_leaves.into()),
            Argument::Memory(into),
        ];
        let shape = Shape {
            grid: [size(blocks)?, 1, 1],
            block: size(BRANCH)?,
        };
        machine.launch("proof_tree", shape, &arguments)?;
        Ok(blocks)
    }

    /// The root above the digests, by a launch for each factor of [`BRANCH`].
    fn root(&self, machine: &mut M) -> Result<H256, Error> {
        let [one, other] = &self.nodes;
        let mut count = Self::level(machine, (&self.digests, one), self.batch_rows(), true)?;
        let (mut from, mut into) = (one, other);
        while count > 1 {
            count = Self::level(machine, (from, into), count, false)?;
            (from, into) = (into, from);
        }
        let mut root = H256::zero();
        machine.read(from, &mut root.0)?;
        Ok(root)
    }

    /// Of a batch's rows, by the lowest nodes, which are made again, and what is beneath some of them: of
    /// millions of digests a processor hashes a hundredth.
    fn proofs(&mut self, machine: &mut M, rows: &[u32]) -> Result<Vec<Proof>, Error> {
        let [lowest, _] = &self.nodes;
        let all = self.batch_rows();
        let count = Self::level(machine, (&self.digests, lowest), all, true)?;
        let mut bytes = vec![0; count * DIGEST];
        machine.read(lowest, &mut bytes)?;
        let tree = Tree::above(BRANCH.ilog2(), hashes(&bytes));
        let mut proofs = Vec::new();
        for row in rows.iter().filter(|row| (**row as usize) < all) {
            let part = self.beneath(machine, *row as usize / BRANCH)?;
            proofs.extend(tree.proof_within(&part, *row));
        }
        Ok(proofs)
    }

    /// The digests beneath one of the lowest nodes.
    fn beneath(&mut self, machine: &mut M, node: usize) -> Result<Vec<H256>, Error> {
        let first = node * BRANCH;
        let last = self.batch_rows().min(first + BRANCH);
        let rows = first..last;
        let mut bytes = vec![0; rows.len() * DIGEST];
        // What the next batch is gathered in is free until then.
        let pieces = (&self.digests, &mut self.numbers, &self.gathered);
        Self::gather(machine, pieces, (rows, DIGEST))?;
        machine.read(&self.gathered, &mut bytes)?;
        Ok(hashes(&bytes))
    }

    /// Copies some rows of so many bytes, no more than [`BRANCH`].
    fn gather(
        machine: &mut M,
        (from, numbers, into): (&M::Memory, &mut M::Memory, &M::Memory),
        (rows, bytes): (Range<usize>, usize),
    ) -> Result<(), Error> {
        let count = rows.len();
        let written = rows.map(|row| size(row).map(u32::to_le_bytes));
        let written = written.collect::<Result<Vec<_>, _>>()?;
        machine.write(numbers, written.as_flattened())?;
        // Four bytes are moved at a time, whatever they are as numbers.
        let words = bytes / 4;
        let arguments = [
            Argument::Memory(from),
            Argument::Memory(&*numbers),
            Argument::U32(size(count)?),
            Argument::U32(size(words)?),
            Argument::Memory(into),
        ];
        Kernels::each(machine, "gather", count * words, &arguments)
    }

    /// A row as it is.
    fn read_row(&mut self, machine: &mut M, row: u32) -> Result<Row, Error> {
        let row = row as usize;
        let pieces = (&self.state, &mut self.numbers, &self.row);
        Self::gather(machine, pieces, (row..row + 1, ROW))?;
        let mut bytes = [0; ROW];
        machine.read(&self.row, &mut bytes)?;
        Ok(bytes.map(|byte| byte as i8))
    }
}

fn hashes(bytes: &[u8]) -> Vec<H256> {
    let (hashes, _) = bytes.as_chunks::<DIGEST>();
    hashes.iter().map(|hash| H256(*hash)).collect()
}

/// A run's state in a device's memory, computed on there. It takes memory when a run begins, and keeps it for
/// the next one of this size.
#[derive(Debug)]
pub struct DeviceMemory<M: GpuBackend> {
    machine: M,
    bytes_max: u64,
    stop: Arc<AtomicBool>,
    held: Option<Held<M>>,
}

impl<M: GpuBackend> DeviceMemory<M> {
    /// On this machine, of whose memory no more than so many bytes are taken. While `stop` is set nothing is
    /// begun: neither a run nor a batch.
    pub const fn new(machine: M, bytes_max: u64, stop: Arc<AtomicBool>) -> Self {
        Self {
            machine,
            bytes_max,
            stop,
            held: None,
        }
    }

    /// Gives back what the last run was held in: other programs find it from then on.
    pub fn release(&mut self) {
        self.held = None;
        // Whoever uses the machine next is told of the same failure.
        self.machine.settle().ok();
    }

    fn go_on(&self) -> Result<(), DeviceMemoryError> {
        if self.stop.load(Ordering::Relaxed) {
            Err(DeviceMemoryError::Stopped)
        } else {
            Ok(())
        }
    }

    /// Memory for so many rows. What was computed before is void.
    fn make_room(&mut self, rows: u32) -> Result<(), Error> {
        let (needed, max) = (bytes_needed(rows), self.bytes_max);
        if needed > max {
            let used = 0;
            return Err(Error::MemoryCap { needed, used, max });
        }
        match &mut self.held {
            Some(held) if held.rows == rows => (held.states, held.is_begun) = (None, false),
            held => {
                // The old one first: both may not fit, nor large pieces where small ones were.
                *held = None;
                self.machine.settle()?;
                *held = Some(Held::allocate(&mut self.machine, rows)?);
            }
        }
        Ok(())
    }
}

impl<M: GpuBackend> Drop for DeviceMemory<M> {
    fn drop(&mut self) {
        // While the machine is there, which goes before what it holds.
        self.release();
    }
}

impl<M: GpuBackend> Memory for DeviceMemory<M> {
    type Error = DeviceMemoryError;

    fn fill(&mut self, job: &Job) -> Result<(), DeviceMemoryError> {
        self.go_on()?;
        let rows = job.plan().rows;
        if rows == 0 || !rows.is_multiple_of(BATCHES) || rows > ROWS_MAX {
            return Err(DeviceMemoryError::NotHeld);
        }
        self.make_room(rows)?;
        let held = self.held.as_mut().ok_or(DeviceMemoryError::NotHeld)?;
        let (machine, count) = (&mut self.machine, rows as usize);
        Held::draw(machine, job.weights_key(), WEIGHTS / 8, &held.weights)?;
        Held::draw(machine, job.states_key(), count * (ROW / 8), &held.state)?;
        held.hash(machine, 0, count, None)?;
        held.states = Some(job.states_key());
        Ok(())
    }

    fn step(&mut self, job: &Job, layer: u32, batch: u32) -> Result<H256, DeviceMemoryError> {
        self.go_on()?;
        let held = self.held.as_mut().ok_or(DeviceMemoryError::NotHeld)?;
        let is_held = held.rows == job.plan().rows && held.states == Some(job.states_key());
        if !is_held || batch >= BATCHES {
            return Err(DeviceMemoryError::NotHeld);
        }
        let first = batch * job.plan().batch_rows();
        held.compute(&mut self.machine, job, layer, first)?;
        held.hash(&mut self.machine, first, held.batch_rows(), Some(&held.digests))?;
        let root = held.root(&mut self.machine)?;
        held.is_begun = true;
        Ok(root)
    }

    fn digests(&mut self) -> Result<Vec<H256>, DeviceMemoryError> {
        let held = self.held.as_ref().filter(|held| held.is_begun);
        let held = held.ok_or(DeviceMemoryError::NotHeld)?;
        let mut bytes = vec![0; held.batch_rows() * DIGEST];
        self.machine.read(&held.digests, &mut bytes)?;
        Ok(hashes(&bytes))
    }

    fn proofs(&mut self, rows: &[u32]) -> Result<Vec<Proof>, DeviceMemoryError> {
        let held = self.held.as_mut().filter(|held| held.is_begun);
        let held = held.ok_or(DeviceMemoryError::NotHeld)?;
        Ok(held.proofs(&mut self.machine, rows)?)
    }

    fn row(&mut self, row: u32) -> Result<Row, DeviceMemoryError> {
        let held = self.held.as_mut().filter(|held| row < held.rows);
        let held = held.ok_or(DeviceMemoryError::NotHeld)?;
        Ok(held.read_row(&mut self.machine, row)?)
    }
}

/// A device that is ready for runs.
pub struct OpenedMemory {
    /// The device.
    pub memory: Box<dyn Memory<Error = DeviceMemoryError> + Send>,
    /// Most rows for which it has room now: a multiple of [`BATCHES`], or none.
    pub rows_max: u32,
}

/// The NVIDIA device of a number, from 0. Of its memory no more than `bytes_max` are taken, and no more than
/// is free now but for a twentieth of all: what models and other programs have, they keep. A run that was
/// made in so much can be made again where a little less is left. While `stop` is set nothing is begun.
///
/// # Errors
/// [`Error`] says what is missing on this machine; [`Error::NotBuilt`] without the feature `cuda`.
#[cfg(feature = "cuda")]
pub fn open_device_memory(
    number: usize,
    bytes_max: u64,
    stop: Arc<AtomicBool>,
) -> Result<OpenedMemory, Error> {
    let device = crate::Device::open(number)?;
    let (free, all) = device.memory()?;
    let but_for = |part: usize| bytes_max.min(free.saturating_sub(all / part) as u64);
    Ok(OpenedMemory {
        rows_max: rows_within(but_for(LEFT_PART)),
        memory: Box::new(DeviceMemory::new(device, but_for(LEFT_AGAIN_PART), stop)),
    })
}

/// The NVIDIA device of a number, from 0, which this program was built without.
///
/// # Errors
/// [`Error::NotBuilt`].
#[cfg(not(feature = "cuda"))]
pub fn open_device_memory(_: usize, _: u64, _: Arc<AtomicBool>) -> Result<OpenedMemory, Error> {
    Err(Error::NotBuilt)
}

#[cfg(test)]
mod tests;
