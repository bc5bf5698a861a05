//! Answers while they are made. Each is a task that is told how far it may go, and ends when it is dropped.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use surety_channels::{End as EndOf, Ending, Request};
use surety_engine::{
    EngineError, Job, JobSink, Priority,
    generation::{FinishReason, Generation, GenerationError},
    serving::{ClientKey, End, Refusal, TokenStream},
};
use surety_types::model::Operation;
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
    time::{Instant, sleep_until},
};

use crate::{Parts, desk::Event, front::CallId, models::Loaded};

/// Between two statements about an answer whose chunk is not whole: often enough for whoever reads it. They
/// fall on the same moments for all answers, so that one sync is enough for all of them.
const PACE: Duration = Duration::from_millis(50);

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
    #[error("the engine has made no generation: {0}")]
    NoGeneration(#[from] GenerationError),
    #[error("the engine has stopped before the end")]
    Stopped,
    #[error("the output has another length than its vectors")]
    OtherLength,
}

impl Failed {
    /// The fault of a device, if it is one.
    pub(crate) const fn of_device(&self) -> Option<&'static str> {
        match self {
            Self::Engine(EngineError::DeviceDiffers { .. }) => Some("differs"),
            Self::Engine(EngineError::Device { .. }) => Some("failed"),
            _ => None,
        }
    }
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
        (call, client): (CallId, ClientKey),
        (request, input): (Request, Vec<u8>),
        may: u32,
        events: mpsc::Sender<Event>,
    ) -> Self {
        let (allowed, limit) = watch::channel(may);
        let parts = parts.clone();
        let task = async move {
            let made = match request.operation {
                Operation::Generate => {
                    generate(&parts, (call, client), &request, input, limit, &events).await
                }
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

/// Hands tokens over, and returns the last of them: the first as soon as it is there, and then what is there
/// every [`PACE`], or a whole chunk.
async fn generate(
    parts: &Parts,
    (call, client): (CallId, ClientKey),
    request: &Request,
    input: Vec<u8>,
    mut limit: watch::Receiver<u32>,
    events: &mpsc::Sender<Event>,
) -> Result<Made, Failed> {
    let model = parts.models.get(&request.model).ok_or(Failed::NotLoaded)?;
    let job = Job {
        operation: request.operation,
        input,
        units_max: request.units_max,
    };
    let Some(handle) = &model.handle else {
        return whole(parts, (call, model), job, limit, events).await;
    };
    let mut stream = handle.submit(client, &job)?;
    drop(job);
    let stop_ids = &model.facts.stop_ids;
    let (mut made, mut tokens) = (0u32, Vec::new());
    let mut due = Instant::now();
    loop {
        let is_chunk = made == *limit.borrow();
        if !tokens.is_empty() && (is_chunk || Instant::now() >= due) {
            let made = chunk(std::mem::take(&mut tokens), None);
            if events.send(Event::Made { call, made }).await.is_err() {
                return Err(Failed::Stopped);
            }
            due = next_pace();
        }
        let token = tokio::select! {
            token = stream.next() => token,
            () = sleep_until(due), if !tokens.is_empty() => continue,
        };
        let Some(token) = token else {
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

/// The next moment at which all streams say what they have.
fn next_pace() -> Instant {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    let (now, began) = (Instant::now(), *BEGAN.get_or_init(Instant::now));
    let pace = PACE.as_nanos().max(1);
    let into = now.saturating_duration_since(began).as_nanos().checked_rem(pace);
    let left = pace.saturating_sub(into.unwrap_or_default());
    let left = Duration::from_nanos(u64::try_from(left).unwrap_or_default());
    now.checked_add(left).unwrap_or(now)
}

/// The same by an engine that no server runs: it makes all tokens at once, and they wait here until they are
/// paid.
async fn whole(
    parts: &Parts,
    (call, model): (CallId, &Loaded),
    job: Job,
    mut limit: watch::Receiver<u32>,
    events: &mpsc::Sender<Event>,
) -> Result<Made, Failed> {
    let engine = model.engine.clone();
    let outcome = in_pool(parts, move |sink| engine.run(&job, sink)).await?;
    let Generation {
        tokens,
        finish_reason,
    } = Generation::decode(&outcome.output)?;
    let (mut made, mut rest) = (0u32, tokens.as_slice());
    loop {
        let allowed = limit.wait_for(|limit| *limit > made).await;
        let room = allowed.map_err(|_| Failed::Stopped)?.saturating_sub(made);
        match rest.split_at_checked(room as usize) {
            Some((now, later)) if !later.is_empty() => {
                made = made.saturating_add(room);
                rest = later;
                let made = chunk(now.to_vec(), None);
                if events.send(Event::Made { call, made }).await.is_err() {
                    return Err(Failed::Stopped);
                }
            }
            _ => break,
        }
    }
    let ending = Ending {
        how: how(finish_reason),
        trace_root: outcome.claim.trace_root,
    };
    Ok(chunk(rest.to_vec(), Some(ending)))
}

const fn how(reason: FinishReason) -> EndOf {
    match reason {
        FinishReason::Stop => EndOf::Stop,
        FinishReason::Length => EndOf::Length,
    }
}

async fn ending(stream: TokenStream) -> Result<Ending, Failed> {
    let ended = stream.finish().await?;
    let how = match ended.end {
        End::Finished(reason) => how(reason),
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
