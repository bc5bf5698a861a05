//! What runs are made on.

use std::sync::{Arc, atomic::AtomicBool};

use async_trait::async_trait;
use sp_core::H256;
use surety_gpu_proofs::{Job, Memory, Row};
use surety_proofs::Proof;

/// While it is there, everything else on a machine stands aside.
pub type Pause = Box<dyn Send>;

/// While it is there, nothing new is promised on a machine.
pub type Hold = Box<dyn Send + Sync>;

/// Why a machine makes no run now, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    /// Others have the memory.
    Memory(String),
    /// It fails.
    Device(String),
}

/// The machine whose speed is measured.
#[async_trait]
pub trait Machine: Send + Sync {
    /// Returns once everything else stands aside, for so long at most.
    ///
    /// # Errors
    /// Why it does not, for example because a promised result could be late. Then nothing new is promised for
    /// a while: the next attempt shall find less in its way.
    async fn pause(&self, at_most: std::time::Duration) -> Result<Pause, String>;

    /// Has nothing new promised, for so long at most: what is promised gets less, and after some time it is
    /// in no pause's way.
    fn hold(&self, at_most: std::time::Duration) -> Hold;

    /// What a run is made in, and how many rows there is memory for. It is dropped when the run is made.
    /// While `stop` is set it may refuse to begin anything. Blocks.
    ///
    /// # Errors
    /// Why there is none now. It is asked again.
    fn memory(&self, stop: &Arc<AtomicBool>) -> Result<(RunMemory, u32), Failed>;
}

/// What a run is made in, with its errors in words.
pub type RunMemory = Box<dyn Memory<Error = Failed> + Send>;

/// This, with its errors in words.
pub fn in_words<M>(memory: M, words: impl Fn(M::Error) -> Failed + Send + 'static) -> RunMemory
where
    M: Memory + Send + 'static,
{
    Box::new(InWords { memory, words })
}

struct InWords<M, W> {
    memory: M,
    words: W,
}

impl<M: Memory, W: Fn(M::Error) -> Failed> Memory for InWords<M, W> {
    type Error = Failed;

    fn fill(&mut self, job: &Job) -> Result<(), Failed> {
        self.memory.fill(job).map_err(&self.words)
    }

    fn step(&mut self, job: &Job, layer: u32, batch: u32) -> Result<H256, Failed> {
        self.memory.step(job, layer, batch).map_err(&self.words)
    }

    fn digests(&mut self) -> Result<Vec<H256>, Failed> {
        self.memory.digests().map_err(&self.words)
    }

    fn proofs(&mut self, rows: &[u32]) -> Result<Vec<Proof>, Failed> {
        self.memory.proofs(rows).map_err(&self.words)
    }

    fn row(&mut self, row: u32) -> Result<Row, Failed> {
        self.memory.row(row).map_err(&self.words)
    }
}
