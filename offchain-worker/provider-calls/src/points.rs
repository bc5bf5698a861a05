//! What verifiers are shown: the receipt that one of their points is in, and what it takes to compute it
//! again. Whoever has not drawn that point is shown nothing, and costs little.

mod askers;
#[cfg(test)]
mod tests;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use surety_audit_economics::channels::{ReceiptsInput, drawn_points, points_mean};
use surety_chain_client::{BatchView, ChainError, When, checked_points};
use surety_channel_calls::{
    AccountId,
    message::{Asked, AtPoint, NotShown, PointAsk, ToVerifier},
    payee::Shown,
};
use surety_channels::{BatchNumber, Time};
use surety_types::{input::WORD_BYTES, model::Operation, stake::Role};
use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    time::timeout,
};

use crate::{CallsError, Parts, desk::Event, read};
use askers::{Askers, Drawer, Of};

/// Proofs that are looked at at once: each takes a part of a millisecond of a processor, whoever made it.
const PROOFS: usize = 2;

/// Verifiers that are shown something at once: each takes a few MiB.
const AT_ONCE: usize = 4;

/// Holders of receipts that are answered at once.
const HOLDERS: usize = 8;

/// For so long a verifier is looked up, and waits for a place. It listens for 30 seconds.
const ANSWER_TIME: Duration = Duration::from_secs(20);

/// A batch, as a finalised block has it, and the time of that.
pub(crate) type Seen = (BatchView, Time);

/// What is asked of the desk.
pub(crate) enum Question {
    /// A batch.
    Batch(BatchNumber, oneshot::Sender<Option<Seen>>),
    /// The receipt that a point of a batch is in.
    Point(BatchNumber, u128, oneshot::Sender<Option<Shown>>),
    /// Where receipts are.
    Receipts(Asked, oneshot::Sender<Vec<Result<Shown, NotShown>>>),
}

/// Shows verifiers what they have drawn.
#[derive(Clone)]
pub(crate) struct Points {
    pub(crate) parts: Arc<Parts>,
    events: mpsc::Sender<Event>,
    proofs: Arc<Semaphore>,
    places: Arc<Semaphore>,
    askers: Arc<Mutex<Askers>>,
    pub(crate) holders: Arc<Semaphore>,
    /// Whose receipts the desk looks for: one question after the other.
    pub(crate) turn: Arc<Semaphore>,
}

/// A question of an agent about a batch, which is answered until this is dropped.
struct Answering<'a> {
    askers: &'a Mutex<Askers>,
    of: Of,
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        locked(self.askers).end(&self.of);
    }
}

fn locked(askers: &Mutex<Askers>) -> MutexGuard<'_, Askers> {
    askers.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why something is not shown.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    NotShown(#[from] NotShown),
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error(transparent)]
    Journal(#[from] CallsError),
}

impl Points {
    pub(crate) fn new(parts: Arc<Parts>, events: mpsc::Sender<Event>) -> Self {
        Self {
            parts,
            events,
            proofs: Arc::new(Semaphore::new(PROOFS)),
            places: Arc::new(Semaphore::new(AT_ONCE)),
            askers: Arc::new(Mutex::new(Askers::new(Instant::now()))),
            holders: Arc::new(Semaphore::new(HOLDERS)),
            turn: Arc::new(Semaphore::new(1)),
        }
    }

    /// Answers a verifier, before it listens no more.
    pub(crate) async fn answer(&self, ask: PointAsk) -> ToVerifier {
        let (batch, place) = (ask.batch, ask.place);
        let shown = timeout(ANSWER_TIME, self.show(ask)).await;
        match shown.unwrap_or(Err(Failed::NotShown(NotShown::Busy))) {
            Ok(at) => ToVerifier::Point(at),
            Err(Failed::NotShown(why)) => {
                tracing::debug!(batch, place, %why, "a verifier is shown nothing");
                ToVerifier::NotShown(why)
            }
            Err(error) => {
                tracing::error!(batch, place, %error, "a receipt that was drawn cannot be shown: it will be demanded");
                ToVerifier::NotShown(NotShown::Lost)
            }
        }
    }

    async fn show(&self, ask: PointAsk) -> Result<AtPoint, Failed> {
        let of = (ask.agent.clone(), ask.batch);
        if let Some(Drawer::Stranger | Drawer::Unsettled) = self.said(&of) {
            return Err(NotShown::NotDrawn.into());
        }
        let (seen, output) = self.proven(&ask).await?;
        let _answering = self.begin(&of)?;
        let points = self.drawn(&of, &seen, &output).await?;
        let point = *points.get(ask.place as usize).ok_or(NotShown::NotDrawn)?;
        // Last: who has drawn nothing takes no place from those who have.
        let _place = self.places.acquire().await.map_err(|_| NotShown::Busy)?;
        let shown = self.ask(|back| Question::Point(ask.batch, point, back)).await;
        let Shown { batched, request, .. } = shown.ok_or(NotShown::Lost)?;
        let call = (batched.statement.channel, batched.statement.nonce);
        let input = read::input(&self.parts, call).await?.ok_or(NotShown::Lost)?;
        let output = match request.operation {
            Operation::Embed => Vec::new(),
            Operation::Generate => {
                let mut output = read::output(&self.parts, call).await?;
                output.split_off((WORD_BYTES as usize).min(output.len()))
            }
        };
        Ok(AtPoint {
            batched,
            request,
            input: input.try_into().map_err(|_| NotShown::Lost)?,
            output: output.try_into().map_err(|_| NotShown::Lost)?,
        })
    }

