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
    sync::OnceLock,
};

use surety_dispute_game::bisection::{Cell, Trace};
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
    engine::{Sink, report},
    error::EngineError,
};

pub(super) use embed::EmbedWork;
pub(super) use generate::GenerateWork;

/// A job of which parts can be computed again.
pub(super) trait Work: Send {
    /// The leaves of the own trace.
    fn leaves(&mut self, sink: &mut dyn Sink) -> Result<Vec<ContentHash>, EngineError>;

    /// What the own trace records of some parts, in their order.
    fn rows(&mut self, parts: &[Part], sink: &mut dyn Sink) -> Result<Vec<Option<Rows>>, EngineError>;

    /// The output as claimed, where it goes back into the model.
    fn claimed(&self) -> Option<&Rows>;

    /// A tensor of the model.
    fn tensor(&self, tensor: Tensor) -> Option<format::Part<'_, Packed>>;

    /// All of them.
    fn parts(&self) -> Parts<'_, Packed>;
}

/// The own view of a claim's trace. Nothing is computed before it is asked for; what was asked for last is
/// kept, so that a game's next move costs little.
pub struct OwnTrace(Player<Recomputed>);

impl OwnTrace {
    pub(super) fn new(layout: Layout, work: Box<dyn Work>, sink: Box<dyn Sink + Send>) -> Self {
        let records = Recomputed {
            layout: layout.clone(),
            work,
            sink,
            leaves: None,
            rows: BTreeMap::new(),
            weights: OnceLock::new(),
        };
        Self(Player::new(layout, records))
    }

    /// What the claim's trace is made of: the shape of a game about it.
    pub fn layout(&self) -> &Layout {
        self.0.layout()
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

    fn open(&mut self, cell: &Cell) -> Result<Vec<u8>, EngineError> {
        self.0.open(cell).map_err(failed)
    }
}

/// What a trace records, of which a few leaves at a time are in memory.
struct Recomputed {
    layout: Layout,
    work: Box<dyn Work>,
    sink: Box<dyn Sink + Send>,
    leaves: Option<Vec<ContentHash>>,
    rows: BTreeMap<u32, Rows>,
    /// The leaves under the weight root.
    weights: OnceLock<Vec<Digest>>,
}

impl Records for Recomputed {
    type Error = EngineError;

    fn leaves(&mut self) -> Result<&[ContentHash], EngineError> {
        if self.leaves.is_none() {
            self.leaves = Some(self.work.leaves(&mut *self.sink)?);
        }
        Ok(self.leaves.as_deref().unwrap_or_default())
    }

    fn load(&mut self, leaves: &[u32]) -> Result<(), EngineError> {
        let wanted: BTreeSet<u32> = leaves.iter().copied().collect();
        let missing = wanted.iter().filter(|leaf| !self.rows.contains_key(leaf));
        let missing: Vec<u32> = missing.copied().collect();
        if missing.is_empty() {
            return Ok(());
        }
        report(&mut *self.sink, 0, 1)?;
        self.rows.retain(|leaf, _| wanted.contains(leaf));
        let parts: Option<Vec<Part>> = missing.iter().map(|leaf| self.layout.part(*leaf)).collect();
        let parts = parts.ok_or(EngineError::NotInTrace)?;
        let found = self.work.rows(&parts, &mut *self.sink)?;
        let found = missing.into_iter().zip(found);
        self.rows
            .extend(found.filter_map(|(leaf, rows)| Some((leaf, rows?))));
        Ok(())
    }

    fn rows(&self, leaf: u32) -> Option<&Rows> {
        self.rows.get(&leaf)
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

fn digests<L: LinearRows + Sync>(parts: &Parts<'_, L>) -> Vec<Digest> {
    parts.leaves().into_iter().map(|leaf| leaf.0).collect()
}
