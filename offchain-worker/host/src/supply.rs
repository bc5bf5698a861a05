//! A provider's answer to demands.

use surety_chain_client::Call;
use surety_network::PlaneError;
use surety_proofs::{PartOpening, parts};
use surety_types::{
    ContentHash,
    trust::{Content, ContentPart},
};
use surety_worker_core::{Event, Failure};

use super::{
    Tools,
    compute::ComputeError,
    effect_error::EffectError,
    effects::submit,
    jobs::{Task, failed},
    work::own_blob,
};

/// Shows a part of an input, of our output or of our trace's leaves on the chain: the last one, when there
/// are not as many.
pub(super) async fn supply(tools: &Tools, of: Task, part: ContentPart, hash: ContentHash) -> Event {
    match open(tools, part, hash).await {
        Ok((bytes, opening)) => {
            let call = Call::Supply {
                task: of.id,
                content: part.content,
                bytes,
                opening,
            };
            submit(tools, of, call).await
        }
        Err(error) => {
            let reason = error.to_string();
            tracing::error!(task = of.id, reason, "cannot show what is demanded");
            let failure = match error {
                EffectError::Data(PlaneError::NoSources(_)) => Failure::Gone,
                _ => Failure::Failed,
            };
            failed(of.id, of.kind, failure)
        }
    }
}

/// A part of a blob of ours, and how many bytes that has.
async fn open(
    tools: &Tools,
    part: ContentPart,
    hash: ContentHash,
) -> Result<(u32, PartOpening), EffectError> {
    let blob = own_blob(tools, hash).await?;
    // All of it is hashed, while a clock runs.
    let opened = tools.engines.answer(move |_| {
        let Ok(bytes) = u32::try_from(blob.len()) else {
            return Ok(None);
        };
        let last = parts(bytes).saturating_sub(1);
        let place = part.part.min(last);
        let opening = match part.content {
            Content::Input | Content::Output => PartOpening::new(&blob, place),
            Content::Leaves => PartOpening::of_leaves(&blob, place),
        };
        Ok(opening.map(|opening| (bytes, opening)))
    })?;
    let opened = opened.await.map_err(ComputeError::from)?;
    opened.ok_or(EffectError::NothingToShow)
}
