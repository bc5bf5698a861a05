//! Llama.

use serde::Deserialize;
use surety_types::{
    limits,
    model::{Architecture, ModelFamily},
};

use super::{Dimensions, bounded, epsilon, json, model_type, narrow, refused, registrable};
use crate::error::ModelError;

/// A chain's task ends long before it.
const CONTEXT_MAX: usize = limits::POSITIONS_MAX as usize;
const HEAD_DIM_MAX: usize = limits::HEAD_DIM_MAX as usize;
const QUERIES_MAX: usize = limits::QUERIES_MAX as usize;
const END_TOKENS_MAX: usize = 64;
const THETA_DEFAULT: f64 = 10_000.0;
const THETA_MAX: f64 = 1e12;

/// What fixes a decoder's shape.
#[derive(Clone, Debug, PartialEq)]
pub struct LlamaConfig {
    /// `num_attention_heads` are those of queries.
    pub dims: Dimensions,
    /// Heads of keys and values, of which those of queries are a multiple.
    pub num_key_value_heads: usize,
    /// Numbers of one head; even.
    pub head_dim: usize,
    /// What every norm adds to the mean square.
    pub epsilon: f32,
    /// Base of the rotary positions.
    pub theta: f64,
    /// How they are stretched for a longer context.
    pub scaling: Option<RotaryScaling>,
    /// Whether the tokens' vectors also make the logits.
    pub tied: bool,
    /// Whether attention's four products have biases.
    pub attention_bias: bool,
    /// Whether the gated layer's three products have biases.
    pub mlp_bias: bool,
    /// Tokens that end a continuation.
    pub end_tokens: Vec<u32>,
}

/// Llama 3's way to a longer context: slow pairs turn slower still, fast ones as they were.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RotaryScaling {
    /// How much slower.
    pub factor: f64,
    /// Pairs that turn less often over the original context are slowed down fully.
    pub low: f64,
    /// Pairs that turn more often are left alone.
    pub high: f64,
    /// The original context, in tokens.
    pub original: f64,
}

#[derive(Deserialize)]
struct Json {
    num_key_value_heads: Option<usize>,
    head_dim: Option<usize>,
    hidden_act: Option<String>,
    rms_norm_eps: f64,
    rope_theta: Option<f64>,
    rope_scaling: Option<Rope>,
    /// Where newer files keep both of the above.
    rope_parameters: Option<Rope>,
    tie_word_embeddings: Option<bool>,
    attention_bias: Option<bool>,
    mlp_bias: Option<bool>,
    eos_token_id: Option<EndTokens>,
    sliding_window: Option<usize>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum EndTokens {
    One(u32),
    Several(Vec<u32>),
}

#[derive(Deserialize)]
struct Rope {
    #[serde(alias = "type")]
    rope_type: Option<String>,
    rope_theta: Option<f64>,
    factor: Option<f64>,
    low_freq_factor: Option<f64>,
    high_freq_factor: Option<f64>,
    original_max_position_embeddings: Option<usize>,
}

impl LlamaConfig {
    /// Reads and checks a configuration.
    ///
    /// # Errors
    /// [`ModelError::Config`], [`ModelError::Dimension`] and [`ModelError::Unregistrable`].
    pub fn parse(bytes: &[u8]) -> Result<Self, ModelError> {
        if model_type(bytes)?.is_some_and(|family| family != "llama") {
            return refused("model_type is not llama");
        }
        let dims = Dimensions::parse(bytes, CONTEXT_MAX)?;
        let json: Json = json(bytes)?;
        if json.hidden_act.is_some_and(|activation| activation != "silu") {
            return refused("hidden_act is not silu");
        }
        if json.sliding_window.is_some() {
            return refused("sliding_window is not supported");
        }
        let heads = dims.num_attention_heads;
        let kv_heads = json.num_key_value_heads.unwrap_or(heads);
        let num_key_value_heads = bounded("num_key_value_heads", kv_heads, heads)?;
        if !heads.is_multiple_of(num_key_value_heads) {
            return refused("num_attention_heads is no multiple of num_key_value_heads");
        }
        let rope = json.rope_parameters.or(json.rope_scaling);
        let theta = rope.as_ref().and_then(|rope| rope.rope_theta).or(json.rope_theta);
        let scaling = rope.map(scaling).transpose()?.flatten();
        let config = Self {
            dims,
            num_key_value_heads,
            head_dim: head_dim(json.head_dim, dims.hidden_size, heads)?,
            epsilon: epsilon("rms_norm_eps", json.rms_norm_eps)?,
            theta: within("rope_theta", theta.unwrap_or(THETA_DEFAULT), 1.0, THETA_MAX)?,
            scaling,
            tied: json.tie_word_embeddings.unwrap_or(false),
            attention_bias: json.attention_bias.unwrap_or(false),
            mlp_bias: json.mlp_bias.unwrap_or(false),
            end_tokens: end_tokens(json.eos_token_id, dims.vocab_size)?,
        };
        registrable(ModelFamily::Llama, &config.architecture())?;
        Ok(config)
    }

