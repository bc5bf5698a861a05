//! Makes runs, and watches the device while it does: a row of many layers is computed again on the processor,
//! and the tree over the batch that it is in, or its way through that. All of this blocks.

use std::{
    cell::Cell,
    num::NonZero,
    sync::atomic::{AtomicBool, Ordering},
    thread::available_parallelism,
    time::{Duration, Instant},
};

use sp_core::H256;
use sp_crypto_hashing::blake2_256;
use surety_exact::SplitMix64;
use surety_gpu_proofs::{
    BATCHES, Failure, Job, LAYERS_MIN, Memory, Openings, Place, Plan, ROWS_MAX, Row, Run, SAMPLES, Sample,
    open, run, tag, verify_all,
};
use surety_proofs::{Proof, Tree};

use crate::machine::{Failed, RunMemory};

/// Shorter trials say little of a device.
const TRIAL: Duration = Duration::from_millis(500);

/// Most rows of a batch of which the whole tree is made again for each row that is looked at: a fraction of
/// what the row takes. Trees of millions of rows take longer than a device does for the batches' products.
const SMALL_BATCH: u32 = 1024;

/// How many times as many layers as there have to be fit into the time, by the last speed that was measured.
const ROOM: u128 = 2;

/// Why there is no run, or nothing to show of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Trouble {
    /// It was told to stop.
    #[error("it was stopped")]
    Stopped,
    /// It has taken all the time that it may.
    #[error(
        "it took longer than it may, and was stopped: see what else uses the device, and whether heat slows it down"
    )]
    Late,
    /// Others need the machine.
    #[error("{0}")]
    NoPause(String),
    /// What a run is held in cannot be had: others have the memory, for now.
    #[error("{0}")]
    Memory(String),
    /// It fails.
    #[error("{0}")]
    Device(String),
    /// It computes something else than the processor.
    #[error("the device errs: row {row} of layer {layer} is not what the processor computes")]
    Differs { layer: u32, row: u32 },
    /// What was shown is not right, though the rows that were looked at are.
    #[error("the device errs: what is to be shown does not follow from what was committed to")]
    Unsound,
    /// The shortest run takes longer than there is time.
    #[error("the shortest run takes this machine longer than there is time")]
    TooSlow,
}

impl Trouble {
    /// Whether the device is at fault.
    pub(crate) const fn is_fault(&self) -> bool {
        matches!(self, Self::Differs { .. } | Self::Unsound)
    }

    /// Whether it was tried, and would end alike the next time: not where something was to be waited for.
    pub(crate) const fn is_try(&self) -> bool {
        !matches!(self, Self::NoPause(_) | Self::Memory(_))
    }
}

impl From<Failed> for Trouble {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Memory(why) => Self::Memory(why),
            Failed::Device(why) => Self::Device(why),
        }
    }
}

impl From<Failure<Self>> for Trouble {
    fn from(failure: Failure<Self>) -> Self {
        match failure {
            Failure::Memory(trouble) => trouble,
            Failure::Differs(Place { layer, row }) => Self::Differs { layer, row },
            Failure::Plan | Failure::NoSuchSample => Self::Unsound,
        }
    }
}

/// Leave to go on.
#[derive(Clone, Copy)]
pub(crate) struct Leave<'a> {
    /// True once it is to stop.
    pub(crate) stop: &'a AtomicBool,
    /// Nothing is begun later than this.
    pub(crate) until: Option<Instant>,
}

impl Leave<'_> {
    fn ask(self) -> Result<(), Trouble> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Trouble::Stopped);
        }
        match self.until.is_some_and(|until| until <= Instant::now()) {
            true => Err(Trouble::Late),
            false => Ok(()),
        }
    }

    /// What a device's error comes to.
    fn trouble(self, why: Failed) -> Trouble {
        match self.stop.load(Ordering::Relaxed) {
            // What was stopped has not failed.
            true => Trouble::Stopped,
            false => why.into(),
        }
    }
}

/// A device at work, watched.
struct Watched<'a> {
    memory: &'a mut RunMemory,
    leave: Leave<'a>,
    layer_began: &'a Cell<Instant>,
    random: SplitMix64,
    /// The row of this layer that is computed again.
    chosen: Option<Place>,
}

impl<'a> Watched<'a> {
    fn new(memory: &'a mut RunMemory, leave: Leave<'a>, layer_began: &'a Cell<Instant>) -> Self {
        Self {
            memory,
            leave,
            layer_began,
            random: SplitMix64::new(crate::random()),
            chosen: None,
        }
    }

    /// The rows that one is computed from, as they are now.
    fn parents(&mut self, job: &Job, place: Place) -> Result<Vec<Row>, Trouble> {
        let parents = job.parents(place).into_iter();
        parents.map(|parent| self.row(parent.row)).collect()
    }

