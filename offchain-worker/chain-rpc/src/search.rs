//! Whether a call is in a block.
//!
//! A call is signed anew only when it is known that none of its signatures is in a block, nor can get into
//! one. It is known when their nonce is free after the last block that any of them is good for; or when the
//! nonce is used and every block that any of them is good for was looked at.

use std::{ops::RangeInclusive, time::Instant};

use sp_core::H256;
use sp_crypto_hashing::blake2_256;

use super::{Inner, attempts::Place, sign::ANCHOR_DEPTH, submit::lost};
use surety_chain_client::{BlockNumber, BlockRef, ChainError, When};

impl Inner {
    /// Looks for the call in a block that the node has named.
    pub(super) async fn note_block(&self, place: &Place, hash: H256) {
        let Some(attempt) = place.attempt() else {
            return;
        };
        let found = async {
            let block = self.link.named(hash).await?;
            let extrinsic = self.search(&attempt.hashes, hash).await?;
            Ok::<_, ChainError>(extrinsic.map(|extrinsic| (block, extrinsic)))
        };
        match found.await {
            Ok(Some((block, extrinsic))) => place.land(&attempt, block, extrinsic),
            Ok(None) => tracing::debug!(?hash, "the call is not in the block that the node named"),
            Err(error) => tracing::debug!(?hash, %error, "the block that the node named is not there"),
        }
    }

    /// Which of these extrinsics is in this block, if one is.
    async fn search(&self, sought: &[H256], block: H256) -> Result<Option<H256>, ChainError> {
        let extrinsics = self.link.extrinsics(block).await?;
        let mut hashes = extrinsics.iter().map(|bytes| H256(blake2_256(bytes)));
        Ok(hashes.find(|hash| sought.contains(hash)))
    }

    /// The first of these blocks that has one of these extrinsics, and which. `seen` is told of each block
    /// that is there to stay and has none of them, so that no block is looked at twice.
    ///
    /// # Errors
    /// [`ChainError::Unknown`] when it is not through with them at `until`.
    pub(super) async fn search_on(
        &self,
        sought: &[H256],
        blocks: RangeInclusive<BlockNumber>,
        best: BlockRef,
        until: Instant,
        mut seen: impl FnMut(BlockNumber),
    ) -> Result<Option<(BlockRef, H256)>, ChainError> {
        for number in blocks {
            if Instant::now() >= until {
                return Err(lost("there was no time to look for it in every block"));
            }
            let hash = match number == best.number {
                true => best.hash,
                false => self.link.block_hash(Some(number)).await?,
            };
            if let Some(extrinsic) = self.search(sought, hash).await? {
                return Ok(Some((BlockRef { number, hash }, extrinsic)));
            }
            if number <= settled(best) {
                seen(number);
            }
        }
        Ok(None)
    }

    /// Where one of the signatures of a call is in a block, if one is. Forgets a call that cannot get into
    /// one any more.
    pub(super) async fn found(
        &self,
        place: &Place,
        until: Instant,
    ) -> Result<Option<(BlockRef, H256)>, ChainError> {
        let Some(attempt) = place.attempt() else {
            return Ok(None);
        };
        let best = self.head(When::Best).await?;
        if let Some((block, _)) = attempt.landed {
            let hash = match block.number <= best.number {
                true => Some(self.link.block_hash(Some(block.number)).await?),
                false => None,
            };
            if hash == Some(block.hash) {
                return Ok(attempt.landed);
            }
            place.unland(&attempt);
        }
        let used = self.account(best, place.account()).await?.nonce;
        if u64::from(used) <= attempt.nonce {
            // As long as their nonce is free, none of them is in a block.
            place.seen(&attempt, settled(best));
            if best.number > attempt.last_block {
                place.forget(&attempt);
            }
            return Ok(None);
        }
        let blocks = attempt.first_block..=attempt.last_block.min(best.number);
        let seen = |number| place.seen(&attempt, number);
        let found = self.search_on(&attempt.hashes, blocks, best, until, seen).await?;
        match found {
            Some((block, extrinsic)) => place.land(&attempt, block, extrinsic),
            // Another call of the signer has the nonce: none of our signatures is good any more.
            None => place.forget(&attempt),
        }
        Ok(found)
    }
}

/// The newest block that is taken to stay, final or not.
fn settled(best: BlockRef) -> BlockNumber {
    best.number.saturating_sub(ANCHOR_DEPTH)
}
