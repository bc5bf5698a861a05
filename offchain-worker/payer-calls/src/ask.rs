//! Asking one provider after the other, until one takes a request.

use std::{
    collections::BTreeSet,
    sync::Arc,
    task::{Context, Poll, ready},
};

use surety_channel_calls::{
    Refusal,
    payer::{AskError, Wanted},
};
use surety_channels::{Request, VoucherRefusal};
use surety_gateway::UpstreamError;
use surety_network::CallStream;
use surety_types::multiaddr::Endpoint;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, timeout, timeout_at},
};

use crate::{
    AccountId,
    channel::{Asking, CallId, Ended, Handle, Message, PieceReceiver, Untaken, pieces},
    market::{Need, NoWay, Shared, Way, named},
    upstream::accounts,
};

/// How often one provider is asked the same, with another number, sum, price or chunk each time; once more
/// where something was written off for the last of them.
const TRIES: usize = 4;

/// So often in a row a payee misses something before that was on its way once is taken to be heard.
const MISSES: u32 = 2;

/// What a provider misses that is asked the same again and again.
#[derive(Clone, Copy, Default)]
struct Missing {
    /// The sum that it has named first.
    sum: u128,
    /// How often in a row.
    times: u32,
}

impl Missing {
    /// It has refused once more.
    fn hear(&mut self, why: &Untaken) {
        *self = match why {
            Untaken::Refused {
                why: Refusal::Unpaid { sum },
                written_off: 0,
                ..
            } => Self {
                sum: if self.times == 0 { *sum } else { self.sum },
                times: self.times.saturating_add(1),
            },
            _ => Self::default(),
        };
    }

    /// What it has missed, once that is to be waited for no longer.
    fn is_late(self) -> Option<u128> {
        (self.times >= MISSES).then_some(self.sum)
    }
}

/// A request, but for what a unit costs at whoever takes it.
#[derive(Clone)]
pub(crate) struct Asked {
    pub wanted: Wanted,
    pub need: Need,
    /// Others are asked the same: beyond its first piece no more is paid ahead before it has won.
    pub is_race: bool,
}

/// A request that was taken.
pub(crate) struct Call {
    pub provider: AccountId,
    /// Most that it may cost, in plancks.
    pub price: u128,
    pub asked_at: Instant,
    pieces: PieceReceiver,
    /// Nothing once it has ended.
    pub ended: Option<oneshot::Receiver<Ended>>,
    handle: Arc<Handle>,
    id: CallId,
}

impl Call {
    /// The next piece; nothing after the last.
    pub fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        let piece = ready!(self.pieces.poll_next(cx));
        if let Some((_, true)) = piece {
            self.handle.read_on();
        }
        Poll::Ready(piece.map(|(bytes, _)| bytes))
    }

    /// It has won its race: all of it is read.
    pub fn has_won(&self) {
        self.pieces.has_won();
        self.handle.read_on();
    }

    /// It is enough. What comes until the end is to be taken in all the same.
    pub async fn cancel(&self) {
        self.handle.tell(Message::Cancel(self.id)).await;
    }
}

/// Why one provider does not answer.
pub(crate) enum Failure {
    /// Another one may, or this one in a while.
    Next,
    /// It may for more than it was ranked by.
    Dearer,
    /// It may have been paid for something.
    Lost(UpstreamError),
}

/// Why nobody has taken it so far, for whoever is told so in the end.
#[derive(Default)]
struct Reasons {
    is_busy: bool,
    is_exhausted: bool,
    is_uncovered: bool,
}

impl Reasons {
    fn error(&self) -> UpstreamError {
        if self.is_exhausted {
            UpstreamError::Exhausted
        } else if self.is_busy {
            UpstreamError::Busy
        } else if self.is_uncovered {
            UpstreamError::Uncovered
        } else {
            UpstreamError::NoProvider
        }
    }

    /// Takes in why one has no way. Whether it may have one soon.
    const fn add(&mut self, why: NoWay) -> bool {
        match why {
            NoWay::Uncovered => self.is_uncovered = true,
            NoWay::Exhausted => self.is_exhausted = true,
            NoWay::Full | NoWay::NoChannel | NoWay::NoRoom | NoWay::Covering => self.is_busy = true,
        }
        !matches!(why, NoWay::Uncovered)
    }
}

