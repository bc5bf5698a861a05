//! One channel: a task owns its state machine and writes down what that decides before it is done. Whoever
//! asks has a [`Handle`].

mod draw;
mod line;
mod pieces;
mod task;
mod written_off;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use surety_chain_client::ChannelRules;
use surety_channel_calls::{
    Payer, PayerEffect, Refusal, Step,
    payer::{AskError, Broken, Wanted},
};
use surety_channels::{
    BatchNumber, BatchRoot, Batched, ChannelId, ChannelTerms, Equivocation, Nonce, Purse,
    SignedChunkStatement, Time,
};
use surety_journal::CallStore;
use surety_network::CallStream;
use surety_proofs::SegmentOpening;
use tokio::sync::{mpsc, oneshot, watch};

use crate::{
    AccountId, Running,
    config::Patience,
    cover::{self, Promised},
    funds::{Funded, asked_until},
};

pub(crate) use draw::Drawn;
pub(crate) use line::CallId;
pub(crate) use pieces::{PieceReceiver, PieceSender, pieces};

/// Events that wait for a channel's task. Those who bring more wait.
const INBOX: usize = 256;

/// Requests of a channel that wait, are asked and are answered at once: half of what the chain's rules
/// allow, so that cancelled ones which still end take nobody's place.
pub(crate) const CALLS_MAX: usize = 32;

/// Receipts of a channel that a provider is asked for in one go.
const DUE_MAX: usize = 256;

/// Statements of a channel that are kept: 600 bytes each.
pub(crate) const HELD_MAX: usize = 16_384;

/// With so many it takes nothing more: another channel is opened. Those that are asked have room.
const HELD_FULL: usize = HELD_MAX - CALLS_MAX;

/// What a finalised block says of a channel.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub terms: ChannelTerms<AccountId>,
    pub purse: Purse,
    /// Whose statements bind its payee.
    pub signers: Vec<AccountId>,
    pub now: Time,
    /// After this time all statements are demanded that no batch has: later it may be too late.
    pub demanded_by: Time,
    /// What was counted waits no longer than this, once it is seen.
    pub counted: Time,
}

/// A request and its stream.
pub(crate) struct Asking {
    pub call: CallId,
    pub wanted: Wanted,
    /// The sum that its provider has missed when it was asked the same before, and all is heard that was on
    /// its way then.
    pub missed: Option<u128>,
    pub stream: CallStream,
    /// Told once, when it is taken or not.
    pub taken: oneshot::Sender<Result<(), Untaken>>,
    pub pieces: PieceSender,
    /// Told once, after the last piece.
    pub ended: oneshot::Sender<Ended>,
    pub place: Place,
}

/// Why a request is not answered.
#[derive(Debug)]
pub(crate) enum Untaken {
    /// The provider does not take it.
    Refused {
        why: Refusal,
        /// It takes another number or sum, which is known now.
        is_worth_retry: bool,
        /// What was written off for it, in plancks.
        written_off: u128,
    },
    /// It is not asked.
    Cannot(AskError),
    /// Nothing was heard, or something wrong.
    Broken { why: Broken, spent: u128 },
}

/// How an answer has ended.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a few are there at a time")]
pub(crate) enum Ended {
    Receipt {
        signed: SignedChunkStatement<AccountId>,
        /// What is paid for it, in plancks.
        paid: u128,
    },
    Broken {
        why: Broken,
        /// What may have been, in plancks.
        spent: u128,
    },
}

/// A receipt in a batch that a finalised block has.
pub(crate) struct Covered {
    pub batch: BatchNumber,
    pub root: BatchRoot,
    /// It is final since after this time, where it is.
    pub until: Option<Time>,
    pub batched: Batched<AccountId>,
    /// Where what is held of it ends.
    pub segment: Option<SegmentOpening>,
}