    /// Whether a row, and the tree over its batch, are what the processor has from these parents.
    fn check(&mut self, job: &Job, place: Place, parents: &[Row], root: &H256) -> Result<(), Trouble> {
        let Place { layer, row } = place;
        let differs = Trouble::Differs { layer, row };
        let [a, b, c, d] = parents else {
            return Err(differs);
        };
        let gathered = job.gather(place, [a, b, c, d].map(|parent| (parent, tag(parent))));
        let made = self.row(row)?;
        let mut columns = (0..).zip(made);
        if !columns.all(|(column, cell)| cell == job.cell(&gathered, column)) {
            return Err(differs);
        }
        let digest = H256(blake2_256(&made.map(|cell| cell as u8)));
        match self.is_in_tree(job, place, &digest, root)? {
            true => Ok(()),
            false => Err(differs),
        }
    }

    /// Whether a row's digest is at its place under the root of its batch. The trees of all layers are made
    /// alike, so of large batches one is made again whole; in others the row's way is held against the root:
    /// what is beside it is the device's own, but was hashed once more for that.
    fn is_in_tree(&mut self, job: &Job, place: Place, digest: &H256, root: &H256) -> Result<bool, Trouble> {
        let rows = job.plan().batch_rows();
        let index = place.row.checked_rem(rows).unwrap_or_default();
        if place.layer > 1 && rows > SMALL_BATCH {
            let proofs = self.proofs(&[index])?;
            let proof = proofs.first();
            return Ok(proof.is_some_and(|proof| proof.verify(root, digest, index, rows)));
        }
        let digests = self.digests()?;
        let threads = available_parallelism().unwrap_or(NonZero::<usize>::MIN);
        Ok(digests.get(index as usize) == Some(digest) && Tree::new(&digests, threads).root() == *root)
    }
}

impl Memory for Watched<'_> {
    type Error = Trouble;

    fn fill(&mut self, job: &Job) -> Result<(), Trouble> {
        self.leave.ask()?;
        let filled = self.memory.fill(job);
        filled.map_err(|why| self.leave.trouble(why))
    }

    fn step(&mut self, job: &Job, layer: u32, batch: u32) -> Result<H256, Trouble> {
        self.leave.ask()?;
        if batch == 0 {
            self.layer_began.set(Instant::now());
            let is_looked_at = layer <= LAYERS_MIN || layer.is_multiple_of(LAYERS_MIN);
            let row = u32::try_from(self.random.below(job.plan().rows.into())).unwrap_or_default();
            self.chosen = is_looked_at.then_some(Place { layer, row });
        }
        let first = batch.saturating_mul(job.plan().batch_rows());
        let is_here = |place: &Place| {
            let index = place.row.checked_sub(first);
            index.is_some_and(|index| index < job.plan().batch_rows())
        };
        let Some(place) = self.chosen.take_if(|place| is_here(&*place)) else {
            let made = self.memory.step(job, layer, batch);
            return made.map_err(|why| self.leave.trouble(why));
        };
        let parents = self.parents(job, place)?;
        let made = self.memory.step(job, layer, batch);
        let root = made.map_err(|why| self.leave.trouble(why))?;
        self.check(job, place, &parents, &root)?;
        Ok(root)
    }

    fn digests(&mut self) -> Result<Vec<H256>, Trouble> {
        self.memory.digests().map_err(|why| self.leave.trouble(why))
    }

    fn proofs(&mut self, rows: &[u32]) -> Result<Vec<Proof>, Trouble> {
        self.memory.proofs(rows).map_err(|why| self.leave.trouble(why))
    }

    fn row(&mut self, row: u32) -> Result<Row, Trouble> {
        self.memory.row(row).map_err(|why| self.leave.trouble(why))
    }
}

/// A run of this many rows from a seed, as long as `goes_on` says of layers and of how long the last one
/// took.
fn run_watched(
    memory: &mut RunMemory,
    (rows, seed): (u32, &H256),
    leave: Leave<'_>,
    mut goes_on: impl FnMut(u32, Duration) -> bool,
) -> Result<Run, Trouble> {
    let layer_began = Cell::new(Instant::now());
    let mut watched = Watched::new(memory, leave, &layer_began);
    Ok(run(&mut watched, rows, seed, |layers| {
        goes_on(layers, layer_began.get().elapsed())
    })?)
}

/// Operations a second.
fn speed(plan: Plan, took: Duration) -> u64 {
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
    let operations = u128::from(plan.operations()).saturating_mul(1_000_000);
    let speed = operations.checked_div(micros.into()).unwrap_or_default();
    u64::try_from(speed).unwrap_or(u64::MAX)
}

