//! Following the fake chain's blocks.

use async_trait::async_trait;
use sp_core::H256;
use sp_crypto_hashing::blake2_256;
use tokio::sync::watch;

use super::{FakeChain, block_ref};
use crate::{BlockNumber, BlockRef, BlockStream, ChainError};

/// Hash of the first block.
pub(super) fn genesis() -> H256 {
    H256(blake2_256(b"fake"))
}

pub(super) struct Blocks {
    chain: FakeChain,
    watch: watch::Receiver<BlockNumber>,
}

impl Blocks {
    /// Blocks from now on, the present one first.
    pub fn new(chain: FakeChain, blocks: &watch::Sender<BlockNumber>) -> Self {
        let mut watch = blocks.subscribe();
        watch.mark_changed();
        Self { chain, watch }
    }
}

#[async_trait]
impl BlockStream for Blocks {
    async fn next(&mut self) -> Result<BlockRef, ChainError> {
        // The sender lives as long as `self.chain`.
        let _ = self.watch.changed().await;
        self.chain.lock().check_reachable()?;
        Ok(block_ref(*self.watch.borrow_and_update()))
    }
}
