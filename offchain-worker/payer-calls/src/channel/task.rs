//! The task that owns a channel's state machine.

mod receipts;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use codec::Encode;
use surety_channel_calls::{
    Payer, PayerEffect, Refusal, Step,
    payer::{Broken, Evidence, HeldState},
};
use surety_channels::Nonce;
use surety_journal::CallStore;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, MissedTickBehavior, interval, sleep},
};

use super::{
    Asking, CALLS_MAX, CallId, Ended, Handle, Holds, Message, PieceSender, Place, Untaken,
    line::{Heard, Line},
    written_off::WriteOffs,
};
use crate::config::Patience;

/// Between two looks at what is late.
const TICK: Duration = Duration::from_millis(250);

/// After a write that failed.
const PAUSE: Duration = Duration::from_secs(1);

/// For so long a provider is listened to that has signed a receipt.
const LISTENED: Duration = Duration::from_secs(2);

/// Events whose rows are written with one sync.
const JOINED: usize = 64;

/// A request that is being asked or answered.
struct Call {
    id: CallId,
    line: Line,
    /// Until it is taken.
    taken: Option<oneshot::Sender<Result<(), Untaken>>>,
    /// Until it has ended.
    ended: Option<oneshot::Sender<Ended>>,
    pieces: PieceSender,
    /// Whoever reads it is behind.
    is_paused: bool,
    /// It has ended by then, however its provider draws it out.
    until: Instant,
    /// Given back when what it has cost is counted.
    place: Place,
}

/// See the module's documentation.
pub(super) struct Task {
    payer: Payer,
    handle: Arc<Handle>,
    store: Arc<CallStore>,
    patience: Patience,
    calls: BTreeMap<Nonce, Call>,
    /// Each has a place: no more wait than have one.
    queue: VecDeque<Box<Asking>>,
    /// Until when the one that is asked has to be taken.
    asking: Option<(Nonce, Instant)>,
    /// Vouchers that are sent again then.
    again: VecDeque<(Instant, Nonce)>,
    /// Lines of answers that are over, until then: whoever says something else after its receipt lies.
    ended: VecDeque<(Instant, Nonce, CallId, Line)>,
    /// What is kept of requests that somebody has asked about: told once it is written.
    told: Vec<(oneshot::Sender<Holds>, Holds)>,
    /// What no final batch has is to be counted again.
    recounts: bool,
    written_off: WriteOffs,
    /// It has seen no block yet.
    is_new: bool,
    is_over: bool,
}

impl Task {
    pub fn new(payer: Payer, handle: Arc<Handle>, (store, patience): (Arc<CallStore>, Patience)) -> Self {
        Self {
            payer,
            handle,
            store,
            patience,
            calls: BTreeMap::new(),
            queue: VecDeque::new(),
            asking: None,
            again: VecDeque::new(),
            ended: VecDeque::new(),
            told: Vec::new(),
            recounts: true,
            written_off: WriteOffs::default(),
            is_new: true,
            is_over: false,
        }
    }

    /// Until the channel has ended, or its journal cannot be written any more.
    pub async fn run(mut self, begun: Step<PayerEffect>, mut events: mpsc::Receiver<Message>) {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut step = begun;
        loop {
            // Whatever is here already goes with the same sync.
            for _ in 0..JOINED {
                let Ok(message) = events.try_recv() else { break };
                step.join(self.take(message));
            }
            let is_written = self.commit(step).await;
            if is_written {
                for (reply, holds) in self.told.drain(..) {
                    reply.send(holds).ok();
                }
            }
            if !is_written || !self.ask_next().await {
                return self.handle.give_up("its journal cannot be written".into());
            }
            if self.is_over {
                return;
            }
            step = tokio::select! {
                message = events.recv() => match message {
                    Some(message) => self.take(message),
                    None => return,
                },
                _ = tick.tick() => self.tick(),
            };
        }
    }

    fn take(&mut self, message: Message) -> Step<PayerEffect> {
        match message {
            // It is asked after what was decided before it is written: its number may have been another's.
            Message::Ask(asking) => {
                self.queue.push_back(asking);
                Step::default()
            }
            Message::Heard(heard) => self.heard(heard),
            Message::Cancel(call) => self.cancel(call),
            Message::Read => self.resume(),
            Message::See(seen) => self.see(*seen),
            Message::Shown(nonce, was_counted) => {
                self.recounts = true;
                self.is_not_due(nonce);
                self.payer.shown(nonce, was_counted)
            }
            Message::Final(batches) => {
                self.recounts = true;
                self.payer.settled_in(&batches)
            }
            Message::Covered(shown) => self.covered(&shown),
            Message::Holds(nonce, reply) => {
                let holds = match self.payer.state(nonce) {
                    Some(HeldState::Covered(_) | HeldState::Shown) => Holds::Shown,
                    Some(_) => Holds::Unshown,
                    None => Holds::Nothing,
                };
                self.told.push((reply, holds));
                Step::default()
            }
            Message::Over => {
                (self.is_over, self.recounts) = (true, true);
                self.payer.end()
            }
        }
    }

