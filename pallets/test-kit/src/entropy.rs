//! What authors of blocks give for draws.

use std::{cell::RefCell, collections::BTreeMap};

use sp_core::H256;
use surety_types::traits::BlockEntropy;

use crate::BlockNumber;

thread_local! {
    static OUTPUTS: RefCell<BTreeMap<BlockNumber, H256>> = const { RefCell::new(BTreeMap::new()) };
}

/// Mock of [`BlockEntropy`]. Keeps what it was given until it is told to forget it.
pub struct MockEntropy;

impl MockEntropy {
    /// Forgets everything.
    pub fn reset() {
        OUTPUTS.take();
    }

    /// The author of `block` has given its output. No two blocks have the same.
    pub fn give(block: BlockNumber) {
        OUTPUTS.with_borrow_mut(|outputs| outputs.insert(block, Self::output_of(block)));
    }

    /// What the author of `block` gives.
    pub fn output_of(block: BlockNumber) -> H256 {
        H256::from_low_u64_be(block.saturating_add(1_000))
    }

    /// Forgets what was given before `block`.
    pub fn forget_before(block: BlockNumber) {
        OUTPUTS.with_borrow_mut(|outputs| outputs.retain(|of, _| *of >= block));
    }
}

impl BlockEntropy<BlockNumber> for MockEntropy {
    fn first_after(block: BlockNumber) -> Option<(H256, BlockNumber)> {
        OUTPUTS.with_borrow(|outputs| {
            let mut later = outputs.range(block.saturating_add(1)..);
            later.next().map(|(of, output)| (*output, *of))
        })
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn fill_for_benchmark(block: BlockNumber) {
        Self::give(block.saturating_add(1));
    }
}
