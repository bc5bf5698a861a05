//! Llama, and the decoders that differ from it in biases, in norms of heads and in what their configuration
//! leaves out.

use serde::{Deserialize, Deserializer};
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
    /// Which products have biases.
    pub biases: Biases,
    /// Whether every head of queries and of keys is normed.
    pub head_norms: bool,
}

/// Which products of a layer have biases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Biases {
    /// Those of queries, keys and values.
    pub qkv: bool,
    /// That of attention's output.
    pub output: bool,
    /// The gated layer's three.
    pub mlp: bool,
}

/// Architectures that are computed as Llama is, or with a step more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoder {
    Llama,
    Mistral,
    Qwen2,
    Qwen3,
}

impl Decoder {
    /// By its `model_type`.
    pub(super) fn named(model_type: &str) -> Result<Self, ModelError> {
        match model_type {
            "llama" => Ok(Self::Llama),
            "mistral" => Ok(Self::Mistral),
            "qwen2" => Ok(Self::Qwen2),
            "qwen3" => Ok(Self::Qwen3),
            other => refused(format!(
                "model_type is {other}, but must be bert, llama, mistral, qwen2 or qwen3"
            )),
        }
    }

    pub(super) fn family(self) -> ModelFamily {
        match self {
            Self::Llama | Self::Mistral | Self::Qwen2 => ModelFamily::Llama,
            Self::Qwen3 => ModelFamily::Qwen3,
        }
    }
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
    partial_rotary_factor: Option<f64>,
    use_sliding_window: Option<bool>,
    /// `null` says that there is none; where nothing is said it depends on the architecture.
    #[serde(default, deserialize_with = "said")]
    sliding_window: Option<Option<usize>>,
    layer_types: Option<Vec<String>>,
}

fn said<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<usize>>, D::Error> {
    Option::deserialize(from).map(Some)
}

#[derive(Deserialize)]
struct Rope {
    #[serde(alias = "type")]
    rope_type: Option<String>,
    rope_theta: Option<f64>,
    partial_rotary_factor: Option<f64>,
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
        let decoder = model_type(bytes)?.map_or(Ok(Decoder::Llama), |name| Decoder::named(&name))?;
        let dims = Dimensions::parse(bytes, CONTEXT_MAX)?;
        let json: Json = json(bytes)?;
        if json
            .hidden_act
            .as_ref()
            .is_some_and(|activation| activation != "silu")
        {
            return refused("hidden_act is not silu");
        }
        all_positions(decoder, &json, dims.max_position_embeddings)?;
        let heads = dims.num_attention_heads;
        let kv_heads = match (json.num_key_value_heads, decoder) {
            (Some(heads), _) => heads,
            (None, Decoder::Llama) => heads,
            // What their authors' code takes then is a number that suits one size of model.
            (None, _) => return refused("num_key_value_heads is missing"),
        };
        let num_key_value_heads = bounded("num_key_value_heads", kv_heads, heads)?;
        if !heads.is_multiple_of(num_key_value_heads) {
            return refused("num_attention_heads is no multiple of num_key_value_heads");
        }
        let rope = json.rope_parameters.or(json.rope_scaling);
        let theta = rope.as_ref().and_then(|rope| rope.rope_theta).or(json.rope_theta);
        let part = rope.as_ref().and_then(|rope| rope.partial_rotary_factor);
        if part
            .or(json.partial_rotary_factor)
            .is_some_and(|part| part != 1.0)
        {
            return refused("partial_rotary_factor is not 1: all numbers of a head are rotated");
        }
        let scaling = rope.map(scaling).transpose()?.flatten();
        let config = Self {
            dims,
            num_key_value_heads,
            head_dim: head_dim(decoder, json.head_dim, dims.hidden_size, heads)?,
            epsilon: epsilon("rms_norm_eps", json.rms_norm_eps)?,
            theta: within("rope_theta", theta.unwrap_or(THETA_DEFAULT), 1.0, THETA_MAX)?,
            scaling,
            tied: json.tie_word_embeddings.unwrap_or(false),
            biases: biases(decoder, json.attention_bias, json.mlp_bias)?,
            head_norms: decoder == Decoder::Qwen3,
        };
        registrable(config.family(), &config.architecture())?;
        Ok(config)
    }

    /// The family of what is made by it.
    pub fn family(&self) -> ModelFamily {
        match self.head_norms {
            true => ModelFamily::Qwen3,
            false => ModelFamily::Llama,
        }
    }

    fn architecture(&self) -> Architecture {
        Architecture {
            kv_heads: narrow(self.num_key_value_heads),
            head_dim: narrow(self.head_dim),
            ..self.dims.architecture(self.family(), self.epsilon)
        }
    }
}

fn head_dim(
    decoder: Decoder,
    stated: Option<usize>,
    width: usize,
    heads: usize,
) -> Result<usize, ModelError> {
    if stated.is_none() && decoder == Decoder::Qwen3 {
        // Its authors' code takes 128 then, whatever the width is.
        return refused("head_dim is missing");
    }
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

/// Mistral's and Qwen 2's are fixed, whatever their configurations say.
fn biases(decoder: Decoder, attention: Option<bool>, mlp: Option<bool>) -> Result<Biases, ModelError> {
    Ok(match decoder {
        Decoder::Llama => Biases {
            qkv: attention.unwrap_or(false),
            output: attention.unwrap_or(false),
            mlp: mlp.unwrap_or(false),
        },
        Decoder::Mistral => Biases::default(),
        Decoder::Qwen2 => Biases {
            qkv: true,
            ..Biases::default()
        },
        Decoder::Qwen3 if attention == Some(true) => {
            return refused("attention_bias is true: a qwen3 with biases is not supported");
        }
        Decoder::Qwen3 => Biases::default(),
    })
}

/// Whether every position sees all before it.
fn all_positions(decoder: Decoder, json: &Json, positions: usize) -> Result<(), ModelError> {
    /// Of the authors' code.
    const WINDOW_DEFAULT: usize = 4096;
    let window = match decoder {
        Decoder::Llama => json.sliding_window.flatten(),
        Decoder::Mistral => json.sliding_window.unwrap_or(Some(WINDOW_DEFAULT)),
        Decoder::Qwen2 | Decoder::Qwen3 if json.use_sliding_window == Some(true) => {
            json.sliding_window.unwrap_or(Some(WINDOW_DEFAULT))
        }
        Decoder::Qwen2 | Decoder::Qwen3 => None,
    };
    if let Some(window) = window.filter(|window| *window < positions) {
        return refused(format!(
            "sliding_window is {window}, less than the {positions} positions: attention to some of them is not supported"
        ));
    }
    let known = ["full_attention", "sliding_attention"];
    let foreign = json
        .layer_types
        .iter()
        .flatten()
        .find(|kind| !known.contains(&&kind[..]));
    match foreign {
        Some(kind) => refused(format!("layer_types has {kind:?}, which is not supported")),
        None => Ok(()),
    }
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
