//! BERT.

use serde::Deserialize;
use surety_types::{
    limits,
    model::{Architecture, ModelFamily},
};

use super::{
    bounded, epsilon, json, narrow, refused, registrable, HEADS_MAX, INNER_MAX, LAYERS_MAX, VOCABULARY_MAX,
    WIDTH_MAX,
};
use crate::{error::ModelError, weights::Activation};

const POSITIONS_MAX: usize = limits::ENCODER_POSITIONS_MAX as usize;
const TYPES_MAX: usize = 256;

/// What fixes an encoder's shape.
#[derive(Clone, Debug, PartialEq)]
pub struct BertConfig {
    /// Tokens.
    pub vocabulary: usize,
    /// Width of a state.
    pub width: usize,
    /// How many layers there are.
    pub layers: usize,
    /// Attention heads; they share the width evenly.
    pub heads: usize,
    /// Width between a layer's last two products.
    pub inner: usize,
    /// Most tokens of one item.
    pub positions: usize,
    /// Kinds of segments.
    pub types: usize,
    /// Between a layer's last two products.
    pub activation: Activation,
    /// Of every norm.
    pub epsilon: f32,
}

#[derive(Deserialize)]
struct Json {
    model_type: Option<String>,
    vocab_size: usize,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    hidden_act: String,
    max_position_embeddings: usize,
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
        let json: Json = json(bytes)?;
        if json.model_type.is_some_and(|family| family != "bert") {
            return refused("model_type is not bert");
        }
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
            vocabulary: bounded("vocab_size", json.vocab_size, VOCABULARY_MAX)?,
            width: bounded("hidden_size", json.hidden_size, WIDTH_MAX)?,
            layers: bounded("num_hidden_layers", json.num_hidden_layers, LAYERS_MAX)?,
            heads: bounded("num_attention_heads", json.num_attention_heads, HEADS_MAX)?,
            inner: bounded("intermediate_size", json.intermediate_size, INNER_MAX)?,
            positions: bounded(
                "max_position_embeddings",
                json.max_position_embeddings,
                POSITIONS_MAX,
            )?,
            types: bounded("type_vocab_size", json.type_vocab_size, TYPES_MAX)?,
            activation,
            epsilon: epsilon("layer_norm_eps", json.layer_norm_eps)?,
        };
        if !config.width.is_multiple_of(config.heads) {
            return refused("hidden_size is no multiple of num_attention_heads");
        }
        registrable(ModelFamily::Bert, &config.architecture())?;
        Ok(config)
    }

    /// The dimensions, for a chain. What the weights are made like is not known here.
    fn architecture(&self) -> Architecture {
        Architecture {
            vocabulary: narrow(self.vocabulary),
            width: narrow(self.width),
            layers: narrow(self.layers),
            heads: narrow(self.heads),
            kv_heads: narrow(self.heads),
            head_dim: narrow(self.width / self.heads),
            inner: narrow(self.inner),
            positions: narrow(self.positions),
            epsilon: self.epsilon.to_bits(),
            ..Architecture::largest(ModelFamily::Bert)
        }
    }
}