    fn nonce_of(&self, call: CallId) -> Option<Nonce> {
        let mut calls = self.calls.iter();
        calls.find_map(|(nonce, of)| (of.id == call).then_some(*nonce))
    }

    /// What its provider says after that it says soon.
    fn cancel(&mut self, id: CallId) -> Step<PayerEffect> {
        let Some(nonce) = self.nonce_of(id) else {
            return Step::default();
        };
        if let Some(call) = self.calls.get_mut(&nonce) {
            call.until = call.until.min(after(self.patience.words));
        }
        self.payer.cancel(nonce)
    }

    fn heard(&mut self, heard: Heard) -> Step<PayerEffect> {
        let Some(nonce) = self.nonce_of(heard.call) else {
            return self.heard_after_the_end(heard);
        };
        match heard.said {
            Ok(message) => self.payer.hear(nonce, message),
            Err(why) => {
                let step = self.payer.lost(nonce);
                // Whoever hangs up after the last words loses nothing.
                if !step.is_empty() {
                    tracing::info!(channel = self.payer.channel(), nonce, why, "a call is lost");
                }
                step
            }
        }
    }

    fn heard_after_the_end(&mut self, heard: Heard) -> Step<PayerEffect> {
        let mut ended = self.ended.iter();
        let Some(at) = ended.position(|(_, _, call, _)| *call == heard.call) else {
            return Step::default();
        };
        let nonce = self.ended.get(at).map(|(_, nonce, ..)| *nonce);
        match (heard.said, nonce) {
            (Ok(message), Some(nonce)) => self.payer.hear(nonce, message),
            _ => {
                self.ended.remove(at);
                Step::default()
            }
        }
    }

    fn tick(&mut self) -> Step<PayerEffect> {
        let (now, mut step) = (Instant::now(), Step::default());
        if let Some((nonce, _)) = self.asking.take_if(|(_, until)| *until <= now) {
            step.join(self.payer.lost(nonce));
        }
        let late = self.calls.iter().filter(|(_, call)| call.until <= now);
        let late: Vec<Nonce> = late.map(|(nonce, _)| *nonce).collect();
        for nonce in late {
            tracing::info!(channel = self.payer.channel(), nonce, "an answer takes too long");
            step.join(self.payer.lost(nonce));
        }
        step.join(self.resume());
        while self.ended.pop_front_if(|(until, ..)| *until <= now).is_some() {}
        while let Some((_, nonce)) = self.again.pop_front_if(|(at, _)| *at <= now) {
            step.join(self.payer.pay_again(nonce));
        }
        step
    }

    /// Answers whose readers have caught up go on.
    fn resume(&mut self) -> Step<PayerEffect> {
        let mut step = Step::default();
        for (nonce, call) in &mut self.calls {
            if call.is_paused && !call.pieces.is_behind() {
                call.is_paused = false;
                step.join(self.payer.resume(*nonce));
            }
        }
        step
    }

    /// Asks what waits, one after the other. False where nothing can be written any more.
    async fn ask_next(&mut self) -> bool {
        while self.asking.is_none() {
            let Some(asking) = self.queue.pop_front() else {
                return true;
            };
            // Whoever wanted it has gone.
            if asking.taken.is_closed() {
                continue;
            }
            let asking = *asking;
            let asked = match asking.missed {
                Some(missed) => self.payer.ask_again(asking.wanted, missed),
                None => self.payer.ask(asking.wanted),
            };
            let (nonce, step) = match asked {
                Ok(asked) => asked,
                Err(why) => {
                    asking.taken.send(Err(Untaken::Cannot(why))).ok();
                    continue;
                }
            };
            let (inbox, words) = (self.handle.inbox.clone(), self.patience.words);
            let call = Call {
                id: asking.call,
                line: Line::open(asking.call, asking.stream, asking.pieces.clone(), inbox, words),
                pieces: asking.pieces,
                is_paused: false,
                until: after(self.patience.answer),
                taken: Some(asking.taken),
                ended: Some(asking.ended),
                place: asking.place,
            };
            self.calls.insert(nonce, call);
            self.asking = Some((nonce, after(self.patience.taken)));
            if !self.commit(step).await {
                return false;
            }
        }
        true
    }

    /// Writes what was decided, until it is durable, and does it. False where that cannot be.
    async fn commit(&mut self, mut step: Step<PayerEffect>) -> bool {
        while !step.is_empty() {
            let store = self.store.clone();
            let written = tokio::task::spawn_blocking(move || step.commit(&*store)).await;
            let effects = match written {
                Ok(Ok(effects)) => effects,
                Ok(Err(failed)) => {
                    let error = failed.error;
                    tracing::error!(%error, "what was promised cannot be written down: nothing goes on until it is");
                    step = failed.step;
                    sleep(PAUSE).await;
                    continue;
                }
                Err(error) => {
                    tracing::error!(%error, "the journal has failed");
                    return false;
                }
            };
            // A request that is refused may show that others were never taken.
            let is_end = |effect: &PayerEffect| {
                !matches!(
                    effect,
                    PayerEffect::Send { .. } | PayerEffect::Said { .. } | PayerEffect::Taken { .. }
                )
            };
            self.recounts |= effects.iter().any(is_end);
            self.publish();
            step = Step::default();
            for effect in effects {
                step.join(self.act(effect));
            }
        }
        true
    }

