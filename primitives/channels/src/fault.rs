//! That a provider has committed to what is none of its receipts, or to none at all.
//!
//! A root on the chain is its provider's word for all that is under it: nothing here needs a signature beside
//! it, but what contradicts it may. Every fault is shown by openings alone, and no batch of
//! [`Batch::new`](crate::Batch::new) over statements that pass [`ChunkStatement::check`] has one.
//!
//! What cannot be opened at all (a leaf that counts for two, hashes of nothing) needs no proof: a point of a
//! draw falls on it, and the provider that cannot show what is there withholds it.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::H256;
use surety_proofs::SegmentOpening;

use crate::{
    BatchRoot, ChannelOpening, ChunkStatement, Clash, Misstated, ProvenReceipt, ReceiptOpening, Request,
    SignedChunkStatement, SumNode, SumPath, Sums, incompatible,
};

/// What is wrong with a batch.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum BatchFault {
    /// A node does not have below it what it says.
    WrongSum,
    /// A channel stands behind one that is not below it.
    Unordered,
    /// The receipt at a place is of another channel, request or payee, or costs something else there than it
    /// says itself.
    OtherReceipt,
    /// What stands for a receipt has no end.
    Unended,
    /// A receipt counts or costs other than its request says.
    Misstated(Misstated),
    /// The payee has said something else.
    Contradicted(Clash),
}

/// That a node does not have below it what it says.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct SumFlaw {
    /// The channel over whose receipts it stands; nothing where it stands over channels.
    pub of: Option<ChannelOpening>,
    /// How many levels it is above the leaves.
    pub level: u32,
    /// Its place there.
    pub place: u32,
    /// What it says.
    pub claimed: Sums,
    /// The node on its left below it.
    pub left: SumNode,
    /// The node on its right below it.
    pub right: SumNode,
    /// From it to its root.
    pub path: SumPath,
}

impl SumFlaw {
    fn is_in(&self, batch: &BatchRoot) -> Option<()> {
        let (root, leaves) = match &self.of {
            Some(of) => {
                let total = of.verify(batch)?.total;
                (total, total.sums.receipts)
            }
            None if batch.is_possible() => {
                let (hash, sums) = (batch.hash, batch.sums);
                (SumNode { hash, sums }, batch.channels)
            }
            None => return None,
        };
        let node = SumNode {
            hash: SumNode::hash_above(&self.left, &self.right),
            sums: self.claimed,
        };
        let climbed = self.path.climb_from(node, self.level, self.place, leaves)?;
        let is_there = climbed.root == root;
        (is_there && self.left.sums.plus(self.right.sums) != Some(self.claimed)).then_some(())
    }
}

/// A receipt in a batch.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Batched<AccountId> {
    /// That it is there.
    pub opening: ReceiptOpening,
    /// What it says.
    pub statement: ChunkStatement<AccountId>,
}

/// Something else that the payee has said.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub enum Said<AccountId> {
    /// To whoever holds it.
    Signed(SignedChunkStatement<AccountId>),
    /// In another batch of its own.
    Batched(Batched<AccountId>),
}

/// What shows that something is wrong with a batch.
#[allow(
    clippy::large_enum_variant,
    reason = "there is one at a time, on its way through a call"
)]
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub enum BatchEvidence<AccountId> {
    /// A wrong sum.
    Sum(SumFlaw),
    /// Two channels, of which that with the lower place is not the lower one.
    Order {
        /// One of them.
        one: ChannelOpening,
        /// The other.
        other: ChannelOpening,
    },
    /// A receipt that does not belong where it stands, or does not follow from its request.
    Receipt {
        /// The receipt.
        batched: Batched<AccountId>,
        /// The request that it names, where it takes that.
        request: Option<Request>,
    },
    /// A receipt, and what contradicts it.
    Contradiction {
        /// The receipt.
        batched: Batched<AccountId>,
        /// What contradicts it.
        said: Said<AccountId>,
        /// The segment of what the longer says in which the shorter ends, where it takes that.
        shown: Option<SegmentOpening>,
    },
}

