//! Answers while they are made. Each is a task that is told how far it may go, and ends when it is dropped.

use std::sync::Arc;

use surety_channel_calls::AccountId;
use surety_channels::{End as EndOf, Ending, Request};
use surety_engine::{
    EngineError, Job, JobSink, Priority,
    generation::FinishReason,
    serving::{ClientKey, End, Refusal, TokenStream},
};
use surety_types::model::Operation;
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};

use crate::{Parts, desk::Event, front::CallId};

/// A task that ends with whoever holds it.
pub(crate) struct Owned(JoinHandle<()>);

impl Owned {
    pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(task))
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// An answer that is made.
pub(crate) struct Running {
    /// Units that the task has handed over.
    pub(crate) made: u32,
    /// Units that it may make in all.
    pub(crate) allowed: watch::Sender<u32>,
    _task: Owned,
}

/// Why an answer cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    #[error("the model is not loaded")]
    NotLoaded,
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("the engine has stopped before the end")]
    Stopped,
    #[error("the output has another length than its vectors")]
    OtherLength,
}

/// What is handed over.
pub(crate) struct Made {
    /// Whole units.
    pub(crate) bytes: Vec<u8>,
    /// How many.
    pub(crate) units: u32,
    /// How it ended, with the last of them.
    pub(crate) end: Option<Ending>,
}

impl Running {
    /// Begins to make an answer, up to so many units.
    pub(crate) fn start(
        parts: &Arc<Parts>,
        call: CallId,
        (request, input): (Request, Vec<u8>),
        may: u32,
        events: mpsc::Sender<Event>,
    ) -> Self {
        let (allowed, limit) = watch::channel(may);
        let parts = parts.clone();
        let task = async move {
            let made = match request.operation {
                Operation::Generate => generate(&parts, call, &request, input, limit, &events).await,
                Operation::Embed => embed(&parts, &request, input).await,
            };
            let event = match made {
                Ok(made) => Event::Made { call, made },
                Err(why) => Event::Failed { call, why },
            };
            events.send(event).await.ok();
        };
        Self {
            made: 0,
            allowed,
            _task: Owned::spawn(task),
        }
    }
}

/// Hands tokens over chunk by chunk, and returns the last of them.
async fn generate(
    parts: &Parts,
    call: CallId,
    request: &Request,
    input: Vec<u8>,
    mut limit: watch::Receiver<u32>,
    events: &mpsc::Sender<Event>,
) -> Result<Made, Failed> {
    let model = parts.models.get(&request.model).ok_or(Failed::NotLoaded)?;
    let handle = model.handle.as_ref().ok_or(Failed::NotLoaded)?;
    let job = Job {
        operation: request.operation,
        input,
        units_max: request.units_max,
    };
    let mut stream = handle.submit(client(&parts.stash, call), &job)?;
    drop(job);
    let stop_ids = &model.facts.stop_ids;
    let (mut made, mut tokens) = (0u32, Vec::new());
    loop {
        if made == *limit.borrow() && !tokens.is_empty() {
            let made = chunk(std::mem::take(&mut tokens), None);
            if events.send(Event::Made { call, made }).await.is_err() {
                return Err(Failed::Stopped);
            }
        }
        let Some(token) = stream.next().await else {
            break;
        };
        let room = limit.wait_for(|limit| *limit > made).await;
        if room.is_err() {
            return Err(Failed::Stopped);
        }
        made = made.saturating_add(1);
        tokens.push(token);
        // It is not said before it is known to be the end: an answer that is cut must not end with it.
        if stop_ids.contains(&token) {
            break;
        }
    }
    let ending = ending(stream).await?;
    Ok(chunk(tokens, Some(ending)))
}

async fn ending(stream: TokenStream) -> Result<Ending, Failed> {
    let ended = stream.finish().await?;
    let how = match ended.end {
        End::Finished(FinishReason::Stop) => EndOf::Stop,
        End::Finished(FinishReason::Length) => EndOf::Length,
        End::Cancelled | End::Cut => return Err(Failed::Stopped),
    };
    let outcome = ended.outcome.ok_or(Failed::Stopped)?;
    Ok(Ending {
        how,
        trace_root: outcome.claim.trace_root,
    })
}

fn chunk(tokens: Vec<u32>, end: Option<Ending>) -> Made {
    Made {
        units: u32::try_from(tokens.len()).unwrap_or(u32::MAX),
        bytes: tokens.iter().flat_map(|token| token.to_le_bytes()).collect(),
        end,
    }
}

/// Clients take turns: a channel is one.
fn client(stash: &AccountId, (channel, _): CallId) -> ClientKey {
    // Channels of one stash differ by their numbers alone.
    let mut key = *AsRef::<[u8; 32]>::as_ref(stash);
    for (to, from) in key.iter_mut().zip(channel.to_le_bytes()) {
        *to ^= from;
    }
    ClientKey(key)
}

/// All vectors at once.
async fn embed(parts: &Parts, request: &Request, input: Vec<u8>) -> Result<Made, Failed> {
    let model = parts.models.get(&request.model).ok_or(Failed::NotLoaded)?;
    let units = request.units_max;
    let job = Job {
        operation: request.operation,
        input,
        units_max: units,
    };
    let engine = model.engine.clone();
    let outcome = in_pool(parts, move |sink| engine.run(&job, sink)).await?;
    let bytes = units.checked_mul(model.facts.item_bytes);
    let head = bytes.and_then(|bytes| outcome.output.len().checked_sub(bytes as usize));
    let vectors = head.and_then(|head| outcome.output.get(head..));
    Ok(Made {
        bytes: vectors.ok_or(Failed::OtherLength)?.to_vec(),
        units,
        end: Some(Ending {
            how: EndOf::Length,
            trace_root: outcome.claim.trace_root,
        }),
    })
}

/// Has something computed when it is its turn.
pub(crate) async fn in_pool<T: Send + 'static>(
    parts: &Parts,
    work: impl FnOnce(&mut JobSink) -> Result<T, EngineError> + Send + 'static,
) -> Result<T, EngineError> {
    let _place = parts
        .models
        .jobs
        .acquire()
        .await
        .map_err(|_| EngineError::Closed)?;
    parts.models.pool.work(Priority::Inference, work)?.await
}
