//! What a trace records, kept while a model runs.

use std::collections::BTreeMap;

use surety_kernels::Rows as Quantised;
use surety_model_trace::{Rows, Step, TraceShape};

use crate::exact::{probe::Probe, trace::place};

/// Keeps the rows of some chunks and strides of one sequence.
pub(super) struct Capture {
    shape: TraceShape,
    /// Position of the first row of the pass that is going on.
    first: u32,
    /// By chunk and stride.
    kept: BTreeMap<(u32, u32), Vec<f32>>,
}

impl Capture {
    pub(super) fn new(shape: TraceShape, wanted: impl Iterator<Item = (u32, u32)>) -> Self {
        Self {
            shape,
            first: 0,
            kept: wanted.map(|place| (place, Vec::new())).collect(),
        }
    }

    /// Says where the next pass starts.
    pub(super) fn start_at(&mut self, position: u32) {
        self.first = position;
    }

    /// Gives away what was kept of a chunk and stride; nothing when it was not asked for.
    pub(super) fn take(&mut self, chunk: u32, stride: u32) -> Option<Rows> {
        Some(Rows::Real {
            width: self.shape.row_bytes(stride)? / 4,
            values: self.kept.remove(&(chunk, stride))?,
        })
    }

    /// Nothing where it was not asked for.
    fn keep(&mut self, stride: u32, at: u32, position: u32, row: &[f32]) -> Option<()> {
        let chunk = position.checked_div(self.shape.chunk).unwrap_or(0);
        let row_number = position.checked_rem(self.shape.chunk).unwrap_or(position) as usize;
        let width = self.shape.row_bytes(stride)? as usize / 4;
        let kept = self.kept.get_mut(&(chunk, stride))?;
        kept.resize(kept.len().max((row_number + 1) * width), 0.0);
        let into = kept.get_mut(row_number * width + at as usize / 4..)?;
        into.get_mut(..row.len())?.copy_from_slice(row);
        Some(())
    }
}

impl Probe for Capture {
    fn real(&mut self, step: Step, rows: &[f32], width: usize) {
        let Some((stride, at)) = place(&self.shape, step) else {
            return;
        };
        for (position, row) in (self.first..).zip(rows.chunks_exact(width.max(1))) {
            self.keep(stride, at.start, position, row);
        }
    }

    fn quantised(&mut self, _: Step, _: &[f32], _: usize, _: &Quantised) {}
}
