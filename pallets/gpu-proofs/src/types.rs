//! Records that only this pallet keeps.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::H256;
use surety_gpu_proofs::{Plan, Standing, Tier};

/// What authors of consecutive blocks have given so far.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Gathered<BlockNumber> {
    /// The last block that counts.
    pub last: BlockNumber,
    /// How many more there have to be.
    pub authors_left: u32,
    /// All of their outputs, hashed one after the other.
    pub hash: H256,
}

/// How far a round is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum Stage<BlockNumber> {
    /// Entropy for the runs is gathered.
    Seeding {
        /// What there is of it.
        gathered: Gathered<BlockNumber>,
    },
    /// Providers make their runs, and commit to them.
    Running {
        /// What seeds of runs are made with.
        entropy: H256,
        /// Time of the block that completed it, in milliseconds.
        since_ms: u64,
        /// Blocks so far that had room for commitments.
        blocks: u32,
        /// Time of the last of them, in milliseconds.
        last_ms: u64,
    },
    /// Entropy for the samples is gathered.
    Drawing {
        /// What seeds of runs are made with.
        entropy: H256,
        /// Whether there was room enough to commit in.
        is_counted: bool,
        /// What there is of the samples'.
        gathered: Gathered<BlockNumber>,
    },
    /// Providers show their samples.
    Opening {
        /// What seeds of runs are made with.
        entropy: H256,
        /// Whether there was room enough to commit in.
        is_counted: bool,
        /// What samples are drawn with.
        samples: H256,
        /// The last time, by the clock of running finality.
        until: BlockNumber,
    },
}

/// A round in which all providers are measured that want to be.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Round<BlockNumber> {
    /// Its number, counted from 1.
    pub number: u32,
    /// Time for a run, in milliseconds.
    pub window_ms: u64,
    /// How far it is.
    pub stage: Stage<BlockNumber>,
}

/// A run that a provider has committed to.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Commitment {
    /// The round's number.
    pub round: u32,
    /// How large the run is.
    pub plan: Plan,
    /// What all of its rows hash to.
    pub root: H256,
}

/// What a provider has shown last.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Measurement {
    /// Speed, in 10^9 operations a second on 8-bit integers.
    pub giga_operations: u32,
    /// Memory that it was computed over, in MiB.
    pub memory_mib: u32,
    /// How long it counts.
    pub standing: Standing,
}

impl Measurement {
    /// The tier that its speed is in.
    pub const fn tier(&self) -> Tier {
        Tier::of(self.giga_operations)
    }
}
