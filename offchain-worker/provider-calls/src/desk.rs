//! The one task that owns the payee. It takes events, has what they come to written, many at once, and only
//! then does what follows.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use surety_chain_client::BlockNumber;
use surety_channel_calls::{
    AccountId, FromPayee, Millis, Payee, PayeeEffect, Refusal, Step, Uncommitted, payee::Misuse,
};
use surety_channels::{ChannelId, End, Nonce, SignedCancel, SignedVoucher};
use surety_dispute_game::bisection::Move;
use surety_types::{ContentHash, trust::DisputeId};
use tokio::{
    sync::{mpsc, watch},
    time::{MissedTickBehavior, interval},
};

use crate::{
    CallsError, Parts,
    compute::{Failed, Made, Owned, Running},
    defense::{Defense, NoMove},
    errands::{Back, Errands},
    front::{Arrived, CallId, LineId},
    points::Question,
    sight::Sight,
    trace,
    watch::{Watch, kind},
};

/// Steps that are written with one sync.
const JOINED_MAX: usize = 64;

/// How often time passes for the payee.
const TICK: Duration = Duration::from_secs(1);

/// Between two attempts to write, at first and at most.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// What happens to a payee.
pub(crate) enum Event {
    Asked(Box<Arrived>),
    Paid {
        voucher: SignedVoucher<AccountId>,
        line: LineId,
    },
    Cancelled {
        cancel: SignedCancel<AccountId>,
        line: LineId,
    },
    /// A connection is over.
    Gone {
        call: CallId,
        line: LineId,
    },
    Made {
        call: CallId,
        made: Made,
    },
    Failed {
        call: CallId,
        why: Failed,
    },
    Traced {
        call: CallId,
        root: ContentHash,
    },
    /// What was said of an answer is wrong.
    Contradicted {
        call: CallId,
    },
    /// A verifier is to be shown something.
    Question(Question),
    Seen(Box<Sight>),
    Back(Box<Back>),
    /// A move was looked for in a game about a receipt.
    Moved {
        dispute: DisputeId,
        number: u32,
        found: Result<Move, NoMove>,
    },
}

/// Whom to tell of a request.
struct Asker {
    line: LineId,
    told: mpsc::Sender<FromPayee>,
}

/// The payee, and what goes on around it.
pub(crate) struct Desk {
    pub(crate) parts: Arc<Parts>,
    pub(crate) payee: Payee,
    pub(crate) watch: Watch,
    pub(crate) errands: Errands,
    pub(crate) defense: Defense,
    pub(crate) newest: watch::Receiver<BlockNumber>,
    /// Has blocks followed anew, each time that it grows.
    pub(crate) again: watch::Sender<u64>,
    pub(crate) events: mpsc::Sender<Event>,
    askers: BTreeMap<CallId, Asker>,
    pub(crate) running: BTreeMap<CallId, Running>,
    tracing: BTreeMap<CallId, Owned>,
    /// Requests whose askers take nothing more.
    deaf: Vec<CallId>,
    began: Instant,
    /// The journal did not take the last step.
    stuck: Option<Stuck>,
}

/// What was decided waits for the disk.
#[derive(Clone, Copy)]
struct Stuck {
    pause: Duration,
    until: Instant,
}

pub(crate) type Decided = Step<PayeeEffect>;

impl Desk {
    pub(crate) fn new(
        parts: Arc<Parts>,
        payee: Payee,
        (newest, again): (watch::Receiver<BlockNumber>, watch::Sender<u64>),
        events: mpsc::Sender<Event>,
    ) -> Self {
        Self {
            parts,
            watch: Watch::new(payee.uncommitted()),
            payee,
            errands: Errands::default(),
            defense: Defense::default(),
            newest,
            again,
            events,
            askers: BTreeMap::new(),
            running: BTreeMap::new(),
            tracing: BTreeMap::new(),
            deaf: Vec::new(),
            began: Instant::now(),
            stuck: None,
        }
    }

