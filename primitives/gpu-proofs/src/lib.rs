#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::unwrap_used
    )
)]

#[cfg(any(test, feature = "runtime-benchmarks"))]
mod benchmark;
mod job;
mod opening;
mod plan;
#[cfg(feature = "std")]
mod processor;
#[cfg(feature = "std")]
mod prover;
mod sample;
mod standing;
mod view;

#[cfg(any(test, feature = "runtime-benchmarks"))]
pub use benchmark::for_benchmark;
pub use job::{Job, Place, Row, seed, tag};
pub use opening::{Fault, Opening, Openings, ShownRow, verify, verify_all};
pub use plan::{Plan, RUN_ROWS_MAX};
#[cfg(feature = "std")]
pub use processor::{OutOfMemory, Processor};
#[cfg(feature = "std")]
pub use prover::{Failure, Memory, Run, open, run};
pub use sample::{Sample, draw};
pub use standing::{GRACE_ROUNDS, Standing};
pub use surety_types::speed::{MeasuredView, Tier};
pub use view::{GpuRoundView, RoundStage, RunView};

/// Cells of a row, each a byte, and terms of each cell's sum.
pub const ROW: usize = 1024;

/// How many rows of the state a new row is gathered from, a part of each.
pub const PARENTS: usize = 4;

/// Batches of a layer: rows of one are computed at once, and replace older ones before the next begins.
pub const BATCHES: u32 = 32;

/// Rows that are drawn of a run.
pub const SAMPLES: usize = 16;

/// Cells of a drawn row that are computed again.
pub const CELLS: usize = 8;

/// Layers from which on all of the state is mixed so often that what was dropped costs more than keeping it.
pub const LAYERS_MIN: u32 = 8;

/// Most layers of a run.
pub const LAYERS_MAX: u32 = 65_535;

/// Most rows of a state: 128 GiB.
pub const ROWS_MAX: u32 = 1 << 27;
