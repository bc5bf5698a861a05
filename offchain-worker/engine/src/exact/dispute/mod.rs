//! The own view of a claim's trace, for whoever has to defend or to challenge it.
//!
//! What a trace records is computed again by the fast kernels, just the leaves that are asked for; what is
//! within a leaf by the definition of each cell, in `surety-model-trace`.

mod capture;
mod embed;
mod generate;
mod tensors;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, OnceLock, PoisonError},
};

use surety_dispute_game::bisection::{Cell, Level, Place, Shape, Trace};
use surety_kernels::Packed;
use surety_model_trace::{Layout, Part, Player, PlayerError, Records, Rows, Tensor, WeightRow};
use surety_models::{
    format::{self, Parts},
    weights::LinearRows,
};
use surety_proofs::{Proof, WeightOpening};
use surety_types::ContentHash;

use super::trace::hash::{Digest, path};
use crate::{
    engine::{Difference, Sink, report},
    error::EngineError,
};

pub(super) use embed::EmbedWork;
pub(super) use generate::GenerateWork;

/// A job of which parts can be computed again.
pub(super) trait Work: Send + Sync {
    /// The leaves of the own trace.
    fn leaves(&mut self, sink: &mut dyn Sink) -> Result<Vec<ContentHash>, EngineError>;

    /// How many bytes of rows one pass gives, where one gives those of all leaves.
    fn bytes_of_pass(&self) -> Option<usize> {
        None
    }

    /// What the own trace records of some parts, in their order.
    fn rows(&mut self, parts: &[Part], sink: &mut dyn Sink) -> Result<Vec<Option<Rows>>, EngineError>;

    /// The output as claimed, where it goes back into the model.
    fn claimed(&self) -> Option<&Rows>;

    /// A tensor of the model.
    fn tensor(&self, tensor: Tensor) -> Option<format::Part<'_, Packed>>;

    /// All of them.
    fn parts(&self) -> Parts<'_, Packed>;
}

/// Most bytes of rows that are kept of a trace, but for those that are needed at once.
/// A pass over a long answer of a large model gives hundreds of MiB, and would be made anew for each game.
const ROWS_BYTES_MAX: usize = 1 << 30;
/// Most bytes of leaves that were unfolded and are not just being looked at, and as many of their digests.
const UNFOLDED_BYTES_MAX: usize = 256 << 20;

/// The own view of a claim's trace. Nothing is computed before it is asked for; what was asked for last is
/// kept, so that a game's next move costs little, and the next game about the same claim as well.
pub struct OwnTrace(Player<Recomputed>, Option<Difference>);

impl OwnTrace {
    /// Leaves that are known, and are as many as the trace has, are not computed.
    pub(super) fn new(
        layout: Layout,
        work: Box<dyn Work>,
        sink: Box<dyn Sink + Send>,
        leaves: Option<Vec<ContentHash>>,
    ) -> Self {
        let records = Recomputed {
            leaves: leaves.filter(|leaves| leaves.len() == layout.leaves() as usize),
            layout: layout.clone(),
            work,
            sink: Mutex::new(sink),
            rows: BTreeMap::new(),
            loads: 0,
            weights: OnceLock::new(),
        };
        Self(Player::new(layout, records).keeping(UNFOLDED_BYTES_MAX), None)
    }

    /// Of a claim of which not all is known: what is not is as the claim has it.
    pub(super) fn differing(mut self, differs: Option<Difference>) -> Self {
        self.1 = differs;
        self
    }

    /// What the claim's trace is made of: the shape of a game about it.
    pub fn layout(&self) -> &Layout {
        self.0.layout()
    }

    /// Bytes that rows take.
    pub fn row_bytes(&self) -> usize {
        let rows = self.0.records().rows.values();
        self.0.unfolded_bytes() + rows.map(|loaded| loaded.rows.memory()).sum::<usize>()
    }

    /// Gives the memory back that rows take. Leaves stay: they are what takes a whole pass to compute.
    pub fn forget_rows(&mut self) {
        self.0.fold().rows = BTreeMap::new();
    }

    /// Has this side play for a wrong trace, whose root is the answer: see `Player::alter`. For
    /// demonstrations.
    ///
    /// # Errors
    /// When there is no such byte, or the trace cannot be computed.
    pub fn alter(&mut self, leaf: u32, step: u32, row: u32, byte: u32) -> Result<ContentHash, EngineError> {
        self.0.alter(leaf, step, row, byte).map_err(failed)
    }
}

fn failed(error: PlayerError<EngineError>) -> EngineError {
    match error {
        PlayerError::Records(error) => error,
        PlayerError::Missing => EngineError::NotInTrace,
    }
}

impl Trace for OwnTrace {
    type Error = EngineError;

    fn leaves(&mut self) -> Result<&[ContentHash], EngineError> {
        self.0.leaves().map_err(failed)
    }

    fn steps(&mut self, leaf: u32) -> Result<Vec<ContentHash>, EngineError> {
        self.0.steps(leaf).map_err(failed)
    }

    fn rows(&mut self, leaf: u32, step: u32) -> Result<Vec<ContentHash>, EngineError> {
        self.0.rows(leaf, step).map_err(failed)
    }

    fn row(&mut self, leaf: u32, step: u32, row: u32) -> Result<Vec<u8>, EngineError> {
        self.0.row(leaf, step, row).map_err(failed)
    }

