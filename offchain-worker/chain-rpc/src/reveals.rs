//! Calls that prove themselves: they open what stands on the chain, and are neither signed nor paid for.
//!
//! Each attempt has other bytes, because a pool that has refused some turns them away for half an hour. The
//! chain takes a reveal once, whichever bytes carry it; which of ours did, blocks say.

use std::time::Instant;

use sp_core::H256;
use sp_crypto_hashing::blake2_256;

use super::{
    Inner,
    sign::unsigned,
    submit::{Step, lost, may_pass},
};
use surety_chain_client::{BlockNumber, BlockRef, Call, ChainError, Included, Refusal, Until, When};

/// What was handed over of one reveal.
#[derive(Default)]
struct Attempts {
    count: u32,
    /// Hashes of all that a pool may have taken.
    hashes: Vec<H256>,
    /// No block before this one has one of them: at first the best block when the first was handed over.
    since: BlockNumber,
}

impl Inner {
    pub(super) async fn reveal(&self, call: &Call, asked: Until) -> Result<Included, ChainError> {
        let until = self.deadline();
        let mut attempts = Attempts::default();
        loop {
            match self.carry(call, asked, &mut attempts, until).await {
                Err(error) if is_of_the_moment(&error) && Instant::now() < until => {
                    self.pause_after(call, &error).await;
                }
                told => return told,
            }
        }
    }

    /// Gets the call into a block that stays, and tells what came of it. Beginning again costs nothing,
    /// wherever it ended: what is in a block by then is found there.
    async fn carry(
        &self,
        call: &Call,
        asked: Until,
        attempts: &mut Attempts,
        until: Instant,
    ) -> Result<Included, ChainError> {
        loop {
            let attempt = self.attempt(call, attempts, until);
            let (block, extrinsic) = self.judged(attempt).await?;
            if self.stands(asked, block).await? {
                return self.outcome(extrinsic, block).await;
            }
        }
    }

    async fn attempt(
        &self,
        call: &Call,
        attempts: &mut Attempts,
        until: Instant,
    ) -> Result<(BlockRef, H256), ChainError> {
        let best = self.head(When::Best).await?;
        let runtime = self.of_new(best, self.runtime_after(best.hash).await).await?;
        let attempt = best.number.wrapping_add(attempts.count);
        let bytes = unsigned(&runtime, self.info.genesis, attempt, call)?;
        attempts.count = attempts.count.wrapping_add(1);
        let extrinsic = H256(blake2_256(&bytes));
        let sent = self.hand_over(&bytes).await;
        // What got lost on the way may be in the pool, too.
        let is_refused = |error: &ChainError| match error {
            ChainError::Rejected(refusal) => *refusal != Refusal::AlreadyImported,
            _ => false,
        };
        if !sent.as_ref().is_err_and(is_refused) {
            attempts.note(extrinsic, best.number);
        }
        let step = match sent {
            Ok(mut pooled) => self.follow(&mut pooled, until).await,
            Err(ChainError::Rejected(refusal)) => Step::Out(refusal),
            Err(error) => return Err(error),
        };
        match step {
            Step::InBlock(hash) => Ok((self.link.named(hash).await?, extrinsic)),
            Step::Out(refusal) => self.landed_before(attempts, refusal, until).await,
            Step::Quiet | Step::Stuck => Err(lost("the node stopped telling")),
        }
    }

    /// The block that has an earlier attempt: it may be why this one was refused.
    async fn landed_before(
        &self,
        attempts: &mut Attempts,
        refusal: Refusal,
        until: Instant,
    ) -> Result<(BlockRef, H256), ChainError> {
        if attempts.hashes.is_empty() || refusal.passes() || is_on_its_way(&refusal) {
            return Err(refusal.into());
        }
        let best = self.head(When::Best).await?;
        let Attempts { hashes, since, .. } = attempts;
        let blocks = *since..=best.number;
        let seen = |number: BlockNumber| *since = number.saturating_add(1);
        let found = self.search_on(hashes, blocks, best, until, seen).await?;
        found.ok_or_else(|| refusal.into())
    }
}

impl Attempts {
    fn note(&mut self, extrinsic: H256, best: BlockNumber) {
        if self.hashes.is_empty() {
            self.since = best;
        }
        self.hashes.push(extrinsic);
    }
}

/// Whether the pool has the same reveal already.
fn is_on_its_way(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::AlreadyImported | Refusal::PriorityTooLow)
}

/// Whether an error says nothing of the call: another attempt may meet another node, or another moment.
fn is_of_the_moment(error: &ChainError) -> bool {
    match error {
        ChainError::Rejected(refusal) => refusal.passes() || is_on_its_way(refusal),
        error => may_pass(error),
    }
}