/// What a channel's task is told.
#[allow(clippy::large_enum_variant, reason = "a few are there at a time")]
pub(crate) enum Message {
    Ask(Box<Asking>),
    /// A stream has said something, or is lost.
    Heard(line::Heard),
    /// Nobody waits for an answer any more, or it is enough.
    Cancel(CallId),
    /// Somebody has read on.
    Read,
    See(Box<Seen>),
    /// The provider has shown on the chain that a batch has this receipt, and whether that was demanded of
    /// what was counted.
    Shown(Nonce, bool),
    /// The provider has shown where in a batch a receipt is.
    Covered(Box<Covered>),
    /// These batches are final, since after these times.
    Final(Arc<BTreeMap<BatchNumber, Time>>),
    /// What is kept of the receipt of a request.
    Holds(Nonce, oneshot::Sender<Holds>),
    /// No finalised block has the channel any more.
    Over,
}

/// What is kept of the receipt of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// Nobody has shown it in a batch.
    Unshown,
    /// It was shown in a batch that is not known to be final, or not to be the one that was counted.
    Shown,
    /// Nothing more is expected of it.
    Nothing,
}

/// What others see of a channel.
#[derive(Clone, Debug)]
pub(crate) struct Status {
    pub terms: ChannelTerms<AccountId>,
    pub purse: Purse,
    /// The highest sum that was ever signed, in plancks.
    pub signed: u128,
    /// What requests that are over have cost, or may have, in plancks.
    pub settled: u128,
    /// What the provider has signed of those that no final batch has, as far as it has shown, in plancks.
    pub uncounted: u128,
    /// How many requests are kept.
    held: usize,
    /// Most that those cost which are asked or answered, in plancks, and how many there are.
    reserved: u128,
    places: usize,
    /// More than what is left is wanted, in plancks.
    pub wanted: u128,
    /// The chain's time, by the same block as its terms.
    pub now: Time,
    /// When something was asked last, on the chain's clock.
    pub used_at: Time,
    /// When the newest batch was committed that may have some of the statements that are kept.
    pub committed: Option<Time>,
    /// Statements that were shown in no batch in time, drawn by price: as many as are asked for in one go.
    pub due: Vec<Drawn>,
    /// Others whose numbers were counted, that such a batch may have, or whose batch nobody knows: there is
    /// still time.
    pub uncompared: Vec<Drawn>,
    /// All that were shown in no batch, drawn likewise: some of them are demanded of whoever has not shown
    /// something in time.
    pub unshown: Vec<Drawn>,
    /// Numbers of all of them: there may be more than are drawn.
    pub waiting: BTreeSet<Nonce>,
    /// Batches in which receipts were shown to be.
    pub covered: BTreeSet<BatchNumber>,
    /// What shows that the provider has said two things, until it is reported.
    pub evidence: Option<Box<Equivocation<AccountId>>>,
    /// The provider has lied.
    pub is_distrusted: bool,
    /// It is older than the provider's last conviction: nothing stands behind what is said over it.
    is_uncovered: bool,
    /// Nothing can be asked over it any more, and why.
    pub useless: Option<String>,
}

impl Status {
    /// What may be asked for, in plancks.
    pub const fn left(&self) -> u128 {
        let spent = self.settled.saturating_add(self.reserved);
        self.terms.deposit.saturating_sub(spent)
    }

    /// What was deposited and asked that no final batch has.
    pub fn promised(&self) -> Promised {
        if self.is_uncovered {
            return Promised::default();
        }
        Promised {
            deposited: cover::deposited(&self.purse),
            over: self.uncounted,
            open: self.reserved,
        }
    }

    /// Whether no more requests have a place.
    const fn is_full(&self) -> bool {
        self.places >= CALLS_MAX || self.held >= HELD_FULL
    }

    /// Whether nothing is asked or answered.
    pub const fn is_quiet(&self) -> bool {
        self.places == 0
    }

    /// Whether nothing can be asked any more.
    pub const fn is_useless(&self) -> bool {
        self.purse.closing.is_some() || self.useless.is_some() || self.is_distrusted
    }
}

