//! A decoder's published tensors to its exact parameters.

use surety_exact::{ArithmeticError, Precision};

use super::{
    ConvertError, Recipe, Step,
    calibration::{self, Calibrator, Inputs, LayerInputs, Sequences},
    layers,
    quantize::{Chosen, Site, norm, sharing, table},
    rotary,
    smooth::even_out,
    source::Source,
};
use crate::{
    config::{Dimensions, LlamaConfig},
    error::ModelError,
    tokens::TextCodec,
    weights::{HeadNorms, LlamaLayer, LlamaWeights},
};

impl Recipe for LlamaConfig {
    type Weights = LlamaWeights;

    fn dims(&self) -> &Dimensions {
        &self.dims
    }

    fn named(source: Source) -> Source {
        source
    }

    fn calibration(codec: &TextCodec) -> Result<Sequences, ModelError> {
        calibration::for_decoder(codec)
    }

    fn look(
        calibrator: &dyn Calibrator,
        weights: &LlamaWeights,
        text: &Sequences,
    ) -> Result<Inputs, ArithmeticError> {
        calibrator.llama(weights, text)
    }

    fn quantize(
        &self,
        source: &mut Source,
        precision: Precision,
        seen: Option<&Inputs>,
        step: &mut Step<'_>,
    ) -> Result<LlamaWeights, ConvertError> {
        let (vocabulary, width) = (self.dims.vocab_size, self.dims.hidden_size);
        let tokens = table(
            source,
            "model.embed_tokens",
            vocabulary,
            width,
            Chosen::plain(precision),
        )?;
        let mut layers = layers(self.dims.num_hidden_layers, seen, step, |number, seen| {
            let stem = format!("model.layers.{number}");
            layer(source, &stem, self, precision, seen)
        })?;
        even_out(&mut layers, |layer| &mut layer.attention_smoothing);
        even_out(&mut layers, |layer| &mut layer.output_smoothing);
        even_out(&mut layers, |layer| &mut layer.mlp_smoothing);
        even_out(&mut layers, |layer| &mut layer.down_smoothing);
        let head = Site {
            stem: "lm_head",
            outputs: vocabulary,
            inputs: width,
            bias: false,
        };
        Ok(LlamaWeights {
            heads: self.dims.num_attention_heads,
            kv_heads: self.num_key_value_heads,
            head_dim: self.head_dim,
            context: self.dims.max_position_embeddings,
            turns: rotary::turns(self),
            tokens,
            layers,
            norm: norm(source, "model.norm", width, self.epsilon, false)?,
            head: if self.tied {
                None
            } else {
                Some(head.linear(source, Chosen::plain(precision))?)
            },
        })
    }
}

fn layer(
    source: &mut Source,
    layer: &str,
    config: &LlamaConfig,
    precision: Precision,
    seen: Option<&LayerInputs>,
) -> Result<LlamaLayer, ConvertError> {
    let (width, inner, epsilon) = (
        config.dims.hidden_size,
        config.dims.intermediate_size,
        config.epsilon,
    );
    let queries = config.dims.num_attention_heads * config.head_dim;
    let keys = config.num_key_value_heads * config.head_dim;
    let biases = config.biases;
    let stem = |part: &str| format!("{layer}.{part}");
    let site = |stem, outputs, inputs, bias| Site {
        stem,
        outputs,
        inputs,
        bias,
    };
    let names = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"].map(stem);
    let [query, key, value] = &names;
    let three = [(query, queries), (key, keys), (value, keys)]
        .map(|(stem, outputs)| site(stem, outputs, width, biases.qkv));
    let (attention_smoothing, [query, key, value]) =
        sharing(source, precision, three, seen.map(|seen| &seen.attention))?;
    let mut head_norm = |part| norm(source, &stem(part), config.head_dim, epsilon, false);
    let head_norms = match config.head_norms {
        true => Some(HeadNorms {
            query: head_norm("self_attn.q_norm")?,
            key: head_norm("self_attn.k_norm")?,
        }),
        false => None,
    };
    let output = stem("self_attn.o_proj");
    let output = [site(&output, width, queries, biases.output)];
    let (output_smoothing, [output]) = sharing(source, precision, output, seen.map(|seen| &seen.output))?;
    let names = ["mlp.gate_proj", "mlp.up_proj"].map(stem);
    let two = names.each_ref().map(|stem| site(stem, inner, width, biases.mlp));
    let (mlp_smoothing, [gate, up]) = sharing(source, precision, two, seen.map(|seen| &seen.up))?;
    let down = stem("mlp.down_proj");
    let down = [site(&down, width, inner, biases.mlp)];
    let (down_smoothing, [down]) = sharing(source, precision, down, seen.map(|seen| &seen.down))?;
    Ok(LlamaLayer {
        attention_norm: norm(source, &stem("input_layernorm"), width, epsilon, false)?,
        attention_smoothing,
        query,
        key,
        value,
        head_norms,
        output_smoothing,
        output,
        mlp_norm: norm(source, &stem("post_attention_layernorm"), width, epsilon, false)?,
        mlp_smoothing,
        gate,
        up,
        down_smoothing,
        down,
    })
}
