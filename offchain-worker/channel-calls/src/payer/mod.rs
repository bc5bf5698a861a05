//! A payer's end of one channel: it signs a chunk ahead of each answer, checks all that is signed for it, and
//! keeps the best of it.
//!
//! A voucher is written down before it is sent, and a statement before the voucher that follows from it. What
//! was signed for an answer of which nothing more was heard counts as spent, since it may have been.
//!
//! All answers are paid out of one sum, so that one may wait for a voucher that another's connection was to
//! carry. Whenever a connection ends, or a voucher is refused, the highest sum is sent again over one that
//! lasts, as soon as there is one: what was signed is on its way for as long as anything is being answered.

mod ask;
mod check;
mod hear;
mod load;
mod watch;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use codec::{Decode, Encode};
use sp_core::H256;
use surety_channels::{
    BatchNumber, Cancel, ChannelId, ChannelTerms, Nonce, Request, SignedCancel, SignedChunkStatement,
    SignedVoucher, Time, Voucher,
};

use crate::{
    AccountId, Model, Refusal, Row, Sign, Step, Table, ToPayee, Verify,
    answer::{Form, Said},
    store::{call_key, channel_key},
};

pub use ask::AskError;
pub use check::{Broken, Evidence};
pub use load::{SignedFor, end_unseen, signed_for, signed_sums};
pub use watch::{NotCovered, is_counted_one};

/// What a payer is.
#[derive(Clone)]
pub struct PayerConfig {
    /// That of the chain.
    pub genesis: H256,
    /// Signs with the channel's key.
    pub sign: Sign,
    /// Checks the payee's signatures.
    pub verify: Verify,
    /// Most statements that are kept: one of each request until it is forgotten, 600 bytes each.
    pub held_max: usize,
}

impl fmt::Debug for PayerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("PayerConfig");
        shown
            .field("genesis", &self.genesis)
            .field("held_max", &self.held_max);
        shown.finish_non_exhaustive()
    }
}

/// What is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// What it is, and what is paid for a unit.
    pub request: Request,
    /// Its input.
    pub input: Vec<u8>,
    /// How many units are paid for ahead: what may be lost.
    pub chunk_units: u32,
    /// What has to be known of the model.
    pub facts: Model,
    /// Whose it is, by an id that whoever asks gives to nothing else: what was signed for it is found by that
    /// ([`signed_for`]).
    pub call: Option<u64>,
}

/// What is to be done once the rows of a step are durable.
#[allow(clippy::large_enum_variant, reason = "they are few, and moved once")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PayerEffect {
    /// Say this to the payee.
    Send {
        /// Number of the request.
        nonce: Nonce,
        /// What is said.
        message: ToPayee,
    },
    /// The request is taken: the next one may be asked.
    Taken {
        /// Its number.
        nonce: Nonce,
    },
    /// More of an answer: whole units.
    Said {
        /// Number of the request.
        nonce: Nonce,
        /// They.
        bytes: Vec<u8>,
    },
    /// An answer has ended; this is its receipt.
    Done {
        /// Number of the request.
        nonce: Nonce,
        /// It.
        receipt: SignedChunkStatement<AccountId>,
    },
    /// The payee does not take what was sent.
    Refused {
        /// Number of the request.
        nonce: Nonce,
        /// Why.
        why: Refusal,
        /// Of a request that was not taken: the same may be asked again at once, as it takes another number,
        /// or a larger sum. Of one that is being answered: its voucher may be taken in a moment, once the
        /// payee has seen the block that this end has ([`Payer::pay_again`]).
        is_worth_retry: bool,
        /// What counts as spent from now on because the payee says that it has served it, in plancks.
        written_off: u128,
    },
    /// An answer has ended without a receipt.
    Broken {
        /// Number of the request.
        nonce: Nonce,
        /// What has happened.
        why: Broken,
        /// What may have been paid for it, in plancks.
        spent: u128,
        /// What shows that the payee has lied, where it has. It is also in the store.
        evidence: Option<Evidence>,
    },
}

/// How much was signed.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
struct Wallet {
    /// The highest sum that was ever signed, in plancks.
    signed: u128,
    /// What requests have cost that are over, or may have, in plancks.
    settled: u128,
    /// Number of the next request, as far as is known.
    next: Nonce,
    /// The payee has lied: nothing more is asked of it here.
    is_distrusted: bool,
}

/// How far a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum HeldState {
    /// It is being answered.
    Open,
    /// Nothing more was heard of it.
    Lost,
    /// It has a receipt.
    Over,
    /// A batch has its receipt.
    Covered(BatchNumber),
    /// A batch has its receipt: its payee has shown that on the chain.
    Shown,
    /// A final batch was counted with its number. Whether that has its receipt nobody has shown yet.
    Counted,
}

