//! What a manifest says of an exact model, so that a chain can check any number of its results.

use surety_model_trace::{Layout, TaskFacts};
use surety_types::{
    input::{ITEM_WORDS, SETTINGS_WORDS, WORD_BYTES},
    model::{
        self, Architecture, ExactForm, ModelFamily, ModelManifest, Opset, Pooling, Smoothed, SpecialIds,
    },
};

use super::{
    format::{Parts, Weights, weight_root},
    weights::{Activation, BertLayer, BertWeights, LlamaLayer, LlamaWeights},
};
use crate::error::ModelError;

/// Weights that have an exact form.
pub trait Form {
    /// The dimensions. How an encoder pools no weight says, and a decoder does not.
    ///
    /// # Errors
    /// [`ModelError::UnevenLayers`] when one layer is not like the others: then these dimensions could not
    /// say what it computes.
    fn architecture(&self, pooling: Pooling) -> Result<Architecture, ModelError>;

    /// What computes with them.
    fn family(&self) -> ModelFamily;

    /// The weights by name.
    fn parts(&self) -> Parts<'_>;

    /// What a manifest says of them.
    ///
    /// # Errors
    /// Those of [`Self::architecture`].
    fn form(&self, pooling: Pooling) -> Result<ExactForm, ModelError> {
        Ok(ExactForm {
            opset: Opset::V1,
            weight_root: weight_root(&self.parts()),
            architecture: self.architecture(pooling)?,
        })
    }

    /// Whether a manifest says it of these weights.
    ///
    /// # Errors
    /// Those of [`Self::architecture`], [`ModelError::Family`], [`ModelError::Architecture`] and
    /// [`ModelError::WeightRoot`].
    fn check(&self, manifest: &ModelManifest) -> Result<Architecture, ModelError> {
        same_family(manifest.family, self.family())?;
        let stated = manifest.exact.as_ref();
        // What else an engine is to compute by, it has to be told here.
        if let Some(ExactForm { opset, .. }) = stated {
            let Opset::V1 = opset;
        }
        let found = self.form(stated.map_or(Pooling::Mean, |stated| stated.architecture.pooling))?;
        if stated.map(|stated| &stated.architecture) != Some(&found.architecture) {
            return Err(ModelError::Architecture {
                stated: stated.map(|stated| Box::new(stated.architecture.clone())),
                found: Box::new(found.architecture),
            });
        }
        if stated.is_some_and(|stated| stated.weight_root == found.weight_root) {
            Ok(found.architecture)
        } else {
            Err(ModelError::WeightRoot)
        }
    }
}

impl Form for Weights {
    fn architecture(&self, pooling: Pooling) -> Result<Architecture, ModelError> {
        match self {
            Self::Bert(weights) => weights.architecture(pooling),
            Self::Llama(weights) => weights.architecture(pooling),
        }
    }

    fn family(&self) -> ModelFamily {
        self.family()
    }

    fn parts(&self) -> Parts<'_> {
        self.parts()
    }
}

impl Form for BertWeights {
    fn architecture(&self, pooling: Pooling) -> Result<Architecture, ModelError> {
        let LayerForm { smoothed, inner, .. } = common_form(&self.layers, self.norm.epsilon)?;
        let width = self.word_embeddings.width;
        Ok(Architecture {
            vocabulary: narrow(self.word_embeddings.rows)?,
            width: narrow(width)?,
            layers: narrow(self.layers.len())?,
            heads: narrow(self.heads)?,
            kv_heads: narrow(self.heads)?,
            head_dim: narrow(width.checked_div(self.heads).unwrap_or_default())?,
            inner: narrow(inner)?,
            positions: narrow(self.position_embeddings.rows)?,
            epsilon: self.norm.epsilon.to_bits(),
            activation: match self.activation {
                Activation::Gelu => model::Activation::Gelu,
                Activation::GeluTanh => model::Activation::GeluTanh,
            },
            smoothed,
            tied: false,
            precision: self.word_embeddings.q.precision().into(),
            pooling,
        })
    }

    fn family(&self) -> ModelFamily {
        ModelFamily::Bert
    }

    fn parts(&self) -> Parts<'_> {
        self.into()
    }
}

impl Form for LlamaWeights {
    fn architecture(&self, _: Pooling) -> Result<Architecture, ModelError> {
        let LayerForm { smoothed, inner, .. } = common_form(&self.layers, self.norm.epsilon)?;
        Ok(Architecture {
            vocabulary: narrow(self.tokens.rows)?,
            width: narrow(self.tokens.width)?,
            layers: narrow(self.layers.len())?,
            heads: narrow(self.heads)?,
            kv_heads: narrow(self.kv_heads)?,
            head_dim: narrow(self.head_dim)?,
            inner: narrow(inner)?,
            positions: narrow(self.context)?,
            epsilon: self.norm.epsilon.to_bits(),
            activation: model::Activation::SwiGlu,
            smoothed,
            tied: self.head.is_none(),
            precision: self.tokens.q.precision().into(),
            pooling: Pooling::Mean,
        })
    }

