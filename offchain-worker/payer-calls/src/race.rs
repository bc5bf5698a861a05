//! Several providers over the same request: whoever has a signed piece first answers, the others are
//! cancelled at once, and paid for what was on its way.
//!
//! What those have said is a part of the same answer: who computes exactly says the same. Of two that have
//! signed different ids one has lied, and nobody here knows which.

use std::{
    future::poll_fn,
    mem,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use async_trait::async_trait;
use surety_gateway::{Beside, Generating, Receipt, Step, UpstreamError};
use tokio::{
    task::JoinSet,
    time::{Instant, timeout_at},
};

use crate::{
    AccountId,
    ask::{Asked, Call, Failure, lost},
    market::{Shared, named},
    run::{Piece, Run, ids},
    upstream::accounts,
};

/// For so long the end of an answer waits for what the others have cost. Nearly all of them have ended
/// before.
const SETTLED: Duration = Duration::from_secs(2);

/// What a loser has signed.
struct Loser {
    provider: AccountId,
    said: Vec<u8>,
    ended: Result<Receipt, UpstreamError>,
}

/// An answer that several are asked for.
pub(crate) struct Race {
    shared: Arc<Shared>,
    /// Those that were asked, and have not taken it yet.
    asking: JoinSet<Result<Call, Failure>>,
    /// Those that have, and have said nothing yet.
    runs: Vec<Run>,
    /// Why the last of those that are out of it is, with what all of them may have been paid.
    failed: Option<UpstreamError>,
    winner: Option<Run>,
    /// What the winner has said.
    said: Vec<u8>,
    /// How it has ended.
    ended: Option<Result<Receipt, UpstreamError>>,
    losers: JoinSet<Vec<Loser>>,
    /// Until when those are waited for.
    until: Option<Instant>,
    /// What all losers together may have been paid, in plancks, less what is known by now.
    owed: u128,
    /// One that has signed something else than the winner.
    other: Option<AccountId>,
    beside: Beside,
}

impl Race {
    /// Asks `most` providers at most, and waits until one has taken it. Nothing where there are no two that
    /// can be asked now, or none takes it.
    pub async fn begin(
        shared: &Arc<Shared>,
        asked: &Asked,
        avoid: &[String],
        most: usize,
    ) -> Result<Option<Self>, UpstreamError> {
        let ways = shared.ways(&asked.need, &accounts(avoid), most);
        if ways.len() < 2 {
            tracing::warn!("an answer is asked of one provider alone: no other can be asked now");
            return Ok(None);
        }
        let mut race = Self {
            shared: shared.clone(),
            asking: JoinSet::new(),
            runs: Vec::new(),
            failed: None,
            winner: None,
            said: Vec::new(),
            ended: None,
            losers: JoinSet::new(),
            until: None,
            owed: most_of_losers(asked, ways.len()),
            other: None,
            beside: Beside::default(),
        };
        for (way, unit_price) in ways {
            let shared = shared.clone();
            let asked = Asked {
                is_race: true,
                ..asked.clone()
            };
            race.asking
                .spawn(async move { shared.ask(&asked, way, unit_price).await });
        }
        poll_fn(|cx| race.poll_taken(cx)).await;
        match (race.runs.is_empty(), race.failed.take()) {
            (true, Some(error)) => Err(error),
            (true, None) => Ok(None),
            (false, failed) => {
                race.failed = failed;
                Ok(Some(race))
            }
        }
    }

    /// Once one has taken it, or nobody has.
    fn poll_taken(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.take_taken(cx);
        match self.runs.is_empty() && !self.asking.is_empty() {
            true => Poll::Pending,
            false => Poll::Ready(()),
        }
    }

    /// Those who have answered by now whether they take it.
    fn take_taken(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Some(asked)) = self.asking.poll_join_next(cx) {
            match asked {
                Ok(Ok(call)) => self.runs.push(Run::new(self.shared.clone(), call)),
                Ok(Err(Failure::Lost(error))) => self.fails(error),
                Ok(Err(Failure::Next | Failure::Dearer)) => {}
                Err(error) => tracing::error!(%error, "a provider cannot be asked"),
            }
        }
    }

    /// One is out of it.
    fn fails(&mut self, error: UpstreamError) {
        let (receipts, spent) = self.failed.take().map(paid).unwrap_or_default();
        self.failed = Some(with(error, receipts, spent));
    }

    /// Once one has said something, or nobody is left.
    fn poll_first(&mut self, cx: &mut Context<'_>) -> Poll<Result<(Run, Vec<u8>), UpstreamError>> {
        self.take_taken(cx);
        let mut at = 0usize;
        while let Some(run) = self.runs.get_mut(at) {
            let piece = match run.poll_piece(cx) {
                Poll::Ready(piece) => piece,
                Poll::Pending => {
                    at = at.saturating_add(1);
                    continue;
                }
            };
            let run = self.runs.swap_remove(at);
            match piece {
                Ok(Piece::Bytes(bytes)) => return Poll::Ready(Ok((run, bytes))),
                // It has ended before it has said anything.
                Ok(Piece::End { signed, paid }) => {
                    let receipt = run.whole(&signed, paid);
                    let nothing =
                        |receipt| with(lost(run.provider(), "it has said nothing", 0), vec![receipt], 0);
                    self.fails(receipt.map_or_else(|error| error, nothing));
                }
                Err(error) => self.fails(error),
            }
        }
        if !self.runs.is_empty() || !self.asking.is_empty() {
            return Poll::Pending;
        }
        Poll::Ready(Err(self.failed.take().unwrap_or(UpstreamError::Busy)))
    }

    /// Cancels all but the winner at once.
    fn cancel_others(&mut self) {
        // They are out of it, and were paid all the same.
        if let Some(error) = self.failed.take() {
            add(&self.beside, error);
        }
        for run in mem::take(&mut self.runs) {
            self.losers.spawn(async move { vec![lose(run).await] });
        }
        let mut asking = mem::take(&mut self.asking);
        if asking.is_empty() {
            return;
        }
        // Dropped, they would be cancelled, too, but nobody would know what they have cost.
        let (shared, beside) = (self.shared.clone(), self.beside.clone());
        self.losers.spawn(async move {
            let mut losing = JoinSet::new();
            while let Some(asked) = asking.join_next().await {
                match asked {
                    Ok(Ok(call)) => drop(losing.spawn(lose(Run::new(shared.clone(), call)))),
                    Ok(Err(Failure::Lost(error))) => add(&beside, error),
                    Ok(Err(Failure::Next | Failure::Dearer)) | Err(_) => {}
                }
            }
            let mut losers = Vec::new();
            while let Some(loser) = losing.join_next().await {
                losers.extend(loser);
            }
            losers
        });
    }

    /// Waits for what the losers have cost. Cancel-safe.
    async fn settle(&mut self) {
        let late = Instant::now().checked_add(SETTLED).unwrap_or_else(Instant::now);
        let until = *self.until.get_or_insert(late);
        loop {
            match timeout_at(until, self.losers.join_next()).await {
                Ok(Some(Ok(losers))) => losers.into_iter().for_each(|loser| self.settle_one(loser)),
                Ok(Some(Err(error))) => tracing::error!(%error, "a race has a loser that is lost"),
                Ok(None) => return,
                Err(_) => {
                    self.losers = JoinSet::new();
                    return self.beside.spend(mem::take(&mut self.owed));
                }
            }
        }
    }

    fn settle_one(&mut self, loser: Loser) {
        match loser.ended {
            // Nothing was signed of it, nor is it paid.
            Ok(receipt) if receipt.price == 0 && loser.said.is_empty() => {}
            Ok(receipt) => {
                self.owed = self.owed.saturating_sub(receipt.price);
                self.beside.add(receipt);
            }
            Err(error) => {
                self.owed = self.owed.saturating_sub(spent(&error));
                add(&self.beside, error);
            }
        }
        let winner = self.winner.as_ref().map(Run::provider);
        // Either may have stopped before the other.
        let is_same = self.said.iter().zip(&loser.said).all(|(one, other)| one == other);
        if let Some(winner) = winner.filter(|_| !is_same) {
            self.shared.suspect(winner, &loser.provider);
            self.other = Some(loser.provider);
        }
    }

    /// What was said and signed, unless another has signed something else.
    fn outcome(&mut self, receipt: Receipt) -> Result<Step, UpstreamError> {
        let Some(other) = self.other.take() else {
            return Ok(Step::Done(receipt));
        };
        let provider = receipt.provider.clone();
        let why = format!("{} has signed another answer to the same", named(&other));
        // It is kept, as the other one is.
        self.beside.add(receipt);
        Err(UpstreamError::Failed {
            provider,
            why,
            spent: 0,
            receipts: Vec::new(),
        })
    }
}

