//! What both ends send each other, in SCALE: `/surety/call/1`.
//!
//! Every part has a longest form, so that a frame's length is refused before anything is allocated
//! ([`Message::bytes_max`]), and [`read`] allocates no more than the frame has bytes.

use std::fmt;

use codec::{Decode, DecodeAll, Encode, MaxEncodedLen};
use sp_core::{ConstU32, bounded::BoundedVec};
use surety_channels::{
    BatchNumber, Batched, ChannelId, ChunkStatement, Nonce, ReceiptOpening, Request, SignedCancel,
    SignedChunkStatement, SignedVoucher, VoucherRefusal,
};
use surety_proofs::SegmentOpening;
use surety_types::{limits::INPUT_BYTES_MAX, trust::AuditProof};

use crate::{AccountId, CHUNK_BYTES_MAX, OUTPUT_BYTES_MAX, Unfit};

/// The protocol's name. Its number grows with every change of the messages.
pub const PROTOCOL: &str = "/surety/call/1";

/// The bytes of an input.
pub type Input = BoundedVec<u8, ConstU32<INPUT_BYTES_MAX>>;

/// The bytes of a chunk: whole units. The word that says how a generation ended is not among them.
pub type Chunk = BoundedVec<u8, ConstU32<CHUNK_BYTES_MAX>>;

/// The bytes of a whole answer.
pub type Output = BoundedVec<u8, ConstU32<OUTPUT_BYTES_MAX>>;

/// Statements that a question may have: some ten kilobytes.
pub const ASKED_MAX: u32 = 64;

/// What a question is about.
pub type Asked = BoundedVec<ChunkStatement<AccountId>, ConstU32<ASKED_MAX>>;

/// What a payer wants.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, MaxEncodedLen)]
pub struct Ask {
    /// What it is, and what a unit costs.
    pub request: Request,
    /// How many units are said, and paid for, at a time. Of vectors it is all of them, whatever stands here.
    pub chunk_units: u32,
    /// Its input.
    pub input: Input,
    /// Pays for the first chunk, and names the request.
    pub voucher: SignedVoucher<AccountId>,
}

/// What a payer says.
#[allow(clippy::large_enum_variant, reason = "one at a time is made and sent")]
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, MaxEncodedLen)]
pub enum ToPayee {
    /// It wants something.
    Ask(Ask),
    /// It pays for more.
    Pay(SignedVoucher<AccountId>),
    /// It wants no more of an answer.
    Cancel(SignedCancel<AccountId>),
}

/// What a payee says.
#[allow(clippy::large_enum_variant, reason = "one at a time is made and sent")]
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, MaxEncodedLen)]
pub enum FromPayee {
    /// A request is taken: the channel's next one may be asked.
    Taken {
        /// Its number.
        nonce: Nonce,
    },
    /// More of an answer. The statement with an end is the receipt.
    Chunk {
        /// What was added.
        bytes: Chunk,
        /// What was said in all.
        statement: SignedChunkStatement<AccountId>,
    },
    /// What a payer said is not taken.
    Refused {
        /// Under this number.
        nonce: Nonce,
        /// Why.
        why: Refusal,
    },
}

/// Why something is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, MaxEncodedLen)]
pub enum Refusal {
    /// No finalised block has the channel yet, or it has ended.
    NoChannel,
    /// The payer closes it, or nothing more over it would be paid.
    Closing,
    /// The payee does not know what it has signed over this channel.
    Forgotten,
    /// The channel's key has not signed this for this chain.
    BadSignature,
    /// The voucher is not one that can be taken now.
    Voucher(VoucherRefusal),
    /// The first chunk is not paid for.
    Unpaid {
        /// The least sum that would do, in plancks.
        sum: u128,
    },
    /// This model, or what is asked of it, is not offered.
    NotOffered,
    /// A unit costs more.
    Price {
        /// That, in plancks.
        unit_price: u128,
    },
    /// Chunks are of other sizes.
    ChunkUnits {
        /// The least.
        least: u32,
        /// The most.
        most: u32,
    },
    /// The input does not fit what is asked.
    Input(Unfit),
    /// All places are taken.
    Busy,
    /// No such request is being answered.
    NoCall,
    /// All of the answer may cost more than one receipt may: ask for less at once.
    TooDear {
        /// What it may cost at most, in plancks.
        price_max: u128,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoChannel => write!(f, "no finalised block has the channel: wait, or open one"),
            Self::Closing => write!(f, "nothing more is answered over this channel: open another one"),
            Self::Forgotten => write!(
                f,
                "the provider has lost its records of this channel: close it, and open another one"
            ),
            Self::BadSignature => write!(f, "the channel's key has not signed this for this chain"),
            Self::Voucher(refusal) => write!(f, "{refusal}"),
            Self::Unpaid { sum } => write!(f, "a voucher of {sum} plancks in all has to come first"),
            Self::NotOffered => write!(f, "the provider does not offer this model, or not for this"),
            Self::Price { unit_price } => write!(f, "a unit costs {unit_price} plancks"),
            Self::ChunkUnits { least, most } => write!(f, "chunks have {least} to {most} units"),
            Self::Input(unfit) => write!(f, "{unfit}"),
            Self::Busy => write!(f, "all places are taken: try again in a moment"),
            Self::NoCall => write!(f, "no such request is being answered"),
            Self::TooDear { price_max } => write!(
                f,
                "an answer may cost {price_max} plancks at most: ask for less at once"
            ),
        }
    }
}

