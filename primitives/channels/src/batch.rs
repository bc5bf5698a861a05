//! Receipts under one root, which a provider commits on the chain.
//!
//! A batch is a sum tree of channels, in ascending order, above one sum tree for each over its receipts:
//!
//! - receipt: `blake2_256(0x00 ‖ receipt ‖ salt)`, which counts 1 and its price; `receipt` is
//!   [`ChunkStatement::message`](crate::ChunkStatement::message);
//! - channel: `blake2_256(0x02 ‖ channel ‖ first ‖ hash of the root over its receipts)`, which counts what
//!   that root does.
//!
//! A channel's receipts are those of **consecutive** requests, beginning with `first`: the receipt at place
//! `i` answers request `first + i`, or lies about it. So one path shows what a channel has in a batch, there
//! is no second receipt of one request in it, and none is left out between two; the chain pays a channel's
//! batches in that order ([`Purse::count`](crate::Purse::count)). The salt keeps who opens one receipt from
//! finding out what its neighbors answer.

use alloc::vec::Vec;
use core::fmt;

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::H256;
use sp_crypto_hashing::blake2_256;

use crate::{ChannelId, Nonce, RECEIPTS_MAX, SumNode, SumPath, SumTree, Sums};

const RECEIPT: u8 = 0;
const CHANNEL: u8 = 2;

/// What the chain keeps of a batch: 56 bytes.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct BatchRoot {
    /// Hash of the root over its channels.
    pub hash: H256,
    /// How many channels it has.
    pub channels: u32,
    /// How many receipts it has, and what they cost.
    pub sums: Sums,
}

impl BatchRoot {
    /// Whether there can be such a batch.
    pub const fn is_possible(&self) -> bool {
        0 < self.channels && self.channels <= self.sums.receipts && self.sums.receipts <= RECEIPTS_MAX
    }

    fn node(&self) -> SumNode {
        SumNode {
            hash: self.hash,
            sums: self.sums,
        }
    }
}

/// What the tree of a channel has for a receipt, beside its price.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct ReceiptLeaf {
    /// Hash of the receipt: its message.
    pub receipt: H256,
    /// Keeps it from being guessed.
    pub salt: H256,
}

impl ReceiptLeaf {
    fn node(&self, price: u128) -> SumNode {
        SumNode {
            hash: H256(blake2_256(&(RECEIPT, self).encode())),
            sums: Sums { receipts: 1, price },
        }
    }
}

/// A receipt on its way into a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchEntry {
    /// Channel id.
    pub channel: ChannelId,
    /// Number of the request.
    pub nonce: Nonce,
    /// Its price, in plancks.
    pub price: u128,
    /// Its leaf.
    pub leaf: ReceiptLeaf,
}

/// Why some receipts are no batch. Places count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unbatchable {
    /// There is none.
    Empty,
    /// There are more than [`RECEIPTS_MAX`]: make two batches.
    TooMany,
    /// Channels do not ascend here.
    Unsorted {
        /// Where.
        place: u32,
    },
    /// This one's request does not come after that of the receipt before it: wait for what is missing.
    Gap {
        /// Where.
        place: u32,
    },
    /// They cost more than can be counted.
    TooDear,
}

impl fmt::Display for Unbatchable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "there is no receipt"),
            Self::TooMany => write!(f, "there are more than {RECEIPTS_MAX} receipts: make two batches"),
            Self::Unsorted { place } => {
                write!(f, "the channel of receipt {place} is not above that before it")
            }
            Self::Gap { place } => write!(f, "receipt {place} is not of the request after that before it"),
            Self::TooDear => write!(f, "the receipts cost more than can be counted"),
        }
    }
}

impl core::error::Error for Unbatchable {}

/// The receipts of one channel in a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ChannelPart {
    channel: ChannelId,
    first: Nonce,
    leaves: Vec<ReceiptLeaf>,
    prices: Vec<u128>,
    tree: SumTree,
}

impl ChannelPart {
    /// Of receipts that begin at `place` of the batch.
    fn new(entries: &[BatchEntry], place: u32) -> Result<Self, Unbatchable> {
        let one = entries.first().ok_or(Unbatchable::Empty)?;
        for (at, entry) in (0u32..).zip(entries) {
            if one.nonce.checked_add(at) != Some(entry.nonce) {
                let place = place.saturating_add(at);
                return Err(Unbatchable::Gap { place });
            }
        }
        let nodes = entries.iter().map(|entry| entry.leaf.node(entry.price));
        Ok(Self {
            channel: one.channel,
            first: one.nonce,
            leaves: entries.iter().map(|entry| entry.leaf).collect(),
            prices: entries.iter().map(|entry| entry.price).collect(),
            tree: SumTree::new(nodes.collect()).ok_or(Unbatchable::TooDear)?,
        })
    }

