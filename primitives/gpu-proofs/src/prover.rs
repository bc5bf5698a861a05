//! How a provider makes a run, and shows samples of it: in two passes, because the rows of all layers are far
//! more than it can keep.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "places in a run whose size was checked"
)]

use std::{collections::BTreeMap, num::NonZero, thread};

use sp_core::H256;
use surety_proofs::{Proof, Tree, merkle_root};

use crate::{
    BATCHES, LAYERS_MAX, LAYERS_MIN, Opening, Plan, SAMPLES,
    job::{Job, Place, Row},
    opening::{Openings, ShownRow},
    sample::Sample,
};

/// Where a state is held, and computed on: a device, or [`crate::Processor`].
pub trait Memory {
    /// Why it cannot be.
    type Error;

    /// Holds layer 0 of the job, and what else a run of it takes.
    ///
    /// # Errors
    /// For example when there is not so much memory.
    fn fill(&mut self, job: &Job) -> Result<(), Self::Error>;

    /// Computes the rows of a batch from the state as it is, then replaces them. Returns [`merkle_root`] of
    /// `blake2_256` of each of them.
    ///
    /// # Errors
    /// When it cannot.
    fn step(&mut self, job: &Job, layer: u32, batch: u32) -> Result<H256, Self::Error>;

    /// `blake2_256` of each row of the batch that was computed last.
    ///
    /// # Errors
    /// When it cannot be read.
    fn digests(&mut self) -> Result<Vec<H256>, Self::Error>;

    /// Of each of these rows of the batch that was computed last, counted from its first: what
    /// [`Proof::new`] gives among the [`Memory::digests`], in their order, without those of rows that it has
    /// not. Here the processor hashes all of them, once; a device that has made the tree has the most of it.
    ///
    /// # Errors
    /// When they cannot be read.
    fn proofs(&mut self, rows: &[u32]) -> Result<Vec<Proof>, Self::Error> {
        Ok(proofs(&self.digests()?, rows, all_threads()))
    }

    /// A row of the state as it is.
    ///
    /// # Errors
    /// When it cannot be read.
    fn row(&mut self, row: u32) -> Result<Row, Self::Error>;
}

impl<M: Memory + ?Sized> Memory for Box<M> {
    type Error = M::Error;

    fn fill(&mut self, job: &Job) -> Result<(), Self::Error> {
        (**self).fill(job)
    }

    fn step(&mut self, job: &Job, layer: u32, batch: u32) -> Result<H256, Self::Error> {
        (**self).step(job, layer, batch)
    }

    fn digests(&mut self) -> Result<Vec<H256>, Self::Error> {
        (**self).digests()
    }

    fn proofs(&mut self, rows: &[u32]) -> Result<Vec<Proof>, Self::Error> {
        (**self).proofs(rows)
    }

    fn row(&mut self, row: u32) -> Result<Row, Self::Error> {
        (**self).row(row)
    }
}

fn all_threads() -> NonZero<usize> {
    thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN)
}

/// The proofs of these of a batch's rows that it has, by one tree on so many threads.
pub(crate) fn proofs(digests: &[H256], rows: &[u32], threads: NonZero<usize>) -> Vec<Proof> {
    let tree = Tree::new(digests, threads);
    rows.iter().filter_map(|row| tree.proof(digests, *row)).collect()
}

/// Why there is no run, or nothing to show of it.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure<E> {
    /// No run has so many rows: take a multiple of [`BATCHES`], at most [`crate::ROWS_MAX`].
    Plan,
    /// The memory's own.
    Memory(E),
    /// The second pass has another result than the first: the device errs.
    Differs(Place),
    /// What is asked for is no part of the run.
    NoSuchSample,
}

/// A run that was made.
#[derive(Clone, Debug)]
pub struct Run {
    job: Job,
    root: H256,
    batch_roots: Vec<H256>,
}

impl Run {
    /// What it computed.
    pub const fn job(&self) -> &Job {
        &self.job
    }

    /// What it commits to.
    pub const fn root(&self) -> &H256 {
        &self.root
    }
}

