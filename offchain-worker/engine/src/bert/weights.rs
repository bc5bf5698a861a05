//! The safetensors file: every tensor that the architecture needs, of the right type and shape, and finite.

use std::collections::HashMap;

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::Config;
use safetensors::{Dtype, SafeTensorError, SafeTensors};
use surety_models::ModelError;

use crate::embeddings::f32_values;

/// The parameters that `config` asks for. Other tensors in the file are left out: nothing reads them.
pub(super) fn parameters(file: &[u8], config: &Config) -> Result<VarBuilder<'static>, ModelError> {
    let file = SafeTensors::deserialize(file).map_err(|error| match error {
        SafeTensorError::HeaderTooSmall
        | SafeTensorError::InvalidHeaderLength
        | SafeTensorError::MetadataIncompleteBuffer => ModelError::Truncated,
        other => ModelError::Malformed(other.to_string()),
    })?;
    let mut tensors = HashMap::new();
    for (name, expected) in needed(config) {
        let tensor = parameter(&file, &name, expected)?;
        tensors.insert(name, tensor);
    }
    Ok(VarBuilder::from_tensors(tensors, DType::F32, &Device::Cpu))
}

fn parameter(file: &SafeTensors<'_>, name: &str, expected: Vec<usize>) -> Result<Tensor, ModelError> {
    let view = file
        .tensor(name)
        .map_err(|_| ModelError::MissingTensor(name.into()))?;
    if view.dtype() != Dtype::F32 {
        return Err(ModelError::WrongType {
            name: name.into(),
            expected: "F32",
            dtype: view.dtype().to_string(),
        });
    }
    if view.shape() != expected {
        return Err(ModelError::WrongShape {
            name: name.into(),
            expected,
            actual: view.shape().to_vec(),
        });
    }
    let values = f32_values(view.data());
    if !values.iter().all(|value| value.is_finite()) {
        return Err(ModelError::NotFinite(name.into()));
    }
    Tensor::from_vec(values, expected, &Device::Cpu).map_err(|error| ModelError::Library(error.to_string()))
}

/// Name and shape of every parameter.
fn needed(config: &Config) -> Vec<(String, Vec<usize>)> {
    let (hidden, inner) = (config.hidden_size, config.intermediate_size);
    let mut needed = Vec::new();
    let mut add = |name: String, shape: &[usize]| needed.push((name, shape.to_vec()));
    let embeddings = [
        ("word_embeddings", config.vocab_size),
        ("position_embeddings", config.max_position_embeddings),
        ("token_type_embeddings", config.type_vocab_size),
    ];
    for (table, rows) in embeddings {
        add(format!("embeddings.{table}.weight"), &[rows, hidden]);
    }
    for part in ["weight", "bias"] {
        add(format!("embeddings.LayerNorm.{part}"), &[hidden]);
    }
    let linears = [
        ("attention.self.query", hidden, hidden),
        ("attention.self.key", hidden, hidden),
        ("attention.self.value", hidden, hidden),
        ("attention.output.dense", hidden, hidden),
        ("intermediate.dense", inner, hidden),
        ("output.dense", hidden, inner),
    ];
    for layer in 0..config.num_hidden_layers {
        let layer = format!("encoder.layer.{layer}");
        for (linear, outputs, inputs) in linears {
            add(format!("{layer}.{linear}.weight"), &[outputs, inputs]);
            add(format!("{layer}.{linear}.bias"), &[outputs]);
        }
        for norm in ["attention.output.LayerNorm", "output.LayerNorm"] {
            add(format!("{layer}.{norm}.weight"), &[hidden]);
            add(format!("{layer}.{norm}.bias"), &[hidden]);
        }
    }
    needed
}