/// What those may be paid that lose: what was signed when they were asked, and for the chunk after it.
fn most_of_losers(asked: &Asked, racers: usize) -> u128 {
    let chunks = asked.wanted.chunk_units.saturating_mul(2);
    let prompt = asked.wanted.request.work().prompt_tokens();
    let units = prompt.saturating_add(chunks).min(asked.need.units);
    let each = asked.need.unit_price_max.saturating_mul(units.into());
    let losers = u128::try_from(racers).unwrap_or(u128::MAX).saturating_sub(1);
    each.saturating_mul(losers)
}

async fn lose(mut run: Run) -> Loser {
    run.stop().await;
    let mut said = Vec::new();
    let ended = run.rest(&mut said).await;
    Loser {
        provider: run.provider().clone(),
        said,
        ended,
    }
}

/// Nobody has said anything, nor is paid anything that is not counted beside.
fn nobody() -> UpstreamError {
    UpstreamError::Failed {
        provider: "nobody".into(),
        why: "none has answered".into(),
        spent: 0,
        receipts: Vec::new(),
    }
}

/// What may have been paid with and without receipts, in plancks.
fn spent(error: &UpstreamError) -> u128 {
    match error {
        UpstreamError::Failed { spent, receipts, .. } => {
            let prices = receipts.iter().map(|receipt| receipt.price);
            prices.fold(*spent, u128::saturating_add)
        }
        _ => 0,
    }
}

