//! Ids, records and glue traits shared by the pallets, the runtime and the worker.
//!
//! Nothing here depends on FRAME: records are plain SCALE data, and the traits in [`traits`] are named for
//! what a pallet needs, not for the pallet that happens to provide it.

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

pub mod history;
pub mod input;
pub mod limits;
pub mod model;
pub mod multiaddr;
pub mod opening;
pub mod provider;
pub mod region;
pub mod speed;
pub mod stake;
pub mod task;
pub mod text;
pub mod traits;
pub mod trust;
pub mod view;

use sp_core::H256;

/// How bytes are named. A task's inputs and outputs by the Merkle root over their segments
/// (`surety_proofs::content_hash`), a model's files by `blake2_256` of all they hold.
pub type ContentHash = H256;

/// `blake2_256` of a SCALE-encoded [`model::ModelManifest`].
pub type ModelId = H256;

/// Seconds that the chain takes for a block; its clock goes on by one with each, while blocks become final.
pub const BLOCK_SECONDS: u32 = 2;

/// Tasks are numbered in the order in which they were posted, from 0.
pub type TaskId = u64;
