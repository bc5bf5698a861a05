//! A payee's end: it takes requests over channels, counts what it serves, and signs what it says.
//!
//! Nothing is said before its row is durable. After a loss of everything but the journal the last statement
//! of each request may or may not have been sent, and ends as it stands: so nothing that was sent is ever
//! contradicted.

mod account;
mod batches;
mod call;
mod duties;
mod kept;
mod load;
mod serve;
mod take;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::RangeInclusive,
    sync::Arc,
};

use codec::{Decode, Encode};
use sp_core::H256;
use surety_channels::{BatchNumber, BatchRoot, ChannelId, ChannelTerms, Nonce, Purse, Request};
use surety_types::{ModelId, model::Operation};

use account::Account;
use batches::Made;
use call::{Call, Kept};

use crate::{AccountId, FromPayee, Millis, Model, ReadRow, ReceiptSalts, Sign, Step, Verify};

pub use batches::{BatchLimits, Shown};
pub use duties::{Duty, RedeemPolicy};
pub use serve::Misuse;

/// What is sold, and for how much.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Model id.
    pub model: ModelId,
    /// What is done with it.
    pub operation: Operation,
    /// Price of a unit, in plancks.
    pub unit_price: u128,
    /// What has to be known of the model.
    pub facts: Model,
    /// Units of a chunk. The most is what is computed ahead of the payment for it, for each open request.
    pub chunk_units: RangeInclusive<u32>,
}

/// How much is kept at once.
#[derive(Clone, Copy, Debug)]
pub struct PayeeLimits {
    /// Requests that are answered at once, over all channels.
    pub open_max: usize,
    /// Channels. One takes 400 bytes.
    pub channels_max: usize,
    /// Requests that are kept whole: those that are open, or whose receipts no final block has. One takes
    /// about a kilobyte. No channel has more than a quarter of these places.
    pub calls_max: usize,
    /// All others whose receipts are not forgotten: their channels are there. One takes some 40 bytes, and
    /// 200 more while its batch is kept; a start takes half a kilobyte for each, for a moment.
    pub kept_max: usize,
    /// Receipts of nothing of one channel, until their batches are forgotten. They cost its payer nothing, so
    /// their number has to be bounded.
    pub voids_max: usize,
    /// What comes to nothing before its first words costs nothing, though it was being computed, where its
    /// payer cancels it, or has paid for something else with its voucher: as long as that has come to less
    /// over the channel than what was served over it, and so many times the first chunk of this one. From
    /// then on what is cancelled has its first words said, and paid for, and nothing is taken that is not
    /// paid for beside all others.
    pub free_chunks: u32,
    /// Channels that were forgotten and are known as such, each of which takes some 16 bytes: none of these
    /// is begun anew, nor once there are so many any that is older.
    pub gone_max: usize,
    /// For so long an answer waits for its next voucher before it is cut.
    pub patience: Millis,
    /// For so long it is answered in all: the receipts of its channel that come after it wait for it.
    pub answer_max: Millis,
}

impl Default for PayeeLimits {
    fn default() -> Self {
        Self {
            open_max: 256,
            channels_max: 4096,
            // 128 MiB.
            calls_max: 1 << 17,
            // 80 MiB, and 400 more where batches that are kept have all of them: two answers a second for
            // twelve days, over channels that all stay.
            kept_max: 1 << 21,
            voids_max: 256,
            // A client that asks several providers at once loses a few times before it knows who is fast.
            free_chunks: 16,
            gone_max: 1 << 16,
            // A gateway that restarts is back before.
            patience: 30_000,
            // The longest generation at 7 tokens a second.
            answer_max: 600_000,
        }
    }
}

/// What a payee is.
#[derive(Clone)]
pub struct PayeeConfig {
    /// That of the chain.
    pub genesis: H256,
    /// The account that channels pay.
    pub stash: AccountId,
    /// The account whose key `sign` signs with: the stash's agent.
    pub agent: AccountId,
    /// Signs statements.
    pub sign: Sign,
    /// Checks payers' signatures.
    pub verify: Verify,
    /// Salts of receipts, for a journal that is begun now. One that is gone on with has its own.
    pub salts: ReceiptSalts,
    /// What is sold.
    pub offers: Vec<Offer>,
    /// How much at once.
    pub limits: PayeeLimits,
}

impl fmt::Debug for PayeeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("PayeeConfig");
        shown.field("stash", &self.stash).field("agent", &self.agent);
        shown.field("offers", &self.offers).field("limits", &self.limits);
        shown.finish_non_exhaustive()
    }
}

/// What a **finalised** block says of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelSeen {
    /// What its vouchers are checked against.
    pub terms: ChannelTerms<AccountId>,
    /// Its money.
    pub purse: Purse,
}