    fn family(&self) -> ModelFamily {
        self.family()
    }

    fn parts(&self) -> Parts<'_> {
        self.into()
    }
}

/// Weights of one family say other numbers than the same ones of another.
pub(crate) fn same_family(stated: ModelFamily, found: ModelFamily) -> Result<(), ModelError> {
    if stated == found {
        Ok(())
    } else {
        Err(ModelError::Family { stated, found })
    }
}

/// Whether the smallest claim about a model can have a trace that a game can be played over.
///
/// # Errors
/// [`ModelError::Untraceable`] when not.
pub fn smallest(manifest: &ModelManifest, architecture: &Architecture) -> Result<(), ModelError> {
    // An item of a token; a token after a prompt of one.
    let (units, words) = match manifest.family {
        ModelFamily::Bert => (1, ITEM_WORDS.saturating_add(1)),
        ModelFamily::Llama | ModelFamily::Qwen3 => (2, SETTINGS_WORDS.saturating_add(1)),
    };
    let facts = TaskFacts {
        family: manifest.family,
        operation: manifest.family.operation(),
        input: Default::default(),
        input_bytes: words.saturating_mul(WORD_BYTES),
        units_max: units,
        stop: SpecialIds::default(),
        units,
        output: Default::default(),
    };
    Layout::new(architecture, facts).map_err(ModelError::Untraceable)?;
    Ok(())
}

/// What an [`Architecture`] says once for all layers.
struct LayerForm {
    smoothed: Smoothed,
    /// Outputs of the product to the inner width.
    inner: usize,
    /// Whether heads of queries and keys are normed.
    head_norms: bool,
    /// Of the layer's norms.
    epsilons: Vec<f32>,
}

impl From<&BertLayer> for LayerForm {
    fn from(layer: &BertLayer) -> Self {
        Self {
            smoothed: Smoothed {
                attention: layer.attention_smoothing.is_some(),
                output: layer.output_smoothing.is_some(),
                inner: layer.up_smoothing.is_some(),
                down: layer.down_smoothing.is_some(),
            },
            inner: layer.up.outputs,
            head_norms: false,
            epsilons: vec![layer.attention_norm.epsilon, layer.norm.epsilon],
        }
    }
}

impl From<&LlamaLayer> for LayerForm {
    fn from(layer: &LlamaLayer) -> Self {
        let own = [&layer.attention_norm, &layer.mlp_norm].into_iter();
        let of_heads = layer
            .head_norms
            .iter()
            .flat_map(|norms| [&norms.query, &norms.key]);
        Self {
            smoothed: Smoothed {
                attention: layer.attention_smoothing.is_some(),
                output: layer.output_smoothing.is_some(),
                inner: layer.mlp_smoothing.is_some(),
                down: layer.down_smoothing.is_some(),
            },
            inner: layer.up.outputs,
            head_norms: layer.head_norms.is_some(),
            epsilons: own.chain(of_heads).map(|norm| norm.epsilon).collect(),
        }
    }
}

/// The form of the first layer, which all others and the model's own norm have to share.
fn common_form<'a, L>(layers: &'a [L], epsilon: f32) -> Result<LayerForm, ModelError>
where
    LayerForm: From<&'a L>,
{
    let first = layers.first().ok_or_else(|| uneven(0, "is missing"))?;
    let first = LayerForm::from(first);
    for (number, layer) in layers.iter().map(LayerForm::from).enumerate() {
        if layer.smoothed != first.smoothed {
            return Err(uneven(number, "scales other inputs than the first"));
        }
        if layer.inner != first.inner {
            return Err(uneven(number, "has another inner width than the first"));
        }
        if layer.head_norms != first.head_norms {
            return Err(uneven(
                number,
                "norms its heads where the first does not, or the other way round",
            ));
        }
        let mut epsilons = layer.epsilons.iter();
        if epsilons.any(|of_norm| of_norm.to_bits() != epsilon.to_bits()) {
            return Err(uneven(number, "has another epsilon than the model's norm"));
        }
    }
    Ok(first)
}

fn uneven(layer: usize, what: &str) -> ModelError {
    ModelError::UnevenLayers {
        layer,
        what: what.into(),
    }
}

fn narrow(dimension: usize) -> Result<u32, ModelError> {
    u32::try_from(dimension).map_err(|_| ModelError::Malformed("a dimension beyond all files".into()))
}