/// What a batch is held against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed<AccountId> {
    /// That of the chain.
    pub genesis: H256,
    /// The stash of the provider that has committed it.
    pub payee: AccountId,
    /// What it has committed.
    pub batch: BatchRoot,
    /// Another batch of the same provider, where the evidence is about two.
    pub other: Option<BatchRoot>,
}

impl<AccountId: Encode + PartialEq> BatchEvidence<AccountId> {
    /// What is wrong; nothing where that is not shown. `verify` says whether a key has signed some bytes;
    /// that the key of what is signed is the payee's agent is for the chain to say.
    pub fn verify(
        &self,
        committed: &Committed<AccountId>,
        verify: impl Fn(&AccountId, &[u8], &[u8; 64]) -> bool,
    ) -> Option<BatchFault> {
        let batch = &committed.batch;
        match self {
            Self::Sum(flaw) => flaw.is_in(batch).map(|()| BatchFault::WrongSum),
            Self::Order { one, other } => {
                let (one, other) = (one.verify(batch)?, other.verify(batch)?);
                let are_unordered = one.place < other.place && one.channel >= other.channel;
                are_unordered.then_some(BatchFault::Unordered)
            }
            Self::Receipt { batched, request } => batched.fault(committed, batch, request.as_ref()),
            Self::Contradiction { batched, said, shown } => {
                batched.said(committed, batch)?;
                let other = match said {
                    Said::Signed(signed) if signed.is_signed(&committed.genesis, verify) => &signed.statement,
                    Said::Signed(_) => return None,
                    Said::Batched(other) => other.said(committed, committed.other.as_ref()?)?,
                };
                if batched.statement.payee != committed.payee {
                    return None;
                }
                incompatible(&batched.statement, other, shown.as_ref()).map(BatchFault::Contradicted)
            }
        }
    }
}

impl<AccountId: Encode + PartialEq> Batched<AccountId> {
    /// Where it is, if it is shown to be there, and is of the request and costs what it says itself.
    pub fn place_in(&self, genesis: &H256, batch: &BatchRoot) -> Option<ProvenReceipt> {
        let shown = self.shown(genesis, batch)?;
        self.belongs(&shown).then_some(shown)
    }

    /// Where what it says stands, whatever it is of.
    fn shown(&self, genesis: &H256, batch: &BatchRoot) -> Option<ProvenReceipt> {
        let shown = self.opening.verify(batch)?;
        (shown.receipt.0 == self.statement.message(genesis)).then_some(shown)
    }

    /// Whether it is of the request that it stands for there, and costs as much.
    fn belongs(&self, shown: &ProvenReceipt) -> bool {
        let said = &self.statement;
        (said.channel, said.nonce, said.price) == (shown.channel, shown.nonce, shown.price)
    }

    /// What it says; nothing where it is not shown to.
    fn said(
        &self,
        committed: &Committed<AccountId>,
        batch: &BatchRoot,
    ) -> Option<&ChunkStatement<AccountId>> {
        self.shown(&committed.genesis, batch).map(|_| &self.statement)
    }

    fn fault(
        &self,
        committed: &Committed<AccountId>,
        batch: &BatchRoot,
        request: Option<&Request>,
    ) -> Option<BatchFault> {
        let (shown, said) = (self.shown(&committed.genesis, batch)?, &self.statement);
        if !self.belongs(&shown) || said.payee != committed.payee {
            return Some(BatchFault::OtherReceipt);
        }
        if said.end.is_none() {
            return Some(BatchFault::Unended);
        }
        match said.check(request?) {
            // The request is not the one that it names, or nothing is wrong.
            Err(Misstated::OtherRequest) | Ok(()) => None,
            Err(misstated) => Some(BatchFault::Misstated(misstated)),
        }
    }
}
