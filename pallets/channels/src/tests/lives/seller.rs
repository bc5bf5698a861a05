//! A provider of random lives: what it answers, and what it has batched.

use std::collections::BTreeMap;

use surety_channels::{End, Ending};
use surety_proofs::{SegmentOpening, content_hash};

use super::{super::*, TRACE};
use crate::{Demand, Demands};

pub(super) type Statement = ChunkStatement<AccountId32>;

/// A batch, with what it has of each channel: what was put there, true or not.
pub(super) struct Made {
    pub(super) batch: Batch,
    pub(super) receipts: Vec<Statement>,
}

pub(super) struct Seller {
    pub(super) stash: AccountId32,
    pub(super) pair: sr25519::Pair,
    /// Requests that it has taken, by channel.
    pub(super) taken: BTreeMap<ChannelId, u32>,
    /// In which batch a receipt is.
    pub(super) batched: BTreeMap<(ChannelId, u32), BatchNumber>,
    /// Its batches, by number.
    pub(super) made: Vec<Made>,
}

impl Seller {
    pub(super) fn new(stash: AccountId32, pair: sr25519::Pair) -> Self {
        Self {
            stash,
            pair,
            taken: BTreeMap::new(),
            batched: BTreeMap::new(),
            made: Vec::new(),
        }
    }

    pub(super) fn agent(&self) -> AccountId32 {
        AccountId32::new(self.pair.public().0)
    }

    fn request(channel: ChannelId, nonce: u32) -> Request {
        let (unit_price, _) = Self::size(channel, nonce);
        Request {
            input: H256::from_low_u64_be(channel ^ u64::from(nonce)),
            ..generation(1_000, unit_price)
        }
    }

    /// Price of a token, and how many are said: from next to nothing to half of the cap for an answer.
    pub(super) fn size(channel: ChannelId, nonce: u32) -> (u128, u32) {
        match (channel + u64::from(nonce)) % 4 {
            0 => (5, 300),
            1 => (CAP / 2_400, 40),
            2 => (CAP / 240, 14),
            _ => (CAP / 24, 2),
        }
    }

    /// What it says in answer to a request: `lie` is in its last word.
    pub(super) fn said(channel: ChannelId, nonce: u32, tokens: u32, lie: u32) -> Vec<u8> {
        let first = 1_000 * channel as u32 + nonce;
        let tokens = (0..tokens).map(|at| {
            if at + 1 == tokens {
                first + at + lie
            } else {
                first + at
            }
        });
        std::iter::once(0)
            .chain(tokens)
            .flat_map(u32::to_le_bytes)
            .collect()
    }

    /// Of an answer, when so much of it was said; all of it has an end.
    pub(super) fn statement(&self, channel: ChannelId, nonce: u32, tokens: u32, lie: u32) -> Statement {
        let (_, all) = Self::size(channel, nonce);
        let tokens = tokens.min(all);
        let bytes = Self::said(channel, nonce, tokens, lie);
        let request = Self::request(channel, nonce);
        let ends = [End::Length, End::Stop, End::Cut, End::Cancelled];
        Statement {
            channel,
            payee: self.stash.clone(),
            nonce,
            request: request.hash(),
            bytes: bytes.len() as u32,
            output: content_hash(&bytes),
            units: 10 + tokens,
            price: request.price(10 + tokens).expect("small"),
            end: (tokens == all).then_some(Ending {
                how: ends[nonce as usize % ends.len()],
                trace_root: TRACE,
            }),
        }
    }

    pub(super) fn receipt(&self, channel: ChannelId, nonce: u32) -> Statement {
        self.statement(channel, nonce, u32::MAX, 0)
    }

    /// A segment of the whole answer, as its receipt has it.
    pub(super) fn segment(channel: ChannelId, nonce: u32, segment: u32) -> Option<SegmentOpening> {
        let (_, all) = Self::size(channel, nonce);
        SegmentOpening::new(&Self::said(channel, nonce, all, 0), segment)
    }

    /// Where a receipt of it is.
    pub(super) fn shown(
        &self,
        channel: ChannelId,
        nonce: u32,
    ) -> Option<(BatchNumber, Batched<AccountId32>)> {
        let number = *self.batched.get(&(channel, nonce))?;
        let made = &self.made[number as usize];
        let said = made.receipts.iter();
        let mut said = said.filter(|said| (said.channel, said.nonce) == (channel, nonce));
        let opening = made.batch.open(channel, nonce)?;
        let statement = said.next()?.clone();
        Some((number, Batched { opening, statement }))
    }

    /// What its cap covers beside what is open, or signed and not batched.
    pub(super) fn room(&self) -> u128 {
        let Some(provider) = Standings::<Test>::get(&self.stash) else {
            return 0;
        };
        let there = self
            .taken
            .iter()
            .filter(|(channel, _)| Channels::<Test>::contains_key(channel));
        let taken = there.flat_map(|(channel, taken)| (0..*taken).map(|nonce| (*channel, nonce)));
        let left = taken.filter(|of| !self.batched.contains_key(of));
        let left: u128 = left
            .map(|(channel, nonce)| self.receipt(channel, nonce).price)
            .sum();
        provider
            .standing
            .cap
            .saturating_sub(provider.standing.open + left)
    }

    /// What is demanded of it.
    pub(super) fn owed(&self) -> Vec<(AccountId32, Demand<AccountId32>)> {
        let all = Demands::<Test>::iter_prefix(&self.stash);
        let flat =
            all.flat_map(|(demander, demands)| demands.into_iter().map(move |of| (demander.clone(), of)));
        flat.collect()
    }
}

/// What was asked for, and the first segment of the answer.
pub(super) fn asked(said: &Statement) -> (Box<Request>, Option<SegmentOpening>) {
    let bytes = Seller::said(said.channel, said.nonce, said.units - 10, 0);
    let request = Seller::request(said.channel, said.nonce);
    (Box::new(request), SegmentOpening::new(&bytes, 0))
}
