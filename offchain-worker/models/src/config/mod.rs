//! `config.json` of the architectures that have an exact form, within bounds.
//!
//! The published file is kept as it is: it is part of the model's identity. Whatever is read here is either a
//! dimension that the tensors are checked against, or a choice of which there is one right reading.

mod bert;
mod llama;

pub use bert::BertConfig;
pub use llama::{LlamaConfig, RotaryScaling};

use serde::de::DeserializeOwned;
use surety_types::{
    limits,
    model::{Architecture, ModelFamily},
};

use crate::error::ModelError;

/// A chain's own bounds: whatever is beyond them could not be registered. They are well above any published model, keep
/// products of dimensions from overflowing, an inner dimension within what an exact dot product allows, and a hostile file
/// from asking for the machine's memory.
const VOCABULARY_MAX: usize = limits::VOCABULARY_MAX as usize;
const WIDTH_MAX: usize = limits::WIDTH_MAX as usize;
const LAYERS_MAX: usize = limits::LAYERS_MAX as usize;
const HEADS_MAX: usize = limits::HEADS_MAX as usize;
const INNER_MAX: usize = limits::INNER_MAX as usize;

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

/// Of a dimension within its bounds.
fn narrow(dimension: usize) -> u32 {
    u32::try_from(dimension).unwrap_or(u32::MAX)
}

/// Whether a chain would take a model of these dimensions: it is to be known before anybody converts one for an hour.
fn registrable(family: ModelFamily, architecture: &Architecture) -> Result<(), ModelError> {
    architecture.check(family).map_err(ModelError::Unregistrable)
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
