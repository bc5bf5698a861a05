//! Why a job, or getting a model ready for one, failed.

use surety_model_trace::LayoutError;
use surety_models::{ModelError, StoreError};
use surety_types::{
    input::ShapeFault,
    model::{ModelFamily, Operation, Tier},
};

use crate::exact::Fault;

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The input has a size that no input of the task has. No chain takes such a task.
    #[error("the input cannot be used: {0}")]
    Input(#[from] ShapeFault),
    /// Results of this model cannot be opened: there is nothing below their trace's root.
    #[error("this engine's traces cannot be opened")]
    NotTraced,
    /// Nothing of this model's work can be computed without the rest.
    #[error("this engine computes no item alone")]
    NoItems,
    /// There is no such place in the trace.
    #[error("the trace has no such place")]
    NotInTrace,
    /// A claim that can have no trace: it is wrong. Of a task: no claim can have one.
    #[error("the claim can have no trace: {0}")]
    Untraceable(#[from] LayoutError),
    /// The model was not made for this.
    #[error("the model does not offer {0:?}")]
    OperationNotOffered(Operation),
    /// No engine in this build runs such a model.
    #[error("this build has no engine for {family:?} models of tier {tier:?}")]
    NoEngine {
        /// The manifest's family.
        family: ModelFamily,
        /// How its results compare.
        tier: Tier,
    },
    /// The model is not on this machine, or not as its manifest says.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The model's files have the right hashes, but make no working model.
    #[error("the model cannot be loaded: {0}")]
    Model(#[from] ModelError),
    /// The job was cancelled, or nobody waited for it any more.
    #[error("the job was cancelled")]
    Cancelled,
    /// NaN or infinity in a result: nothing that could be compared.
    #[error("item {item} gave a result that is not finite")]
    NotFinite {
        /// Index of the item, from 0.
        item: u32,
    },
    /// A result without direction: no weights make one by accident.
    #[error("item {item} gave the zero vector")]
    ZeroVector {
        /// Index of the item, from 0.
        item: u32,
    },
    /// A device cannot be used, or failed. No other machine need fail with it.
    #[error("the device {device} cannot be used: {error}")]
    Device {
        /// What a person knows it by.
        device: String,
        /// Why.
        error: surety_cuda::Error,
    },
    /// A device has computed something else than the processor does: nothing is claimed of it.
    #[error(
        "the device {device} gives other numbers than the processor: nothing that it computes can be claimed, \
         and it is used no more. Run the checks of docs/cuda.md, and choose others, or `cpu`, until they pass"
    )]
    DeviceDiffers {
        /// What a person knows it by.
        device: String,
    },
    /// The tensor library refused.
    #[error("inference failed: {0}")]
    Compute(String),
    /// A defect: the job panicked. The pool goes on.
    #[error("inference panicked: {0}")]
    Panicked(String),
    /// Too many jobs wait already.
    #[error("{limit} jobs are waiting already")]
    QueueFull {
        /// Most jobs of this priority that may wait.
        limit: usize,
    },
    /// The pool is being shut down.
    #[error("the engine pool is closed")]
    Closed,
    /// The inference threads could not be started.
    #[error("cannot start the inference threads: {0}")]
    Threads(String),
}

impl From<Fault> for EngineError {
    /// Of what is no job.
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Arithmetic(_) => Self::Compute("the model does not fit the device".into()),
            Fault::Device { device, error } => Self::Device { device, error },
        }
    }
}