/// How fast the machine is, about, in operations a second.
pub(crate) fn trial((memory, rows_max): (&mut RunMemory, u32), stop: &AtomicBool) -> Result<u64, Trouble> {
    let seed = H256(blake2_256(&crate::random().to_le_bytes()));
    let leave = Leave { stop, until: None };
    let mut rows = BATCHES;
    loop {
        let began = Instant::now();
        let made = run_watched(memory, (rows, &seed), leave, |_, _| false)?;
        let took = began.elapsed();
        let more = rows.saturating_mul(4);
        if took >= TRIAL || more > rows_max.min(ROWS_MAX) {
            return Ok(speed(made.job().plan(), took));
        }
        rows = more;
    }
}

/// How many rows a run of so long a time has: no more than there is memory for, and so many that twice the
/// layers fit into the time that there have to be.
fn rows(rows_max: u32, speed: u64, time: Duration) -> Option<u32> {
    let plan = |rows| Plan {
        rows,
        layers: LAYERS_MIN,
    };
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let operations = u128::from(speed).saturating_mul(micros.into()) / 1_000_000;
    let of_a_row = u128::from(plan(1).operations()).saturating_mul(ROOM);
    if operations < u128::from(plan(BATCHES).operations()) {
        return None;
    }
    let fit = operations.checked_div(of_a_row).unwrap_or_default();
    let fit = u32::try_from(fit).unwrap_or(u32::MAX);
    let rows = fit.min(rows_max).clamp(BATCHES, ROWS_MAX);
    rows.checked_div(BATCHES)
        .map(|batch| batch.saturating_mul(BATCHES))
}

/// Makes a run that ends at `until`, by a speed that was measured before. Returns it with the speed that it
/// shows by itself.
pub(crate) fn make(
    (mut memory, rows_max): (RunMemory, u32),
    (seed, known): (&H256, u64),
    until: Instant,
    stop: &AtomicBool,
) -> Result<(Run, u64), Trouble> {
    let began = Instant::now();
    let rows = rows(rows_max, known, until.saturating_duration_since(began)).ok_or(Trouble::TooSlow)?;
    let leave = Leave { stop, until: None };
    let run = run_watched(&mut memory, (rows, seed), leave, |_, took| {
        Instant::now().checked_add(took).is_some_and(|then| then <= until)
    })?;
    let speed = speed(run.job().plan(), began.elapsed());
    Ok((run, speed))
}

/// Makes a run again of which only its size is left, and its root.
pub(crate) fn remake(
    memory: &mut RunMemory,
    (plan, seed, root): (Plan, &H256, &H256),
    leave: Leave<'_>,
) -> Result<Run, Trouble> {
    let run = run_watched(memory, (plan.rows, seed), leave, |layers, _| layers < plan.layers)?;
    match run.root() == root && run.job().plan() == plan {
        true => Ok(run),
        false => Err(Trouble::Unsound),
    }
}

