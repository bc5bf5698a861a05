//! A model's tensors by what they are for.

use surety_model_trace::{InLayer, Tensor};
use surety_models::{
    format::Part,
    weights::{BertLayer, BertWeights, LlamaLayer, LlamaWeights, Norm},
};

fn vector<L>(values: Option<&Vec<f32>>) -> Option<Part<'_, L>> {
    values.map(|values| Part::Vector(values))
}

fn weight<L>(norm: &Norm) -> Option<Part<'_, L>> {
    Some(Part::Vector(&norm.weight))
}

fn bias<L>(norm: &Norm) -> Option<Part<'_, L>> {
    vector(norm.bias.as_ref())
}

/// An encoder's.
pub(super) fn of_bert<L>(weights: &BertWeights<L>, tensor: Tensor) -> Option<Part<'_, L>> {
    match tensor {
        Tensor::Tokens => Some(Part::Table(&weights.word_embeddings)),
        Tensor::Positions => Some(Part::Table(&weights.position_embeddings)),
        Tensor::Types => Some(Part::Table(&weights.token_type_embeddings)),
        Tensor::EmbeddingsNorm => weight(&weights.norm),
        Tensor::EmbeddingsNormBias => bias(&weights.norm),
        Tensor::Layer(layer, part) => of_bert_layer(weights.layers.get(layer as usize)?, part),
        Tensor::Turns | Tensor::FinalNorm | Tensor::Head => None,
    }
}

fn of_bert_layer<L>(layer: &BertLayer<L>, part: InLayer) -> Option<Part<'_, L>> {
    match part {
        InLayer::AttentionSmoothing => vector(layer.attention_smoothing.as_ref()),
        InLayer::Query => Some(Part::Linear(&layer.query)),
        InLayer::Key => Some(Part::Linear(&layer.key)),
        InLayer::Value => Some(Part::Linear(&layer.value)),
        InLayer::OutputSmoothing => vector(layer.output_smoothing.as_ref()),
        InLayer::Output => Some(Part::Linear(&layer.output)),
        InLayer::AttentionNorm => weight(&layer.attention_norm),
        InLayer::AttentionNormBias => bias(&layer.attention_norm),
        InLayer::InnerSmoothing => vector(layer.up_smoothing.as_ref()),
        InLayer::Gate | InLayer::QueryNorm | InLayer::KeyNorm => None,
        InLayer::Up => Some(Part::Linear(&layer.up)),
        InLayer::DownSmoothing => vector(layer.down_smoothing.as_ref()),
        InLayer::Down => Some(Part::Linear(&layer.down)),
        InLayer::Norm => weight(&layer.norm),
        InLayer::NormBias => bias(&layer.norm),
    }
}

/// A decoder's.
pub(super) fn of_llama<L>(weights: &LlamaWeights<L>, tensor: Tensor) -> Option<Part<'_, L>> {
    match tensor {
        Tensor::Tokens => Some(Part::Table(&weights.tokens)),
        Tensor::Turns => Some(Part::Turns(&weights.turns)),
        Tensor::FinalNorm => weight(&weights.norm),
        Tensor::Head => weights.head.as_ref().map(Part::Linear),
        Tensor::Layer(layer, part) => of_llama_layer(weights.layers.get(layer as usize)?, part),
        Tensor::Positions | Tensor::Types | Tensor::EmbeddingsNorm | Tensor::EmbeddingsNormBias => None,
    }
}

fn of_llama_layer<L>(layer: &LlamaLayer<L>, part: InLayer) -> Option<Part<'_, L>> {
    match part {
        InLayer::AttentionSmoothing => vector(layer.attention_smoothing.as_ref()),
        InLayer::Query => Some(Part::Linear(&layer.query)),
        InLayer::Key => Some(Part::Linear(&layer.key)),
        InLayer::Value => Some(Part::Linear(&layer.value)),
        InLayer::OutputSmoothing => vector(layer.output_smoothing.as_ref()),
        InLayer::Output => Some(Part::Linear(&layer.output)),
        InLayer::AttentionNorm => weight(&layer.attention_norm),
        InLayer::InnerSmoothing => vector(layer.mlp_smoothing.as_ref()),
        InLayer::Gate => Some(Part::Linear(&layer.gate)),
        InLayer::Up => Some(Part::Linear(&layer.up)),
        InLayer::DownSmoothing => vector(layer.down_smoothing.as_ref()),
        InLayer::Down => Some(Part::Linear(&layer.down)),
        InLayer::Norm => weight(&layer.mlp_norm),
        InLayer::QueryNorm => weight(&layer.head_norms.as_ref()?.query),
        InLayer::KeyNorm => weight(&layer.head_norms.as_ref()?.key),
        InLayer::AttentionNormBias | InLayer::NormBias => None,
    }
}