/// What is to be done once the rows of a step are durable.
#[allow(clippy::large_enum_variant, reason = "they are few, and moved once")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PayeeEffect {
    /// Say this to whoever asked. Who cannot be reached is told nothing: the batch will show it.
    Send {
        /// Channel id.
        channel: ChannelId,
        /// Number of the request.
        nonce: Nonce,
        /// What is said.
        message: FromPayee,
    },
    /// Compute an answer. Report what comes by [`Payee::said`] and its end by [`Payee::finished`].
    Compute {
        /// Channel id.
        channel: ChannelId,
        /// Number of the request.
        nonce: Nonce,
        /// What is asked for.
        request: Request,
        /// Its input.
        input: Vec<u8>,
    },
    /// Compute no more of an answer. Make the root of the trace of its first units, as if no more had been
    /// asked for, and report it by [`Payee::traced`]; or that what was said is wrong by
    /// [`Payee::contradicted`].
    Trace {
        /// Channel id.
        channel: ChannelId,
        /// Number of the request.
        nonce: Nonce,
        /// Tokens or items that were said.
        said: u32,
    },
    /// Compute no more of an answer, nor its trace: nothing was said of it, or something wrong.
    Stop {
        /// Channel id.
        channel: ChannelId,
        /// Number of the request.
        nonce: Nonce,
    },
    /// Commit a batch, until [`Payee::committed`] says that a finalised block has it.
    Commit {
        /// What is committed.
        root: BatchRoot,
    },
}

/// A channel and its requests that were not forgotten.
struct Channel {
    account: Account,
    /// Those whose receipts no final block has.
    calls: BTreeMap<Nonce, Call>,
    /// The others.
    kept: BTreeMap<Nonce, Kept>,
    /// How many are open.
    open: usize,
    /// How many came to nothing.
    voids: usize,
    /// What the first chunks of those cost that have come to nothing by their payer's doing, as far as this
    /// process has seen, in plancks.
    forgiven: u128,
    /// The first of which something was signed that is wrong, as far as this process has found: it has no
    /// receipt, and nothing from it on is ever paid.
    unpaid_from: Option<Nonce>,
}

impl Channel {
    const fn new(account: Account) -> Self {
        Self {
            account,
            calls: BTreeMap::new(),
            kept: BTreeMap::new(),
            open: 0,
            voids: 0,
            forgiven: 0,
            unpaid_from: None,
        }
    }

    fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.kept.is_empty()
    }

    /// Whether a request may come to nothing whose first chunk costs so much.
    fn forgives(&self, first: u128, limits: &PayeeLimits) -> bool {
        let free = first.saturating_mul(limits.free_chunks.into());
        self.forgiven < free.saturating_add(self.account.served)
    }

    /// A request comes to nothing by its payer's doing, if nothing was said of it.
    fn forgive(&mut self, nonce: Nonce) {
        let call = self.calls.get(&nonce);
        if let Some(call) = call.filter(|call| call.row.statement.is_none()) {
            self.forgiven = self.forgiven.saturating_add(call.row.form.paid_ahead(0));
        }
    }

    /// What the first chunks of those cost that are open, and of which nothing was said, in plancks.
    fn unsaid(&self) -> u128 {
        let open = self.calls.values().filter(|call| call.live.is_some());
        let unsaid = open.filter(|call| call.row.statement.is_none());
        unsaid.fold(0, |sum: u128, call| {
            sum.saturating_add(call.row.form.paid_ahead(0))
        })
    }

    fn knows(&self, nonce: Nonce) -> bool {
        self.calls.contains_key(&nonce) || self.kept.contains_key(&nonce)
    }

    /// Whether a request came to nothing.
    fn is_void(&self, nonce: Nonce) -> bool {
        let whole = self.calls.get(&nonce).map(|call| call.row.is_void());
        whole.unwrap_or_else(|| self.kept.get(&nonce).is_some_and(|kept| kept.is_void))
    }
}

/// What was fixed when the journal was begun.
#[derive(Clone, Debug, Encode, Decode)]
struct Start {
    /// Over channels below this one something may have been signed that the journal does not have.
    first: ChannelId,
    /// Batches below this one that the journal does not have were taken into account by that.
    batches: BatchNumber,
    /// The journal's own: the same batch comes out again, whatever agent goes on with it.
    salts: ReceiptSalts,
}

