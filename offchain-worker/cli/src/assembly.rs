//! How a worker is put together: the one place where a program can stand between it and what it works with.
//!
//! `surety` takes every part [as it is](AsIs). Programs that show what comes of a worker that lies or dies
//! put decorators around single parts instead; see `tools/cheat`.

use std::sync::Arc;

use surety_engine::{Devices, Engine, EngineError, open_on};
use surety_host::{Core, Tools};
use surety_journal::RecordLog;
use surety_models::ModelFiles;
use surety_payer_calls::Config as PayerConfig;

/// What the loop of a provider or a verifier is made of.
pub struct WorkerParts {
    /// What effects need: chain, data plane, engines.
    pub tools: Tools,
    /// What decides.
    pub core: Box<dyn Core>,
    /// Where records are made durable before anything is done because of them.
    pub journal: Arc<dyn RecordLog>,
}

/// Puts workers together.
pub trait Assembly: Send + Sync {
    /// The engine of a model, on devices. Called in an engine's thread.
    ///
    /// # Errors
    /// When the files are not those of a model, or no device can have it.
    fn engine(&self, files: ModelFiles, devices: &Devices) -> Result<Arc<dyn Engine>, EngineError> {
        open_on(files, devices)
    }

    /// The worker, before it does anything.
    fn worker(&self, parts: WorkerParts) -> WorkerParts {
        parts
    }

    /// What pays for answers at once, before it does anything.
    fn payer(&self, config: PayerConfig) -> PayerConfig {
        config
    }
}

/// Every part as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct AsIs;

impl Assembly for AsIs {}
