//! What verifiers are shown: the receipt that one of their points is in, and what it takes to compute it
//! again. Whoever has not drawn that point is shown nothing.

use std::sync::Arc;

use surety_audit_economics::channels::{ReceiptsInput, drawn_points, points_mean};
use surety_chain_client::{BatchView, ChainError, When, checked_points};
use surety_channel_calls::{
    message::{Asked, AtPoint, NotShown, PointAsk, ToVerifier},
    payee::Shown,
};
use surety_channels::BatchNumber;
use surety_types::{input::WORD_BYTES, model::Operation, stake::Role};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::{CallsError, Parts, desk::Event, read};

/// Verifiers that are shown something at once: each takes a few MiB.
const AT_ONCE: usize = 4;

/// Holders of receipts that are answered at once.
const HOLDERS: usize = 8;

/// What is asked of the desk.
pub(crate) enum Question {
    /// A batch, as a finalised block has it.
    Batch(BatchNumber, oneshot::Sender<Option<BatchView>>),
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
    places: Arc<Semaphore>,
    pub(crate) holders: Arc<Semaphore>,
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
            places: Arc::new(Semaphore::new(AT_ONCE)),
            holders: Arc::new(Semaphore::new(HOLDERS)),
        }
    }

    /// Answers a verifier.
    pub(crate) async fn answer(&self, ask: PointAsk) -> ToVerifier {
        let (batch, place) = (ask.batch, ask.place);
        match self.show(ask).await {
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
        let batch = self.ask(|back| Question::Batch(ask.batch, back)).await;
        let batch = batch.ok_or(NotShown::NoBatch)?;
        let points = self.drawn(&ask, &batch).await?;
        let point = *points.get(ask.place as usize).ok_or(NotShown::NotDrawn)?;
        // Last: who has drawn nothing takes no place from those who have.
        let _place = self.places.try_acquire().map_err(|_| NotShown::Busy)?;
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

    /// The points of whoever asks, as the chain would draw them now.
    async fn drawn(&self, ask: &PointAsk, batch: &BatchView) -> Result<Vec<u128>, Failed> {
        let input = ReceiptsInput {
            seed: batch.draw.seed.ok_or(NotShown::NoBatch)?,
            provider: batch.provider.clone(),
            batch: batch.batch,
        };
        // Anybody can have a key: the chain is asked only where the proof is right.
        let output = checked_points(&ask.agent, &input, &ask.proof).ok_or(NotShown::NotDrawn)?;
        let chain = &self.parts.chain;
        let stash = chain.agent_stash(When::Finalized, &ask.agent).await?;
        let stash = stash.ok_or(NotShown::NotDrawn)?;
        let (channels, price) = (&self.parts.channels, batch.window.root.sums.price);
        // What it has announced stands, whatever its stake is by now.
        let announced = channels
            .points(When::Finalized, &batch.provider, batch.batch)
            .await?;
        if let Some(announced) = announced.into_iter().find(|points| points.verifier == stash) {
            return Ok(drawn_points(&output, price, announced.mean));
        }
        let stake = chain.stake(When::Finalized, &stash).await?;
        let settled =
            stake.filter(|stake| stake.role == Role::Verifier && stake.settled_at <= batch.draw.settled_by);
        let bonded = settled.ok_or(NotShown::NotDrawn)?.bonded;
        let mean = points_mean(batch.rate, price, bonded, batch.draw.verifier_stake);
        Ok(drawn_points(&output, price, mean))
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