/// Makes a run over `rows` rows. After each layer from the [`LAYERS_MIN`]-th on, `has_time` is told how many
/// there are and says whether there shall be one more.
///
/// # Errors
/// See [`Failure`].
pub fn run<M: Memory>(
    memory: &mut M,
    rows: u32,
    seed: &H256,
    mut has_time: impl FnMut(u32) -> bool,
) -> Result<Run, Failure<M::Error>> {
    let mut plan = Plan {
        rows,
        layers: LAYERS_MIN,
    };
    if !plan.is_sound() {
        return Err(Failure::Plan);
    }
    let mut job = Job::new(plan, seed);
    memory.fill(&job).map_err(Failure::Memory)?;
    let mut batch_roots = Vec::new();
    let mut layer = 1;
    loop {
        for batch in 0..BATCHES {
            batch_roots.push(memory.step(&job, layer, batch).map_err(Failure::Memory)?);
        }
        plan.layers = layer.max(LAYERS_MIN);
        let next = Plan {
            layers: plan.layers + 1,
            ..plan
        };
        if layer >= LAYERS_MIN && !(layer < LAYERS_MAX && next.is_sound() && has_time(layer)) {
            break;
        }
        layer += 1;
    }
    job.plan = plan;
    Ok(Run {
        job,
        root: merkle_root(batch_roots.iter().copied()),
        batch_roots,
    })
}

/// Makes the run again, as far as it has to be, and shows what was drawn.
///
/// # Errors
/// See [`Failure`].
pub fn open<M: Memory>(
    memory: &mut M,
    run: &Run,
    samples: &[Sample; SAMPLES],
) -> Result<Openings, Failure<M::Error>> {
    let job = &run.job;
    let mut wanted: BTreeMap<(u32, u32), Vec<Place>> = BTreeMap::new();
    for sample in samples {
        for place in job.parents(sample.place).into_iter().chain([sample.place]) {
            if place.layer > 0 {
                let batch = (place.layer, job.batch_of(place.row));
                wanted.entry(batch).or_default().push(place);
            }
        }
    }
    let mut shown = BTreeMap::new();
    let tree = Tree::new(&run.batch_roots, all_threads());
    memory.fill(job).map_err(Failure::Memory)?;
    let last = wanted.last_key_value().map_or(0, |((layer, _), _)| *layer);
    for layer in 1..=last {
        for batch in 0..BATCHES {
            let root = memory.step(job, layer, batch).map_err(Failure::Memory)?;
            let number = (layer - 1) * BATCHES + batch;
            if run.batch_roots.get(number as usize) != Some(&root) {
                let row = batch * job.plan().batch_rows();
                return Err(Failure::Differs(Place { layer, row }));
            }
            if let Some(places) = wanted.get(&(layer, batch)) {
                let in_run = tree.proof(&run.batch_roots, number);
                let in_run = in_run.ok_or(Failure::NoSuchSample)?;
                show(memory, job, (places, &in_run), &mut shown)?;
            }
        }
    }
    let of = |place: &Place| shown.get(place).cloned().ok_or(Failure::NoSuchSample);
    let mut openings = Openings::new();
    for sample in samples {
        let mut opening = Opening {
            row: of(&sample.place)?,
            parents: Default::default(),
        };
        for place in job.parents(sample.place) {
            if place.layer > 0 {
                let parent = of(&place)?;
                opening
                    .parents
                    .try_push(parent)
                    .map_err(|_| Failure::NoSuchSample)?;
            }
        }
        openings.try_push(opening).map_err(|_| Failure::NoSuchSample)?;
    }
    Ok(openings)
}

/// Reads rows of the batch that was computed last.
fn show<M: Memory>(
    memory: &mut M,
    job: &Job,
    (places, in_run): (&[Place], &Proof),
    shown: &mut BTreeMap<Place, ShownRow>,
) -> Result<(), Failure<M::Error>> {
    let within: Vec<_> = places
        .iter()
        .map(|place| place.row % job.plan().batch_rows())
        .collect();
    let proofs = memory.proofs(&within).map_err(Failure::Memory)?;
    if proofs.len() != places.len() {
        return Err(Failure::NoSuchSample);
    }
    for (place, in_batch) in places.iter().zip(proofs) {
        let row = memory.row(place.row).map_err(Failure::Memory)?;
        let row = ShownRow {
            bytes: row.map(|cell| cell as u8),
            in_batch,
            in_run: in_run.clone(),
        };
        shown.insert(*place, row);
    }
    Ok(())
}
