//! How a computation on the exact tier is cut into the leaves of its trace.
//!
//! A sequence is one item of an input, or a prompt with its continuation. Its rows (one per token) are cut
//! into chunks, the model's layers into strides. Each chunk and stride is a leaf of the trace: the
//! [`rows_digest`](surety_proofs::rows_digest) of the rows that the stride gives for the chunk. Why it is cut
//! like this: `docs/adr/0008-trace.md`.

use core::ops::Range;

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use surety_exact::HEAD_PRECISION;
use surety_types::model::{Architecture, ModelFamily};

/// Positions of one chunk of a generation.
pub const CHUNK_ROWS: u32 = 16;

/// Values of states that make a stride worth a leaf: hashing every layer of a narrow model would take long
/// beside computing it.
pub const STRIDE_WIDTH: u32 = 1152;

/// Bytes of a number in a row.
const NUMBER: u32 = 4;

/// Most layers of a stride: a leaf has no more steps than a game can be played over.
const STRIDE_MAX: u32 = 96;

/// Layers of one stride of a model of this width: `ceil(1152 / hidden)`, at least 1 and at most all or 96.
pub const fn stride_for(hidden: u32, layers: u32) -> u32 {
    let wanted = match hidden {
        0 => STRIDE_WIDTH,
        _ => STRIDE_WIDTH.div_ceil(hidden),
    };
    match (wanted < layers, layers) {
        _ if layers > STRIDE_MAX && wanted > STRIDE_MAX => STRIDE_MAX,
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
    /// Heads of keys and values; 0 where they are not recorded.
    pub kv_heads: u32,
    /// Numbers of a head of them.
    pub head_dim: u32,
    /// Rows of one chunk, the last of a sequence may have fewer; 0 for all of them in one.
    pub chunk: u32,
}

impl TraceShape {
    /// Of a model.
    pub const fn of(family: ModelFamily, architecture: &Architecture) -> Self {
        let (layers, hidden) = (architecture.layers, architecture.width);
        match family {
            ModelFamily::Bert => Self::bert(layers, hidden),
            ModelFamily::Llama | ModelFamily::Qwen3 => Self {
                family,
                ..Self::llama(layers, hidden, architecture.kv_heads, architecture.head_dim)
            },
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
            kv_heads: 0,
            head_dim: 0,
            chunk: 0,
        }
    }

    /// Of a Llama: states, and the quantized keys and values that later positions look at. Other decoders
    /// differ in nothing but `family`.
    pub const fn llama(layers: u32, hidden: u32, kv_heads: u32, head_dim: u32) -> Self {
        Self {
            family: ModelFamily::Llama,
            layers,
            stride: stride_for(hidden, layers),
            hidden,
            kv_heads,
            head_dim,
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

    /// Bytes of a row of a stride: for each of its layers the quantized key and value; the state after the
    /// last; for each layer the scales.
    pub fn row_bytes(&self, stride: u32) -> Option<u32> {
        let layers = self.layers_of(stride).len() as u32;
        self.state(stride)?
            .end
            .checked_add(layers.checked_mul(self.pair_scales()?)?)
    }

    /// Bytes of a row's quantized values, which come first.
    pub fn quantized(&self, stride: u32) -> Option<u32> {
        (self.layers_of(stride).len() as u32).checked_mul(self.pair_bytes()?)
    }

    /// Where in a row of a stride the state is.
    pub fn state(&self, stride: u32) -> Option<Range<u32>> {
        let start = self.quantized(stride)?;
        Some(start..start.checked_add(self.hidden.checked_mul(NUMBER)?)?)
    }

    /// Where in a row of its stride a layer's key is.
    pub fn key(&self, layer: u32) -> Option<CachedHeads> {
        self.cached(layer, 0)
    }

    /// Where in a row of its stride a layer's value is.
    pub fn value(&self, layer: u32) -> Option<CachedHeads> {
        self.cached(layer, 1)
    }

    /// The first or second of a layer's pair.
    #[allow(clippy::arithmetic_side_effects, reason = "a layer of its stride, and halves")]
    fn cached(&self, layer: u32, second: u32) -> Option<CachedHeads> {
        let stride = self.stride_of(layer)?;
        let before = layer - self.layers_of(stride).start;
        let half = |start: u32, pair: u32| {
            let start = start
                .checked_add(before.checked_mul(pair)?)?
                .checked_add(second * (pair / 2))?;
            Some(start..start.checked_add(pair / 2)?)
        };
        Some(CachedHeads {
            q: half(0, self.pair_bytes()?)?,
            scales: half(self.state(stride)?.end, self.pair_scales()?)?,
        })
    }

    /// Bytes of the quantized key and value of a layer.
    fn pair_bytes(&self) -> Option<u32> {
        let width = self.kv_heads.checked_mul(self.head_dim)?;
        width.checked_mul(2)?.checked_mul(HEAD_PRECISION.bytes() as u32)
    }

    /// Bytes of their scales.
    fn pair_scales(&self) -> Option<u32> {
        self.kv_heads.checked_mul(2)?.checked_mul(NUMBER)
    }
}

/// Where in a row the heads of a key or value are, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedHeads {
    /// Their values: int12.
    pub q: Range<u32>,
    /// Their scales.
    pub scales: Range<u32>,
}
