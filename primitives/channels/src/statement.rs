//! What a payee signs.
//!
//! With every chunk of an answer goes a statement of all that was said so far. The last one has an
//! [`Ending`]: it is the **receipt**, which goes into a batch.
//!
//! What was said so far is named by its [`content_hash`](surety_proofs::content_hash), under which any
//! kilobyte can be shown. So one kilobyte decides whether one statement goes on from another
//! ([`extends`](crate::extends)), and the hash of the whole is that of the output in a dispute: there is no
//! second one that might be about something else.

use core::fmt;

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::H256;
use sp_crypto_hashing::blake2_256;
use surety_proofs::{SEGMENT_BYTES, SegmentOpening, content_hash};
use surety_types::{ContentHash, input::WORD_BYTES, model::Operation};

use crate::{ChannelId, Nonce, Request};

/// Keeps a statement from being taken for anything else that the key signs.
const DOMAIN: &[u8] = b"surety-chunk-statement";

/// First word of the output of a generation that a stop id has ended (`ClaimedOutput::STOP` of
/// `surety-model-trace`).
const STOP_WORD: u32 = 1;

/// How an answer ended.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum End {
    /// Its last token is one of the model's stop ids.
    Stop,
    /// It has all that was asked for.
    Length,
    /// The payer wanted no more. The payee has its [`SignedCancel`](crate::SignedCancel) to show.
    Cancelled,
    /// No more was said. It does not say why: vouchers ceased to come, or the payee broke off. What was
    /// said is paid, and is audited as if so much had been asked for.
    Cut,
}

/// What makes a statement a receipt.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Ending {
    /// How the answer ended.
    pub how: End,
    /// Root of the trace of the computation. Zero where nothing was computed.
    pub trace_root: H256,
}

/// What a payee has said in answer to a request, so far.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct ChunkStatement<AccountId> {
    /// Channel id.
    pub channel: ChannelId,
    /// Payee's stash.
    pub payee: AccountId,
    /// Number of the request in the channel.
    pub nonce: Nonce,
    /// Hash of the request ([`Request::hash`]).
    pub request: H256,
    /// How many bytes of output were said.
    pub bytes: u32,
    /// Their content hash. Of a generation they are those that its output would have if it ended here by its
    /// length, a word of 0 before the tokens: how it ends is not known before it does.
    pub output: ContentHash,
    /// Units of work so far, those of the prompt included.
    pub units: u32,
    /// What they cost, in plancks.
    pub price: u128,
    /// Nothing while more may come.
    pub end: Option<Ending>,
}

/// Why a statement is not one about its request: whoever signed it can be shown to have lied.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum Misstated {
    /// It is about another request.
    OtherRequest,
    /// It counts more units than are paid for, or others than its bytes have.
    Units,
    /// Its price is not that of its units.
    Price,
}

impl fmt::Display for Misstated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherRequest => "the statement is about another request",
            Self::Units => "the statement counts other units than there are",
            Self::Price => "the statement's price is not that of its units",
        })
    }
}

impl core::error::Error for Misstated {}

impl<AccountId: Encode> ChunkStatement<AccountId> {
    /// What is signed, and what a batch holds of a receipt: `blake2_256(SCALE(domain, genesis, statement))`.
    /// `genesis` is that of the chain the channel is on.
    pub fn message(&self, genesis: &H256) -> [u8; 32] {
        blake2_256(&(DOMAIN, genesis, self).encode())
    }
}

impl<AccountId> ChunkStatement<AccountId> {
    /// Whether it says that nothing was done: the request was taken, and given up before anything was said.
    pub const fn is_void(&self) -> bool {
        self.bytes == 0 && self.units == 0 && self.price == 0
    }

    /// Whether its units and price follow from the request that it names. What was computed right is for
    /// audits; the bytes of an item of an embedding are the model's.
    ///
    /// # Errors
    /// The first [`Misstated`] that is found.
    pub fn check(&self, request: &Request) -> Result<(), Misstated> {
        if self.request != request.hash() {
            return Err(Misstated::OtherRequest);
        }
        if request.price(self.units) != Some(self.price) {
            return Err(Misstated::Price);
        }
        if self.units > request.units_max || !(self.is_void() || self.counts_its_bytes(request)) {
            return Err(Misstated::Units);
        }
        Ok(())
    }

    fn counts_its_bytes(&self, request: &Request) -> bool {
        match request.operation {
            Operation::Embed => self.units > 0 && self.bytes > 0,
            Operation::Generate => {
                let words = self.bytes / WORD_BYTES;
                // One of them says how it ended.
                let units = words.checked_add(request.work().prompt_tokens());
                self.bytes.is_multiple_of(WORD_BYTES) && units == self.units.checked_add(1)
            }
        }
    }

    /// The output that it claims, as a dispute is about it: content hash of what was said, and of a
    /// generation that a stop id has ended with another first word. That takes its first segment, `head`.
    /// Nothing unless it is shown, or while there is no end.
    pub fn claimed_output(&self, head: Option<&SegmentOpening>) -> Option<ContentHash> {
        match self.end?.how {
            End::Length | End::Cancelled | End::Cut => Some(self.output),
            End::Stop => {
                let head = head.filter(|head| head.segment == 0)?;
                if head.row_digest(self.bytes)? != self.output {
                    return None;
                }
                let mut bytes = head.bytes.clone().into_inner();
                *bytes.first_chunk_mut()? = STOP_WORD.to_le_bytes();
                let ended = SegmentOpening {
                    bytes: bytes.try_into().ok()?,
                    ..head.clone()
                };
                ended.row_digest(self.bytes)
            }
        }
    }

    /// Whether both are about the answer to one request of one payee.
    pub fn is_of_one_answer(&self, other: &Self) -> bool
    where
        AccountId: PartialEq,
    {
        self.channel == other.channel && self.payee == other.payee && self.nonce == other.nonce
    }

    /// Whether a batch that holds this receipt holds what `held` says was said: what a payee shows to whom
    /// misses a receipt. Not whether they agree ([`incompatible`](crate::incompatible)).
    pub fn covers(&self, held: &Self) -> bool
    where
        AccountId: PartialEq,
    {
        self.is_of_one_answer(held) && self.end.is_some() && self.bytes >= held.bytes
    }
}

/// Which segment of what was said its last byte is in; nothing where nothing was said.
pub(crate) fn last_segment(bytes: u32) -> Option<u32> {
    bytes.checked_sub(1)?.checked_div(SEGMENT_BYTES)
}

/// Content hash of nothing.
pub(crate) fn nothing_said() -> ContentHash {
    content_hash(&[])
}

/// A statement with its signature.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct SignedChunkStatement<AccountId> {
    /// What was said.
    pub statement: ChunkStatement<AccountId>,
    /// Whose key signed: the payee's agent.
    pub agent: AccountId,
    /// Its sr25519 signature of [`ChunkStatement::message`]. Agents are no wallets: there is one form.
    pub signature: [u8; 64],
}

impl<AccountId: Encode> SignedChunkStatement<AccountId> {
    /// Whether its agent has signed it. That it is the payee's is for the chain to say.
    pub fn is_signed(&self, genesis: &H256, verify: impl Fn(&AccountId, &[u8], &[u8; 64]) -> bool) -> bool {
        verify(&self.agent, &self.statement.message(genesis), &self.signature)
    }
}
