//! Measures what is on offer and was never measured on this machine, so that the first bids promise what it can do.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use surety_engine::Job;
use surety_types::{model::Operation, ModelId};

use super::Tools;

/// Sentences to embed, or tokens to make, in one sample after the other.
const SIZES: [u32; 3] = [4, 16, 64];

/// A sample that takes so long says enough: in shorter ones starting is most of the time.
const ENOUGH: Duration = Duration::from_millis(500);

/// Runs samples until one of each kind says enough. What they come to is noted as with any work.
pub(super) async fn measure(tools: Arc<Tools>, unknown: Vec<(ModelId, Operation)>) {
    for (model, operation) in unknown {
        for size in SIZES {
            let started = Instant::now();
            let ran = match tools.engines.submit(&model, sample(operation, size)) {
                Ok(ticket) => ticket.await.map(drop).map_err(Into::into),
                Err(e) => Err(e),
            };
            match ran {
                Ok(()) if started.elapsed() < ENOUGH => {}
                Ok(()) => break,
                Err(e) => {
                    tracing::warn!(?model, ?operation, size, error = %e, "its speed cannot be measured");
                    break;
                }
            }
        }
    }
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
