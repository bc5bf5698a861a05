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

mod agreement;
pub mod bisection;
pub mod committee;
pub mod dispute;
pub mod quorum_streak;
#[cfg(any(test, feature = "testsuite"))]
pub mod testsuite;

pub use agreement::{Agreement, agreement, majority};
