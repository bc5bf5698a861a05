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
use surety_models::{ModelError, ModelFiles};
use surety_proofs::content_hash;
use surety_types::{
    input::{IdBounds, InputReader, Work},
    model::{ModelManifest, Operation},
};

use crate::{
    embeddings::Embeddings,
    engine::{Engine, Job, Outcome, Sink, report},
    error::EngineError,
    trace::{claim, embedding_leaf},
};

/// Items that each thread gets between two events: enough to keep all busy when lengths differ, few enough
/// that a cancelled job ends within a second.
const ITEMS_PER_THREAD: usize = 8;

/// A loaded BERT model.
pub struct BertEngine {
    manifest: ModelManifest,
    model: BertModel,
    bounds: IdBounds,
    width: usize,
}

impl BertEngine {
    /// Builds the model out of files whose hashes have been checked. Everything in them is checked again for
    /// sense: a hash says whose file it is, not that it is well made.
    pub fn load(files: ModelFiles) -> Result<Self, ModelError> {
        let config = config::parse(&files.config)?;
        let bounds = IdBounds {
            vocabulary: count(config.vocab_size),
            positions: count(config.max_position_embeddings),
        };
        let published = files.weights.into_memory()?;
        let parameters = weights::parameters(&published, &config)?;
        drop(published);
        let model = BertModel::load(parameters, &config).map_err(|e| ModelError::Library(e.to_string()))?;
        Ok(Self {
            manifest: files.manifest,
            model,
            bounds,
            width: config.hidden_size,
        })
    }

    fn embed(&self, job: &Job, sink: &mut dyn Sink) -> Result<Outcome, EngineError> {
        let work = Work {
            operation: job.operation,
            input_bytes: count(job.input.len()),
            units_max: job.units_max,
        };
        work.check_shape(Some(self.bounds.positions))?;
        let (input, total) = (InputReader::new(&job.input, self.bounds), job.units_max);
        let wave = rayon::current_num_threads()
            .saturating_mul(ITEMS_PER_THREAD)
            .max(1);
        let (mut values, mut leaves) = (Vec::new(), Vec::new());
        report(sink, 0, total)?;
        for start in (0..total).step_by(wave) {
            let results: Vec<_> = (start..start.saturating_add(count(wave)).min(total))
                .into_par_iter()
                .map(|index| -> Result<_, EngineError> {
                    let ids = input.item(index);
                    let row = self.row(index, &ids)?;
                    Ok((embedding_leaf(index, &ids, &row), row))
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
        Ok(Outcome {
            output,
            claim,
            leaves: Vec::new(),
        })
    }

    /// One item's vector.
    fn row(&self, index: u32, ids: &[u32]) -> Result<Vec<f32>, EngineError> {
        let states = self
            .states(ids)
            .map_err(|error| EngineError::Compute(error.to_string()))?;
        // Without padding every token counts: the mask is all ones. No manifest of this tier says how to
        // pool.
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
    fn states(&self, ids: &[u32]) -> candle_core::Result<Vec<f32>> {
        let ids = Tensor::new(ids, &Device::Cpu)?.unsqueeze(0)?;
        // All are of the first segment.
        let types = ids.zeros_like()?;
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

/// Indices of items and dimensions: bounded, so nothing is ever cut off.
fn count(items: usize) -> u32 {
    u32::try_from(items).unwrap_or(u32::MAX)
}
