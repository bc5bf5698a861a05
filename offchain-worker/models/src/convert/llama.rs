//! A decoder's published tensors to its exact parameters.

use surety_exact::Precision;

use super::{
    calibration::{Inputs, LayerInputs},
    quantise::{norm, sharing, table, Chosen, Site},
    rotary,
    source::Source,
    ConvertError, Step,
};
use crate::{
    config::LlamaConfig,
    weights::{LlamaLayer, LlamaWeights},
};

pub(super) fn quantise(
    source: &mut Source,
    config: &LlamaConfig,
    precision: Precision,
    seen: Option<&Inputs>,
    step: &mut Step<'_>,
) -> Result<LlamaWeights, ConvertError> {
    let (vocabulary, width) = (config.vocabulary, config.width);
    let tokens = table(
        source,
        "model.embed_tokens",
        vocabulary,
        width,
        Chosen::plain(precision),
    )?;
    step.done(1);
    let mut layers = Vec::with_capacity(config.layers);
    for number in 0..config.layers {
        let seen = seen.and_then(|seen| seen.layers.get(number));
        layers.push(layer(
            source,
            &format!("model.layers.{number}"),
            config,
            precision,
            seen,
        )?);
        step.done(number + 2);
    }
    let head = Site {
        stem: "lm_head",
        outputs: vocabulary,
        inputs: width,
        bias: false,
    };
    Ok(LlamaWeights {
        heads: config.heads,
        kv_heads: config.kv_heads,
        head_dim: config.head_dim,
        context: config.context,
        turns: rotary::turns(config),
        tokens,
        layers,
        norm: norm(source, "model.norm", width, config.epsilon, false)?,
        head: match config.tied {
            true => None,
            false => Some(head.linear(source, Chosen::plain(precision))?),
        },
        end_tokens: config.end_tokens.clone(),
    })
}

fn layer(
    source: &mut Source,
    layer: &str,
    config: &LlamaConfig,
    precision: Precision,
    seen: Option<&LayerInputs>,
) -> Result<LlamaLayer, ConvertError> {
    let (width, inner, epsilon) = (config.width, config.inner, config.epsilon);
    let queries = config.heads * config.head_dim;
    let keys = config.kv_heads * config.head_dim;
    let stem = |part: &str| format!("{layer}.{part}");
    let site = |stem, outputs, inputs, bias| Site {
        stem,
        outputs,
        inputs,
        bias,
    };
    let names = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"].map(stem);
    let [query, key, value] = &names;
    let biased = config.attention_bias;
    let three = [(query, queries), (key, keys), (value, keys)]
        .map(|(stem, outputs)| site(stem, outputs, width, biased));
    let (attention_pre, [query, key, value]) =
        sharing(source, precision, three, seen.map(|seen| &seen.attention))?;
    let output = stem("self_attn.o_proj");
    let output = [site(&output, width, queries, biased)];
    let (output_pre, [output]) = sharing(source, precision, output, seen.map(|seen| &seen.output))?;
    let biased = config.mlp_bias;
    let names = ["mlp.gate_proj", "mlp.up_proj"].map(stem);
    let two = names.each_ref().map(|stem| site(stem, inner, width, biased));
    let (mlp_pre, [gate, up]) = sharing(source, precision, two, seen.map(|seen| &seen.up))?;
    let down = stem("mlp.down_proj");
    let down = [site(&down, width, inner, biased)];
    let (down_pre, [down]) = sharing(source, precision, down, seen.map(|seen| &seen.down))?;
    Ok(LlamaLayer {
        attention_norm: norm(source, &stem("input_layernorm"), width, epsilon, false)?,
        attention_pre,
        query,
        key,
        value,
        output_pre,
        output,
        mlp_norm: norm(source, &stem("post_attention_layernorm"), width, epsilon, false)?,
        mlp_pre,
        gate,
        up,
        down_pre,
        down,
    })
}
