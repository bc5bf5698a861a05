#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

mod agreement;
mod commitment;
mod merkle;
mod weight;

pub use agreement::{agreement, majority, Agreement};
pub use commitment::commitment;
pub use merkle::merkle_root;
pub use weight::weight_row_leaf;
