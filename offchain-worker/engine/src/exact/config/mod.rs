//! `config.json` of the architectures that have an exact form, within bounds.
//!
//! The published file is kept as it is: it is part of the model's identity. Whatever is read here is either a
//! dimension that the tensors are checked against, or a choice of which there is one right reading.

mod bert;
mod llama;

pub use bert::BertConfig;
pub use llama::{LlamaConfig, RotaryScaling};

use serde::de::DeserializeOwned;

use crate::model_error::ModelError;

/// Bounds well above any published model: they keep products of dimensions from overflowing, an inner dimension
/// within what an exact dot product allows, and a hostile file from asking for the machine's memory.
const VOCABULARY_MAX: usize = 4_000_000;
const WIDTH_MAX: usize = 16_384;
const LAYERS_MAX: usize = 256;
const HEADS_MAX: usize = 256;
const INNER_MAX: usize = 65_536;

fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ModelError> {
    serde_json::from_slice(bytes).map_err(|error| ModelError::Config(error.to_string()))
}

fn refused<T>(reason: impl Into<String>) -> Result<T, ModelError> {
    Err(ModelError::Config(reason.into()))
}

/// A dimension: at least 1.
fn bounded(field: &'static str, value: usize, max: usize) -> Result<usize, ModelError> {
    match (1..=max).contains(&value) {
        true => Ok(value),
        false => Err(ModelError::Dimension { field, value, max }),
    }
}

/// What is added to a variance: it must still be above 0 as an `f32`.
fn epsilon(field: &str, value: f64) -> Result<f32, ModelError> {
    let value = value as f32;
    // Written so that NaN fails too.
    match value > 0.0 && value < 1.0 {
        true => Ok(value),
        false => refused(format!("{field} is not between 0 and 1")),
    }
}
