//! What a manifest says of an exact model, so that a chain can check any number of its results.

use surety_model_trace::{Layout, TaskFacts};
use surety_types::model::{self, Architecture, ExactForm, ModelFamily, ModelManifest, Smoothed};

use super::{
    format::{weight_root, Parts, Weights},
    weights::{Activation, BertWeights, LlamaWeights, Norm},
};
use crate::error::ModelError;

/// Weights that have an exact form.
pub trait Form {
    /// The dimensions.
    ///
    /// # Errors
    /// [`ModelError::UnevenLayers`] when one layer is not like the others: then these dimensions could not say what it
    /// computes.
    fn architecture(&self) -> Result<Architecture, ModelError>;

    /// The weights by name.
    fn parts(&self) -> Parts<'_>;

    /// What a manifest says of them.
    ///
    /// # Errors
    /// Those of [`Self::architecture`].
    fn form(&self) -> Result<ExactForm, ModelError> {
        Ok(ExactForm {
            weight_root: weight_root(&self.parts()),
            architecture: self.architecture()?,
        })
    }

    /// Whether a manifest says it of these weights.
    ///
    /// # Errors
    /// Those of [`Self::architecture`], [`ModelError::Architecture`] and [`ModelError::WeightRoot`].
    fn check(&self, manifest: &ModelManifest) -> Result<Architecture, ModelError> {
        let found = self.form()?;
        let stated = manifest.exact.as_ref();
        if stated.map(|stated| &stated.architecture) != Some(&found.architecture) {
            return Err(ModelError::Architecture {
                stated: stated.map(|stated| Box::new(stated.architecture.clone())),
                found: Box::new(found.architecture),
            });
        }
        match stated.is_some_and(|stated| stated.weight_root == found.weight_root) {
            true => Ok(found.architecture),
            false => Err(ModelError::WeightRoot),
        }
    }
}

impl Form for Weights {
    fn architecture(&self) -> Result<Architecture, ModelError> {
        match self {
            Self::Bert(weights) => weights.architecture(),
            Self::Llama(weights) => weights.architecture(),
        }
    }

    fn parts(&self) -> Parts<'_> {
        self.parts()
    }
}

impl Form for BertWeights {
    fn architecture(&self) -> Result<Architecture, ModelError> {
        let Some(first) = self.layers.first() else {
            return Err(uneven(0, "is missing"));
        };
        let smoothed = Smoothed {
            attention: first.attention_pre.is_some(),
            output: first.output_pre.is_some(),
            inner: first.up_pre.is_some(),
            down: first.down_pre.is_some(),
        };
        for (number, layer) in self.layers.iter().enumerate() {
            let pres = [
                &layer.attention_pre,
                &layer.output_pre,
                &layer.up_pre,
                &layer.down_pre,
            ];
            like_the_others(number, pres, smoothed, (layer.up.outputs, first.up.outputs))?;
            same_epsilon(number, &self.norm, [&layer.attention_norm, &layer.norm])?;
        }
        let width = self.words.width;
        Ok(Architecture {
            vocabulary: narrow(self.words.rows)?,
            width: narrow(width)?,
            layers: narrow(self.layers.len())?,
            heads: narrow(self.heads)?,
            kv_heads: narrow(self.heads)?,
            head_dim: narrow(width.checked_div(self.heads).unwrap_or_default())?,
            inner: narrow(first.up.outputs)?,
            positions: narrow(self.positions.rows)?,
            epsilon: self.norm.epsilon.to_bits(),
            activation: match self.activation {
                Activation::Gelu => model::Activation::Gelu,
                Activation::GeluTanh => model::Activation::GeluTanh,
            },
            smoothed,
            tied: false,
            precision: self.words.q.precision().into(),
        })
    }

    fn parts(&self) -> Parts<'_> {
        self.into()
    }
}

impl Form for LlamaWeights {
    fn architecture(&self) -> Result<Architecture, ModelError> {
        let Some(first) = self.layers.first() else {
            return Err(uneven(0, "is missing"));
        };
        let smoothed = Smoothed {
            attention: first.attention_pre.is_some(),
            output: first.output_pre.is_some(),
            inner: first.mlp_pre.is_some(),
            down: first.down_pre.is_some(),
        };
        for (number, layer) in self.layers.iter().enumerate() {
            let pres = [
                &layer.attention_pre,
                &layer.output_pre,
                &layer.mlp_pre,
                &layer.down_pre,
            ];
            like_the_others(number, pres, smoothed, (layer.up.outputs, first.up.outputs))?;
            same_epsilon(number, &self.norm, [&layer.attention_norm, &layer.mlp_norm])?;
        }
        Ok(Architecture {
            vocabulary: narrow(self.tokens.rows)?,
            width: narrow(self.tokens.width)?,
            layers: narrow(self.layers.len())?,
            heads: narrow(self.heads)?,
            kv_heads: narrow(self.kv_heads)?,
            head_dim: narrow(self.head_dim)?,
            inner: narrow(first.up.outputs)?,
            positions: narrow(self.context)?,
            epsilon: self.norm.epsilon.to_bits(),
            activation: model::Activation::SwiGlu,
            smoothed,
            tied: self.head.is_none(),
            precision: self.tokens.q.precision().into(),
        })
    }

    fn parts(&self) -> Parts<'_> {
        self.into()
    }
}

/// Most units of which a claim about a model can have a trace that a game can be played over.
///
/// # Errors
/// [`ModelError::Untraceable`] when there are none.
pub fn units_max(
    manifest: &ModelManifest,
    architecture: &Architecture,
    most: u32,
) -> Result<u32, ModelError> {
    let least = match manifest.family {
        ModelFamily::Bert => 1,
        ModelFamily::Llama => 2,
    };
    let layout = |units| {
        let facts = TaskFacts {
            family: manifest.family,
            operation: manifest.family.operation(),
            input: Default::default(),
            units,
            output: Default::default(),
        };
        Layout::new(architecture, facts)
    };
    let mut units = most.max(least);
    while units > least && layout(units).is_err() {
        units = (units / 2).max(least);
    }
    layout(units).map_err(ModelError::Untraceable)?;
    Ok(units)
}

fn like_the_others(
    layer: usize,
    pres: [&Option<Vec<f32>>; 4],
    smoothed: Smoothed,
    (inner, first_inner): (usize, usize),
) -> Result<(), ModelError> {
    let expected = [smoothed.attention, smoothed.output, smoothed.inner, smoothed.down];
    if pres.map(Option::is_some) != expected {
        return Err(uneven(layer, "scales other inputs than the first"));
    }
    match inner == first_inner {
        true => Ok(()),
        false => Err(uneven(layer, "has another inner width than the first")),
    }
}

fn same_epsilon(layer: usize, model: &Norm, norms: [&Norm; 2]) -> Result<(), ModelError> {
    let bits = |norm: &Norm| norm.epsilon.to_bits();
    match norms.into_iter().all(|norm| bits(norm) == bits(model)) {
        true => Ok(()),
        false => Err(uneven(layer, "has another epsilon than the model's norm")),
    }
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