    /// Takes events until it is to stop, or there can be none any more.
    pub(crate) async fn run(
        mut self,
        first: Decided,
        mut events: mpsc::Receiver<Event>,
        mut stop: watch::Receiver<bool>,
    ) -> Result<(), CallsError> {
        let mut step = self.carry_out(first).await?;
        self.settle_batch();
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                event = events.recv() => match event {
                    Some(event) => self.take(event, &mut step),
                    None => break,
                },
                _ = ticks.tick() => {
                    step.join(self.payee.tick(self.now()));
                    self.cut_stuck(&mut step);
                },
                _ = stop.wait_for(|stop| *stop) => break,
            }
            for _ in 1..JOINED_MAX {
                match events.try_recv() {
                    Ok(event) => self.take(event, &mut step),
                    Err(_) => break,
                }
            }
            step = self.carry_out(step).await?;
        }
        self.wind_down(step).await
    }

    /// What is being answered ends as it was said. Traces that it takes are made at the next start.
    async fn wind_down(mut self, mut step: Decided) -> Result<(), CallsError> {
        let open: Vec<CallId> = self.payee.open_calls().collect();
        for (channel, nonce) in open {
            step.join(self.payee.abandon(channel, nonce));
        }
        self.stuck = None;
        let unwritten = self.carry_out(step).await?;
        match unwritten.is_empty() {
            true => Ok(()),
            false => Err(CallsError::Journal(
                "what was decided last cannot be written: make room on the disk, and start again".into(),
            )),
        }
    }

    /// Milliseconds since the start.
    fn now(&self) -> Millis {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn take(&mut self, event: Event, step: &mut Decided) {
        match event {
            Event::Asked(arrived) => self.asked(*arrived, step),
            Event::Paid { voucher, line } => {
                let call = (voucher.voucher.channel, voucher.voucher.nonce);
                if let Some(sight) = self.watch.sight.as_ref().filter(|_| self.is_asker(call, line)) {
                    // It is cut when there is no more time than that.
                    let at = sight.time.saturating_add(sight.notice(self.parts.config.margin));
                    let now = self.now();
                    step.join(self.payee.pay(voucher, at, now));
                    self.pace(call.0);
                }
            }
            Event::Cancelled { cancel, line } => {
                let call = (cancel.cancel.channel, cancel.cancel.nonce);
                if self.is_asker(call, line) {
                    step.join(self.payee.cancel(cancel));
                }
            }
            Event::Gone { call, line } => {
                if self.is_asker(call, line) {
                    self.askers.remove(&call);
                    step.join(self.payee.leave(call.0, call.1));
                }
            }
            Event::Made { call, made } => self.made(call, made, step),
            Event::Failed { call, why } => self.failed(call, &why, step),
            Event::Traced { call, root } => {
                self.tracing.remove(&call);
                step.join(self.payee.traced(call.0, call.1, root));
            }
            Event::Contradicted { call } => self.contradicted(call, step),
            Event::Question(question) => self.tell_of_batches(question),
            Event::Seen(sight) => {
                let decided = self.see(*sight);
                step.join(decided);
            }
            Event::Back(back) => self.back(&back),
            Event::Moved {
                dispute,
                number,
                found,
            } => self.moved(dispute, number, found),
        }
    }

    fn is_asker(&self, call: CallId, line: LineId) -> bool {
        self.askers.get(&call).is_some_and(|asker| asker.line == line)
    }

    fn asked(&mut self, arrived: Arrived, step: &mut Decided) {
        let Arrived { ask, line, told } = arrived;
        let (channel, nonce) = (ask.voucher.voucher.channel, ask.voucher.voucher.nonce);
        let price = ask.request.price(ask.request.units_max).unwrap_or(u128::MAX);
        let of = kind(ask.request.model, ask.request.operation);
        let taken = match self.may_take(channel, &ask.request) {
            Ok((seen, at)) if self.has_place_for(channel, &ask.request) => {
                self.payee.try_ask(ask, seen.as_ref(), at)
            }
            Ok((seen, at)) => {
                // Whoever has signed nothing keeps nobody from a place.
                if self.payee.would_take(&ask, seen.as_ref(), at).is_ok() {
                    self.wait_for_place(channel, &ask.request);
                }
                Err(Refusal::Busy)
            }
            Err(why) => Err(why),
        };
        match taken {
            Ok(taken) => {
                self.parts.metrics.taken.inc();
                self.has_come(channel, of);
                self.watch.at_risk = self.watch.at_risk.saturating_add(price);
                self.keep_float_for(channel);
                self.askers.insert((channel, nonce), Asker { line, told });
                step.join(taken);
                self.pace(channel);
            }
            Err(why) => {
                self.parts.metrics.refused.inc();
                tracing::debug!(channel, nonce, %why, "a request is refused");
                // There is room for the first that it is told.
                told.try_send(FromPayee::Refused { nonce, why }).ok();
            }
        }
    }

    /// More of an answer is there.
    fn made(&mut self, call: CallId, made: Made, step: &mut Decided) {
        let (channel, nonce) = call;
        let now = self.now();
        let Some(running) = self.running.get_mut(&call) else {
            return;
        };
        running.made = running.made.saturating_add(made.units);
        let said = match made.end {
            Some(end) => self.payee.ended(channel, nonce, &made.bytes, end, now),
            None => self.payee.said(channel, nonce, &made.bytes, now),
        };
        match said {
            Ok(said) => {
                step.join(said);
                if made.end.is_some() {
                    self.running.remove(&call);
                } else {
                    step.join(self.payee.speak(channel, nonce, now));
                    self.pace(channel);
                }
            }
            // It was ended meanwhile.
            Err(Misuse::NotRunning) => drop(self.running.remove(&call)),
            Err(misuse) => {
                tracing::error!(channel, nonce, %misuse, "an engine has made what was not asked for");
                self.running.remove(&call);
                step.join(self.payee.abandon(channel, nonce));
            }
        }
    }

    fn failed(&mut self, call: CallId, why: &Failed, step: &mut Decided) {
        let (channel, nonce) = call;
        if self.running.remove(&call).is_some() {
            tracing::error!(channel, nonce, error = %why, "an answer cannot be made");
            if let Some(fault) = why.of_device() {
                let faults = &self.parts.metrics.device_faults;
                faults.with_label_values(&[fault]).inc();
            }
            step.join(self.payee.abandon(channel, nonce));
        }
    }

    /// Something wrong was signed of an answer.
    fn contradicted(&mut self, (channel, nonce): CallId, step: &mut Decided) {
        tracing::error!(
            channel,
            nonce,
            "what was signed of an answer is not what its model says: whoever demands its receipt has the \
             lock. Nothing of it or behind it is paid over its channel, and nothing more is taken over that"
        );
        step.join(self.payee.contradicted(channel, nonce));
        let payee = &self.payee;
        // Who hears that the connection is over holds what was said.
        self.askers
            .retain(|(of, asked), _| *of != channel || payee.is_open(*of, *asked));
    }

    /// Tells those that make answers over a channel how far they may go.
    fn pace(&mut self, channel: ChannelId) {
        let (from, to) = ((channel, 0), (channel, Nonce::MAX));
        for ((_, nonce), running) in self.running.range(from..=to) {
            let allowed = running.made.saturating_add(self.payee.room(channel, *nonce));
            running.allowed.send_if_modified(|may| {
                let is_more = *may < allowed;
                *may = (*may).max(allowed);
                is_more
            });
        }
    }

    /// Has it written, and then done. Returns what could not be written: it is tried again, before any later
    /// steps, and what needs no disk goes on meanwhile.
    async fn carry_out(&mut self, mut step: Decided) -> Result<Decided, CallsError> {
        if self.stuck.is_some_and(|stuck| Instant::now() < stuck.until) {
            return Ok(step);
        }
        while !step.is_empty() {
            let effects = match self.commit(step).await? {
                Ok(effects) => effects,
                Err(back) => return Ok(back),
            };
            for effect in effects {
                self.follow_up(effect);
            }
            step = Step::default();
            for (channel, nonce) in std::mem::take(&mut self.deaf) {
                step.join(self.payee.leave(channel, nonce));
            }
        }
        let (metrics, open) = (&self.parts.metrics, self.payee.open_calls().count());
        let on_devices = self.parts.models.on_devices();
        for (gauge, count) in [(&metrics.open, open), (&metrics.on_devices, on_devices)] {
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        Ok(step)
    }

    async fn commit(&mut self, step: Decided) -> Result<Result<Vec<PayeeEffect>, Decided>, CallsError> {
        let store = self.parts.store.clone();
        let written = tokio::task::spawn_blocking(move || step.commit(&*store)).await;
        let written = written.map_err(|error| CallsError::Internal(error.to_string()))?;
        self.parts.metrics.syncs.inc();
        let (back, error) = match written {
            Ok(effects) => {
                self.stuck = None;
                return Ok(Ok(effects));
            }
            Err(Uncommitted { step, error }) => (step, error),
        };
        self.parts.metrics.journal_failures.inc();
        tracing::error!(%error, "nothing is said over channels before the journal of calls takes it");
        let last = self
            .stuck
            .map(|stuck| stuck.pause.saturating_mul(2).min(PAUSE_MAX));
        let pause = last.unwrap_or(PAUSE);
        let now = Instant::now();
        let until = now.checked_add(pause).unwrap_or(now);
        self.stuck = Some(Stuck { pause, until });
        Ok(Err(back))
    }

    /// Whether what was decided last is not written yet.
    pub(crate) const fn is_stuck(&self) -> bool {
        self.stuck.is_some()
    }

    fn follow_up(&mut self, effect: PayeeEffect) {
        match effect {
            PayeeEffect::Send {
                channel,
                nonce,
                message,
            } => self.tell((channel, nonce), message),
            PayeeEffect::Compute {
                channel,
                nonce,
                request,
                input,
            } => {
                let (call, may) = ((channel, nonce), self.payee.room(channel, nonce));
                let (parts, events, client) = (&self.parts, self.events.clone(), self.client(channel));
                // It may have been ended by what was written with it.
                if self.payee.is_open(channel, nonce) {
                    let running = Running::start(parts, (call, client), (request, input), may, events);
                    self.running.insert(call, running);
                }
            }
            PayeeEffect::Trace { channel, nonce, said } => {
                let call = (channel, nonce);
                self.running.remove(&call);
                if let Some(request) = self.payee.request(channel, nonce).cloned() {
                    let task = trace::make(&self.parts, call, request, said, self.events.clone());
                    self.tracing.insert(call, task);
                }
            }
            PayeeEffect::Stop { channel, nonce } => {
                self.running.remove(&(channel, nonce));
                self.tracing.remove(&(channel, nonce));
            }
            PayeeEffect::Commit { root } => {
                let (receipts, price) = (root.sums.receipts, root.sums.price);
                tracing::info!(receipts, price, "a batch is promised");
                self.watch.written = Some(root);
                self.send_batch();
            }
        }
    }

    /// Who does not take what it is told is told no more.
    fn tell(&mut self, call: CallId, message: FromPayee) {
        let end = match &message {
            FromPayee::Chunk { statement, .. } => statement.statement.end,
            FromPayee::Taken { .. } | FromPayee::Refused { .. } => None,
        };
        if let Some(end) = end {
            let how = match end.how {
                End::Stop => "stop",
                End::Length => "length",
                End::Cancelled => "cancelled",
                End::Cut => "cut",
            };
            self.parts.metrics.receipts.with_label_values(&[how]).inc();
            let (channel, nonce) = call;
            tracing::debug!(channel, nonce, how, "an answer has its receipt");
        }
        let Some(asker) = self.askers.get(&call) else {
            return;
        };
        let is_told = asker.told.try_send(message).is_ok();
        if end.is_some() || !is_told {
            // With its last message a connection is over.
            self.askers.remove(&call);
        }
        if end.is_none() && !is_told {
            self.deaf.push(call);
        }
    }
}
