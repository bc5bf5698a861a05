//! An encoder's published tensors to its exact parameters.

use surety_exact::{ArithmeticError, Precision};

use super::{
    ConvertError, Recipe, Step,
    calibration::{self, Calibrator, Inputs, LayerInputs, Sequences},
    layers,
    quantize::{Chosen, Site, norm, sharing, table},
    smooth::even_out,
    source::Source,
};
use crate::{
    config::{BertConfig, Dimensions},
    error::ModelError,
    tokens::TextCodec,
    weights::{BertLayer, BertWeights},
};

/// Published files name their tensors with it or without.
const PREFIX: &str = "bert.";
/// A tensor that every file has.
const ANCHOR: &str = "embeddings.word_embeddings.weight";

impl Recipe for BertConfig {
    type Weights = BertWeights;

    fn dims(&self) -> &Dimensions {
        &self.dims
    }

    fn named(source: Source) -> Source {
        source.with_prefix(PREFIX, ANCHOR)
    }

    fn calibration(codec: &TextCodec) -> Result<Sequences, ModelError> {
        calibration::for_encoder(codec)
    }

    fn look(
        calibrator: &dyn Calibrator,
        weights: &BertWeights,
        text: &Sequences,
    ) -> Result<Inputs, ArithmeticError> {
        calibrator.bert(weights, text)
    }

    fn quantize(
        &self,
        source: &mut Source,
        precision: Precision,
        seen: Option<&Inputs>,
        step: &mut Step<'_>,
    ) -> Result<BertWeights, ConvertError> {
        let width = self.dims.hidden_size;
        let mut embedding = |name: &str, rows| {
            table(
                source,
                &format!("embeddings.{name}"),
                rows,
                width,
                Chosen::plain(precision),
            )
        };
        let word_embeddings = embedding("word_embeddings", self.dims.vocab_size)?;
        let position_embeddings = embedding("position_embeddings", self.dims.max_position_embeddings)?;
        let token_type_embeddings = embedding("token_type_embeddings", self.type_vocab_size)?;
        let mut layers = layers(self.dims.num_hidden_layers, seen, step, |number, seen| {
            let stem = format!("encoder.layer.{number}");
            layer(source, &stem, self, precision, seen)
        })?;
        even_out(&mut layers, |layer| &mut layer.attention_smoothing);
        even_out(&mut layers, |layer| &mut layer.output_smoothing);
        even_out(&mut layers, |layer| &mut layer.up_smoothing);
        even_out(&mut layers, |layer| &mut layer.down_smoothing);
        Ok(BertWeights {
            heads: self.dims.num_attention_heads,
            activation: self.activation,
            word_embeddings,
            position_embeddings,
            token_type_embeddings,
            norm: norm(source, "embeddings.LayerNorm", width, self.epsilon, true)?,
            layers,
        })
    }
}

fn layer(
    source: &mut Source,
    layer: &str,
    config: &BertConfig,
    precision: Precision,
    seen: Option<&LayerInputs>,
) -> Result<BertLayer, ConvertError> {
    let (width, inner, epsilon) = (
        config.dims.hidden_size,
        config.dims.intermediate_size,
        config.epsilon,
    );
    let stem = |part: &str| format!("{layer}.{part}");
    let [query, key, value] = ["query", "key", "value"].map(|part| stem(&format!("attention.self.{part}")));
    let site = |stem, outputs, inputs| Site {
        stem,
        outputs,
        inputs,
        bias: true,
    };
    let three = [&query, &key, &value].map(|stem| site(stem, width, width));
    let (attention_smoothing, [query, key, value]) =
        sharing(source, precision, three, seen.map(|seen| &seen.attention))?;
    let output = stem("attention.output.dense");
    let output = [site(&output, width, width)];
    let (output_smoothing, [output]) = sharing(source, precision, output, seen.map(|seen| &seen.output))?;
    let up = stem("intermediate.dense");
    let (up_smoothing, [up]) = sharing(
        source,
        precision,
        [site(&up, inner, width)],
        seen.map(|seen| &seen.up),
    )?;
    let down = stem("output.dense");
    let (down_smoothing, [down]) = sharing(
        source,
        precision,
        [site(&down, width, inner)],
        seen.map(|seen| &seen.down),
    )?;
    Ok(BertLayer {
        attention_smoothing,
        query,
        key,
        value,
        output_smoothing,
        output,
        attention_norm: norm(source, &stem("attention.output.LayerNorm"), width, epsilon, true)?,
        up_smoothing,
        up,
        down_smoothing,
        down,
        norm: norm(source, &stem("output.LayerNorm"), width, epsilon, true)?,
    })
}