/// What is kept of a request.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
struct Held {
    request: Request,
    form: Form,
    /// What was signed for it at most, in plancks.
    allowance: u128,
    /// Units that were said.
    said: u32,
    /// The last good statement of it.
    statement: Option<SignedChunkStatement<AccountId>>,
    state: HeldState,
    /// When it was last said something, or ended; of what is counted, when that was seen.
    at: Time,
}

/// What only memory keeps of an open request.
struct Live {
    /// The highest sum that its connection has carried, in plancks.
    carried: u128,
    /// Whoever reads it is behind: no more is paid ahead.
    is_paused: bool,
    stop_ids: Vec<u32>,
    said: Said,
    /// All that was said, with the word before it: what shows that two statements contradict each other.
    output: Vec<u8>,
    /// Units that were said when it was cancelled.
    cancelled_at: Option<u32>,
}

struct Call {
    row: Held,
    /// Nothing once it is over.
    live: Option<Live>,
}

/// A payer's end of a channel.
pub struct Payer {
    config: Arc<PayerConfig>,
    terms: ChannelTerms<AccountId>,
    /// Whose statements bind the payee, by what the chain says.
    signers: Vec<AccountId>,
    now: Time,
    wallet: Wallet,
    calls: BTreeMap<Nonce, Call>,
    open: BTreeSet<Nonce>,
    /// The request that the payee has neither taken nor refused yet. There is one at a time: their numbers
    /// have no gaps, and an answer says what the next one is.
    asking: Option<Nonce>,
    /// The highest sum that the payee may have served for, in plancks: what was signed, but for requests that
    /// it did not take. It may have nothing written off that was signed for those.
    granted: u128,
    /// Of the request that is asked: the sum that the payee has missed when it was asked for the same before.
    missed: u128,
    /// The first number that final batches were not counted with, as far as was seen.
    uncounted_from: Nonce,
}

impl Payer {
    /// What a finalised block says of the channel and its payee's signers, at its time.
    pub fn see(&mut self, terms: ChannelTerms<AccountId>, signers: Vec<AccountId>, now: Time) {
        self.terms = terms;
        self.signers = signers;
        self.now = self.now.max(now);
    }

    /// The channel.
    pub const fn channel(&self) -> ChannelId {
        self.terms.channel
    }

    /// The highest sum that was ever signed, in plancks: the payee can get no more.
    pub const fn signed(&self) -> u128 {
        self.wallet.signed
    }

    /// What requests that are over have cost, or may have, and what is signed for those that are open, in
    /// plancks.
    pub fn spent(&self) -> u128 {
        let open = self.open.iter().filter_map(|nonce| self.calls.get(nonce));
        let open = open.map(|call| call.row.allowance);
        open.fold(self.wallet.settled, u128::saturating_add)
    }

    /// What requests that are over have cost, or may have, in plancks.
    pub const fn settled(&self) -> u128 {
        self.wallet.settled
    }

    /// What the payee has signed of those which are kept, in plancks: no final batch has them, for all that
    /// was said or shown ([`Payer::counted`], [`Payer::settled_in`]). It is bound by nothing of an answer
    /// that was lost before its first words.
    pub fn uncounted(&self) -> u128 {
        let over = self.calls.values().filter(|call| call.live.is_none());
        let said = over.filter_map(|call| call.row.statement.as_ref());
        said.fold(0, |sum, signed| sum.saturating_add(signed.statement.price))
    }

    /// What may have been paid for a request, in plancks: its price once it has a receipt, and before that
    /// what was signed for it.
    pub fn spent_on(&self, nonce: Nonce) -> Option<u128> {
        Some(self.calls.get(&nonce)?.row.spent())
    }