/// A payee. See the module's documentation for what it promises.
pub struct Payee {
    config: Arc<PayeeConfig>,
    /// The journal, where it can be read: what a final block has is not kept whole then.
    read: Option<ReadRow>,
    offers: Vec<Offer>,
    /// What one receipt may cost, in plancks.
    receipt_price_max: u128,
    start: Start,
    /// Over channels below this one something may have been signed that the journal does not have, if that is
    /// true which was heard last.
    doubted: ChannelId,
    channels: BTreeMap<ChannelId, Channel>,
    /// Channels that were forgotten.
    gone: BTreeSet<ChannelId>,
    /// Requests that have no receipt.
    open: BTreeSet<(ChannelId, Nonce)>,
    /// Requests of all channels that are kept whole.
    calls: usize,
    /// All others of them.
    kept: usize,
    /// Those of these that were read since the last tick: whoever is shown one may ask for it again at once.
    read_lately: RefCell<Vec<(ChannelId, Nonce)>>,
    batches: BTreeMap<u32, Made>,
    /// Where the next batch begins to look for receipts.
    turn: ChannelId,
}

impl Payee {
    /// Sum of the best voucher of a channel, and what was served over it, in plancks.
    pub fn account(&self, channel: ChannelId) -> Option<(u128, u128)> {
        let account = &self.channels.get(&channel)?.account;
        Some((account.sum(), account.served))
    }

    /// The number of the next request of a channel.
    pub fn next_nonce(&self, channel: ChannelId) -> Nonce {
        self.channels
            .get(&channel)
            .map_or(0, |channel| channel.account.next)
    }

    /// Requests that have no receipt.
    pub fn open_calls(&self) -> impl Iterator<Item = (ChannelId, Nonce)> + '_ {
        self.open.iter().copied()
    }

    /// Whether another request might be taken, as far as this machine goes.
    pub fn has_place(&self) -> bool {
        let limits = &self.config.limits;
        self.open.len() < limits.open_max && self.calls < limits.calls_max && self.kept < limits.kept_max
    }

    /// How many requests are kept whole, and how many others.
    pub const fn kept(&self) -> (usize, usize) {
        (self.calls, self.kept)
    }

    /// Whether of either there are more than three quarters of as many as there may be: beyond that nothing
    /// is taken.
    pub fn is_filling_up(&self) -> bool {
        let limits = &self.config.limits;
        let is_much = |there: usize, most: usize| there > most.saturating_sub(most / 4);
        is_much(self.calls, limits.calls_max) || is_much(self.kept, limits.kept_max)
    }

    /// Whether so many requests are kept whole that a batch is worth its fee whatever it pays: what is in one
    /// leaves room for others.
    pub fn is_crowded(&self) -> bool {
        self.calls > self.config.limits.calls_max / 2
    }

    /// What a finalised block says of a channel that is known here: deposits and expiries grow.
    pub fn see(&mut self, seen: &ChannelSeen) {
        if let Some(channel) = self.channels.get_mut(&seen.terms.channel) {
            channel.account.terms = seen.terms.clone();
        }
    }

    /// What is sold from now on, instead of what the configuration says.
    pub fn sell(&mut self, offers: Vec<Offer>) {
        self.offers = offers;
    }

    /// No answer is taken from now on that may cost more: no batch could have its receipt.
    pub const fn limit_receipts(&mut self, price_max: u128) {
        self.receipt_price_max = price_max;
    }

    /// Whether a request is being answered.
    pub fn is_open(&self, channel: ChannelId, nonce: Nonce) -> bool {
        self.open.contains(&(channel, nonce))
    }

    /// What was asked under this number, until a final block has its receipt.
    pub fn request(&self, channel: ChannelId, nonce: Nonce) -> Option<&Request> {
        Some(&self.channels.get(&channel)?.calls.get(&nonce)?.row.request)
    }

    /// Whether something was asked under this number, and not forgotten.
    pub fn knows(&self, channel: ChannelId, nonce: Nonce) -> bool {
        let entry = self.channels.get(&channel);
        entry.is_some_and(|entry| entry.knows(nonce))
    }

    /// Channels that something is kept of.
    pub fn channels(&self) -> impl Iterator<Item = ChannelId> + '_ {
        self.channels.keys().copied()
    }

    fn offer(&self, request: &Request) -> Option<&Offer> {
        let mut offers = self.offers.iter();
        offers.find(|offer| offer.model == request.model && offer.operation == request.operation)
    }

    fn call(&mut self, channel: ChannelId, nonce: Nonce) -> Option<(&mut Account, &mut Call)> {
        let channel = self.channels.get_mut(&channel)?;
        Some((&mut channel.account, channel.calls.get_mut(&nonce)?))
    }
}

fn send(step: &mut Step<PayeeEffect>, channel: ChannelId, nonce: Nonce, message: FromPayee) {
    step.then(PayeeEffect::Send {
        channel,
        nonce,
        message,
    });
}