/// A channel, to whoever asks over it.
pub(crate) struct Handle {
    pub payee: AccountId,
    inbox: mpsc::Sender<Message>,
    status: Mutex<Status>,
    /// Told whenever there may be more room than before.
    changed: watch::Sender<u64>,
}

/// A place among a channel's requests, and the money for it, until it is dropped.
pub(crate) struct Place {
    handle: Arc<Handle>,
    price: u128,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut status = self.handle.status();
        status.reserved = status.reserved.saturating_sub(self.price);
        status.places = status.places.saturating_sub(1);
        drop(status);
        self.handle
            .changed
            .send_modify(|times| *times = times.wrapping_add(1));
    }
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// As many requests are open, or receipts kept, as may be.
    Full,
    /// It lacks money; it is asked for.
    Exhausted,
    /// Nothing is asked over it any more.
    Closed,
}

impl Handle {
    /// Starts a channel's task. Returns what keeps it going: it stops when that is dropped.
    pub fn start(
        payer: Payer,
        begun: Step<PayerEffect>,
        seen: &Seen,
        (store, patience): (Arc<CallStore>, Patience),
        changed: watch::Sender<u64>,
    ) -> (Arc<Self>, Running) {
        let (inbox, events) = mpsc::channel(INBOX);
        let status = Status {
            terms: seen.terms.clone(),
            purse: seen.purse,
            signed: payer.signed(),
            settled: payer.settled(),
            uncounted: payer.uncounted(),
            held: payer.kept(),
            reserved: 0,
            places: 0,
            wanted: 0,
            now: seen.now,
            used_at: seen.now,
            committed: None,
            due: Vec::new(),
            uncompared: Vec::new(),
            unshown: Vec::new(),
            waiting: BTreeSet::new(),
            covered: BTreeSet::new(),
            evidence: None,
            is_distrusted: payer.is_distrusted(),
            is_uncovered: false,
            useless: None,
        };
        let handle = Arc::new(Self {
            payee: seen.terms.payee.clone(),
            inbox,
            status: Mutex::new(status),
            changed,
        });
        let task = task::Task::new(payer, handle.clone(), (store, patience));
        let running = Running::new(tokio::spawn(task.run(begun, events)));
        (handle, running)
    }

    pub fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn id(&self) -> ChannelId {
        self.status().terms.channel
    }

    /// A place for a request that may cost so much. Where only money lacks that is noted.
    pub fn place(self: &Arc<Self>, price: u128, rules: &ChannelRules) -> Result<Place, NoPlace> {
        let mut status = self.status();
        if status.is_useless() || status.now > asked_until(status.terms.expiry, rules) {
            return Err(NoPlace::Closed);
        }
        if status.is_full() {
            return Err(NoPlace::Full);
        }
        if status.left() < price {
            status.wanted = status.wanted.max(price);
            return Err(NoPlace::Exhausted);
        }
        status.reserved = status.reserved.saturating_add(price);
        status.places = status.places.saturating_add(1);
        status.used_at = status.now;
        drop(status);
        let handle = self.clone();
        Ok(Place { handle, price })
    }

    /// What is to be known of it for its upkeep, with its money by the newest block: its task may be behind.
    pub fn funded(&self, purse: Purse) -> Funded {
        let status = self.status();
        let more = purse.deposit.saturating_sub(status.terms.deposit);
        Funded {
            payee: self.payee.clone(),
            purse,
            expiry: status.terms.expiry,
            left: status.left().saturating_add(more),
            wanted: status.wanted,
            is_used: status.signed > 0,
            is_quiet: status.is_quiet(),
            is_full: status.is_full(),
            used_at: status.used_at,
            is_void: status.is_uncovered,
            is_useless: status.is_useless(),
        }
    }