    fn node(&self) -> SumNode {
        channel_node(self.channel, self.first, &self.tree.root())
    }
}

/// What stands for a channel in the batch's tree; `total` is the root over its receipts.
fn channel_node(channel: ChannelId, first: Nonce, total: &SumNode) -> SumNode {
    SumNode {
        hash: H256(blake2_256(&(CHANNEL, channel, first, total.hash).encode())),
        sums: total.sums,
    }
}

/// A whole batch, for whoever commits it and shows parts of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    parts: Vec<ChannelPart>,
    tree: SumTree,
}

impl Batch {
    /// Of these receipts, by channel and then by request.
    ///
    /// # Errors
    /// [`Unbatchable`], the first that is found.
    pub fn new(entries: &[BatchEntry]) -> Result<Self, Unbatchable> {
        if entries.len() > RECEIPTS_MAX as usize {
            return Err(Unbatchable::TooMany);
        }
        let mut parts: Vec<ChannelPart> = Vec::new();
        let mut place = 0u32;
        for of_one in entries.chunk_by(|one, next| one.channel == next.channel) {
            let part = ChannelPart::new(of_one, place)?;
            if parts.last().is_some_and(|last| last.channel >= part.channel) {
                return Err(Unbatchable::Unsorted { place });
            }
            place = place.saturating_add(part.tree.root().sums.receipts);
            parts.push(part);
        }
        if parts.is_empty() {
            return Err(Unbatchable::Empty);
        }
        let tree = SumTree::new(parts.iter().map(ChannelPart::node).collect());
        let tree = tree.ok_or(Unbatchable::TooDear)?;
        Ok(Self { parts, tree })
    }

    /// What is committed.
    pub fn root(&self) -> BatchRoot {
        let SumNode { hash, sums } = self.tree.root();
        BatchRoot {
            hash,
            channels: u32::try_from(self.parts.len()).unwrap_or(u32::MAX),
            sums,
        }
    }

    /// What a channel has in it; nothing where it has nothing.
    pub fn open_channel(&self, channel: ChannelId) -> Option<ChannelOpening> {
        let place = self.parts.binary_search_by_key(&channel, |part| part.channel);
        self.open_place(u32::try_from(place.ok()?).ok()?)
    }

    fn open_place(&self, place: u32) -> Option<ChannelOpening> {
        let part = self.parts.get(place as usize)?;
        Some(ChannelOpening {
            place,
            channel: part.channel,
            first: part.first,
            total: part.tree.root(),
            path: self.tree.path(place)?,
        })
    }

    /// The receipt of a request; nothing where there is none.
    pub fn open(&self, channel: ChannelId, nonce: Nonce) -> Option<ReceiptOpening> {
        let of = self.open_channel(channel)?;
        let place = nonce.checked_sub(of.first)?;
        self.open_at(of, place)
    }

    fn open_at(&self, of: ChannelOpening, place: u32) -> Option<ReceiptOpening> {
        let part = self.parts.get(of.place as usize)?;
        Some(ReceiptOpening {
            place,
            leaf: *part.leaves.get(place as usize)?,
            price: *part.prices.get(place as usize)?,
            path: part.tree.path(place)?,
            of,
        })
    }

    /// The receipt that a point on the line of prices is in; nothing beyond the end.
    pub fn leaf_at(&self, point: u128) -> Option<ReceiptOpening> {
        let (place, before) = self.tree.leaf_at(point)?;
        let of = self.open_place(place)?;
        let part = self.parts.get(place as usize)?;
        let (place, _) = part.tree.leaf_at(point.checked_sub(before.price)?)?;
        self.open_at(of, place)
    }

    /// That there is no receipt of a request; nothing where there is.
    pub fn absence(&self, channel: ChannelId, nonce: Nonce) -> Option<Absence> {
        match self.parts.binary_search_by_key(&channel, |part| part.channel) {
            Ok(_) if self.open(channel, nonce).is_some() => None,
            Ok(_) => Some(Absence::Beyond(self.open_channel(channel)?)),
            Err(place) => {
                let place = u32::try_from(place).ok()?;
                let before = place.checked_sub(1).and_then(|place| self.open_place(place));
                let after = self.open_place(place);
                Some(Absence::Between { before, after })
            }
        }
    }
}

/// What a channel has in a batch, and what shows that.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct ChannelOpening {
    /// Place of the channel in the batch.
    pub place: u32,
    /// Channel id.
    pub channel: ChannelId,
    /// Number of the first request that is answered.
    pub first: Nonce,
    /// The root over its receipts.
    pub total: SumNode,
    /// From the channel to the batch's root.
    pub path: SumPath,
}