/// What was signed, and what may have been paid beside that, in plancks.
pub(crate) fn paid(error: UpstreamError) -> (Vec<Receipt>, u128) {
    match error {
        UpstreamError::Failed { spent, receipts, .. } => (receipts, spent),
        _ => (Vec::new(), 0),
    }
}

/// The same, of what others were paid.
fn add(beside: &Beside, error: UpstreamError) {
    let (receipts, spent) = paid(error);
    receipts.into_iter().for_each(|receipt| beside.add(receipt));
    beside.spend(spent);
}

/// What others have signed, and may have been paid beside that, counts, too.
pub(crate) fn with(mut error: UpstreamError, mut others: Vec<Receipt>, more: u128) -> UpstreamError {
    if let UpstreamError::Failed { spent, receipts, .. } = &mut error {
        *spent = spent.saturating_add(more);
        others.append(receipts);
        *receipts = others;
    }
    error
}

#[async_trait]
impl Generating for Race {
    async fn next(&mut self) -> Result<Step, UpstreamError> {
        if self.ended.is_none() {
            let piece = match &mut self.winner {
                Some(run) => run.piece().await,
                None => {
                    let (run, bytes) = poll_fn(|cx| self.poll_first(cx)).await?;
                    run.has_won();
                    self.winner = Some(run);
                    self.cancel_others();
                    Ok(Piece::Bytes(bytes))
                }
            };
            let ended = match (piece, &self.winner) {
                (Ok(Piece::Bytes(bytes)), _) => {
                    let step = Step::Tokens(ids(&bytes));
                    self.said.extend(bytes);
                    return Ok(step);
                }
                (Ok(Piece::End { signed, paid }), Some(run)) => run.whole(&signed, paid),
                (Ok(Piece::End { .. }), None) => Err(nobody()),
                (Err(error), _) => Err(error),
            };
            self.ended = Some(ended);
        }
        self.settle().await;
        let receipt = self.ended.take().unwrap_or_else(|| Err(nobody()))?;
        self.outcome(receipt)
    }

    async fn cancel(mut self: Box<Self>) -> Result<Receipt, UpstreamError> {
        if self.winner.is_none() {
            self.winner = self.runs.pop();
        }
        self.cancel_others();
        let ended = match (self.ended.take(), &mut self.winner) {
            (Some(ended), _) => ended,
            (None, Some(run)) => {
                run.stop().await;
                run.rest(&mut self.said).await
            }
            (None, None) => Err(nobody()),
        };
        self.settle().await;
        ended
    }

    fn beside(&self) -> Beside {
        self.beside.clone()
    }
}
