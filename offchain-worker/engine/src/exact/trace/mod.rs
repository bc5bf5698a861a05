//! What a result's trace is made of.
//!
//! A sequence is one item of an input, or a prompt with its continuation. Its rows are cut into chunks, the layers
//! into strides; each chunk and stride is a leaf, the Merkle root over its rows' digests. A row is the state after the
//! stride's last layer, followed (Llama) by the key and the value of each layer of the stride. The last stride of an
//! encoder has one row a sequence, the pooled vector. Leaves are in the order sequence, chunk, stride.

mod hash;
mod opened;
mod top;

use std::ops::Range;

pub(crate) use opened::DeepRecorder;
pub use opened::{Opened, OpenedRows, OpenedStep};
pub use top::TopLevel;

use super::probe::{Op, Step};

/// Bytes of states that make a stride worth a leaf: on narrow models hashing every layer would take longer than is
/// fit beside computing it.
const STRIDE_WIDTH: usize = 1152;

/// Positions in a leaf of a generation.
pub(crate) const CHUNK_ROWS: usize = 16;

/// How a model's traces are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    width: usize,
    /// Numbers of a key; 0 with an encoder.
    kv_width: usize,
    layers: usize,
    stride: usize,
}

/// Where a step's rows belong.
pub(crate) struct Place {
    stride: usize,
    /// First byte within the row.
    at: usize,
}

impl Shape {
    /// Of an encoder.
    pub fn encoder(width: usize, layers: usize) -> Self {
        Self::decoder(width, 0, layers)
    }

    /// Of a decoder whose keys and values have `kv_width` numbers.
    pub fn decoder(width: usize, kv_width: usize, layers: usize) -> Self {
        let stride = STRIDE_WIDTH.div_ceil(width.max(1)).min(layers).max(1);
        Self {
            width,
            kv_width,
            layers,
            stride,
        }
    }

    /// Strides of layers.
    pub(crate) fn strides(&self) -> usize {
        self.layers.div_ceil(self.stride)
    }

    /// The layers of a stride.
    pub(crate) fn layers_of(&self, stride: usize) -> Range<usize> {
        let first = stride * self.stride;
        first..(first + self.stride).min(self.layers)
    }

    /// Whether this is an encoder: its last stride is about one vector per sequence.
    pub(crate) fn pools(&self) -> bool {
        self.kv_width == 0
    }

    /// Whether this stride is about one vector per sequence.
    fn pools_in(&self, stride: usize) -> bool {
        self.pools() && stride + 1 == self.strides()
    }

    /// The chunks of a sequence of so many rows.
    pub(crate) fn chunks(&self, rows: usize) -> impl Iterator<Item = Range<usize>> {
        let each = match self.pools() {
            true => rows.max(1),
            false => CHUNK_ROWS,
        };
        (0..rows)
            .step_by(each)
            .map(move |first| first..(first + each).min(rows))
    }

    fn row_bytes(&self, stride: usize) -> usize {
        4 * (self.width + 2 * self.kv_width * self.layers_of(stride).len())
    }

    /// Nothing when a step's rows are no part of the top level.
    fn place(&self, Step { layer, op }: Step) -> Option<Place> {
        let stride = layer / self.stride;
        let layers = self.layers_of(stride);
        let key = 4 * (self.width + 2 * self.kv_width * (layer - layers.start));
        let at = match op {
            Op::Sum if layer + 1 == layers.end && !self.pools_in(stride) => 0,
            Op::Pool => 0,
            Op::RotateKey if !self.pools() => key,
            Op::Value if !self.pools() => key + 4 * self.kv_width,
            _ => return None,
        };
        Some(Place { stride, at })
    }
}