    /// It lacks so much for what somebody asks.
    pub fn lacks(&self, missing: u128) {
        let mut status = self.status();
        status.wanted = status.wanted.max(status.left().saturating_add(missing));
    }

    /// Nothing is asked over it any more.
    pub fn give_up(&self, why: String) {
        tracing::warn!(channel = self.id(), why, "nothing more is asked over a channel");
        self.status().useless.get_or_insert(why);
    }

    /// What is said over it can soon be demanded no more, as its provider counts nothing.
    pub fn counts_nothing(&self) {
        if !self.status().is_useless() {
            self.give_up("its provider counts nothing: soon nothing that it says can be demanded".into());
        }
    }

    /// Its provider was convicted since it was opened: nothing that is said over it can be demanded any more.
    pub fn is_before_a_fault(&self) {
        let was_before = std::mem::replace(&mut self.status().is_uncovered, true);
        if !was_before {
            self.give_up("its provider was convicted, and answers for nothing that it says over it".into());
        }
    }

    /// Tells its task something; waits for room. Nothing happens where it has stopped.
    pub async fn tell(&self, message: Message) {
        if self.inbox.send(message).await.is_err() {
            tracing::debug!("a channel's task has stopped");
        }
    }

    /// Somebody has read on. A task that has no room for that finds it out in a moment.
    pub fn read_on(&self) {
        self.inbox.try_send(Message::Read).ok();
    }

    /// What a finalised block says. Its task hears of it before it is asked for anything that this allows;
    /// one that is behind hears of the next block.
    pub fn see(&self, seen: Seen) {
        let (terms, purse, now) = (seen.terms.clone(), seen.purse, seen.now);
        // Whoever still wants more says so again.
        self.status().wanted = 0;
        if self.inbox.try_send(Message::See(Box::new(seen))).is_err() {
            return tracing::warn!(channel = self.id(), "a channel's task is behind");
        }
        let mut status = self.status();
        (status.terms, status.purse, status.now) = (terms, purse, now);
        if !status.is_quiet() {
            status.used_at = now;
        }
    }

    /// What is kept of the receipt of a request; nothing where its task has stopped.
    pub async fn holds(&self, nonce: Nonce) -> Option<Holds> {
        let (reply, answer) = oneshot::channel();
        self.inbox.send(Message::Holds(nonce, reply)).await.ok()?;
        answer.await.ok()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn money_that_a_final_block_has_counts_though_the_channels_task_is_behind() {
        let terms = |deposit| ChannelTerms {
            channel: 7,
            payee: AccountId::new([1; 32]),
            key: AccountId::new([2; 32]),
            deposit,
            expiry: 1_000,
        };
        let (inbox, _full) = mpsc::channel(1);
        inbox.try_send(Message::Read).unwrap();
        let status = Status {
            terms: terms(100),
            purse: Purse::new(7, 100, 0),
            signed: 90,
            settled: 90,
            uncounted: 90,
            held: 0,
            reserved: 0,
            places: 0,
            wanted: 60,
            now: 1,
            used_at: 1,
            committed: None,
            due: Vec::new(),
            uncompared: Vec::new(),
            unshown: Vec::new(),
            waiting: BTreeSet::new(),
            covered: BTreeSet::new(),
            evidence: None,
            is_distrusted: false,
            is_uncovered: false,
            useless: None,
        };
        let handle = Handle {
            payee: AccountId::new([1; 32]),
            inbox,
            status: Mutex::new(status),
            changed: watch::Sender::new(0),
        };
        let purse = Purse::new(7, 200, 0);
        handle.see(Seen {
            terms: terms(200),
            purse,
            signers: Vec::new(),
            now: 2,
            demanded_by: 9,
            counted: 9,
        });
        let funded = handle.funded(purse);
        // It is not topped up a second time for that, nor for somebody who may have gone.
        assert_eq!((funded.left, funded.wanted), (110, 0));
        // Its task does not know of it: nothing is asked for it.
        assert_eq!(handle.status().left(), 10);
    }
}
