//! Models of the exact tier: int8 weights, canonical arithmetic, the same bits on every device.
//!
//! The published float weights are converted once; what is served, hashed and disputed is the converted file.

pub mod config;
pub mod convert;
pub mod format;
pub mod weights;

/// Fast kernels, equal to `surety-exact` bit for bit.
pub use surety_kernels as kernels;
