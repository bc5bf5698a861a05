//! Work that says how fast a machine is: inputs that a model takes, whatever its text is like.

use surety_engine::{
    Job,
    generation::{FinishReason, Generation},
};
use surety_types::{
    input::{IdBounds, Settings, TOP_P_MILLI_MAX, encode_items, encode_prompt},
    model::{ModelManifest, Operation},
};

/// Tokens of a prompt: every decoder has a position for one, and for one that follows it.
const PROMPT_TOKENS: u32 = 1;

/// So many items to embed, each of so many tokens, or of as many as the model takes; nothing where there can
/// be no such input.
pub(super) fn embed(manifest: &ModelManifest, items: u32, tokens: u32) -> Option<Job> {
    let bounds = bounds(manifest);
    let ids = ids(tokens.min(bounds.positions), &bounds);
    let items_of_ids: Vec<_> = (0..items).map(|_| ids.clone()).collect();
    Some(Job {
        operation: Operation::Embed,
        input: encode_items(&items_of_ids, &bounds).ok()?,
        units_max: items,
    })
}

/// A prompt to which so many tokens are to be added, or as many as the model takes; nothing where there can
/// be no such input.
pub(super) fn generate(manifest: &ModelManifest, added: u32) -> Option<Job> {
    let bounds = bounds(manifest);
    let added = added.min(bounds.positions.checked_sub(PROMPT_TOKENS)?);
    let settings = Settings {
        max_tokens: added,
        temperature_milli: 0,
        top_k: 0,
        top_p_milli: TOP_P_MILLI_MAX,
        seed: 0,
    };
    Some(Job {
        operation: Operation::Generate,
        input: encode_prompt(&ids(PROMPT_TOKENS, &bounds), &settings, &bounds).ok()?,
        units_max: PROMPT_TOKENS.checked_add(added)?,
    })
}

/// What could be claimed to be the output of such a job, for an audit of it.
pub(super) fn claimed(job: &Job) -> Vec<u8> {
    match job.operation {
        // It follows from the input alone.
        Operation::Embed => Vec::new(),
        Operation::Generate => {
            let added = job.units_max.saturating_sub(PROMPT_TOKENS);
            let generation = Generation {
                tokens: (0..added).map(|_| 0).collect(),
                finish_reason: FinishReason::Length,
            };
            generation.encode()
        }
    }
}

/// What ids have to fit. Outside of the exact tier only the engine knows: it reads what goes beyond as
/// something within.
fn bounds(manifest: &ModelManifest) -> IdBounds {
    let architecture = manifest.exact.as_ref().map(|exact| &exact.architecture);
    IdBounds {
        vocabulary: architecture.map_or(u32::MAX, |known| known.vocabulary),
        positions: architecture.map_or(u32::MAX, |known| known.positions),
    }
}

/// Different ones, as far as there are.
fn ids(tokens: u32, bounds: &IdBounds) -> Vec<u32> {
    (0..tokens).map(|id| id % bounds.vocabulary.max(1)).collect()
}