    fn architecture(&self) -> Architecture {
        Architecture {
            kv_heads: narrow(self.num_key_value_heads),
            head_dim: narrow(self.head_dim),
            ..self.dims.architecture(ModelFamily::Llama, self.epsilon)
        }
    }
}

fn head_dim(stated: Option<usize>, width: usize, heads: usize) -> Result<usize, ModelError> {
    if stated.is_none() && !width.is_multiple_of(heads) {
        return refused("hidden_size is no multiple of num_attention_heads");
    }
    let dim = bounded("head_dim", stated.unwrap_or(width / heads), HEAD_DIM_MAX)?;
    if !dim.is_multiple_of(2) {
        return refused("head_dim is odd");
    }
    bounded("num_attention_heads * head_dim", heads * dim, QUERIES_MAX)?;
    Ok(dim)
}

fn end_tokens(stated: Option<EndTokens>, vocabulary: usize) -> Result<Vec<u32>, ModelError> {
    let tokens = match stated {
        None => Vec::new(),
        Some(EndTokens::One(token)) => vec![token],
        Some(EndTokens::Several(tokens)) => tokens,
    };
    let known = |token: &u32| usize::try_from(*token).is_ok_and(|token| token < vocabulary);
    if tokens.len() > END_TOKENS_MAX || !tokens.iter().all(known) {
        return refused("eos_token_id is not a few tokens of the vocabulary");
    }
    Ok(tokens)
}

/// NaN is within nothing.
fn within(field: &str, value: f64, min: f64, max: f64) -> Result<f64, ModelError> {
    if value >= min && value <= max {
        Ok(value)
    } else {
        refused(format!("{field} is {value}, but must be between {min} and {max}"))
    }
}

fn scaling(rope: Rope) -> Result<Option<RotaryScaling>, ModelError> {
    match rope.rope_type.as_deref() {
        None | Some("default") => return Ok(None),
        Some("llama3") => {}
        Some(other) => {
            return refused(format!(
                "rotary positions of the type {other:?} are not supported"
            ));
        }
    }
    let stated = |field: &str, value: Option<f64>| match value {
        Some(value) => within(field, value, 1.0 / 1024.0, 1024.0),
        None => refused(format!("{field} is missing")),
    };
    let scaling = RotaryScaling {
        factor: stated("factor", rope.factor)?,
        low: stated("low_freq_factor", rope.low_freq_factor)?,
        high: stated("high_freq_factor", rope.high_freq_factor)?,
        original: bounded(
            "original_max_position_embeddings",
            rope.original_max_position_embeddings.unwrap_or_default(),
            CONTEXT_MAX,
        )? as f64,
    };
    if scaling.high <= scaling.low {
        return refused("high_freq_factor is not above low_freq_factor");
    }
    Ok(Some(scaling))
}
