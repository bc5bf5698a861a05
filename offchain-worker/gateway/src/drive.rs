//! One generation from its reservation to its receipts, whatever its providers and its client do.

use std::sync::Arc;

use axum::http::StatusCode;
use surety_models::tokens::TextStream;
use tokio::{sync::mpsc, time::timeout};

use crate::{
    api::{Priced, Shared},
    error::ApiError,
    metrics::Metrics,
    stop::StopFilter,
    text::ModelText,
    upstream::{Finish, Generating, GenerationAsk, Receipt, Step, UpstreamError},
};

/// Providers that are asked for one answer, and how often it is priced where nobody takes it.
pub(crate) const ATTEMPTS_MAX: usize = 3;

/// What a client is told.
#[derive(Debug)]
pub(crate) enum Event {
    /// More text, whole characters, and the ids that have come since the last.
    Delta { text: String, ids: Vec<u32> },
    /// The end, after all of it is on disk.
    End { finish: Finish, tokens: u32 },
    /// The end, without an answer.
    Failed(ApiError),
}

/// An open call.
pub(crate) struct Job {
    pub call: u64,
    pub ask: GenerationAsk,
    pub priced: Priced,
    pub text: Arc<dyn ModelText>,
    pub stops: Vec<String>,
}

/// What providers have been paid.
#[derive(Default)]
pub(crate) struct Paid {
    pub sum: u128,
    pub receipts: Vec<Receipt>,
}

impl Paid {
    pub fn add(&mut self, receipt: Receipt) {
        self.sum = self.sum.saturating_add(receipt.price);
        self.receipts.push(receipt);
    }

    /// What was signed, and what may have been paid beside that, in plancks.
    pub fn add_all(&mut self, receipts: Vec<Receipt>, spent: u128) {
        receipts.into_iter().for_each(|receipt| self.add(receipt));
        self.sum = self.sum.saturating_add(spent);
    }
}

/// Why an attempt ended without an answer.
enum Broken {
    /// Another provider may do better.
    Provider {
        name: String,
        error: UpstreamError,
    },
    /// Nobody has taken it for what it may cost. Another may for more.
    Untaken(UpstreamError),
    Failed(ApiError),
    /// Nobody waits for it.
    Gone,
}

/// What has been said, by whichever provider.
struct Said {
    ids: Vec<u32>,
    stream: TextStream,
    filter: StopFilter,
    pending: Vec<u32>,
}

/// Answers, closes the call, and tells the end last. Goes on to the settlement when nobody listens any more.
pub(crate) async fn drive(shared: Arc<Shared>, mut job: Job, tell: mpsc::Sender<Event>) {
    Metrics::count(&shared.metrics.calls);
    let mut paid = Paid::default();
    let mut said = Said {
        ids: Vec::new(),
        stream: TextStream::default(),
        filter: StopFilter::new(job.stops.clone()),
        pending: Vec::new(),
    };
    let ended = attempts(&shared, &mut job, &mut said, &mut paid, &tell).await;
    let tokens = u32::try_from(said.ids.len()).unwrap_or(u32::MAX);
    let (call, Paid { sum, receipts }) = (job.call, paid);
    let closed = shared
        .ledger(move |ledger| ledger.close_call(call, sum, receipts))
        .await;
    let last = match (ended, closed) {
        (_, Err(error)) => Event::Failed(error),
        (Err(Broken::Gone), _) => {
            Metrics::count(&shared.metrics.gone);
            return;
        }
        (Err(Broken::Failed(error)), _) => Event::Failed(error),
        (Err(Broken::Provider { error, .. } | Broken::Untaken(error)), _) => Event::Failed(error.into()),
        (Ok(finish), _) => Event::End { finish, tokens },
    };
    if matches!(last, Event::Failed(_)) {
        Metrics::count(&shared.metrics.failed);
    }
    // Whoever has hung up or reads nothing by now finds the receipts by the call's number.
    tell.send_timeout(last, shared.settings.token_time).await.ok();
}

async fn attempts(
    shared: &Shared,
    job: &mut Job,
    said: &mut Said,
    paid: &mut Paid,
    tell: &mpsc::Sender<Event>,
) -> Result<Finish, Broken> {
    let (mut avoid, mut untaken) = (Vec::new(), 0usize);
    loop {
        let before = job.ask.price_max;
        let more = match attempt(shared, job, &avoid, said, paid, tell).await {
            Err(Broken::Provider { name, error }) => {
                tracing::warn!(call = job.call, %error, "a provider failed");
                avoid.push(name);
                if avoid.len() >= ATTEMPTS_MAX {
                    return Err(Broken::Failed(error.into()));
                }
                Metrics::count(&shared.metrics.retried);
                // Whoever answers instead may be dearer.
                job.ask.price_max = job.priced.now(shared, &avoid).unwrap_or(before);
                job.ask.price_max
            }
            Err(Broken::Untaken(error)) => {
                let raised = job.priced.raised(shared, &avoid, (before, &mut untaken));
                job.ask.price_max = raised.ok_or(Broken::Untaken(error))?;
                job.ask.price_max.saturating_sub(before)
            }
            ended => return ended,
        };
        let call = job.call;
        let more = shared.ledger(move |ledger| ledger.reserve_more(call, more)).await;
        more.map_err(Broken::Failed)?;
    }
}

