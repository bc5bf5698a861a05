//! What the chain says of channels when it is asked (`ChannelApi` of `surety-runtime-api`). Money is in
//! plancks, `Time` on the chain's clock.

use alloc::vec::Vec;

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_arithmetic::FixedU128;
use sp_core::H256;
use surety_proofs::{SEGMENT_BYTES, SegmentOpening};
use surety_types::{ContentHash, ModelId, TaskId, model::Operation, task::AuditDraw};

use crate::{
    BatchNumber, BatchWindow, ChannelId, ChannelTerms, ChunkStatement, Demanded, Nonce, Purse, Region, Sums,
    Time, goes_on, statement::last_segment,
};

/// A channel.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct ChannelView<AccountId> {
    /// Channel id.
    pub channel: ChannelId,
    /// Who deposits.
    pub payer: AccountId,
    /// Whom it pays: a provider's stash.
    pub payee: AccountId,
    /// The key that signs its vouchers.
    pub key: AccountId,
    /// Last time at which vouchers are redeemed.
    pub expiry: Time,
    /// Its money.
    pub purse: Purse,
    /// Last time at which receipts can be demanded whose numbers were not counted.
    pub demanded_until: Time,
    /// What was demanded over it.
    pub demanded: Demanded,
}

impl<AccountId: Clone> ChannelView<AccountId> {
    /// What vouchers are checked against.
    pub fn terms(&self) -> ChannelTerms<AccountId> {
        ChannelTerms {
            channel: self.channel,
            payee: self.payee.clone(),
            key: self.key.clone(),
            deposit: self.purse.deposit,
            expiry: self.expiry,
        }
    }
}

/// What a provider sells, and to whom it can be sold.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct OfferView<AccountId> {
    /// Provider's stash.
    pub provider: AccountId,
    /// Model id.
    pub model: ModelId,
    /// What it does with it.
    pub operation: Operation,
    /// What a unit costs now, in plancks: at least what the provider asks, and at least the pool's price.
    pub unit_price: u128,
    /// Requests that it answers at once. With 0 it takes nothing new.
    pub places: u32,
    /// Places that were taken when it last said so.
    pub busy: u32,
    /// Agents whose statements bind it.
    pub signers: Vec<AccountId>,
    /// What it can still sell before batches are final, in plancks.
    pub room: u128,
    /// Where it says that it is.
    pub region: Option<Region>,
    /// What the chain remembers of it.
    pub record: TrackRecord,
}

/// What the chain remembers of a provider: facts for whoever chooses one, and no promises. What it sells to
/// itself counts, too: a price costs its levy there, a number of receipts or batches hardly anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct TrackRecord {
    /// Receipts that stand in its newest final batches, and what they cost. After its last fault over
    /// channels alone, and of some batches at most.
    pub settled: Sums,
    /// Its batches after its last fault over channels that are final, with all before them.
    pub batches: u32,
    /// Whether it was ever found at fault over channels.
    pub was_convicted: bool,
    /// How often it was found at fault lately, over tasks or channels, so gravely that it cost more than a
    /// lock. Of more than 256 offenders those with most stake are known.
    pub faults: u32,
    /// Deadlines of tasks that it has missed, less those that it has made good for.
    pub missed: u32,
    /// Blocks since its stake last grew, or it got another agent.
    pub settled_for: u32,
}

/// All that is offered of an operation of a model.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct PoolView {
    /// Model id.
    pub model: ModelId,
    /// What is done with it.
    pub operation: Operation,
    /// What a unit costs at least now, in plancks.
    pub price: u128,
    /// Places of all offers in it.
    pub places: u32,
    /// How many of those are taken.
    pub busy: u32,
}

/// What a provider stands behind its offers with.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct StandingView<AccountId> {
    /// Provider's stash.
    pub provider: AccountId,
    /// Its lock, in plancks; 0 where it sells nothing.
    pub lock: u128,
    /// Most that its batches may cost which are not final, in plancks.
    pub cap: u128,
    /// What they cost, in plancks.
    pub open: u128,
    /// Agents whose statements bind it.
    pub signers: Vec<AccountId>,
    /// The oldest batch that is kept.
    pub oldest: BatchNumber,
    /// The oldest batch whose price is in the open sum.
    pub unfinished: BatchNumber,
    /// Its next batch.
    pub next: BatchNumber,
    /// Block of the chain with its latest batch.
    pub batched_at: u32,
    /// Channels that pay it.
    pub channels: u32,
    /// Its receipts that are disputed now.
    pub disputes: u32,
    /// What is demanded of it now.
    pub demands: u32,
    /// The first channel after its last fault.
    pub since_channel: ChannelId,
    /// The first batch after its last fault.
    pub since_batch: BatchNumber,
    /// The least lock for its cap by the present terms, in plancks; nothing where no lock would do. With less
    /// it sells nothing new.
    pub needed_lock: Option<u128>,
    /// It takes no new channels, and no more time or money for those that there are: its lock is to be free.
    pub is_leaving: bool,
}

