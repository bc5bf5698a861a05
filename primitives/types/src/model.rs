//! What a model is, as the chain knows it.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::{ConstU32, H256};
use sp_runtime::BoundedVec;

use crate::{ContentHash, ModelId, limits, text::Text};

mod bounds;
mod work;

pub use bounds::ArchitectureError;
pub use work::{ModelAudits, REFERENCE_WORK, audit_speeds};

/// What people call something.
pub type Name = Text<{ limits::NAME_BYTES_MAX }>;

/// The architecture that an engine has to implement to run the model.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum ModelFamily {
    /// BERT-style encoders, for sentence embeddings.
    Bert,
    /// Llama-architecture decoders, Mistral and Qwen 2 among them: RMS norm, rotary positions, grouped
    /// attention, SwiGLU.
    Llama,
    /// Qwen 3's dense decoders: as `Llama`, and every head of queries and of keys is normed by its root mean
    /// square before it is turned by its position.
    Qwen3,
}

impl ModelFamily {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Bert, Self::Llama, Self::Qwen3];

    /// What models of this family do on the exact tier.
    pub const fn operation(self) -> Operation {
        match self {
            Self::Bert => Operation::Embed,
            Self::Llama | Self::Qwen3 => Operation::Generate,
        }
    }
}

/// How two honest results of the model compare. Never compared across tiers.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum Tier {
    /// Same bits on every device: the canonical arithmetic of `surety-exact`.
    Exact,
    /// Same bits within one class of device, driver and build.
    HardwareClass,
    /// Equal within a bound.
    Tolerance,
}

/// What a task asks a model to do.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Encode,
    Decode,
    DecodeWithMemTracking,
    MaxEncodedLen,
    TypeInfo,
)]
pub enum Operation {
    /// One vector per line of the input. Metered in lines.
    Embed,
    /// Text that continues the input's prompt. Metered in tokens, those of the prompt included.
    Generate,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Embed, Self::Generate];

    /// What it is called in settings, files and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Embed => "embed",
            Self::Generate => "generate",
        }
    }
}

/// Everything that fixes a model's answers. Its hash is the [`ModelId`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct ModelManifest {
    /// What people call it.
    pub name: Name,
    /// The architecture.
    pub family: ModelFamily,
    /// How results compare.
    pub tier: Tier,
    /// What it can be asked to do.
    pub operations: BoundedVec<Operation, ConstU32<{ limits::OPERATIONS_MAX }>>,
    /// `blake2_256` of the safetensors file.
    pub weights: ContentHash,
    /// Size of the safetensors file, in bytes.
    pub weights_bytes: u64,
    /// How text becomes ids of tokens.
    pub text: TextForm,
    /// `blake2_256` of `config.json`.
    pub config: ContentHash,
    /// What makes its answers checkable cell by cell. On the exact tier alone.
    pub exact: Option<ExactForm>,
}

impl ModelManifest {
    /// The id under which the chain knows this model.
    pub fn id(&self) -> ModelId {
        H256(sp_crypto_hashing::blake2_256(&self.encode()))
    }
}

/// Ids of one kind.
pub type SpecialIds = BoundedVec<u32, ConstU32<{ limits::SPECIAL_IDS_MAX }>>;

/// How text becomes ids of tokens: whoever has the same files and ids makes the same input of a text, and the
/// same text of an output. Of all this a chain looks at `stop` alone.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct TextForm {
    /// `blake2_256` of `tokenizer.json`.
    pub tokenizer: ContentHash,
    /// `blake2_256` of `chat_template.jinja`, where the model has one.
    pub template: Option<ContentHash>,
    /// Ids before those of a text: that of its beginning, or `[CLS]`.
    pub before: SpecialIds,
    /// Ids after those of a text: `[SEP]`, or that of its end.
    pub after: SpecialIds,
    /// What stands for text that has no token.
    pub unknown: Option<u32>,
    /// What sequences are made equally long with. No input holds it.
    pub padding: Option<u32>,
    /// Ids that end a generation.
    pub stop: SpecialIds,
}