/// What shows samples of a run, checked as the chain checks it.
pub(crate) fn show(
    memory: &mut RunMemory,
    run: &Run,
    samples: &[Sample; SAMPLES],
    leave: Leave<'_>,
) -> Result<Openings, Trouble> {
    let layer_began = Cell::new(Instant::now());
    let mut watched = Watched::new(memory, leave, &layer_began);
    let openings = open(&mut watched, run, samples)?;
    verify_all(run.job(), run.root(), samples, &openings).map_err(|_| Trouble::Unsound)?;
    Ok(openings)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::{Arc, Mutex};

    use surety_gpu_proofs::{OutOfMemory, Processor};

    use super::*;
    use crate::in_words;

    /// A processor that says what is asked of it beside rows. Its roots may be wrong.
    struct Saying {
        inner: Processor,
        said: Arc<Mutex<Vec<&'static str>>>,
        is_wrong: bool,
        is_full: bool,
    }

    impl Saying {
        fn memory(is_wrong: bool) -> (RunMemory, Arc<Mutex<Vec<&'static str>>>) {
            let said = Arc::default();
            let saying = Self {
                inner: Processor::new(available_parallelism().unwrap()),
                said: Arc::clone(&said),
                is_wrong,
                is_full: false,
            };
            (in_words(saying, |_| Failed::Device(String::new())), said)
        }
    }

    impl Memory for Saying {
        type Error = OutOfMemory;

        fn fill(&mut self, job: &Job) -> Result<(), Self::Error> {
            match self.is_full {
                true => Err(OutOfMemory),
                false => self.inner.fill(job),
            }
        }

        fn step(&mut self, job: &Job, layer: u32, batch: u32) -> Result<H256, Self::Error> {
            let root = self.inner.step(job, layer, batch)?;
            Ok(if self.is_wrong { H256::zero() } else { root })
        }

        fn digests(&mut self) -> Result<Vec<H256>, Self::Error> {
            self.said.lock().unwrap().push("digests");
            self.inner.digests()
        }

        fn proofs(&mut self, rows: &[u32]) -> Result<Vec<Proof>, Self::Error> {
            self.said.lock().unwrap().push("proofs");
            self.inner.proofs(rows)
        }

        fn row(&mut self, row: u32) -> Result<Row, Self::Error> {
            self.inner.row(row)
        }
    }

    /// Computes a layer, up to the row of it that is looked at.
    fn look(memory: &mut RunMemory, job: &Job, layer: u32) -> Result<(), Trouble> {
        let stop = AtomicBool::new(false);
        let leave = Leave {
            stop: &stop,
            until: None,
        };
        let began = Cell::new(Instant::now());
        let mut watched = Watched::new(memory, leave, &began);
        for batch in 0..BATCHES {
            watched.step(job, layer, batch)?;
            if watched.chosen.is_none() {
                return Ok(());
            }
        }
        panic!("no row of layer {layer} was looked at");
    }

    #[test]
    fn of_large_batches_one_tree_is_made_again_and_ways_through_the_others() {
        let job = |batch_rows| {
            let plan = Plan {
                rows: batch_rows * BATCHES,
                layers: LAYERS_MIN,
            };
            Job::new(plan, &H256::zero())
        };
        let large = SMALL_BATCH + 1;
        for (batch_rows, later) in [(1, "digests"), (large, "proofs")] {
            let job = job(batch_rows);
            let (mut right, said) = Saying::memory(false);
            right.fill(&job).unwrap();
            look(&mut right, &job, 1).unwrap();
            look(&mut right, &job, 2).unwrap();
            assert_eq!(*said.lock().unwrap(), ["digests", later], "{batch_rows} rows");
            // Its rows are right, and its digests.
            let (mut wrong, said) = Saying::memory(true);
            wrong.fill(&job).unwrap();
            for layer in [1, 2] {
                let looked = look(&mut wrong, &job, layer);
                assert!(matches!(looked, Err(Trouble::Differs { layer: at, .. }) if at == layer));
            }
            assert_eq!(*said.lock().unwrap(), ["digests", later]);
        }
    }

    #[test]
    fn a_run_that_finds_no_memory_is_not_one_of_a_device_that_fails() {
        let full = Saying {
            inner: Processor::new(NonZero::<usize>::MIN),
            said: Arc::default(),
            is_wrong: false,
            is_full: true,
        };
        let mut memory = in_words(full, |_| Failed::Memory("others have it".into()));
        let plan = Plan {
            rows: BATCHES,
            layers: LAYERS_MIN,
        };
        let leave = Leave {
            stop: &AtomicBool::new(false),
            until: None,
        };
        let zero = H256::zero();
        let made = remake(&mut memory, (plan, &zero, &zero), leave);
        assert_eq!(made.err(), Some(Trouble::Memory("others have it".into())));
    }

    #[test]
    fn nothing_is_computed_after_the_time_for_it() {
        let mut memory = in_words(Processor::new(NonZero::<usize>::MIN), |_| {
            Failed::Device(String::new())
        });
        let plan = Plan {
            rows: BATCHES,
            layers: LAYERS_MIN,
        };
        let stop = AtomicBool::new(false);
        let leave = |until| Leave {
            stop: &stop,
            until: Some(until),
        };
        let mut made = |until| {
            let zero = H256::zero();
            remake(&mut memory, (plan, &zero, &zero), leave(until)).err()
        };
        let now = Instant::now();
        assert_eq!(made(now), Some(Trouble::Late));
        // It is none of a root of zeros.
        assert_eq!(made(now + Duration::from_secs(600)), Some(Trouble::Unsound));
    }

    #[test]
    fn runs_are_as_large_as_memory_and_time_allow_and_none_is_begun_that_cannot_end() {
        let second = Duration::from_secs(1);
        let shortest = Plan {
            rows: BATCHES,
            layers: LAYERS_MIN,
        };
        let operations = shortest.operations();
        assert_eq!(rows(1 << 20, operations - 1, second), None);
        assert_eq!(rows(1 << 20, operations, second), Some(BATCHES));
        assert_eq!(rows(1 << 20, operations * 20, second), Some(BATCHES * 10));
        assert_eq!(rows(BATCHES * 3 + 5, operations * 20, second), Some(BATCHES * 3));
        assert_eq!(rows(u32::MAX, u64::MAX, second * 30), Some(ROWS_MAX));
    }
}