/// One provider's answer. What was said before is compared and not told again.
async fn attempt(
    shared: &Shared,
    job: &Job,
    avoid: &[String],
    said: &mut Said,
    paid: &mut Paid,
    tell: &mpsc::Sender<Event>,
) -> Result<Finish, Broken> {
    let begun = tokio::select! {
        () = tell.closed() => return Err(Broken::Gone),
        begun = timeout(shared.settings.token_time, shared.upstream.generate(&job.ask, avoid)) => begun,
    };
    let Ok(begun) = begun else {
        // It may hold vouchers.
        paid.sum = paid.sum.saturating_add(job.ask.price_max);
        return Err(slow());
    };
    let run = begun.map_err(|error| broken(error, paid))?;
    let beside = run.beside();
    let ended = hear_out(shared, job, run, said, paid, tell).await;
    let (receipts, spent) = beside.take();
    // Whoever has answered to the end stays the last.
    let last = ended.is_ok().then(|| paid.receipts.pop()).flatten();
    paid.add_all(receipts, spent);
    paid.receipts.extend(last);
    ended
}

/// All of an answer that has begun.
async fn hear_out(
    shared: &Shared,
    job: &Job,
    mut run: Box<dyn Generating>,
    said: &mut Said,
    paid: &mut Paid,
    tell: &mpsc::Sender<Event>,
) -> Result<Finish, Broken> {
    let mut place = 0usize;
    loop {
        let step = tokio::select! {
            () = tell.closed() => {
                cancel(shared, run, job, paid).await;
                return Err(Broken::Gone);
            }
            step = timeout(shared.settings.token_time, run.next()) => step,
        };
        let Ok(step) = step else {
            cancel(shared, run, job, paid).await;
            return Err(slow());
        };
        match step.map_err(|error| broken(error, paid))? {
            Step::Done(receipt) => {
                let (finish, agrees) = (receipt.finish, place == said.ids.len());
                paid.add(receipt);
                if !agrees {
                    return Err(Broken::Failed(diverged()));
                }
                let text = said.filter.end();
                tell_delta(shared, tell, text, &mut said.pending).await?;
                return Ok(finish);
            }
            Step::Tokens(ids) => match said.hear(&shared.metrics, &*job.text, &mut place, ids) {
                Err(error) => {
                    cancel(shared, run, job, paid).await;
                    return Err(Broken::Failed(error));
                }
                Ok((text, true)) => {
                    cancel(shared, run, job, paid).await;
                    tell_delta(shared, tell, text, &mut said.pending).await?;
                    return Ok(Finish::Stop);
                }
                Ok((text, false)) => {
                    if !text.is_empty() && tell_delta(shared, tell, text, &mut said.pending).await.is_err() {
                        cancel(shared, run, job, paid).await;
                        return Err(Broken::Gone);
                    }
                }
            },
        }
    }
}

impl Said {
    /// Takes in what a provider says from `place` on: what was said before is compared. Returns the new text
    /// that can be told, and whether a stop string ends it.
    fn hear(
        &mut self,
        metrics: &Metrics,
        text: &dyn ModelText,
        place: &mut usize,
        ids: Vec<u32>,
    ) -> Result<(String, bool), ApiError> {
        let mut told = String::new();
        for id in ids {
            let before = self.ids.get(*place).copied();
            *place = place.saturating_add(1);
            match before {
                Some(before) if before == id => continue,
                Some(_) => return Err(diverged()),
                None => {}
            }
            self.ids.push(id);
            self.pending.push(id);
            Metrics::count(&metrics.tokens);
            let piece = self.stream.push(id, |ids| text.decode(ids)).map_err(|_| {
                let told = "the model's tokenizer has no text for what the provider said";
                ApiError::new(StatusCode::BAD_GATEWAY, "no_text", told)
            })?;
            let (more, over) = self.filter.push(&piece);
            told.push_str(&more);
            if over {
                return Ok((told, true));
            }
        }
        Ok((told, false))
    }
}

/// Waits for a client that reads slowly, so that nothing is asked of the provider meanwhile. One that does
/// not read on in time is gone: its place is for others.
async fn tell_delta(
    shared: &Shared,
    tell: &mpsc::Sender<Event>,
    text: String,
    pending: &mut Vec<u32>,
) -> Result<(), Broken> {
    let ids = std::mem::take(pending);
    if text.is_empty() && ids.is_empty() {
        return Ok(());
    }
    let delta = Event::Delta { text, ids };
    let told = tell.send_timeout(delta, shared.settings.token_time).await;
    told.map_err(|error| {
        tracing::info!(%error, "a client reads no more of its answer");
        Broken::Gone
    })
}

fn slow() -> Broken {
    let told = "the provider is too slow";
    Broken::Failed(ApiError::new(StatusCode::GATEWAY_TIMEOUT, "timeout", told))
}

/// Ends a provider's answer. One that says nothing of what it is owed may hold vouchers for all of it.
async fn cancel(shared: &Shared, run: Box<dyn Generating>, job: &Job, paid: &mut Paid) {
    match timeout(shared.settings.token_time, run.cancel()).await {
        Ok(Ok(receipt)) => paid.add(receipt),
        Ok(Err(UpstreamError::Failed { receipts, spent, .. })) => paid.add_all(receipts, spent),
        Ok(Err(error)) => {
            tracing::warn!(%error, "a call was cancelled without a receipt");
            paid.sum = paid.sum.saturating_add(job.ask.price_max);
        }
        Err(_) => {
            tracing::warn!("a provider did not answer a cancel in time");
            paid.sum = paid.sum.saturating_add(job.ask.price_max);
        }
    }
}

fn broken(mut error: UpstreamError, paid: &mut Paid) -> Broken {
    match &mut error {
        UpstreamError::Failed {
            provider,
            receipts,
            spent,
            ..
        } => {
            paid.add_all(std::mem::take(receipts), *spent);
            Broken::Provider {
                name: provider.clone(),
                error,
            }
        }
        _ => Broken::Untaken(error),
    }
}

fn diverged() -> ApiError {
    let told = "two providers said different things to the same request: one of them lies, and both receipts are kept";
    ApiError::new(StatusCode::BAD_GATEWAY, "providers_differ", told)
}
