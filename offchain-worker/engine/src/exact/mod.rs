//! Models of the exact tier: int8 weights, canonical arithmetic, the same bits on every device.
//!
//! The published float weights are converted once; what is served, hashed and disputed is the converted file.

mod bert;
mod calibrate;
pub mod config;
pub mod convert;
pub mod format;
mod llama;
mod pass;
mod probe;
pub mod weights;

pub use bert::{BertModel, Scratch, TokensOf};
pub use calibrate::{calibrate_bert, calibrate_llama};
pub use llama::{LlamaModel, Sequence};
pub use probe::{Op, Probe, Step};
/// Fast kernels, equal to `surety-exact` bit for bit.
pub use surety_kernels as kernels;