impl<AccountId> StandingView<AccountId> {
    /// Whether it stands by terms that are not the present ones.
    pub fn has_old_terms(&self) -> bool {
        self.lock > 0 && self.needed_lock.is_none_or(|needed| self.lock < needed)
    }
}

/// A batch, and how it is audited.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct BatchView<AccountId, BlockNumber> {
    /// Provider's stash.
    pub provider: AccountId,
    /// Which of its batches.
    pub batch: BatchNumber,
    /// What was committed, and what is paid of it.
    pub window: BatchWindow,
    /// What verifiers draw their points with.
    pub draw: AuditDraw<u128, BlockNumber>,
    /// Points for a SURE of it.
    pub rate: FixedU128,
    /// Last time for announcements.
    pub announce_until: Time,
    /// Announcements that were not ended.
    pub announced: u32,
}

/// What a provider has to show.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub enum Wanted {
    /// A batch with the receipt of this request.
    Receipt {
        /// Channel id.
        channel: ChannelId,
        /// Number of the request.
        nonce: Nonce,
        /// What it has to say.
        says: Says,
        /// Where a final batch was counted with its number: the first and the last that can have it.
        counted: Option<(BatchNumber, BatchNumber)>,
    },
    /// The receipt that a point is in.
    Point {
        /// The batch.
        batch: BatchNumber,
        /// Where on the line of its price, in plancks.
        point: u128,
    },
}

/// What a receipt has to say.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum Says {
    /// What was signed with an end, by the hash that is signed: nothing else is its receipt.
    This(H256),
    /// What was signed without an end, or that and more.
    GoesOn(Heard),
}

/// What was signed of an answer that went on, or broke off there: all that its receipt must not contradict.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Heard {
    /// Hash of the request.
    pub request: H256,
    /// How many bytes of output were said.
    pub bytes: u32,
    /// Their content hash.
    pub output: ContentHash,
    /// Units of work so far.
    pub units: u32,
    /// What they cost, in plancks.
    pub price: u128,
}

/// Why a statement is not what is demanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotMet {
    /// It is another one, says less or something else than was signed, or is no receipt.
    Other,
    /// It says more than was signed, and it is not shown that it goes on from there.
    Unproven,
}

impl Says {
    /// What the receipt has to say of an answer of which this was signed.
    pub fn of<AccountId: Encode>(held: &ChunkStatement<AccountId>, genesis: &H256) -> Self {
        match held.end {
            Some(_) => Self::This(H256(held.message(genesis))),
            None => Self::GoesOn(Heard {
                request: held.request,
                bytes: held.bytes,
                output: held.output,
                units: held.units,
                price: held.price,
            }),
        }
    }

    /// Whether a statement of the answer is that receipt. Of one that says more than was heard `shown` is the
    /// segment in which what was heard ends.
    ///
    /// # Errors
    /// [`NotMet`].
    pub fn met_by<AccountId: Encode + Clone>(
        &self,
        said: &ChunkStatement<AccountId>,
        shown: Option<&SegmentOpening>,
        genesis: &H256,
    ) -> Result<(), NotMet> {
        let is_it = match self {
            _ if said.end.is_none() => Some(false),
            Self::This(hash) => Some(said.message(genesis) == hash.0),
            Self::GoesOn(heard) => goes_on(&heard.of_answer(said), said, shown),
        };
        match is_it {
            Some(true) => Ok(()),
            Some(false) => Err(NotMet::Other),
            None => Err(NotMet::Unproven),
        }
    }
}

impl Heard {
    /// The statement that was signed, of the answer that another one is of.
    fn of_answer<AccountId: Clone>(&self, other: &ChunkStatement<AccountId>) -> ChunkStatement<AccountId> {
        ChunkStatement {
            request: self.request,
            bytes: self.bytes,
            output: self.output,
            units: self.units,
            price: self.price,
            end: None,
            ..other.clone()
        }
    }

    /// Which segment of a receipt's output shows that it goes on from what was heard; nothing where that
    /// takes none.
    pub fn segment_in<AccountId>(&self, receipt: &ChunkStatement<AccountId>) -> Option<u32> {
        let is_longer = self.bytes < receipt.bytes;
        last_segment(self.bytes).filter(|_| is_longer)
    }
}

/// What having a point shown costs, as a multiple of what a receipt does.
const POINT_PRICE: u128 = 2;

impl Wanted {
    /// What it costs to demand this where a receipt costs `of_receipt`, in plancks; over a channel of which
    /// much was demanded more ([`Demanded`](crate::Demanded)). Showing a point opens a round, too.
    pub const fn price(&self, of_receipt: u128) -> u128 {
        match self {
            Self::Receipt { .. } => of_receipt,
            Self::Point { .. } => of_receipt.saturating_mul(POINT_PRICE),
        }
    }

