//! How fast this machine audits a model, in the tokens that the chain counts.

use std::time::Duration;

use surety_audit_economics::{OFFERED_SLACK, WINDOW_SLACK};
use surety_engine::{EngineError, Job};
use surety_types::{
    ModelId,
    model::{ModelManifest, Operation},
};

use super::{Engines, compute::ComputeError, samples};

/// Items of one sample after the other: of a fast model, one alone says little of a machine with many cores.
const SIZES: [u32; 2] = [1, 8];
/// A sample that takes so long says enough.
const ENOUGH: Duration = Duration::from_secs(1);
/// Most tokens of a sample's item, or generation. Longer ones are dearer, which is reckoned.
const TOKENS_MAX: u32 = 512;

/// Whether a machine that audits `own` tokens in 1,000 seconds can in time, where the reference machine
/// audits `reference`. What was offered is taken back only when the window is too short for it, so that no
/// chance decides.
pub(super) fn is_in_time(own: u64, reference: u32, offered: bool) -> bool {
    let slack = if offered { WINDOW_SLACK } else { OFFERED_SLACK };
    own.saturating_mul(slack) >= reference.into()
}

/// Tokens that this machine audits in 1,000 seconds as they are metered, whatever is asked of the model.
pub(super) async fn measure(engines: &Engines, model: &ModelId) -> Result<u64, ComputeError> {
    let manifest = engines.get(model)?.manifest().clone();
    let mut slowest = u64::MAX;
    for operation in &manifest.operations {
        let mut speed = 0;
        for items in SIZES {
            let (job, tokens) = sample(&manifest, *operation, items)
                .ok_or(EngineError::OperationNotOffered(*operation))
                .map_err(ComputeError::from)?;
            let output = samples::claimed(&job);
            let took = engines.sample_audit(model, job, output)?.await?;
            speed = manifest.as_metered(in_1000_seconds(tokens, took), TOKENS_MAX);
            if took >= ENOUGH {
                break;
            }
        }
        slowest = slowest.min(speed);
    }
    Ok(slowest)
}

/// Work to audit, and how many tokens it has.
fn sample(manifest: &ModelManifest, operation: Operation, items: u32) -> Option<(Job, u32)> {
    match operation {
        Operation::Embed => {
            let tokens = manifest.item_tokens().min(TOKENS_MAX);
            let job = samples::embed(manifest, items, tokens)?;
            Some((job, tokens.saturating_mul(items)))
        }
        Operation::Generate => {
            let job = samples::generate(manifest, TOKENS_MAX)?;
            let tokens = job.units_max;
            Some((job, tokens))
        }
    }
}

fn in_1000_seconds(tokens: u32, took: Duration) -> u64 {
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
    u64::from(tokens).saturating_mul(1_000_000_000) / micros
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_offered_is_taken_back_only_when_the_window_is_too_short() {
        for (own, new, old) in [
            (500, true, true),
            (499, false, true),
            (334, false, true),
            (333, false, false),
        ] {
            assert_eq!(is_in_time(own, 1_000, false), new, "{own}");
            assert_eq!(is_in_time(own, 1_000, true), old, "{own}");
        }
    }

    #[test]
    fn a_speed_is_in_tokens_of_1000_seconds() {
        assert_eq!(in_1000_seconds(512, Duration::from_secs(2)), 256_000);
        assert_eq!(in_1000_seconds(512, Duration::ZERO), 512_000_000_000);
    }
}
