//! An engine that says when it computes, so that blocks can wait for it on a busy machine.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use surety_engine::{Claimed, Engine, EngineError, Job, Outcome, Sink, exact::OwnTrace};
use surety_types::{model::ModelManifest, task::ResultClaim, trust::ItemsFound};

/// How many computations there are just now.
#[derive(Clone, Default)]
pub struct Computing(Arc<AtomicU32>);

impl Computing {
    pub fn is_any(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }

    fn during<T>(&self, compute: impl FnOnce() -> T) -> T {
        self.0.fetch_add(1, Ordering::SeqCst);
        let computed = compute();
        self.0.fetch_sub(1, Ordering::SeqCst);
        computed
    }
}

pub struct Unhurried {
    pub engine: Arc<dyn Engine>,
    pub computing: Computing,
}

impl Engine for Unhurried {
    fn manifest(&self) -> &ModelManifest {
        self.engine.manifest()
    }

    fn run(&self, job: &Job, sink: &mut dyn Sink) -> Result<Outcome, EngineError> {
        self.computing.during(|| self.engine.run(job, sink))
    }

    fn audit(&self, job: &Job, output: &[u8], sink: &mut dyn Sink) -> Result<ResultClaim, EngineError> {
        self.computing.during(|| self.engine.audit(job, output, sink))
    }

    fn audit_items(&self, job: &Job, items: &[u32], sink: &mut dyn Sink) -> Result<ItemsFound, EngineError> {
        self.computing
            .during(|| self.engine.audit_items(job, items, sink))
    }

    fn trace(
        self: Arc<Self>,
        job: Job,
        claimed: Claimed,
        sink: Box<dyn Sink + Send>,
    ) -> Result<OwnTrace, EngineError> {
        self.engine.clone().trace(job, claimed, sink)
    }
}