    /// What of the price of a demand is its provider's when it is shown; the rest comes back. (What it costs
    /// more as much was demanded over its channel is the provider's, too.) Half, which is less than the
    /// shortest costs to show. Of the other half as much as of a whole segment had to be shown
    /// ([`Self::bytes_shown`]): that costs more than it pays, too. A showing is paid once, however many
    /// points it meets.
    pub fn borne(price: u128, bytes_shown: u32) -> u128 {
        let half = price / 2;
        let more = half
            .saturating_mul(bytes_shown.into())
            .checked_div(SEGMENT_BYTES.into());
        half.saturating_add(more.unwrap_or(0).min(half))
    }

    /// Bytes of a segment that had to be shown beside the receipt that meets this.
    pub fn bytes_shown<AccountId>(
        &self,
        receipt: &ChunkStatement<AccountId>,
        shown: Option<&SegmentOpening>,
    ) -> u32 {
        let segment = match self {
            Self::Receipt {
                says: Says::GoesOn(heard),
                ..
            } => heard.segment_in(receipt).and(shown),
            Self::Receipt { .. } | Self::Point { .. } => None,
        };
        segment.map_or(0, |segment| segment.bytes.len() as u32)
    }

    /// Whether both are about one receipt, or one point.
    pub fn is_about_same(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Receipt { channel, nonce, .. },
                Self::Receipt {
                    channel: of,
                    nonce: at,
                    ..
                },
            ) => (channel, nonce) == (of, at),
            _ => self == other,
        }
    }

    /// Whether that is a receipt in a batch of the provider. Of an answer of which not all was heard `shown`
    /// is the segment in which that ends ([`Says::met_by`]).
    ///
    /// # Errors
    /// [`NotMet`].
    pub fn met_by<AccountId: Encode + Clone>(
        &self,
        batch: BatchNumber,
        said: &ChunkStatement<AccountId>,
        shown: Option<&SegmentOpening>,
        genesis: &H256,
    ) -> Result<(), NotMet> {
        match self {
            Self::Receipt {
                channel,
                nonce,
                says,
                counted,
            } => {
                let is_of_it = (said.channel, said.nonce) == (*channel, *nonce);
                // What was batched after the number was counted is not what was counted.
                let is_in_time = counted.is_none_or(|(_, last)| batch <= last);
                if is_of_it && is_in_time {
                    says.met_by(said, shown, genesis)
                } else {
                    Err(NotMet::Other)
                }
            }
            Self::Point { .. } => Err(NotMet::Other),
        }
    }
}

/// What somebody demands of a provider.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct DemandView<AccountId> {
    /// Provider's stash.
    pub provider: AccountId,
    /// The payer or its key, or the verifier's stash.
    pub demander: AccountId,
    /// What it is.
    pub wanted: Wanted,
    /// Last time for the provider.
    pub until: Time,
}

/// A round about a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct DisputedView {
    /// Number of the round.
    pub round: TaskId,
    /// The batch that the receipt is in; nothing where it was only signed.
    pub batch: Option<BatchNumber>,
    /// Channel id.
    pub channel: ChannelId,
    /// Number of the request.
    pub nonce: Nonce,
    /// Somebody has said that it is wrong. Otherwise a verifier was not served it.
    pub is_challenged: bool,
}

/// A verifier's points on a batch.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct PointsView<AccountId> {
    /// Verifier's stash.
    pub verifier: AccountId,
    /// Stake locked for it, in plancks.
    pub bond: u128,
    /// The output that it drew them with.
    pub output: H256,
    /// How many it expected: with that and the output everybody knows them.
    pub mean: FixedU128,
    /// Whether it has opened what it sealed.
    pub opened: bool,
}

/// Parameters that payers, providers and verifiers work by, as they are now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct ChannelRules {
    /// Least deposit of a channel, in plancks.
    pub min_deposit: u128,
    /// Longest time from now to a channel's expiry.
    pub max_life: Time,
    /// Time that a payee has after a payer wants to close.
    pub closing_period: Time,
    /// Time for which a batch can be disputed.
    pub batch_window: Time,
    /// Time in which verifiers announce what they have found of a batch.
    pub announce_window: Time,
    /// Time after a batch's window in which what was opened can be refuted.
    pub refute_window: Time,
    /// Time for which a final batch is kept. It is counted for less ([`counted_for`](crate::counted_for)).
    pub redeem_by: Time,
    /// Time in which a provider shows what was demanded.
    pub supply_window: Time,
    /// Time for which a batch can be disputed again when as many receipts were disputed as may be.
    pub dispute_window: Time,
    /// What it costs to have a receipt shown, in plancks; of a point see [`Wanted::price`].
    pub demand_price: u128,
    /// What a verifier locks for each of its points, in plancks.
    pub point_bond: u128,
    /// Expected cost of a point's audit, in plancks.
    pub point_cost: u128,
}
