//! Rounds of the benchmark as those see them who take part: what runtimes answer.

use codec::{Decode, Encode};
use scale_info::TypeInfo;
use sp_core::H256;

use crate::Plan;

/// The round that there is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct GpuRoundView<BlockNumber> {
    /// Its number, counted from 1.
    pub number: u32,
    /// Time for a run, in milliseconds.
    pub window_ms: u64,
    /// How far it is.
    pub stage: RoundStage<BlockNumber>,
    /// Time of the last block, in milliseconds.
    pub time_ms: u64,
    /// The time by the clock of running finality.
    pub now: BlockNumber,
}

/// How far a round is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub enum RoundStage<BlockNumber> {
    /// Entropy for the runs is gathered.
    Seeding {
        /// Blocks whose authors' outputs are still to come.
        authors_left: u32,
    },
    /// Providers make their runs, and commit to them.
    Running {
        /// What seeds of runs are made with.
        entropy: H256,
        /// Time of the block that completed it, in milliseconds. Commitments are taken in blocks that are no
        /// later than that and the time for a run.
        since_ms: u64,
    },
    /// Entropy for the samples is gathered.
    Drawing {
        /// What seeds of runs are made with.
        entropy: H256,
        /// Blocks whose authors' outputs are still to come.
        authors_left: u32,
    },
    /// Providers show their samples.
    Opening {
        /// What seeds of runs are made with.
        entropy: H256,
        /// What samples are drawn with.
        samples: H256,
        /// The last time for it, by the clock of running finality.
        until: BlockNumber,
    },
}

/// A run of the present round that a provider has committed to and shown nothing of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct RunView {
    /// The round's number.
    pub round: u32,
    /// How large the run is.
    pub plan: Plan,
    /// What all of its rows hash to.
    pub root: H256,
}
