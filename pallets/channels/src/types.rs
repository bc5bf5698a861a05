//! What is kept.

#[cfg(feature = "runtime-benchmarks")]
use alloc::vec::Vec;
use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_arithmetic::FixedU128;
use sp_core::{ConstU32, H256, bounded::BoundedVec};
use sp_runtime::{DispatchError, DispatchResult};
use surety_audit_economics::channels::points_drawn;
use surety_channels::{
    BatchNumber, BatchWindow, Batched, ChannelId, ChannelTerms, Counted, Demanded, Nonce, PointsFound, Purse,
    Region, Request, SignedChunkStatement, Standing, Struck, Time, view::Wanted,
};
#[cfg(feature = "runtime-benchmarks")]
use surety_types::trust::AuditProof;
use surety_types::{
    ContentHash, ModelId, TaskId,
    model::Operation,
    task::{AuditDraw, ResultClaim},
    trust::{FaultKind, ItemLeaves},
};

use crate::{DEMANDS_MAX, DISPUTED_MAX, SIGNERS_MAX, UNFINISHED_MAX};

/// Says whether a key has signed some bytes: 32 of a message, or 47 where a wallet has wrapped them.
pub trait SignedBytes<AccountId> {
    /// Whether `key` has signed `bytes`, by sr25519.
    fn is_signed(key: &AccountId, bytes: &[u8], signature: &[u8; 64]) -> bool;

    /// A key for benchmarks, and its signature of each of these.
    #[cfg(feature = "runtime-benchmarks")]
    fn for_benchmark(signed: &[&[u8]]) -> (AccountId, Vec<[u8; 64]>);

    /// The agent of a verifier, and its proof for the draw that the benchmarks make.
    #[cfg(feature = "runtime-benchmarks")]
    fn draw_for_benchmark() -> (AccountId, AuditProof);
}

/// What is remembered of a provider's faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// How often it was found at fault lately, so gravely that it cost more than a lock.
    pub lately: u32,
    /// Deadlines that it has missed, less those that it has made good for.
    pub missed: u32,
}

/// Has providers and verifiers lose what their faults cost. Provided by trust-lock.
pub trait Convictions<AccountId> {
    /// `offender` was found to be at fault, where anybody did by `finder`: its `lock` is lost when the time
    /// for a veto is over.
    fn convict(offender: &AccountId, kind: FaultKind, lock: u128, finder: Option<&AccountId>);

    /// What is remembered of a provider's faults, over tasks or channels.
    fn remembered(stash: &AccountId) -> Faults;

    /// Makes the next conviction cost as much as one can.
    #[cfg(feature = "runtime-benchmarks")]
    fn fill_for_benchmark();
}

/// Knows how results of models are laid out. Provided by the runtime.
pub trait ReceiptReferee {
    /// The Merkle root over the leaves of an item in the trace of this claim, if these are shown to be them;
    /// nothing where the request has no items, too.
    fn item_root(request: &Request, claim: &ResultClaim, item: u32, shown: &ItemLeaves) -> Option<H256>;

    /// A request for the most items that there can be, at a planck each, a claim about it, and the leaves of
    /// its first item, for benchmarks.
    #[cfg(feature = "runtime-benchmarks")]
    fn item_for_benchmark() -> (Request, ResultClaim, ItemLeaves);
}

/// A receipt that is disputed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedReceipt<AccountId> {
    /// The stash of the provider that stands by it.
    pub provider: AccountId,
    /// What it is paid for it, in plancks.
    pub price: u128,
    /// What it says.
    pub claim: ResultClaim,
    /// What was asked for. Of an answer that was cut or cancelled: as many units as it has.
    pub request: Request,
}

/// Has receipts disputed as results of tasks are. Provided by the runtime, of results and disputes.
pub trait ReceiptDisputes<AccountId> {
    /// Opens a round about a receipt. Returns the round's number.
    ///
    /// # Errors
    /// Where its model is not known or has no referee; nothing changes then.
    fn open(receipt: ClaimedReceipt<AccountId>) -> Result<TaskId, DispatchError>;

    /// Opens a challenger's dispute with the provider in such a round, with a bond that follows
    /// [`Pallet::receipt_at_stake`](crate::Pallet::receipt_at_stake).
    ///
    /// # Errors
    /// Where it has no bond. The round is there then: the whole call has to be undone.
    fn challenge(round: TaskId, provider: &AccountId, challenger: &AccountId) -> DispatchResult;

