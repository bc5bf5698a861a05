//! From tensors to the parameters of an architecture.

use super::read::Tensors;
use crate::{
    config::{BertConfig, Biases, LlamaConfig},
    error::ModelError,
    weights::{BertLayer, BertWeights, HeadNorms, LlamaLayer, LlamaWeights},
};

pub(super) fn bert(mut tensors: Tensors, config: &BertConfig) -> Result<BertWeights, ModelError> {
    let width = config.dims.hidden_size;
    let table = |name: &str, rows| (format!("embeddings.{name}"), rows);
    let tables = [
        table("word_embeddings", config.dims.vocab_size),
        table("position_embeddings", config.dims.max_position_embeddings),
        table("token_type_embeddings", config.type_vocab_size),
    ];
    let [words, positions, types] = tables.map(|(stem, rows)| tensors.table(&stem, rows, width));
    let weights = BertWeights {
        heads: config.dims.num_attention_heads,
        activation: config.activation,
        word_embeddings: words?,
        position_embeddings: positions?,
        token_type_embeddings: types?,
        norm: tensors.norm("embeddings.LayerNorm", width, config.epsilon, true)?,
        layers: (0..config.dims.num_hidden_layers)
            .map(|layer| bert_layer(&mut tensors, &format!("encoder.layer.{layer}"), config))
            .collect::<Result<_, _>>()?,
    };
    tensors.finish()?;
    Ok(weights)
}

fn bert_layer(tensors: &mut Tensors, layer: &str, config: &BertConfig) -> Result<BertLayer, ModelError> {
    let (width, inner, epsilon) = (
        config.dims.hidden_size,
        config.dims.intermediate_size,
        config.epsilon,
    );
    let stem = |part: &str| format!("{layer}.{part}");
    let square = (width, width);
    Ok(BertLayer {
        attention_smoothing: tensors.optional(&stem("attention.pre"), width)?,
        query: tensors.linear(&stem("attention.self.query"), square, true)?,
        key: tensors.linear(&stem("attention.self.key"), square, true)?,
        value: tensors.linear(&stem("attention.self.value"), square, true)?,
        output_smoothing: tensors.optional(&stem("attention.output.dense.pre"), width)?,
        output: tensors.linear(&stem("attention.output.dense"), square, true)?,
        attention_norm: tensors.norm(&stem("attention.output.LayerNorm"), width, epsilon, true)?,
        up_smoothing: tensors.optional(&stem("intermediate.dense.pre"), width)?,
        up: tensors.linear(&stem("intermediate.dense"), (inner, width), true)?,
        down_smoothing: tensors.optional(&stem("output.dense.pre"), inner)?,
        down: tensors.linear(&stem("output.dense"), (width, inner), true)?,
        norm: tensors.norm(&stem("output.LayerNorm"), width, epsilon, true)?,
    })
}

pub(super) fn llama(mut tensors: Tensors, config: &LlamaConfig) -> Result<LlamaWeights, ModelError> {
    let (vocabulary, width) = (config.dims.vocab_size, config.dims.hidden_size);
    let weights = LlamaWeights {
        heads: config.dims.num_attention_heads,
        kv_heads: config.num_key_value_heads,
        head_dim: config.head_dim,
        context: config.dims.max_position_embeddings,
        turns: tensors.turns("rotary.turns", config.head_dim / 2)?,
        tokens: tensors.table("model.embed_tokens", vocabulary, width)?,
        layers: (0..config.dims.num_hidden_layers)
            .map(|layer| llama_layer(&mut tensors, &format!("model.layers.{layer}"), config))
            .collect::<Result<_, _>>()?,
        norm: tensors.norm("model.norm", width, config.epsilon, false)?,
        head: if config.tied {
            None
        } else {
            Some(tensors.linear("lm_head", (vocabulary, width), false)?)
        },
    };
    tensors.finish()?;
    Ok(weights)
}

fn llama_layer(tensors: &mut Tensors, layer: &str, config: &LlamaConfig) -> Result<LlamaLayer, ModelError> {
    let (width, inner, epsilon) = (
        config.dims.hidden_size,
        config.dims.intermediate_size,
        config.epsilon,
    );
    let queries = config.dims.num_attention_heads * config.head_dim;
    let keys = config.num_key_value_heads * config.head_dim;
    let Biases { qkv, output, mlp } = config.biases;
    let stem = |part: &str| format!("{layer}.{part}");
    Ok(LlamaLayer {
        attention_norm: tensors.norm(&stem("input_layernorm"), width, epsilon, false)?,
        attention_smoothing: tensors.optional(&stem("attention.pre"), width)?,
        query: tensors.linear(&stem("self_attn.q_proj"), (queries, width), qkv)?,
        key: tensors.linear(&stem("self_attn.k_proj"), (keys, width), qkv)?,
        value: tensors.linear(&stem("self_attn.v_proj"), (keys, width), qkv)?,
        head_norms: match config.head_norms {
            true => Some(HeadNorms {
                query: tensors.norm(&stem("self_attn.q_norm"), config.head_dim, epsilon, false)?,
                key: tensors.norm(&stem("self_attn.k_norm"), config.head_dim, epsilon, false)?,
            }),
            false => None,
        },
        output_smoothing: tensors.optional(&stem("self_attn.o_proj.pre"), queries)?,
        output: tensors.linear(&stem("self_attn.o_proj"), (width, queries), output)?,
        mlp_norm: tensors.norm(&stem("post_attention_layernorm"), width, epsilon, false)?,
        mlp_smoothing: tensors.optional(&stem("mlp.pre"), width)?,
        gate: tensors.linear(&stem("mlp.gate_proj"), (inner, width), mlp)?,
        up: tensors.linear(&stem("mlp.up_proj"), (inner, width), mlp)?,
        down_smoothing: tensors.optional(&stem("mlp.down_proj.pre"), inner)?,
        down: tensors.linear(&stem("mlp.down_proj"), (width, inner), mlp)?,
    })
}