    /// A batch, and what an agent has drawn of it, by its proof. All wait for a place here, in the order in
    /// which they come: whoever has many keys takes no more of desk and processor than these places do.
    async fn proven(&self, ask: &PointAsk) -> Result<(Seen, [u8; 32]), Failed> {
        let _place = self.proofs.acquire().await.map_err(|_| NotShown::Busy)?;
        let seen = self.ask(|back| Question::Batch(ask.batch, back)).await;
        let (batch, time) = seen.ok_or(NotShown::NoBatch)?;
        let input = ReceiptsInput {
            seed: batch.draw.seed.ok_or(NotShown::NoBatch)?,
            provider: batch.provider.clone(),
            batch: batch.batch,
        };
        let (agent, proof) = (ask.agent.clone(), ask.proof);
        let checked = tokio::task::spawn_blocking(move || checked_points(&agent, &input, &proof));
        let output = checked.await.ok().flatten().ok_or(NotShown::NotDrawn)?;
        Ok(((batch, time), output))
    }

    /// The points of whoever asks, as the chain would draw them now, or would have a moment ago.
    async fn drawn(&self, of: &Of, seen: &Seen, output: &[u8; 32]) -> Result<Vec<u128>, Failed> {
        let drawer = match self.said(of) {
            Some(drawer) => drawer,
            None => self.look_up(of, seen).await?,
        };
        let price = seen.0.window.root.sums.price;
        match drawer {
            Drawer::Draws(mean) | Drawer::Announced(mean) => Ok(drawn_points(output, price, mean)),
            Drawer::Stranger | Drawer::Unsettled => Err(NotShown::NotDrawn.into()),
        }
    }

    async fn look_up(&self, of: &Of, (batch, time): &Seen) -> Result<Drawer, Failed> {
        // Anybody can have a key: so much is asked of the chain for all of them, and no more.
        let is_final = batch.window.is_final(*time);
        if !locked(&self.askers).may_look_up(&of.0, is_final, Instant::now()) {
            return Err(NotShown::Busy.into());
        }
        let drawer = self.drawer(&of.0, batch).await?;
        locked(&self.askers).learn(of.clone(), drawer, Instant::now());
        Ok(drawer)
    }

    /// What the chain says of an agent.
    async fn drawer(&self, agent: &AccountId, batch: &BatchView) -> Result<Drawer, ChainError> {
        let (chain, channels) = (&self.parts.chain, &self.parts.channels);
        let Some(stash) = chain.agent_stash(When::Finalized, agent).await? else {
            return Ok(Drawer::Stranger);
        };
        // What it has announced stands, whatever its stake is by now.
        let announced = channels
            .points(When::Finalized, &batch.provider, batch.batch)
            .await?;
        if let Some(announced) = announced.into_iter().find(|points| points.verifier == stash) {
            return Ok(Drawer::Announced(announced.mean));
        }
        let stake = chain.stake(When::Finalized, &stash).await?;
        let Some(stake) = stake.filter(|stake| stake.role == Role::Verifier) else {
            return Ok(Drawer::Stranger);
        };
        if stake.settled_at > batch.draw.settled_by {
            return Ok(Drawer::Unsettled);
        }
        let price = batch.window.root.sums.price;
        let mean = points_mean(batch.rate, price, stake.bonded, batch.draw.verifier_stake);
        Ok(Drawer::Draws(mean))
    }

    fn said(&self, of: &Of) -> Option<Drawer> {
        locked(&self.askers).said(of, Instant::now())
    }

    fn begin(&self, of: &Of) -> Result<Answering<'_>, NotShown> {
        let askers = &*self.askers;
        let answering = || Answering {
            askers,
            of: of.clone(),
        };
        locked(askers).begin(of).then(answering).ok_or(NotShown::Busy)
    }

    async fn ask<T>(&self, question: impl FnOnce(oneshot::Sender<Option<T>>) -> Question) -> Option<T> {
        self.ask_desk(question).await.flatten()
    }

    /// Nothing where the desk is gone, or has seen no block yet.
    pub(crate) async fn ask_desk<T>(
        &self,
        question: impl FnOnce(oneshot::Sender<T>) -> Question,
    ) -> Option<T> {
        let (back, answer) = oneshot::channel();
        self.events.send(Event::Question(question(back))).await.ok()?;
        answer.await.ok()
    }
}
