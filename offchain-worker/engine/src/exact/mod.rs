//! The exact tier: results that are the same bits on every machine.

pub mod weights;

/// Fast kernels, equal to `surety-exact` bit for bit.
pub use surety_kernels as kernels;