    /// A request for the longest generation that can be disputed, at a planck for each unit, for benchmarks.
    #[cfg(feature = "runtime-benchmarks")]
    fn request_for_benchmark() -> Request;
}

/// Which receipt a round is about.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Disputed<AccountId> {
    /// The stash of the provider that stands by it.
    pub provider: AccountId,
    /// The batch that it is in; nothing where it was only signed.
    pub batch: Option<BatchNumber>,
    /// The receipt.
    pub receipt: Struck,
    /// The model that has answered. It is kept for as long as the round is.
    pub model: ModelId,
    /// Content hash of what was asked with, and how long that is, in bytes.
    pub input: (ContentHash, u32),
    /// The agent of the verifier that was not served it: what it needs can be demanded as a client does.
    pub unserved: Option<AccountId>,
}

/// What names a provider's receipt that is disputed: its batch, where it has one, its channel and its
/// request.
pub type ReceiptKey = (Option<BatchNumber>, ChannelId, Nonce);

impl<AccountId> Disputed<AccountId> {
    /// What names it.
    pub const fn key(&self) -> ReceiptKey {
        (self.batch, self.receipt.channel, self.receipt.nonce)
    }
}

/// What somebody demands of a provider.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Demand<AccountId> {
    /// What is to be shown.
    pub wanted: Wanted,
    /// Who has paid for it.
    pub by: AccountId,
    /// How much, in plancks.
    pub price: u128,
    /// What of that it costs because much was demanded over its channel. It is the provider's when it is
    /// shown; of the rest see [`Wanted::borne`].
    pub surplus: u128,
    /// Last time for the provider.
    pub until: Time,
}

/// All that somebody demands of a provider: receipts and points.
pub type DemandsOf<AccountId> = BoundedVec<Demand<AccountId>, ConstU32<DEMANDS_MAX>>;

/// Where a receipt is that somebody disputes.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, TypeInfo)]
pub enum ReceiptSource<AccountId> {
    /// In a batch.
    Batch(BatchNumber, Batched<AccountId>),
    /// With whoever got it.
    Signed(SignedChunkStatement<AccountId>),
}

/// A batch, and how it is audited.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct BatchRecord<BlockNumber> {
    /// What was committed, and what is paid of it.
    pub window: BatchWindow,
    /// What verifiers draw their points with.
    pub draw: AuditDraw<u128, BlockNumber>,
    /// Points for a SURE of it.
    pub rate: FixedU128,
    /// When it was committed.
    pub begun: Time,
    /// Last time for announcements.
    pub announce_until: Time,
    /// Announcements that were not ended.
    pub announced: u32,
}

/// A verifier's points on a batch.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct PointsAudit {
    /// Stake locked for it, in plancks.
    pub bond: u128,
    /// The output that it drew them with.
    pub output: H256,
    /// How many it expected: with that and the output everybody knows them.
    pub mean: FixedU128,
    /// How far it is.
    pub state: PointsState,
}

impl PointsAudit {
    /// How many there are.
    pub fn points(&self) -> u32 {
        points_drawn(&self.output.0, self.mean)
    }
}

/// How far an audit of points is.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub enum PointsState {
    /// What was found is sealed ([`surety_channels::points_seal`]).
    Sealed(H256),
    /// It can be held against the receipts.
    Opened {
        /// What was found.
        found: PointsFound,
        /// When it was opened.
        at: Time,
    },
}

/// What is sold at one price: an operation of a model.
pub type PoolId = (ModelId, Operation);

/// What a provider sells.
#[derive(
    Clone, Copy, Default, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Offer {
    /// Least price of a unit, in plancks.
    pub unit_price: u128,
    /// Requests that it answers at once. With 0 it takes nothing new.
    pub places: u32,
    /// Places that were taken when it last said so.
    pub busy: u32,
    /// The pool's period in which that was.
    pub reported: Option<u32>,
    /// Where its provider says that it is.
    pub region: Option<Region>,
}

impl Offer {
    /// Places that the standing cap covers for it: one at least, so that nobody fills pools with nothing.
    pub fn covered(&self) -> u32 {
        self.places.max(1)
    }
}

