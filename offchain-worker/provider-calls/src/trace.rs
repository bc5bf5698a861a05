//! The trace of an answer that was cut, made of what the journal has of it.

use std::{sync::Arc, time::Duration};

use surety_channels::Request;
use surety_engine::{Engine, EngineError, Job, JobSink, content_hash};
use surety_types::{ContentHash, task::ResultClaim};
use tokio::{sync::mpsc, time::sleep};

use crate::{
    CallsError, Parts,
    compute::{Owned, in_pool},
    desk::Event,
    front::CallId,
    read,
};

/// Between two attempts, at first and at most.
const PAUSE: Duration = Duration::from_secs(2);
const PAUSE_MAX: Duration = Duration::from_secs(600);

/// Why there is none.
#[derive(Debug, thiserror::Error)]
enum NoTrace {
    #[error("its model is not loaded: start with it again")]
    NotLoaded,
    #[error("its input is not in the journal")]
    NoInput,
    #[error(transparent)]
    Journal(#[from] CallsError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("another answer would be right")]
    OtherOutput,
}

/// Makes the root of the trace of the first `said` units of an answer, and tries again until it is there: the
/// receipts of the channel wait for it. What was said and is wrong has none.
pub(crate) fn make(
    parts: &Arc<Parts>,
    call: CallId,
    request: Request,
    said: u32,
    events: mpsc::Sender<Event>,
) -> Owned {
    let parts = parts.clone();
    Owned::spawn(async move {
        let mut pause = PAUSE;
        loop {
            match root(&parts, call, &request, said).await {
                Ok(root) => {
                    events.send(Event::Traced { call, root }).await.ok();
                    return;
                }
                Err(NoTrace::OtherOutput) => {
                    events.send(Event::Contradicted { call }).await.ok();
                    return;
                }
                Err(error) => {
                    let (channel, nonce) = call;
                    tracing::error!(
                        channel,
                        nonce,
                        %error,
                        "no receipt of a channel is paid before an answer that was cut has its trace"
                    );
                }
            }
            sleep(pause).await;
            pause = pause.saturating_mul(2).min(PAUSE_MAX);
        }
    })
}

/// It is as if no more had been asked for.
async fn root(parts: &Parts, call: CallId, request: &Request, said: u32) -> Result<ContentHash, NoTrace> {
    let engine = parts.models.get(&request.model).ok_or(NoTrace::NotLoaded)?;
    let engine = engine.engine.clone();
    let input = read::input(parts, call).await?.ok_or(NoTrace::NoInput)?;
    let output = read::output(parts, call).await?;
    let job = Job {
        operation: request.operation,
        input,
        units_max: request.work().prompt_tokens().saturating_add(said),
    };
    let (hash, audited) = (content_hash(&output), Arc::new((job, output)));
    let claim = audit(parts, engine.clone(), audited.clone()).await?;
    if claim.output == hash {
        return Ok(claim.trace_root);
    }
    // A device may be wrong where nobody has looked.
    let here = engine.decoder().ok_or(NoTrace::OtherOutput)?;
    let claim = audit(parts, here, audited).await?;
    if claim.output != hash {
        return Err(NoTrace::OtherOutput);
    }
    let (channel, nonce) = call;
    tracing::error!(
        channel,
        nonce,
        "a device is wrong about an answer that the processor stands by: serve without it (`device_serves`)"
    );
    Ok(claim.trace_root)
}

async fn audit(
    parts: &Parts,
    engine: Arc<dyn Engine>,
    audited: Arc<(Job, Vec<u8>)>,
) -> Result<ResultClaim, EngineError> {
    let work = move |sink: &mut JobSink| engine.audit(&audited.0, &audited.1, sink);
    in_pool(parts, work).await
}
