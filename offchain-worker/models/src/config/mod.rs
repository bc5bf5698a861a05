//! `config.json` of the architectures that have an exact form, within bounds.
//!
//! The published file is kept as it is: it is part of the model's identity. Whatever is read here is either a
//! dimension that the tensors are checked against, or a choice of which there is one right reading.

mod bert;
mod head;
mod llama;
mod pooling;
mod stop;

pub use bert::BertConfig;
pub use llama::{Biases, LlamaConfig, RotaryScaling};
pub use pooling::{MODULES, POOLING_CONFIG, pooling};
pub use stop::{GENERATION_CONFIG, stop_tokens};

use serde::{Deserialize, de::DeserializeOwned};
use surety_types::{
    limits,
    model::{Architecture, ModelFamily},
};

use crate::error::ModelError;

/// A chain's own bounds: whatever is beyond them could not be registered. They are well above any published
/// model, keep products of dimensions from overflowing, an inner dimension within what an exact dot product
/// allows, and a hostile file from asking for the machine's memory.
const VOCABULARY_MAX: usize = limits::VOCABULARY_MAX as usize;
const WIDTH_MAX: usize = limits::WIDTH_MAX as usize;
const LAYERS_MAX: usize = limits::LAYERS_MAX as usize;
const HEADS_MAX: usize = limits::HEADS_MAX as usize;
const INNER_MAX: usize = limits::INNER_MAX as usize;

/// The dimensions that every family states, by the names of `config.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Dimensions {
    /// Tokens that there are.
    pub vocab_size: usize,
    /// Numbers of a state.
    pub hidden_size: usize,
    /// Layers.
    pub num_hidden_layers: usize,
    /// Heads of attention's queries.
    pub num_attention_heads: usize,
    /// Numbers between the two halves of a layer's feed-forward part.
    pub intermediate_size: usize,
    /// Most tokens of one sequence.
    pub max_position_embeddings: usize,
}

impl Dimensions {
    /// Reads them from a configuration.
    fn parse(bytes: &[u8], positions_max: usize) -> Result<Self, ModelError> {
        let found: Self = json(bytes)?;
        let at_most = |field, value, max| bounded(field, value, max).map(drop);
        at_most("vocab_size", found.vocab_size, VOCABULARY_MAX)?;
        at_most("hidden_size", found.hidden_size, WIDTH_MAX)?;
        at_most("num_hidden_layers", found.num_hidden_layers, LAYERS_MAX)?;
        at_most("num_attention_heads", found.num_attention_heads, HEADS_MAX)?;
        at_most("intermediate_size", found.intermediate_size, INNER_MAX)?;
        at_most(
            "max_position_embeddings",
            found.max_position_embeddings,
            positions_max,
        )?;
        Ok(found)
    }

    /// Inputs of the largest product.
    pub fn inputs_max(&self) -> usize {
        self.hidden_size.max(self.intermediate_size)
    }

    /// The same for a chain, for a model whose heads share the width evenly. What the weights are made like
    /// is not known here: that is as large as can be.
    fn architecture(&self, family: ModelFamily, epsilon: f32) -> Architecture {
        Architecture {
            vocabulary: narrow(self.vocab_size),
            width: narrow(self.hidden_size),
            layers: narrow(self.num_hidden_layers),
            heads: narrow(self.num_attention_heads),
            kv_heads: narrow(self.num_attention_heads),
            head_dim: narrow(self.hidden_size / self.num_attention_heads),
            inner: narrow(self.intermediate_size),
            positions: narrow(self.max_position_embeddings),
            epsilon: epsilon.to_bits(),
            ..Architecture::largest(family)
        }
    }
}

#[derive(Deserialize)]
struct Kind {
    model_type: Option<String>,
}

/// What a configuration calls its architecture.
fn model_type(bytes: &[u8]) -> Result<Option<String>, ModelError> {
    json(bytes).map(|Kind { model_type }| model_type)
}

/// The architecture that a configuration names.
///
/// # Errors
/// [`ModelError::Config`] for one that has no exact form, for another head than is computed here, and for
/// weights that are quantized already.
pub fn family(bytes: &[u8]) -> Result<ModelFamily, ModelError> {
    let family = match model_type(bytes)?.as_deref() {
        Some("bert") => ModelFamily::Bert,
        other => llama::Decoder::named(other.unwrap_or("missing"))?.family(),
    };
    head::check(bytes, family)?;
    Ok(family)
}

fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ModelError> {
    serde_json::from_slice(bytes).map_err(|error| ModelError::Config(error.to_string()))
}

fn refused<T>(reason: impl Into<String>) -> Result<T, ModelError> {
    Err(ModelError::Config(reason.into()))
}

/// A dimension: at least 1.
fn bounded(field: &'static str, value: usize, max: usize) -> Result<usize, ModelError> {
    if (1..=max).contains(&value) {
        Ok(value)
    } else {
        Err(ModelError::Dimension { field, value, max })
    }
}

/// Of a dimension within its bounds.
fn narrow(dimension: usize) -> u32 {
    u32::try_from(dimension).unwrap_or(u32::MAX)
}

/// Whether a chain would take a model of these dimensions: it is to be known before anybody converts one for
/// an hour.
fn registrable(family: ModelFamily, architecture: &Architecture) -> Result<(), ModelError> {
    architecture.check(family).map_err(ModelError::Unregistrable)
}

/// What is added to a variance: it must still be above 0 as an `f32`.
fn epsilon(field: &str, value: f64) -> Result<f32, ModelError> {
    let value = value as f32;
    // Written so that NaN fails too.
    if value > 0.0 && value < 1.0 {
        Ok(value)
    } else {
        refused(format!("{field} is not between 0 and 1"))
    }
}