    fn difference(&self, place: &Place) -> Option<u32> {
        let differs = self.1?;
        match place.level {
            Level::Leaves => Some(differs.leaf),
            // Of the output, whose only row has them.
            Level::Segments if place.leaf.checked_add(1)? == self.layout().leaves() => Some(differs.segment),
            _ => None,
        }
    }

    fn open(&mut self, cell: &Cell) -> Result<Vec<u8>, EngineError> {
        self.0.open(cell).map_err(failed)
    }
}

/// Rows of a leaf in memory.
struct Loaded {
    rows: Rows,
    /// When they were asked for last.
    used: u64,
}

/// What a trace records, of which as many leaves are in memory as there is room for.
struct Recomputed {
    layout: Layout,
    work: Box<dyn Work>,
    /// Of one question at a time.
    sink: Mutex<Box<dyn Sink + Send>>,
    leaves: Option<Vec<ContentHash>>,
    rows: BTreeMap<u32, Loaded>,
    /// How often leaves were asked for.
    loads: u64,
    /// The leaves under the weight root.
    weights: OnceLock<Vec<Digest>>,
}

impl Records for Recomputed {
    type Error = EngineError;

    fn leaves(&mut self) -> Result<&[ContentHash], EngineError> {
        if self.leaves.is_none() {
            let sink = self.sink.get_mut().unwrap_or_else(PoisonError::into_inner);
            self.leaves = Some(self.work.leaves(&mut **sink)?);
        }
        Ok(self.leaves.as_deref().unwrap_or_default())
    }

    fn load(&mut self, leaves: &[u32]) -> Result<(), EngineError> {
        let wanted: BTreeSet<u32> = leaves.iter().copied().collect();
        self.loads += 1;
        let mut missing = Vec::new();
        for leaf in &wanted {
            match self.rows.get_mut(leaf) {
                Some(loaded) => loaded.used = self.loads,
                None => missing.push(*leaf),
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        missing.extend(self.beside(&missing, &wanted));
        let parts: Option<Vec<Part>> = missing.iter().map(|leaf| self.layout.part(*leaf)).collect();
        let parts = parts.ok_or(EngineError::NotInTrace)?;
        let sink = self.sink.get_mut().unwrap_or_else(PoisonError::into_inner);
        report(&mut **sink, 0, 1)?;
        let found = self.work.rows(&parts, &mut **sink)?;
        let used = self.loads;
        let found = missing.into_iter().zip(found);
        self.rows
            .extend(found.filter_map(|(leaf, rows)| Some((leaf, Loaded { rows: rows?, used }))));
        self.make_room(&wanted);
        Ok(())
    }

    fn rows(&self, leaf: u32) -> Option<&Rows> {
        self.rows.get(&leaf).map(|loaded| &loaded.rows)
    }

    fn output(&self) -> Option<&Rows> {
        self.work.claimed()
    }

    fn weights(&self, tensor: Tensor, row: u32) -> Option<WeightRow<'_>> {
        let row = self.work.tensor(tensor)?.row(row as usize)?;
        Some(WeightRow {
            q: row.q.into(),
            scales: row.scales.into(),
            bias: row.bias,
        })
    }

    fn weight_opening(&self, tensor: Tensor, row: u32) -> Option<WeightOpening> {
        let parts = self.work.parts();
        let name = tensor.name(self.layout.facts().family)?;
        let index = parts.leaf_of(&name, row as usize)?;
        let leaves = self.weights.get_or_init(|| digests(&parts));
        Some(WeightOpening {
            index: u32::try_from(index).ok()?,
            leaves: u32::try_from(leaves.len()).ok()?,
            proof: Proof(path(leaves, index).try_into().ok()?),
        })
    }
}

impl Recomputed {
    /// Leaves that come out of the same pass and are not at hand: games about one claim go into different
    /// ones, and no further pass is made for them. None where there is no room for them all.
    fn beside(&self, missing: &[u32], wanted: &BTreeSet<u32>) -> Vec<u32> {
        let is_of_pass = |leaf: &u32| matches!(self.layout.part(*leaf), Some(Part::Rows { .. }));
        let fits = |bytes: usize| bytes <= ROWS_BYTES_MAX;
        if !missing.iter().any(is_of_pass) || !self.work.bytes_of_pass().is_some_and(fits) {
            return Vec::new();
        }
        let all = (0..self.layout.leaves()).filter(is_of_pass);
        all.filter(|leaf| !self.rows.contains_key(leaf) && !wanted.contains(leaf))
            .collect()
    }

    /// Drops what was not asked for for longest, and is not wanted now.
    fn make_room(&mut self, wanted: &BTreeSet<u32>) {
        let mut bytes: usize = self.rows.values().map(|loaded| loaded.rows.memory()).sum();
        let others = self.rows.iter().filter(|(leaf, _)| !wanted.contains(leaf));
        let mut others: Vec<_> = others.map(|(leaf, loaded)| (loaded.used, *leaf)).collect();
        others.sort_unstable();
        for (_, leaf) in others {
            if bytes <= ROWS_BYTES_MAX {
                break;
            }
            let dropped = self.rows.remove(&leaf);
            bytes -= dropped.map_or(0, |loaded| loaded.rows.memory());
        }
    }
}

fn digests<L: LinearRows + Sync>(parts: &Parts<'_, L>) -> Vec<Digest> {
    parts.leaves().into_iter().map(|leaf| leaf.0).collect()
}
