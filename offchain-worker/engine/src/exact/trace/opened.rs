//! One leaf of a trace, recomputed with everything that led to it.

use std::ops::Range;

use surety_exact::groups;
use surety_kernels::Rows;
use surety_types::ContentHash;

use super::{
    hash::{hash_all, path, roots, row_digests, Digest, SEGMENT_BYTES},
    Shape,
};
use crate::exact::probe::{Op, Probe, Step};

/// What a step gave: rows of bytes of one length. Numbers are little-endian `f32`; a quantised row is its values, each
/// a byte, followed by its scales.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedRows {
    row_bytes: usize,
    bytes: Vec<u8>,
    digests: Vec<Digest>,
}

impl OpenedRows {
    fn new(row_bytes: usize, bytes: Vec<u8>) -> Self {
        Self {
            digests: row_digests(&bytes, row_bytes),
            row_bytes,
            bytes,
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.digests.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.digests.is_empty()
    }

    /// Merkle root over the rows' digests.
    pub fn root(&self) -> ContentHash {
        let root = roots(&self.digests, vec![self.digests.len()]);
        ContentHash::from(root.first().copied().unwrap_or_default())
    }

    /// Each row's digest.
    pub fn digests(&self) -> impl ExactSizeIterator<Item = ContentHash> + '_ {
        self.digests.iter().map(|digest| ContentHash::from(*digest))
    }

    /// A row's bytes.
    pub fn row(&self, row: usize) -> Option<&[u8]> {
        self.bytes.chunks(self.row_bytes.max(1)).nth(row)
    }

    /// What shows that a row's digest is under the root: siblings on the way up, lowest first.
    pub fn row_path(&self, row: usize) -> Vec<ContentHash> {
        path(&self.digests, row)
    }

    /// A piece of a row, at most 1 KiB, and what shows that it is under the row's digest.
    pub fn segment(&self, row: usize, segment: usize) -> Option<(&[u8], Vec<ContentHash>)> {
        let row = self.row(row)?;
        let bytes = row.chunks(SEGMENT_BYTES).nth(segment)?;
        let segments = hash_all(row.chunks(SEGMENT_BYTES));
        Some((bytes, path(&segments, segment)))
    }
}

/// One step of a leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedStep {
    /// Which one.
    pub step: Step,
    /// Numbers in a row, or quantised values.
    pub width: usize,
    /// What it gave.
    pub rows: OpenedRows,
}

/// A leaf and its steps, in the order in which they were computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Which sequence it belongs to.
    pub sequence: u32,
    /// Rows of the sequence that it is about.
    pub positions: Range<u32>,
    /// Layers that it is about.
    pub layers: Range<u32>,
    /// The rows whose root is the leaf: states or vectors, with keys and values.
    pub leaf: OpenedRows,
    /// Every step in these layers, for these rows.
    pub steps: Vec<OpenedStep>,
}

/// Writes down every step of some layers.
pub(crate) struct DeepRecorder {
    layers: Range<usize>,
    steps: Vec<OpenedStep>,
}

impl DeepRecorder {
    pub(crate) fn new(layers: Range<usize>) -> Self {
        Self {
            layers,
            steps: Vec::new(),
        }
    }

    /// The leaf of one pass, whose rows are the sequence's `positions`.
    pub(crate) fn opened(self, shape: &Shape, sequence: u32, positions: Range<u32>) -> Opened {
        let of = |layer, op| self.steps.iter().find(|opened| opened.step == Step { layer, op });
        let last = self.layers.end.saturating_sub(1);
        let mut parts = vec![of(last, Op::Pool).or(of(last, Op::Sum))];
        if !shape.pools() {
            for layer in self.layers.clone() {
                parts.extend([of(layer, Op::RotateKey), of(layer, Op::Value)]);
            }
        }
        let parts: Vec<&OpenedRows> = parts.into_iter().flatten().map(|step| &step.rows).collect();
        let mut bytes = Vec::new();
        for row in 0..parts.first().map_or(0, |rows| rows.len()) {
            for part in &parts {
                bytes.extend_from_slice(part.row(row).unwrap_or_default());
            }
        }
        let row_bytes = parts.iter().map(|rows| rows.row_bytes).sum();
        let narrow = |layer: usize| u32::try_from(layer).unwrap_or(u32::MAX);
        Opened {
            sequence,
            positions,
            layers: narrow(self.layers.start)..narrow(self.layers.end),
            leaf: OpenedRows::new(row_bytes, bytes),
            steps: self.steps,
        }
    }

    fn write(&mut self, step: Step, width: usize, row_bytes: usize, bytes: Vec<u8>) {
        let rows = OpenedRows::new(row_bytes, bytes);
        self.steps.push(OpenedStep { step, width, rows });
    }
}

impl Probe for DeepRecorder {
    fn real(&mut self, step: Step, rows: &[f32], width: usize) {
        if self.layers.contains(&step.layer) {
            let bytes = rows.iter().flat_map(|value| value.to_le_bytes()).collect();
            self.write(step, width, 4 * width, bytes);
        }
    }

    fn quantised(&mut self, step: Step, _: &[f32], width: usize, rows: &Rows) {
        if self.layers.contains(&step.layer) {
            let mut bytes = Vec::new();
            for (q, scales) in (0..rows.count()).filter_map(|row| rows.row(row)) {
                bytes.extend(q.iter().map(|q| q.to_le_bytes()[0]));
                bytes.extend(scales.iter().flat_map(|scale| scale.to_le_bytes()));
            }
            self.write(step, width, width + 4 * groups(width), bytes);
        }
    }
}
