//! What a model is, as the chain knows it.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::{ConstU32, H256};
use sp_runtime::BoundedVec;

use crate::{limits, ContentHash, ModelId};

/// A bounded UTF-8 name.
pub type Name = BoundedVec<u8, ConstU32<{ limits::NAME_BYTES_MAX }>>;

/// The architecture that an engine has to implement to run the model.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum ModelFamily {
    /// BERT-style encoders, for sentence embeddings.
    Bert,
    /// Llama-architecture decoders: RMS norm, rotary positions, grouped attention, SwiGLU.
    Llama,
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
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum Operation {
    /// One vector per line of the input. Metered in lines.
    Embed,
    /// Text that continues the input's prompt. Metered in tokens, those of the prompt included.
    Generate,
}

/// Everything that fixes a model's answers. Its hash is the [`ModelId`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct ModelManifest {
    /// What people call it, UTF-8.
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
    /// `blake2_256` of `tokenizer.json`.
    pub tokenizer: ContentHash,
    /// `blake2_256` of `config.json`.
    pub config: ContentHash,
    /// Merkle root over the rows of every weight tensor, so that one row can be shown to be the model's. On the exact
    /// tier alone.
    pub weight_root: Option<H256>,
}

impl ModelManifest {
    /// The id under which the chain knows this model.
    pub fn id(&self) -> ModelId {
        H256(sp_crypto_hashing::blake2_256(&self.encode()))
    }
}