    /// What is durable is what others go by, before they hear of it.
    fn publish(&mut self) {
        let recounted = std::mem::take(&mut self.recounts).then(|| {
            let covered = self.payer.covering().collect();
            (self.payer.uncounted(), covered)
        });
        let mut status = self.handle.status();
        if let Some(recounted) = recounted {
            (status.uncounted, status.covered) = recounted;
        }
        status.held = self.payer.kept();
        status.signed = self.payer.signed();
        status.settled = self.payer.settled();
        status.is_distrusted = self.payer.is_distrusted();
    }

    /// Does one thing. What follows from it is still to be written.
    fn act(&mut self, effect: PayerEffect) -> Step<PayerEffect> {
        match effect {
            PayerEffect::Send { nonce, message } => {
                let call = self.calls.get(&nonce);
                if call.is_some_and(|call| !call.line.say(message.encode())) {
                    return self.payer.lost(nonce);
                }
            }
            PayerEffect::Taken { nonce } => {
                self.asking.take_if(|(asked, _)| *asked == nonce);
                let call = self.calls.get_mut(&nonce);
                if let Some(taken) = call.and_then(|call| call.taken.take()) {
                    taken.send(Ok(())).ok();
                }
            }
            PayerEffect::Said { nonce, bytes } => {
                let Some(call) = self.calls.get_mut(&nonce) else {
                    return Step::default();
                };
                // Whoever has gone is noticed by its reader.
                call.pieces.push(bytes);
                if !call.is_paused && call.pieces.is_behind() {
                    call.is_paused = true;
                    self.payer.pause(nonce);
                }
            }
            PayerEffect::Done { nonce, receipt } => {
                let paid = self.payer.spent_on(nonce);
                let paid = paid.unwrap_or(receipt.statement.price);
                let signed = receipt;
                self.end(nonce, Ended::Receipt { signed, paid });
            }
            PayerEffect::Refused {
                nonce,
                why,
                is_worth_retry,
                written_off,
            } => self.refused(nonce, (why, is_worth_retry, written_off)),
            PayerEffect::Broken {
                nonce,
                why,
                spent,
                evidence,
            } => self.broken(nonce, (why, spent), evidence),
        }
        Step::default()
    }

    /// Whoever waits for the answer is told; its stream is closed, after a receipt once its provider does.
    fn end(&mut self, nonce: Nonce, how: Ended) {
        self.asking.take_if(|(asked, _)| *asked == nonce);
        let Some(call) = self.calls.remove(&nonce) else {
            return;
        };
        if matches!(how, Ended::Receipt { .. }) {
            self.ended.push_back((after(LISTENED), nonce, call.id, call.line));
            if self.ended.len() > CALLS_MAX {
                self.ended.pop_front();
            }
        }
        // What it has cost is known: whoever asks next has its place.
        drop(call.place);
        if let Some(ended) = call.ended {
            ended.send(how).ok();
        }
    }

    fn refused(&mut self, nonce: Nonce, (why, is_worth_retry, written_off): (Refusal, bool, u128)) {
        let Some(call) = self.calls.get_mut(&nonce) else {
            return;
        };
        if let Some(taken) = call.taken.take() {
            self.asking.take_if(|(asked, _)| *asked == nonce);
            self.calls.remove(&nonce);
            if self
                .written_off
                .add(written_off, self.handle.status().terms.deposit)
            {
                self.handle.give_up(why.to_string());
            }
            let untaken = Untaken::Refused {
                why,
                is_worth_retry,
                written_off,
            };
            taken.send(Err(untaken)).ok();
            return;
        }
        // It costs its provider nothing to say so.
        tracing::debug!(channel = self.payer.channel(), nonce, %why, is_worth_retry, "a voucher is refused");
        if is_worth_retry {
            let at = after(self.patience.again);
            // One at a time of each answer, or a payee could have any number signed.
            self.again.retain(|(_, again)| *again != nonce);
            self.again.push_back((at, nonce));
        }
    }

    fn broken(&mut self, nonce: Nonce, (why, spent): (Broken, u128), evidence: Option<Evidence>) {
        let channel = self.payer.channel();
        match evidence {
            Some(Evidence::Equivocation(shown)) => self.handle.status().evidence = Some(shown),
            // It is in the journal: the chain takes no report of what it shows.
            Some(_) => {
                tracing::error!(channel, nonce, %why, "a provider has lied: nothing more is asked of it")
            }
            None => {}
        }
        let taken = self.calls.get_mut(&nonce).and_then(|call| call.taken.take());
        if let Some(taken) = taken {
            taken.send(Err(Untaken::Broken { why, spent })).ok();
        }
        self.end(nonce, Ended::Broken { why, spent });
    }
}

fn after(time: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(time).unwrap_or(now)
}