/// A channel.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Channel<AccountId> {
    /// Who deposits.
    pub payer: AccountId,
    /// Whom it pays: a provider's stash.
    pub payee: AccountId,
    /// The key that signs its vouchers.
    pub key: AccountId,
    /// Last time at which vouchers are redeemed.
    pub expiry: Time,
    /// What was not counted yet is in this batch of the payee, or in later ones.
    pub batch: BatchNumber,
    /// What is known of the batches that have what was counted.
    pub counted: Counted,
    /// What was demanded over it.
    pub demanded: Demanded,
    /// Its money.
    pub purse: Purse,
}

impl<AccountId: Clone> Channel<AccountId> {
    /// What vouchers are checked against.
    pub fn terms(&self) -> ChannelTerms<AccountId> {
        ChannelTerms {
            channel: self.purse.channel,
            payee: self.payee.clone(),
            key: self.key.clone(),
            deposit: self.purse.deposit,
            expiry: self.expiry,
        }
    }

    /// What is in the pot for it, in plancks.
    pub const fn held(&self) -> u128 {
        self.purse.held()
    }
}

/// What a payer has in channels.
#[derive(
    Clone, Copy, Default, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Payer {
    /// How many.
    pub channels: u32,
}

/// What a provider stands behind its offer with.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Provider<AccountId> {
    /// Its lock, in plancks; 0 where it sells nothing.
    pub lock: u128,
    /// What that is for.
    pub standing: Standing,
    /// Channels that pay it.
    pub channels: u32,
    /// The oldest batch that is kept.
    pub oldest: BatchNumber,
    /// Batches whose price is in the open sum, in their order.
    pub unfinished: BoundedVec<BatchNumber, ConstU32<UNFINISHED_MAX>>,
    /// Its next batch.
    pub next: BatchNumber,
    /// Block of the chain with its latest batch.
    pub batched_at: u32,
    /// Agents whose statements bind it, present ones or earlier ones.
    pub signers: BoundedVec<AccountId, ConstU32<SIGNERS_MAX>>,
    /// Its receipts that are disputed now.
    pub disputes: u32,
    /// Those of them that somebody says are wrong, with a bond: each takes one of the places for disputes.
    pub challenged: u32,
    /// What is demanded of it now.
    pub demands: u32,
    /// What verifiers have announced of its batches, and nobody has ended.
    pub audits: u32,
    /// What it offers.
    pub offers: u32,
    /// Places of those, as its cap covers them.
    pub places: u32,
    /// Where it began again after its last fault.
    pub since: Since,
    /// It takes nothing new: its lock is to be free when what there is is over.
    pub is_leaving: bool,
}

/// The first channel and the first batch of a provider that its last fault does not count for. What was said
/// over channels before that cannot be punished again; such a channel pays nothing more.
#[derive(
    Clone, Copy, Default, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Since {
    /// The first channel.
    pub channel: ChannelId,
    /// The first batch.
    pub batch: BatchNumber,
}

impl Since {
    /// Whether a channel is from after that: otherwise it pays nothing more.
    pub const fn pays(&self, channel: ChannelId) -> bool {
        channel >= self.channel
    }

    /// Whether a fault in what a batch says, or in what was only signed, is one of the present lock.
    pub fn covers(&self, channel: ChannelId, batch: Option<BatchNumber>) -> bool {
        channel >= self.channel && batch.is_none_or(|batch| batch >= self.batch)
    }
}

impl<AccountId> Provider<AccountId> {
    /// Of one that has never stood behind an offer.
    pub(crate) fn new() -> Self {
        Self {
            lock: 0,
            standing: Standing { cap: 0, open: 0 },
            channels: 0,
            oldest: 0,
            unfinished: BoundedVec::new(),
            next: 0,
            batched_at: 0,
            signers: BoundedVec::new(),
            disputes: 0,
            challenged: 0,
            demands: 0,
            audits: 0,
            offers: 0,
            places: 0,
            since: Since::default(),
            is_leaving: false,
        }
    }

    /// Whether there is anything that its lock, or a model of its, may still be needed for.
    pub(crate) fn is_in_use(&self) -> bool {
        self.channels > 0 || self.disputes > 0 || self.demands > 0 || !self.unfinished.is_empty()
    }

    /// Batches before this one are final.
    pub(crate) fn first_unfinished(&self) -> BatchNumber {
        self.unfinished.first().copied().unwrap_or(self.next)
    }

    /// Whether nobody else can dispute a receipt of it now.
    pub(crate) const fn are_places_taken(&self) -> bool {
        self.challenged >= DISPUTED_MAX
    }
}