    /// Requests that are being answered.
    pub fn open_calls(&self) -> impl Iterator<Item = Nonce> + '_ {
        self.open.iter().copied()
    }

    /// What the payee has signed last for each request, and how far it is.
    pub fn held(&self) -> impl Iterator<Item = (Nonce, HeldState, Option<&SignedChunkStatement<AccountId>>)> {
        let calls = self.calls.iter();
        calls.map(|(nonce, call)| (*nonce, call.row.state, call.row.statement.as_ref()))
    }

    /// How far a request is, if it is kept.
    pub fn state(&self, nonce: Nonce) -> Option<HeldState> {
        Some(self.calls.get(&nonce)?.row.state)
    }

    /// How many requests are kept.
    pub fn kept(&self) -> usize {
        self.calls.len()
    }

    /// Whether the payee was found to have lied: nothing more is asked over this channel.
    pub const fn is_distrusted(&self) -> bool {
        self.wallet.is_distrusted
    }

    fn wallet_row(&self) -> Row {
        Row::new(Table::Wallets, channel_key(self.terms.channel), &self.wallet)
    }

    fn held_row(&self, nonce: Nonce, held: &Held) -> Row {
        Row::new(Table::Held, call_key(self.terms.channel, nonce), held)
    }

    /// Requests whose vouchers the payee takes, for all that is known: it may not know of the one that is
    /// asked, nor any more of one that was cancelled.
    fn answered(&self) -> impl Iterator<Item = Nonce> + '_ {
        let is_wanted = |nonce: Nonce| {
            let live = self.calls.get(&nonce).and_then(|call| call.live.as_ref());
            live.is_some_and(|live| live.cancelled_at.is_none())
        };
        self.open_calls()
            .filter(move |nonce| self.asking != Some(*nonce) && is_wanted(*nonce))
    }

    /// The highest sum that their connections have carried, in plancks.
    fn carried(&self) -> u128 {
        let calls = self.answered().filter_map(|nonce| self.calls.get(&nonce));
        let carried = calls
            .filter_map(|call| call.live.as_ref())
            .map(|live| live.carried);
        carried.max().unwrap_or_default()
    }

    /// The highest sum over the connection of a request that is being answered: the payee that has it already
    /// takes no notice.
    fn carry(&mut self, nonce: Nonce) -> Option<ToPayee> {
        let sum = self.wallet.signed;
        let call = self.calls.get_mut(&nonce)?;
        let request = call.row.request.hash();
        call.live.as_mut()?.carried = sum;
        self.granted = sum;
        Some(ToPayee::Pay(self.voucher(nonce, request, sum)))
    }

    /// What requests may cost is carried by none of the open ones' connections any more: one of them carries
    /// it. An answer that has ended may have cost more than was signed for it, out of what was signed for
    /// others.
    fn carry_on(&mut self, step: &mut Step<PayerEffect>) {
        let sum = self.spent();
        if self.wallet.is_distrusted || self.carried() >= sum {
            return;
        }
        let answered = self.answered().next();
        let Some(nonce) = answered else { return };
        if sum > self.wallet.signed && sum <= self.terms.deposit {
            self.wallet.signed = sum;
            step.put(self.wallet_row());
        }
        if let Some(message) = self.carry(nonce) {
            send(step, nonce, message);
        }
    }

    fn voucher(&self, nonce: Nonce, request: H256, sum: u128) -> SignedVoucher<AccountId> {
        let voucher = Voucher {
            channel: self.terms.channel,
            payee: self.terms.payee.clone(),
            expiry: self.terms.expiry,
            nonce,
            request,
            sum,
        };
        let signature = (self.config.sign)(&voucher.message(&self.config.genesis));
        SignedVoucher { voucher, signature }
    }

    fn signed_cancel(&self, nonce: Nonce, request: H256) -> SignedCancel<AccountId> {
        let cancel = Cancel {
            channel: self.terms.channel,
            payee: self.terms.payee.clone(),
            nonce,
            request,
        };
        let signature = (self.config.sign)(&cancel.message(&self.config.genesis));
        SignedCancel { cancel, signature }
    }
}

impl Held {
    /// Whether its payee has signed something that it is to be paid for.
    fn says_something(&self) -> bool {
        let said = self.statement.as_ref();
        said.is_some_and(|signed| !signed.statement.is_void())
    }

    /// Whether no more was said of it after a time, and its number is not counted.
    fn is_over_by(&self, time: Time) -> bool {
        self.at <= time && self.state != HeldState::Counted
    }

    /// What was said after more was no longer wanted is not paid beyond what was signed for it.
    fn spent(&self) -> u128 {
        let receipt = self
            .statement
            .as_ref()
            .filter(|signed| signed.statement.end.is_some());
        receipt.map_or(self.allowance, |signed| {
            signed.statement.price.min(self.allowance)
        })
    }
}

/// Nothing of a request is kept any more.
fn drop_rows(channel: ChannelId, nonce: Nonce, step: &mut Step<PayerEffect>) {
    for table in [Table::Held, Table::Asked] {
        step.put(Row::gone(table, call_key(channel, nonce)));
    }
}

fn send(step: &mut Step<PayerEffect>, nonce: Nonce, message: ToPayee) {
    step.then(PayerEffect::Send { nonce, message });
}