impl Shared {
    /// Asks the best provider that takes it. Where a channel or money is missing, or all are busy, that is
    /// waited for.
    ///
    /// # Errors
    /// [`UpstreamError`].
    pub async fn begin(&self, asked: &Asked, avoid: &[String]) -> Result<Call, UpstreamError> {
        let until = Instant::now().checked_add(self.config.patience.place);
        let until = until.unwrap_or_else(Instant::now);
        let mut changed = self.changed.subscribe();
        let mut refused = accounts(avoid);
        let mut has_refused = false;
        // Those that wanted more than they were ranked by: once for a request.
        let mut dearer = BTreeSet::new();
        let draw = self.draw();
        'ranked: loop {
            changed.mark_unchanged();
            let (candidates, are_busy) = self.candidates(&asked.need, &refused);
            let mut reasons = Reasons {
                is_busy: are_busy || has_refused,
                ..Reasons::default()
            };
            let mut waits = false;
            let mut best = true;
            for candidate in self.order(&asked.need, candidates, draw) {
                let provider = candidate.provider;
                let price = asked.need.price(candidate.unit_price);
                let is_best = std::mem::take(&mut best);
                let way = match self.way(&provider, price, is_best) {
                    Ok(way) => way,
                    Err(why) => {
                        waits |= reasons.add(why);
                        // The next best has a channel opened for it.
                        best |= matches!(why, NoWay::Covering | NoWay::Uncovered | NoWay::NoRoom);
                        continue;
                    }
                };
                match self.ask(asked, way, candidate.unit_price).await {
                    Ok(call) => return Ok(call),
                    Err(Failure::Lost(error)) => return Err(error),
                    Err(Failure::Dearer) if dearer.insert(provider.clone()) => {
                        has_refused = true;
                        continue 'ranked;
                    }
                    Err(Failure::Next | Failure::Dearer) => {
                        (has_refused, reasons.is_busy) = (true, true);
                        refused.insert(provider);
                    }
                }
            }
            if !waits {
                return Err(reasons.error());
            }
            if timeout_at(until, changed.changed()).await.is_err() {
                return Err(reasons.error());
            }
        }
    }

    /// Asks one provider, on a new stream each time.
    pub async fn ask(&self, asked: &Asked, way: Way, unit_price: u128) -> Result<Call, Failure> {
        let provider = way.handle.payee.clone();
        let mut asked = asked.clone();
        asked.wanted.request.unit_price = unit_price;
        let mut first = Some(way);
        // What it was written off for this request, in plancks: no more than once.
        let mut written_off = 0u128;
        let mut failure = Failure::Next;
        let (mut missing, mut tries) = (Missing::default(), 0usize);
        loop {
            tries = tries.saturating_add(1);
            let late = missing.is_late();
            if late.is_some() {
                // What was on its way when it has said so first is heard by then.
                sleep(self.config.patience.again).await;
            }
            let price = asked.need.price(asked.wanted.request.unit_price);
            let way = match first.take() {
                Some(way) => Ok(way),
                None => self.way(&provider, price, false),
            };
            let Ok(way) = way else { break };
            let Some(stream) = self.dial(&provider, &way.endpoints).await else {
                break;
            };
            let handle = way.handle.clone();
            let why = match self.ask_once((&asked, late), way, stream, price).await? {
                Ok(call) => return Ok(call),
                Err(why) => why,
            };
            missing.hear(&why);
            let mut has_more_tries = tries < TRIES;
            if let Untaken::Refused {
                why,
                written_off: more @ 1..,
                ..
            } = &why
            {
                self.failed(&provider);
                let was_before = written_off > 0;
                written_off = written_off.saturating_add(*more);
                if was_before {
                    handle.give_up(why.to_string());
                    break;
                }
                has_more_tries = true;
            }
            match self.goes_on(&handle, &mut asked, why)? {
                Next::Again if has_more_tries => {}
                Next::Again => {
                    self.takes_nothing(&handle, &asked.need);
                    break;
                }
                Next::No => break,
                Next::Dearer => {
                    failure = Failure::Dearer;
                    break;
                }
            }
        }
        if written_off > 0 {
            let why = "it says that it has served more than it has a receipt for, and takes nothing";
            return Err(Failure::Lost(lost(&provider, why, written_off)));
        }
        Err(failure)
    }

    /// A provider was asked the same again and again, and each time there was something else to be known.
    /// Once that may be what others' connections carry; who takes nothing but that is given up.
    fn takes_nothing(&self, handle: &Handle, need: &Need) {
        let provider = &handle.payee;
        self.refused(provider, self.market().says_free(provider, need));
        let has_answered = handle.status().settled > 0;
        let record = self.known.of(provider).record;
        if record.is_hopeless(has_answered, self.known.now_ms()) {
            handle.give_up("its provider has something else to say to each request, and takes none".into());
            self.wanted.notify_one();
        }
    }

    /// Has a channel's task ask, and waits until the request is taken or not. What its provider has missed
    /// before is no longer waited for where that is said.
    async fn ask_once(
        &self,
        (asked, missed): (&Asked, Option<u128>),
        way: Way,
        stream: CallStream,
        price: u128,
    ) -> Result<Result<Call, Untaken>, Failure> {
        let (taken, is_taken) = oneshot::channel();
        let (ended, has_ended) = oneshot::channel();
        let (pieces, to_read) = pieces(asked.need.units, asked.wanted.chunk_units, asked.is_race);
        let (handle, id, asked_at) = (way.handle, self.next_call(), Instant::now());
        let asking = Asking {
            call: id,
            wanted: asked.wanted.clone(),
            missed,
            stream,
            taken,
            pieces,
            ended,
            place: way.place,
        };
        handle.tell(Message::Ask(Box::new(asking))).await;
        let provider = handle.payee.clone();
        match is_taken.await {
            Ok(Ok(())) => Ok(Ok(Call {
                provider,
                price,
                asked_at,
                pieces: to_read,
                ended: Some(has_ended),
                handle,
                id,
            })),
            Ok(Err(why)) => Ok(Err(why)),
            // Its task has stopped: what was signed by then may be paid.
            Err(_) => Err(Failure::Lost(lost(&provider, "its channel has ended", price))),
        }
    }

    /// A stream to a provider, if it answers in time.
    async fn dial(&self, provider: &AccountId, endpoints: &[Endpoint]) -> Option<CallStream> {
        let dialled = timeout(self.config.patience.taken, self.config.plane.open_call(endpoints)).await;
        let error = match dialled {
            Ok(Ok(stream)) => return Some(stream),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it does not answer in time".into(),
        };
        tracing::warn!(provider = named(provider), error, "a provider cannot be reached");
        self.failed(provider);
        None
    }

    /// Whether the same provider is asked once more, with what it has said.
    fn goes_on(&self, handle: &Handle, asked: &mut Asked, why: Untaken) -> Result<Next, Failure> {
        let provider = &handle.payee;
        let request: &Request = &asked.wanted.request;
        let (why, is_worth_retry) = match why {
            Untaken::Refused {
                why, is_worth_retry, ..
            } => (why, is_worth_retry),
            Untaken::Broken { why, spent } => {
                self.failed(provider);
                return Err(Failure::Lost(lost(provider, &why.to_string(), spent)));
            }
            Untaken::Cannot(AskError::Exhausted { missing }) => {
                handle.lacks(missing);
                self.wanted.notify_one();
                return Ok(Next::No);
            }
            Untaken::Cannot(AskError::Unfit(unfit)) => {
                tracing::warn!(%unfit, "a request is none");
                return Ok(Next::No);
            }
            Untaken::Cannot(_) => return Ok(Next::No),
        };
        tracing::debug!(provider = named(provider), %why, is_worth_retry, "a provider does not take a request");
        match why {
            _ if is_worth_retry => return Ok(Next::Again),
            // It is ranked by that from now on, and asked where it still is the best. Who wants more each
            // time takes nothing.
            Refusal::Price { unit_price } if unit_price > request.unit_price => {
                let of = (asked.need.model, asked.need.operation);
                if self.wants_more(provider, of, unit_price) {
                    return Ok(Next::Dearer);
                }
                self.refused(provider, self.market().says_free(provider, &asked.need));
            }
            // Smaller ones alone: a chunk is what may be lost.
            Refusal::ChunkUnits { most, .. } if most < asked.wanted.chunk_units => {
                asked.wanted.chunk_units = most;
                return Ok(Next::Again);
            }
            // It has another journal than this channel's, or this end has.
            Refusal::Closing
            | Refusal::Forgotten
            | Refusal::BadSignature
            | Refusal::Voucher(VoucherRefusal::NotLarger { .. } | VoucherRefusal::OtherNonce { .. })
            | Refusal::Unpaid { .. } => {
                // A channel is a deposit.
                self.refused(provider, true);
                handle.give_up(why.to_string());
            }
            // What is asked is too much for it, which is no fault of its own.
            Refusal::TooDear { price_max } if price_max < asked.need.price(request.unit_price) => {
                self.sells_no_more(provider, price_max);
            }
            // It is busy, sees another block, or sells something else now.
            _ => self.refused(provider, self.market().says_free(provider, &asked.need)),
        }
        Ok(Next::No)
    }
}

/// Whether a provider is asked once more that has not taken a request.
enum Next {
    Again,
    No,
    /// It wants more than it was ranked by.
    Dearer,
}

/// A provider that may have been paid for something.
pub(crate) fn lost(provider: &AccountId, why: &str, spent: u128) -> UpstreamError {
    UpstreamError::Failed {
        provider: named(provider),
        why: why.to_owned(),
        spent,
        receipts: Vec::new(),
    }
}
