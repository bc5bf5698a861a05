//! Measures what is on offer and was never measured on this machine, so that the first bids promise what it
//! can do.

use std::time::Duration;

use surety_engine::{EngineError, Job};
use surety_types::{ModelId, model::Operation};

use super::{Engines, compute::ComputeError, samples};

/// Sentences to embed, or tokens to make, in one sample after the other. Many of the last kind: of a fast
/// model a few tokens say less than what is assumed of any.
const SIZES: [u32; 8] = [4, 16, 64, 64, 64, 64, 64, 64];

/// Tokens of a sentence.
const SENTENCE_TOKENS: u32 = 16;

/// Samples that take so long together say enough.
const ENOUGH: Duration = Duration::from_millis(500);

/// Runs samples of each kind until they say enough, and notes them together, as with any work. Nothing is
/// kept of less: if the worker stops in the middle of it, it measures again.
pub(super) async fn measure(engines: &Engines, unknown: Vec<(ModelId, Operation)>) {
    for (model, operation) in unknown {
        match all_samples(engines, model, operation).await {
            Ok((units, took)) => engines.note(model, operation, units, took),
            Err(e) => tracing::warn!(?model, ?operation, error = %e, "its speed cannot be measured"),
        }
    }
}

/// Units and time of the samples that were needed, however long they waited for their turn.
async fn all_samples(
    engines: &Engines,
    model: ModelId,
    operation: Operation,
) -> Result<(u32, Duration), ComputeError> {
    let [first, others @ ..] = SIZES;
    let (mut units, mut took) = engines
        .sample(&model, sample(engines, &model, operation, first)?)?
        .await?;
    for size in others {
        if took >= ENOUGH {
            break;
        }
        match engines
            .sample(&model, sample(engines, &model, operation, size)?)?
            .await
        {
            Ok((more, longer)) => {
                units = units.saturating_add(more);
                took = took.saturating_add(longer);
            }
            // A model may be too small for it: what is known by then has to do.
            Err(e) => {
                tracing::debug!(?model, ?operation, size, error = %e, "a sample failed");
                break;
            }
        }
    }
    Ok((units, took))
}

fn sample(engines: &Engines, model: &ModelId, operation: Operation, size: u32) -> Result<Job, ComputeError> {
    let engine = engines.get(model)?;
    let job = match operation {
        Operation::Embed => samples::embed(engine.manifest(), size, SENTENCE_TOKENS),
        Operation::Generate => samples::generate(engine.manifest(), size),
    };
    Ok(job.ok_or(EngineError::OperationNotOffered(operation))?)
}
