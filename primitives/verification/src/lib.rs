#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

mod agreement;
pub mod audit;
pub mod bisection;
pub mod cells;
pub mod committee;
pub mod dispute;
mod sampling;
pub mod snowflake;
mod trace;

pub use agreement::{agreement, majority, Agreement};
pub use sampling::sampling_random;
pub use trace::{stride_for, TraceShape, CHUNK_ROWS, STRIDE_WIDTH};