/// What a [`ChannelOpening`] has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProvenChannel {
    /// Place of the channel in the batch.
    pub place: u32,
    /// Channel id.
    pub channel: ChannelId,
    /// Number of the first request that is answered; as many follow as there are receipts.
    pub first: Nonce,
    /// The root over its receipts.
    pub total: SumNode,
    /// What stands on its left.
    pub before: Sums,
}

impl ChannelOpening {
    /// What it shows under a root; nothing where it shows nothing.
    pub fn verify(&self, batch: &BatchRoot) -> Option<ProvenChannel> {
        let node = channel_node(self.channel, self.first, &self.total);
        let climbed = self.path.climb(node, self.place, batch.channels)?;
        (batch.is_possible() && climbed.root == batch.node()).then_some(ProvenChannel {
            place: self.place,
            channel: self.channel,
            first: self.first,
            total: self.total,
            before: climbed.before,
        })
    }
}

impl ProvenChannel {
    /// Whether a request of this channel is among those that are answered.
    pub fn has(&self, nonce: Nonce) -> bool {
        let place = nonce.checked_sub(self.first);
        place.is_some_and(|place| place < self.total.sums.receipts)
    }
}

/// A receipt in a batch, and what shows that it is there.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct ReceiptOpening {
    /// Its channel.
    pub of: ChannelOpening,
    /// Its place among those of its channel.
    pub place: u32,
    /// Its leaf.
    pub leaf: ReceiptLeaf,
    /// Its price, in plancks.
    pub price: u128,
    /// From the leaf to the root over the channel's receipts.
    pub path: SumPath,
}

/// What a [`ReceiptOpening`] has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProvenReceipt {
    /// Channel id.
    pub channel: ChannelId,
    /// Number of the request that it has to answer.
    pub nonce: Nonce,
    /// Hash of the receipt.
    pub receipt: H256,
    /// Its price, in plancks.
    pub price: u128,
    /// Where it begins on the batch's line of prices, in plancks.
    pub start: u128,
}

impl ReceiptOpening {
    /// What it shows under a root; nothing where it shows nothing.
    pub fn verify(&self, batch: &BatchRoot) -> Option<ProvenReceipt> {
        let of = self.of.verify(batch)?;
        let leaves = of.total.sums.receipts;
        let climbed = self.path.climb(self.leaf.node(self.price), self.place, leaves)?;
        if climbed.root != of.total {
            return None;
        }
        Some(ProvenReceipt {
            channel: of.channel,
            nonce: of.first.checked_add(self.place)?,
            receipt: self.leaf.receipt,
            price: self.price,
            start: of.before.plus(climbed.before)?.price,
        })
    }
}

impl ProvenReceipt {
    /// Where in the receipt's price a point of the batch's line is; nothing where it is not in it.
    pub fn offset(&self, point: u128) -> Option<u128> {
        point
            .checked_sub(self.start)
            .filter(|offset| *offset < self.price)
    }
}

/// That a batch has no receipt of a request.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub enum Absence {
    /// It has others of the channel.
    Beyond(ChannelOpening),
    /// It has none of the channel: these two are neighbors, or one is at the end.
    Between {
        /// The channel before it.
        before: Option<ChannelOpening>,
        /// The channel after it.
        after: Option<ChannelOpening>,
    },
}

impl Absence {
    /// Whether it shows that the batch has none, **if its channels ascend**. Where they do not, whoever shows
    /// the receipt has the proof of that: it and one of these are out of order.
    pub fn verify(&self, batch: &BatchRoot, channel: ChannelId, nonce: Nonce) -> bool {
        match self {
            Self::Beyond(opening) => opening
                .verify(batch)
                .is_some_and(|shown| shown.channel == channel && !shown.has(nonce)),
            Self::Between { before, after } => {
                let place = |opening: &Option<ChannelOpening>| match opening {
                    Some(opening) => opening.verify(batch).map(Some),
                    None => Some(None),
                };
                match (place(before), place(after)) {
                    (Some(Some(before)), Some(Some(after))) => {
                        before.channel < channel
                            && channel < after.channel
                            && before.place.checked_add(1) == Some(after.place)
                    }
                    (Some(Some(before)), Some(None)) => {
                        before.channel < channel && before.place.checked_add(1) == Some(batch.channels)
                    }
                    (Some(None), Some(Some(after))) => channel < after.channel && after.place == 0,
                    _ => false,
                }
            }
        }
    }
}
