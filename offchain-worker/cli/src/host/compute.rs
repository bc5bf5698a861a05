//! Loaded models, and running jobs on them.

use std::{collections::BTreeMap, sync::Arc};

use surety_engine::{Engine, EngineError, EnginePool, Job, Outcome, Sink, Ticket};
use surety_types::ModelId;

/// The pool and the models that are loaded into it.
pub struct Engines {
    pool: EnginePool,
    loaded: BTreeMap<ModelId, Arc<dyn Engine>>,
}

impl Engines {
    /// Models that are ready to run.
    pub fn new(pool: EnginePool, loaded: impl IntoIterator<Item = Arc<dyn Engine>>) -> Self {
        let loaded = loaded.into_iter().map(|engine| (engine.manifest().id(), engine));
        Self {
            pool,
            loaded: loaded.collect(),
        }
    }

    /// A loaded model.
    pub(super) fn get(&self, model: &ModelId) -> Result<Arc<dyn Engine>, ComputeError> {
        self.loaded
            .get(model)
            .cloned()
            .ok_or(ComputeError::NotLoaded(*model))
    }

    /// Queues other work.
    pub(super) fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn Sink) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<Ticket<T>, ComputeError> {
        Ok(self.pool.work(work)?)
    }

    /// Queues one job.
    pub(super) fn submit(&self, model: &ModelId, job: Job) -> Result<Ticket<Outcome>, ComputeError> {
        Ok(self.pool.submit(self.get(model)?, job)?)
    }
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum ComputeError {
    /// Only possible after a restart with fewer models.
    #[error("model {0:?} is not loaded; start with its --model again to finish the task")]
    NotLoaded(ModelId),
    /// The engine's own reason.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl ComputeError {
    /// What its client is told: what is wrong with the input, and nothing of this machine.
    pub(super) fn for_client(&self) -> String {
        match self {
            Self::Engine(
                e @ (EngineError::Input(_) | EngineError::Request(_) | EngineError::OperationNotOffered(_)),
            ) => e.to_string(),
            _ => "the provider cannot compute it".into(),
        }
    }

    /// Whether trying again may help: not when the input is at fault, or the engine is the same as before.
    pub(super) fn is_retryable(&self) -> bool {
        match self {
            Self::NotLoaded(_) => false,
            Self::Engine(e) => matches!(
                e,
                EngineError::QueueFull { .. } | EngineError::Cancelled | EngineError::Closed
            ),
        }
    }
}