impl std::error::Error for Refusal {}

/// What a verifier says: one question on a connection of its own. No message of a payer begins with its byte.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, MaxEncodedLen)]
pub enum FromVerifier {
    /// It wants to see the receipt that one of its points is in.
    #[codec(index = 16)]
    Show(PointAsk),
}

/// A point that a verifier has drawn on a batch.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, MaxEncodedLen)]
pub struct PointAsk {
    /// The batch.
    pub batch: BatchNumber,
    /// Which of its points, in their ascending order.
    pub place: u32,
    /// The verifier's agent, whose key has drawn them.
    pub agent: AccountId,
    /// That it has.
    pub proof: AuditProof,
}

/// What a provider answers to that.
#[allow(clippy::large_enum_variant, reason = "one at a time is made and sent")]
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, MaxEncodedLen)]
pub enum ToVerifier {
    /// What is there.
    #[codec(index = 16)]
    Point(AtPoint),
    /// It is not shown.
    #[codec(index = 17)]
    NotShown(NotShown),
}

/// What a point is in, and all that it takes to compute it again.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, MaxEncodedLen)]
pub struct AtPoint {
    /// The receipt.
    pub batched: Batched<AccountId>,
    /// What it answers.
    pub request: Request,
    /// What was asked with.
    pub input: Input,
    /// The tokens of a generation, without the word that says how it ended. Vectors follow from the input.
    pub output: Output,
}

/// What somebody says who holds receipts: one question on a connection of its own. No message of a payer or
/// a verifier begins with its byte.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, MaxEncodedLen)]
pub enum FromHolder {
    /// It wants to see where these receipts are in batches, or those of answers of which it has these. Each
    /// is answered by a message of its own, in their order.
    #[codec(index = 18)]
    Show(Asked),
}

/// What a provider answers to each statement of that, or to all that are left ([`NotShown::Busy`]).
#[allow(clippy::large_enum_variant, reason = "one at a time is made and sent")]
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, MaxEncodedLen)]
pub enum ToHolder {
    /// It is there.
    #[codec(index = 18)]
    Receipt(InBatch),
    /// It is not shown.
    #[codec(index = 19)]
    NotShown(NotShown),
}

/// Where a receipt is.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, MaxEncodedLen)]
pub struct InBatch {
    /// The batch.
    pub batch: BatchNumber,
    /// That it is there.
    pub opening: ReceiptOpening,
    /// What it answers.
    pub request: Request,
    /// It, where somebody who holds less has asked.
    pub receipt: Option<ChunkStatement<AccountId>>,
    /// Where it says more: the segment of its output in which that ends which is held. It shows that the
    /// receipt goes on from there.
    pub segment: Option<SegmentOpening>,
}

/// Why a receipt is not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, MaxEncodedLen, thiserror::Error)]
pub enum NotShown {
    /// No finalised block that the provider has seen has the batch with a seed, or it is forgotten.
    #[error("the provider does not know the batch, or not yet")]
    NoBatch,
    /// The verifier has not drawn this point.
    #[error("the provider says that this point was not drawn")]
    NotDrawn,
    /// Others are shown something. Whoever asks waits longer each time, and demands what is late all the
    /// same.
    #[error("the provider shows others something: ask again in a moment")]
    Busy,
    /// The provider does not have it any more.
    #[error("the provider has lost what it is to show")]
    Lost,
}

/// What can be read from a peer.
pub trait Message: Encode + Decode + MaxEncodedLen {
    /// Most bytes of it.
    fn bytes_max() -> usize {
        Self::max_encoded_len()
    }
}

impl Message for ToPayee {}
impl Message for FromPayee {}
impl Message for FromVerifier {}
impl Message for ToVerifier {}
impl Message for FromHolder {}
impl Message for ToHolder {}

/// Why bytes are no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// There are too many.
    #[error("a message of {bytes} bytes is over the limit of {bytes_max}")]
    TooLong {
        /// As many as there are.
        bytes: usize,
        /// As many as there may be.
        bytes_max: usize,
    },
    /// They are no message.
    #[error("the message is not SCALE: {0}")]
    Malformed(String),
}

/// Reads what a peer has sent: all of it.
///
/// # Errors
/// [`Unreadable`].
pub fn read<M: Message>(bytes: &[u8]) -> Result<M, Unreadable> {
    let bytes_max = M::bytes_max();
    if bytes.len() > bytes_max {
        let bytes = bytes.len();
        return Err(Unreadable::TooLong { bytes, bytes_max });
    }
    M::decode_all(&mut &*bytes).map_err(|error| Unreadable::Malformed(error.to_string()))
}

impl ToPayee {
    /// The request that it is about.
    pub const fn call(&self) -> (ChannelId, Nonce) {
        match self {
            Self::Ask(ask) => (ask.voucher.voucher.channel, ask.voucher.voucher.nonce),
            Self::Pay(signed) => (signed.voucher.channel, signed.voucher.nonce),
            Self::Cancel(signed) => (signed.cancel.channel, signed.cancel.nonce),
        }
    }
}
