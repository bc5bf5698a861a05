//! BERT.

use serde::Deserialize;
use surety_types::{limits, model::ModelFamily};

use super::{Dimensions, bounded, epsilon, json, model_type, refused, registrable};
use crate::{error::ModelError, weights::Activation};

const POSITIONS_MAX: usize = limits::ENCODER_POSITIONS_MAX as usize;
const TYPES_MAX: usize = 256;

/// What fixes an encoder's shape.
#[derive(Clone, Debug, PartialEq)]
pub struct BertConfig {
    /// Heads share the width evenly.
    pub dims: Dimensions,
    /// Kinds of segments.
    pub type_vocab_size: usize,
    /// Between a layer's last two products.
    pub activation: Activation,
    /// What every norm adds to the variance.
    pub epsilon: f32,
}

#[derive(Deserialize)]
struct Json {
    hidden_act: String,
    type_vocab_size: usize,
    layer_norm_eps: f64,
    position_embedding_type: Option<String>,
}

impl BertConfig {
    /// Reads and checks a configuration.
    ///
    /// # Errors
    /// [`ModelError::Config`], [`ModelError::Dimension`] and [`ModelError::Unregistrable`].
    pub fn parse(bytes: &[u8]) -> Result<Self, ModelError> {
        if model_type(bytes)?.is_some_and(|family| family != "bert") {
            return refused("model_type is not bert");
        }
        let dims = Dimensions::parse(bytes, POSITIONS_MAX)?;
        if !dims.hidden_size.is_multiple_of(dims.num_attention_heads) {
            return refused("hidden_size is no multiple of num_attention_heads");
        }
        let json: Json = json(bytes)?;
        if json
            .position_embedding_type
            .is_some_and(|kind| kind != "absolute")
        {
            return refused("position_embedding_type is not absolute");
        }
        let activation = match &json.hidden_act[..] {
            "gelu" => Activation::Gelu,
            "gelu_new" | "gelu_pytorch_tanh" | "gelu_fast" => Activation::GeluTanh,
            other => return refused(format!("hidden_act is {other:?}, not a form of gelu")),
        };
        let config = Self {
            dims,
            type_vocab_size: bounded("type_vocab_size", json.type_vocab_size, TYPES_MAX)?,
            activation,
            epsilon: epsilon("layer_norm_eps", json.layer_norm_eps)?,
        };
        registrable(
            ModelFamily::Bert,
            &config.dims.architecture(ModelFamily::Bert, config.epsilon),
        )?;
        Ok(config)
    }
}
