//! What a trace records, kept while a model runs.

use std::{collections::BTreeMap, ops::Range};

use surety_dispute_game::bisection::RowsShape;
use surety_kernels::{Heads, Rows as Quantized};
use surety_model_trace::{Rows, Step, TraceShape};

use crate::exact::{
    probe::Probe,
    trace::{place, place_of_heads},
};

/// Keeps the rows of some chunks and strides of one sequence.
pub(super) struct Capture {
    shape: TraceShape,
    /// Position of the first row of the pass that is going on.
    first: u32,
    /// By chunk and stride.
    kept: BTreeMap<(u32, u32), Vec<u8>>,
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
        let bytes = self.kept.remove(&(chunk, stride))?;
        let row_bytes = self.shape.row_bytes(stride)?;
        let shape = RowsShape {
            rows: u32::try_from(bytes.len()).ok()?.checked_div(row_bytes)?,
            row_bytes,
            quantized: self.shape.quantized(stride).filter(|bytes| *bytes > 0),
        };
        Rows::recorded(&shape, &bytes)
    }

    /// Nothing where it was not asked for.
    fn keep<const BYTES: usize>(
        &mut self,
        stride: u32,
        at: &Range<u32>,
        position: u32,
        row: impl Iterator<Item = [u8; BYTES]>,
    ) -> Option<()> {
        let chunk = position.checked_div(self.shape.chunk).unwrap_or(0);
        let row_number = position.checked_rem(self.shape.chunk).unwrap_or(position) as usize;
        let row_bytes = self.shape.row_bytes(stride)? as usize;
        let kept = self.kept.get_mut(&(chunk, stride))?;
        let start = row_number * row_bytes;
        kept.resize(kept.len().max(start + row_bytes), 0);
        let into = kept.get_mut(start + at.start as usize..start + at.end as usize)?;
        for (bytes, value) in into.as_chunks_mut::<BYTES>().0.iter_mut().zip(row) {
            *bytes = value;
        }
        Some(())
    }
}

impl Probe for Capture {
    fn wants(&self, step: Step) -> bool {
        let of_heads = place_of_heads(&self.shape, step).map(|(stride, _)| stride);
        let stride = place(&self.shape, step).map(|(stride, _)| stride).or(of_heads);
        stride.is_some_and(|stride| self.kept.keys().any(|(_, kept)| *kept == stride))
    }

    fn real(&mut self, step: Step, rows: &[f32], width: usize) {
        let Some((stride, at)) = place(&self.shape, step) else {
            return;
        };
        for (position, row) in (self.first..).zip(rows.chunks_exact(width.max(1))) {
            self.keep(stride, &at, position, row.iter().map(|value| value.to_le_bytes()));
        }
    }

    fn quantized(&mut self, _: Step, _: &[f32], _: usize, _: &Quantized) {}

    fn heads(&mut self, step: Step, heads: &Heads) {
        let Some((stride, at)) = place_of_heads(&self.shape, step) else {
            return;
        };
        let rows = (0..heads.all().count()).filter_map(|row| heads.all().row(row));
        for (position, (q, scales)) in (self.first..).zip(rows) {
            self.keep(
                stride,
                &at.q,
                position,
                q.flatten().map(|value| value.to_le_bytes()),
            );
            let scales = scales.iter().map(|scale| scale.to_le_bytes());
            self.keep(stride, &at.scales, position, scales);
        }
    }
}
