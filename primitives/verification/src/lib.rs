#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

mod agreement;
pub mod audit;
pub mod bisection;
pub mod cells;
mod commitment;
pub mod committee;
mod content;
pub mod dispute;
mod merkle;
mod opening;
mod proof;
mod sampling;
pub mod snowflake;
mod statement;
mod trace;
mod weight;

pub use agreement::{agreement, majority, Agreement};
pub use commitment::commitment;
pub use content::content_hash;
pub use merkle::{leaf_hash, merkle_root};
pub use opening::{CellOpening, RowOpening, Segment, SegmentOpening, WeightOpening};
pub use proof::{Proof, DEPTH_MAX};
pub use sampling::sampling_random;
pub use statement::{CommitStatement, SignedStatement};
pub use trace::{
    row_digest, rows_digest, segment_hashes, segments, stride_for, TraceShape, CHUNK_ROWS, SEGMENT_BYTES,
    STRIDE_WIDTH,
};
pub use weight::weight_row_leaf;
