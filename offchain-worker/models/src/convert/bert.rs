//! An encoder's published tensors to its exact parameters.

use surety_exact::Precision;

use super::{
    calibration::{Inputs, LayerInputs},
    quantise::{norm, sharing, table, Chosen, Site},
    source::Source,
    ConvertError, Step,
};
use crate::{
    config::BertConfig,
    weights::{BertLayer, BertWeights},
};

/// Published files name their tensors with it or without.
pub(super) const PREFIX: &str = "bert.";
/// A tensor that every file has.
pub(super) const ANCHOR: &str = "embeddings.word_embeddings.weight";

pub(super) fn quantise(
    source: &mut Source,
    config: &BertConfig,
    precision: Precision,
    seen: Option<&Inputs>,
    step: &mut Step<'_>,
) -> Result<BertWeights, ConvertError> {
    let width = config.width;
    let mut embedding = |name: &str, rows| {
        table(
            source,
            &format!("embeddings.{name}"),
            rows,
            width,
            Chosen::plain(precision),
        )
    };
    let words = embedding("word_embeddings", config.vocabulary)?;
    let positions = embedding("position_embeddings", config.positions)?;
    let types = embedding("token_type_embeddings", config.types)?;
    step.done(1);
    let mut layers = Vec::with_capacity(config.layers);
    for number in 0..config.layers {
        let seen = seen.and_then(|seen| seen.layers.get(number));
        let stem = format!("encoder.layer.{number}");
        layers.push(layer(source, &stem, config, precision, seen)?);
        step.done(number + 2);
    }
    Ok(BertWeights {
        heads: config.heads,
        activation: config.activation,
        words,
        positions,
        types,
        norm: norm(source, "embeddings.LayerNorm", width, config.epsilon, true)?,
        layers,
    })
}

fn layer(
    source: &mut Source,
    layer: &str,
    config: &BertConfig,
    precision: Precision,
    seen: Option<&LayerInputs>,
) -> Result<BertLayer, ConvertError> {
    let (width, inner, epsilon) = (config.width, config.inner, config.epsilon);
    let stem = |part: &str| format!("{layer}.{part}");
    let [query, key, value] = ["query", "key", "value"].map(|part| stem(&format!("attention.self.{part}")));
    let site = |stem, outputs, inputs| Site {
        stem,
        outputs,
        inputs,
        bias: true,
    };
    let three = [&query, &key, &value].map(|stem| site(stem, width, width));
    let (attention_pre, [query, key, value]) =
        sharing(source, precision, three, seen.map(|seen| &seen.attention))?;
    let output = stem("attention.output.dense");
    let output = [site(&output, width, width)];
    let (output_pre, [output]) = sharing(source, precision, output, seen.map(|seen| &seen.output))?;
    let up = stem("intermediate.dense");
    let (up_pre, [up]) = sharing(
        source,
        precision,
        [site(&up, inner, width)],
        seen.map(|seen| &seen.up),
    )?;
    let down = stem("output.dense");
    let (down_pre, [down]) = sharing(
        source,
        precision,
        [site(&down, width, inner)],
        seen.map(|seen| &seen.down),
    )?;
    Ok(BertLayer {
        attention_pre,
        query,
        key,
        value,
        output_pre,
        output,
        attention_norm: norm(source, &stem("attention.output.LayerNorm"), width, epsilon, true)?,
        up_pre,
        up,
        down_pre,
        down,
        norm: norm(source, &stem("output.LayerNorm"), width, epsilon, true)?,
    })
}
