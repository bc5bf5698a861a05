//! How well a decoder's two forms foretell the same text: the published floats with candle, and the exact
//! form.

use std::{collections::HashMap, fs, path::Path};

use candle_core::{DType, Device, Tensor, safetensors::load_buffer};
use candle_nn::VarBuilder;
use candle_transformers::models::llama::{Cache, Llama, LlamaConfig, LlamaEosToks};
use serde_json::json;
use surety_engine::exact::{LlamaModel, Sequence};
use tokenizers::Tokenizer;

use crate::{Result, clock::Blind, decoder::fault, prepare, talk::say};

/// Tokens that are seen together, as in training.
const WINDOW: usize = 128;
/// Most tokens in all.
const TOKENS_MAX: usize = 6_144;

pub fn run(home: &Path, model: &str, source: &Path, text: &Path) -> Result<()> {
    let exact = LlamaModel::new(prepare::llama(home, model)?).map_err(fault)?;
    let config: LlamaConfig = serde_json::from_slice(&fs::read(source.join("config.json"))?)?;
    let tokens = tokens(source, text, &config)?;
    let reference = Reference::load(source, config)?;
    let (mut float, mut integer, mut count) = (0.0, 0.0, 0usize);
    for window in tokens.chunks_exact(WINDOW).take(TOKENS_MAX / WINDOW) {
        float += reference.surprise(window)?;
        integer += surprise(&exact, window)?;
        count += window.len() - 1;
    }
    if count == 0 {
        return Err("the text is too short".into());
    }
    let perplexity = |sum: f64| (sum / count as f64).exp();
    say(&json!({
        "ready": true,
        "tokens": count,
        "perplexity_f32": perplexity(float),
        "perplexity_exact": perplexity(integer),
        "perplexity_ratio": perplexity(integer) / perplexity(float),
    }))
}

/// The text's paragraphs, each between a beginning and an end, as such a model has seen them in training.
fn tokens(source: &Path, text: &Path, config: &LlamaConfig) -> Result<Vec<u32>> {
    let tokenizer = Tokenizer::from_file(source.join("tokenizer.json"))?;
    let end = match &config.eos_token_id {
        Some(LlamaEosToks::Single(end)) => Some(*end),
        Some(LlamaEosToks::Multiple(ends)) => ends.first().copied(),
        None => None,
    };
    let mut tokens = Vec::new();
    let text = fs::read_to_string(text)?;
    for paragraph in text
        .split("\n\n")
        .map(str::trim)
        .filter(|paragraph| !paragraph.is_empty())
    {
        tokens.extend(tokenizer.encode(paragraph, true)?.get_ids());
        tokens.extend(end);
    }
    Ok(tokens)
}

/// In nats, of all tokens but the first.
fn surprise(model: &LlamaModel, window: &[u32]) -> Result<f64> {
    let mut sequence = Sequence::new(model, window.len());
    model.forward(&mut sequence, window, &mut Blind).map_err(fault)?;
    let mut logits = Vec::new();
    model.logits(sequence.states(), &mut logits).map_err(fault)?;
    let rows = logits.chunks_exact(model.vocabulary());
    rows.zip(window.iter().skip(1))
        .map(|(row, next)| nats(row, *next))
        .sum()
}

fn nats(logits: &[f32], token: u32) -> Result<f64> {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|logit| f64::from(logit - most).exp()).sum();
    let own = logits
        .get(token as usize)
        .ok_or("a token outside of the vocabulary")?;
    Ok(sum.ln() - f64::from(own - most))
}

struct Reference {
    model: Llama,
    config: candle_transformers::models::llama::Config,
}

impl Reference {
    fn load(source: &Path, config: LlamaConfig) -> Result<Self> {
        let tensors: HashMap<String, Tensor> =
            load_buffer(&fs::read(source.join("model.safetensors"))?, &Device::Cpu)?;
        let config = config.into_config(false);
        let model = Llama::load(
            VarBuilder::from_tensors(tensors, DType::F32, &Device::Cpu),
            &config,
        )?;
        Ok(Self { model, config })
    }

    /// Token by token: it gives logits for the last one only.
    fn surprise(&self, window: &[u32]) -> Result<f64> {
        let mut cache = Cache::new(true, DType::F32, &self.config, &Device::Cpu)?;
        let mut sum = 0.0;
        for (position, pair) in window.windows(2).enumerate() {
            let &[token, next] = pair else { continue };
            let token = Tensor::new(&[[token]], &Device::Cpu)?;
            let logits: Vec<f32> = self
                .model
                .forward(&token, position, &mut cache)?
                .flatten_all()?
                .to_vec1()?;
            sum += nats(&logits, next)?;
        }
        Ok(sum)
    }
}