impl TextForm {
    /// Every id that it lists.
    pub fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        let lists = [&self.before, &self.after, &self.stop];
        let listed = lists.into_iter().flat_map(|ids| ids.iter().copied());
        listed.chain(self.unknown).chain(self.padding)
    }
}

/// How finely a model's rows are quantized, weights and activations alike: [`surety_exact::Precision`].
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum Precision {
    /// -127 to 127.
    Int8,
    /// -2047 to 2047.
    Int12,
}

impl From<Precision> for surety_exact::Precision {
    fn from(precision: Precision) -> Self {
        match precision {
            Precision::Int8 => Self::Int8,
            Precision::Int12 => Self::Int12,
        }
    }
}

impl From<surety_exact::Precision> for Precision {
    fn from(precision: surety_exact::Precision) -> Self {
        match precision {
            surety_exact::Precision::Int8 => Self::Int8,
            surety_exact::Precision::Int12 => Self::Int12,
        }
    }
}

/// What an encoder or decoder does between a layer's last products.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum Activation {
    /// The exact form of GELU.
    Gelu,
    /// GELU through the hyperbolic tangent.
    GeluTanh,
    /// SiLU of a gate, times what it lets through.
    SwiGlu,
}

/// How an encoder's last states become one vector, which is then brought to length 1.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum Pooling {
    /// The mean over all tokens. Decoders, which pool nothing, say this.
    #[default]
    Mean,
    /// The state of the first token, `[CLS]`: the mean over that one alone.
    First,
}

impl Pooling {
    /// How many of a sequence's rows the mean is over: the first ones.
    pub const fn rows(self, all: usize) -> usize {
        match self {
            Self::First if all > 1 => 1,
            Self::Mean | Self::First => all,
        }
    }
}

/// Which inputs of a layer's products are scaled channel by channel before they are quantized; the same in
/// all layers.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Smoothed {
    /// That of query, key and value.
    pub attention: bool,
    /// That of attention's output.
    pub output: bool,
    /// That of the products to the inner width.
    pub inner: bool,
    /// That of the product back.
    pub down: bool,
}

/// The dimensions of a model on the exact tier: with its weights they say what every number of a computation
/// is.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Architecture {
    /// Tokens that there are.
    pub vocabulary: u32,
    /// Numbers of a state.
    pub width: u32,
    /// Layers.
    pub layers: u32,
    /// Attention heads, of queries.
    pub heads: u32,
    /// Heads of keys and values; `heads` is a multiple of it, and with BERT equal to it.
    pub kv_heads: u32,
    /// Numbers of one head.
    pub head_dim: u32,
    /// Numbers between a layer's last products.
    pub inner: u32,
    /// Most positions of a sequence.
    pub positions: u32,
    /// What is added to a variance, as the bits of an `f32`.
    pub epsilon: u32,
    /// Between a layer's last products.
    pub activation: Activation,
    /// Which inputs are scaled before they are quantized.
    pub smoothed: Smoothed,
    /// Decoders: the tokens' vectors also make the logits.
    pub tied: bool,
    /// Of all quantized rows.
    pub precision: Precision,
    /// BERT: what the vector is made of.
    pub pooling: Pooling,
}

/// By which arithmetic, and by which trace of it, results of an exact model are computed and judged: what
/// `surety-exact` and `surety-model-trace` define. One that is released is never changed: what gives other
/// numbers, or another trace, of any input is another one, for models that are registered with it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum Opset {
    /// The first.
    #[codec(index = 1)]
    V1,
}

/// What makes a model's answers checkable cell by cell. On the exact tier alone.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct ExactForm {
    /// How they are computed.
    pub opset: Opset,
    /// Merkle root over the rows of every weight tensor, so that one row can be shown to be the model's.
    pub weight_root: H256,
    /// Its dimensions.
    pub architecture: Architecture,
}
