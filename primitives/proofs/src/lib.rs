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

extern crate alloc;

mod commitment;
mod content;
mod merkle;
mod opening;
mod part;
mod proof;
mod rows;
mod statement;
#[cfg(feature = "std")]
mod tree;
mod weight;

pub use commitment::commitment;
pub use content::content_hash;
pub use merkle::{leaf_hash, merkle_root, node_hash};
pub use opening::{CellOpening, RowOpening, Segment, SegmentOpening, WeightOpening};
pub use part::{LEAF_BYTES, PART_BYTES, PART_SEGMENTS, PARTS_MAX, PartOpening, leaves_name, parts};
pub use proof::{DEPTH_MAX, Proof};
pub use rows::{SEGMENT_BYTES, row_digest, rows_digest, segment_hashes, segments};
pub use statement::{CommitStatement, SignedStatement};
#[cfg(feature = "std")]
pub use tree::Tree;
pub use weight::weight_row_leaf;
