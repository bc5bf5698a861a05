//! Measures what is on offer and was never measured on this machine, so that the first bids promise what it can do.

use std::{sync::Arc, time::Duration};

use surety_engine::Job;
use surety_types::{model::Operation, ModelId};

use super::{compute::ComputeError, Engines, Tools};

/// Sentences to embed, or tokens to make, in one sample after the other.
const SIZES: [u32; 3] = [4, 16, 64];

/// A sample that takes so long says enough: in shorter ones starting is most of the time.
const ENOUGH: Duration = Duration::from_millis(500);

/// Runs samples until one of each kind says enough, which is noted as with any work. Of the others nothing is kept: if the
/// worker stops in the middle of it, it measures again.
pub(super) async fn measure(tools: Arc<Tools>, unknown: Vec<(ModelId, Operation)>) {
    for (model, operation) in unknown {
        match last_sample(&tools.engines, model, operation).await {
            Ok((units, took)) => tools.engines.note(model, operation, units, took),
            Err(e) => tracing::warn!(?model, ?operation, error = %e, "its speed cannot be measured"),
        }
    }
}

/// Units and time of the last sample that was needed, however long it waited for its turn.
async fn last_sample(
    engines: &Engines,
    model: ModelId,
    operation: Operation,
) -> Result<(u32, Duration), ComputeError> {
    let [first, others @ ..] = SIZES;
    let mut measured = engines.sample(&model, sample(operation, first))?.await?;
    for size in others {
        if measured.1 >= ENOUGH {
            break;
        }
        match engines.sample(&model, sample(operation, size))?.await {
            Ok(larger) => measured = larger,
            // A model may be too small for it: what is known by then has to do.
            Err(e) => {
                tracing::debug!(?model, ?operation, size, error = %e, "a sample failed");
                break;
            }
        }
    }
    Ok(measured)
}

fn sample(operation: Operation, size: u32) -> Job {
    let input = match operation {
        Operation::Embed => "a sentence that says how fast this machine is\n".repeat(size as usize),
        Operation::Generate => format!(r#"{{"prompt":"How fast is this machine?","max_tokens":{size}}}"#),
    };
    Job {
        operation,
        input: input.into_bytes(),
        units_max: u32::MAX,
    }
}
