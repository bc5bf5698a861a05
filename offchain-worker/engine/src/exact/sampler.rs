//! The tokens of a continuation, chosen.

use surety_exact::{ArithmeticError, Sampling, sample};
use surety_model_trace::sampling_random;
use surety_types::ContentHash;

use super::generate::Task;

/// Chooses the tokens of a continuation.
pub(super) struct Sampler {
    how: Sampling,
    input: ContentHash,
    seed: u64,
}

impl Sampler {
    pub(super) fn new(task: &Task) -> Self {
        Self {
            how: Sampling {
                temperature_milli: task.settings.temperature_milli,
                top_k: task.settings.top_k,
                top_p_milli: task.settings.top_p_milli,
            },
            input: task.input,
            seed: task.settings.seed,
        }
    }

    /// Whether it always chooses the likeliest one.
    pub(super) fn is_greedy(&self) -> bool {
        self.how.temperature_milli == 0
    }

    /// Token `index` of the continuation. What `order` holds does not matter.
    pub(super) fn token(
        &self,
        index: u32,
        logits: &[f32],
        order: &mut Vec<u32>,
    ) -> Result<u32, ArithmeticError> {
        order.resize(logits.len(), 0);
        let random = sampling_random(&self.input, self.seed, index);
        sample(logits, &self.how, random, order)
    }
}
