//! BERT-style encoders on candle: sentence embeddings.
//!
//! Items are computed one at a time, each in a batch of one and without padding, so that a row never depends
//! on its neighbors. Threads share items between them, never the sums within one.

mod config;
mod weights;

use candle_core::{Device, Tensor};
use candle_transformers::models::bert::BertModel;
use rayon::prelude::*;
use surety_exact::ArithmeticError;
use surety_models::{
    ModelError, ModelFiles,
    tokens::{Tokens, TokensOf},
};
use surety_proofs::content_hash;
use surety_types::model::{ModelManifest, Operation};

use crate::{
    embeddings::{Embeddings, rows_max},
    engine::{Engine, Job, Outcome, Sink, report},
    error::EngineError,
    input::{InputError, items},
    trace::{claim, embedding_leaf},
};

/// Items that each thread gets between two events: enough to keep all busy when lengths differ, few enough
/// that a cancelled job ends within a second.
const ITEMS_PER_THREAD: usize = 8;

/// A loaded BERT model.
pub struct BertEngine {
    manifest: ModelManifest,
    model: BertModel,
    tokens: Tokens,
    width: usize,
}

impl BertEngine {
    /// Builds the model out of files whose hashes have been checked. Everything in them is checked again for
    /// sense: a hash says whose file it is, not that it is well made.
    pub fn load(files: ModelFiles) -> Result<Self, ModelError> {
        let config = config::parse(&files.config)?;
        let tokens = Tokens::load(
            &files.tokenizer,
            config.vocab_size,
            config.max_position_embeddings,
        )?;
        let parameters = weights::parameters(&files.weights, &config)?;
        drop(files.weights);
        let model = BertModel::load(parameters, &config).map_err(|e| ModelError::Library(e.to_string()))?;
        Ok(Self {
            manifest: files.manifest,
            model,
            tokens,
            width: config.hidden_size,
        })
    }

    fn embed(&self, job: &Job, sink: &mut dyn Sink) -> Result<Outcome, EngineError> {
        let items = items(&job.input, job.units_max.min(rows_max(self.width)))?;
        let total = count(items.len());
        let wave = rayon::current_num_threads()
            .saturating_mul(ITEMS_PER_THREAD)
            .max(1);
        let mut values = Vec::with_capacity(items.len().saturating_mul(self.width));
        let mut leaves = Vec::with_capacity(items.len());
        report(sink, 0, total)?;
        for (wave_items, start) in items.chunks(wave).zip((0..).step_by(wave)) {
            let results: Vec<_> = wave_items
                .par_iter()
                .zip(start..start + wave_items.len())
                .map(|(item, index)| -> Result<_, EngineError> {
                    let index = count(index);
                    let row = self.row(index, item)?;
                    Ok((embedding_leaf(index, item, &row), row))
                })
                .collect();
            // In order, so that of several faults the first is told, whichever thread met one first.
            for result in results {
                let (leaf, row) = result?;
                leaves.push(leaf);
                values.extend(row);
            }
            report(sink, count(leaves.len()), total)?;
        }
        let blob = Embeddings::new(self.width, values).map(|embeddings| embeddings.encode());
        let output = match blob {
            Some(Ok(output)) => output,
            Some(Err(error)) => return Err(EngineError::Compute(error.to_string())),
            None => return Err(EngineError::Compute("rows of unequal width".into())),
        };
        let claim = claim(content_hash(&output), leaves.into_iter(), total);
        Ok(Outcome { output, claim })
    }

    /// One item's vector.
    fn row(&self, index: u32, item: &str) -> Result<Vec<f32>, EngineError> {
        let tokens = self.tokens.of(item).map_err(EngineError::Compute)?;
        if tokens.ids.is_empty() {
            return Err(InputError::NoTokens { item: index }.into());
        }
        let states = self
            .states(&tokens)
            .map_err(|error| EngineError::Compute(error.to_string()))?;
        // Without padding every token counts: the mask is all ones.
        let mut row = vec![0.0; self.width];
        surety_exact::mean_pool(&states, &mut row)
            .and_then(|()| surety_exact::l2_normalize(&mut row))
            .map_err(|fault| match fault {
                ArithmeticError::Shape => {
                    EngineError::Compute("the model's states are not of its own width".into())
                }
                ArithmeticError::NotFinite => EngineError::NotFinite { item: index },
                ArithmeticError::ZeroNorm => EngineError::ZeroVector { item: index },
            })?;
        Ok(row)
    }

    /// The last layer's states, token by token.
    fn states(&self, tokens: &TokensOf) -> candle_core::Result<Vec<f32>> {
        let ids = Tensor::new(&tokens.ids[..], &Device::Cpu)?.unsqueeze(0)?;
        let types = Tensor::new(&tokens.types[..], &Device::Cpu)?.unsqueeze(0)?;
        self.model.forward(&ids, &types, None)?.flatten_all()?.to_vec1()
    }
}

impl Engine for BertEngine {
    fn manifest(&self) -> &ModelManifest {
        &self.manifest
    }

    fn run(&self, job: &Job, sink: &mut dyn Sink) -> Result<Outcome, EngineError> {
        if !self.manifest.operations.contains(&job.operation) {
            return Err(EngineError::OperationNotOffered(job.operation));
        }
        match job.operation {
            Operation::Embed => self.embed(job, sink),
            Operation::Generate => Err(EngineError::OperationNotOffered(job.operation)),
        }
    }
}

/// Indices of items: bounded by `ITEMS_MAX`, so nothing is ever cut off.
fn count(items: usize) -> u32 {
    u32::try_from(items).unwrap_or(u32::MAX)
}
