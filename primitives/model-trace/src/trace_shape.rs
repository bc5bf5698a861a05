//! How a computation on the exact tier is cut into the leaves of its trace.
//!
//! A sequence is one item of an input, or a prompt with its continuation. Its rows (one per token) are cut
//! into chunks, the model's layers into strides. Each chunk and stride is a leaf of the trace: the
//! [`rows_digest`](surety_proofs::rows_digest) of the rows that the stride gives for the chunk. Why it is cut
//! like this: `docs/adr/0008-trace.md`.

use core::ops::Range;

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use surety_types::model::{Architecture, ModelFamily};

/// Positions of one chunk of a generation.
pub const CHUNK_ROWS: u32 = 16;

/// Values of states that make a stride worth a leaf: hashing every layer of a narrow model would take long
/// beside computing it.
pub const STRIDE_WIDTH: u32 = 1152;

/// Bytes of a number in a row.
const NUMBER: u32 = 4;

/// Layers of one stride of a model of this width: `ceil(1152 / hidden)`, at least 1 and at most all.
pub const fn stride_for(hidden: u32, layers: u32) -> u32 {
    let wanted = match hidden {
        0 => STRIDE_WIDTH,
        _ => STRIDE_WIDTH.div_ceil(hidden),
    };
    match (wanted < layers, layers) {
        (true, _) => wanted,
        (false, 0) => 1,
        (false, _) => layers,
    }
}

/// How a model's traces are cut. Follows from its dimensions.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct TraceShape {
    /// Decides what the rows hold: states, and with a decoder keys and values.
    pub family: ModelFamily,
    /// Layers of the model.
    pub layers: u32,
    /// Layers of one stride; the last may have fewer.
    pub stride: u32,
    /// Numbers of a state.
    pub hidden: u32,
    /// Numbers of a key, and of a value; 0 where they are not recorded.
    pub kv_width: u32,
    /// Rows of one chunk, the last of a sequence may have fewer; 0 for all of them in one.
    pub chunk: u32,
}

impl TraceShape {
    /// Of a model.
    pub const fn of(family: ModelFamily, architecture: &Architecture) -> Self {
        let (layers, hidden) = (architecture.layers, architecture.width);
        let keys = architecture.kv_heads.saturating_mul(architecture.head_dim);
        match family {
            ModelFamily::Bert => Self::bert(layers, hidden),
            ModelFamily::Llama => Self::llama(layers, hidden, keys),
        }
    }

    /// Of an encoder: states alone, a whole item in one chunk; the last stride has one row, the pooled
    /// vector.
    pub const fn bert(layers: u32, hidden: u32) -> Self {
        Self {
            family: ModelFamily::Bert,
            layers,
            stride: stride_for(hidden, layers),
            hidden,
            kv_width: 0,
            chunk: 0,
        }
    }

    /// Of a decoder: states, and the keys and values that later positions look at.
    pub const fn llama(layers: u32, hidden: u32, kv_width: u32) -> Self {
        Self {
            family: ModelFamily::Llama,
            layers,
            stride: stride_for(hidden, layers),
            hidden,
            kv_width,
            chunk: CHUNK_ROWS,
        }
    }

    /// Strides of layers.
    pub fn strides(&self) -> u32 {
        self.layers.div_ceil(self.stride.max(1))
    }

    /// The layers of a stride; empty where there is no such stride.
    pub fn layers_of(&self, stride: u32) -> Range<u32> {
        let first = stride.saturating_mul(self.stride).min(self.layers);
        first..first.saturating_add(self.stride).min(self.layers)
    }

    /// The stride that a layer is in.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "places within ranges, and no divisor is zero"
    )]
    pub fn stride_of(&self, layer: u32) -> Option<u32> {
        (layer < self.layers).then(|| layer / self.stride.max(1))
    }

    /// Whether a stride gives one vector for a sequence and not a row for each of its rows.
    pub fn pools(&self, stride: u32) -> bool {
        self.family == ModelFamily::Bert && stride.checked_add(1) == Some(self.strides())
    }

    /// Chunks of a sequence of so many rows.
    pub fn chunks(&self, rows: u32) -> u32 {
        match self.chunk {
            0 => rows.min(1),
            chunk => rows.div_ceil(chunk),
        }
    }

    /// The rows of a chunk, of a sequence of so many; empty where there is no such chunk.
    pub fn rows_of(&self, chunk: u32, rows: u32) -> Range<u32> {
        let each = match self.chunk {
            0 => rows,
            chunk => chunk,
        };
        let first = chunk.saturating_mul(each).min(rows);
        first..first.saturating_add(each).min(rows)
    }

    /// Bytes of a row of a stride: the state after its last layer, then key and value of each of its layers.
    pub fn row_bytes(&self, stride: u32) -> Option<u32> {
        let layers = self.layers_of(stride).len() as u32;
        self.numbers(layers)?.checked_mul(NUMBER)
    }

    /// Where in a row the state is.
    pub fn state(&self) -> Option<Range<u32>> {
        Some(0..self.hidden.checked_mul(NUMBER)?)
    }

    /// Where in a row of its stride a layer's key is.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "places within ranges, and no divisor is zero"
    )]
    pub fn key(&self, layer: u32) -> Option<Range<u32>> {
        let before = layer - self.layers_of(self.stride_of(layer)?).start;
        let start = self.numbers(before)?.checked_mul(NUMBER)?;
        Some(start..start.checked_add(self.kv_width.checked_mul(NUMBER)?)?)
    }

    /// Where in a row of its stride a layer's value is.
    pub fn value(&self, layer: u32) -> Option<Range<u32>> {
        let key = self.key(layer)?;
        Some(key.end..key.end.checked_add(key.len() as u32)?)
    }

    /// Numbers of a state with the keys and values of so many layers.
    fn numbers(&self, layers: u32) -> Option<u32> {
        let pairs = self.kv_width.checked_mul(2)?.checked_mul(layers)?;
        self.hidden.checked_add(pairs)
    }
}
