#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

mod agreement;
pub mod audit;
pub mod bisection;
mod commitment;
mod merkle;
pub mod snowflake;

pub use agreement::{agreement, majority, Agreement};
pub use commitment::commitment;
pub use merkle::merkle_root;
