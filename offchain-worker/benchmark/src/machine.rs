//! What runs are made on.

use std::sync::{Arc, atomic::AtomicBool};

use async_trait::async_trait;
use sp_core::H256;
use surety_gpu_proofs::{Job, Memory, Row};
use surety_proofs::Proof;

/// While it is there, everything else on a machine stands aside.
pub type Pause = Box<dyn Send>;

/// The machine whose speed is measured.
#[async_trait]
pub trait Machine: Send + Sync {
    /// Returns once everything else stands aside, for so long at most.
    ///
    /// # Errors
    /// Why it does not, for example because a promised result could be late.
    async fn pause(&self, at_most: std::time::Duration) -> Result<Pause, String>;

    /// What a run is made in, and how many rows there is memory for. It is dropped when the run is made.
    /// While `stop` is set it may refuse to begin anything. Blocks.
    ///
    /// # Errors
    /// Why there is none.
    fn memory(&self, stop: &Arc<AtomicBool>) -> Result<(RunMemory, u32), String>;
}

/// What a run is made in, with its errors in words.
pub type RunMemory = Box<dyn Memory<Error = String> + Send>;

/// This, with its errors in words.
pub fn in_words<M>(memory: M, words: impl Fn(M::Error) -> String + Send + 'static) -> RunMemory
where
    M: Memory + Send + 'static,
{
    Box::new(InWords { memory, words })
}

struct InWords<M, W> {
    memory: M,
    words: W,
}

impl<M: Memory, W: Fn(M::Error) -> String> Memory for InWords<M, W> {
    type Error = String;

    fn fill(&mut self, job: &Job) -> Result<(), String> {
        self.memory.fill(job).map_err(&self.words)
    }

    fn step(&mut self, job: &Job, layer: u32, batch: u32) -> Result<H256, String> {
        self.memory.step(job, layer, batch).map_err(&self.words)
    }

    fn digests(&mut self) -> Result<Vec<H256>, String> {
        self.memory.digests().map_err(&self.words)
    }

    fn proofs(&mut self, rows: &[u32]) -> Result<Vec<Proof>, String> {
        self.memory.proofs(rows).map_err(&self.words)
    }

    fn row(&mut self, row: u32) -> Result<Row, String> {
        self.memory.row(row).map_err(&self.words)
    }
}
