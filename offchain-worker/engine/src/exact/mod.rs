//! Models of the exact tier: quantized weights, canonical arithmetic, the same bits on every device.
//!
//! The published float weights are converted once; what is served, hashed and disputed is the converted file.

mod backend;
mod batch;
mod bert;
mod calibrate;
mod dispute;
mod embed;
mod generate;
mod kv;
mod llama;
mod pass;
mod passes;
mod probe;
mod recheck;
mod sampler;
mod teacher_forced;
mod trace;

pub(crate) use backend::Fault;
pub use backend::{Choice, ChoiceError, Device, Devices, Dropped, Patience};
pub use batch::SequenceBytes;
pub(crate) use batch::{Computed, Generated, Generating, Request, StepMemory, Turn};
pub use bert::{BertModel, Scratch};
pub use calibrate::ExactCalibrator;
pub use dispute::OwnTrace;
pub use embed::ExactBert;
pub use generate::ExactLlama;
pub use llama::{LlamaModel, Sequence};
pub use passes::DecoderPasses;
pub use probe::Probe;
pub(crate) use recheck::random_below;
/// Fast kernels, equal to `surety-exact` bit for bit.
pub use surety_kernels as kernels;
/// The steps that a [`Probe`] sees.
pub use surety_model_trace::{Op, Step};
pub use trace::TopLevel;

use std::sync::Arc;

use surety_models::{ModelFiles, format};

use crate::{engine::Engine, error::EngineError};

/// Makes the engine of a model of this tier, on devices.
pub(crate) fn open(files: ModelFiles, devices: &Devices) -> Result<Arc<dyn Engine>, EngineError> {
    let weights = format::read(files.weights, &files.config, files.manifest.family)?;
    Ok(match weights {
        format::Weights::Bert(weights) => Arc::new(ExactBert::new(files.manifest, weights)?.on(devices)?),
        format::Weights::Llama(weights) => Arc::new(ExactLlama::new(files.manifest, weights)?.on(devices)?),
    })
}
