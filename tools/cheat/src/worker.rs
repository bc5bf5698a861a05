//! Where the decorators go.

use std::sync::Arc;

use surety_cli::assembly::{Assembly, WorkerParts};
use surety_engine::{Engine, EngineError, open};
use surety_models::ModelFiles;

use crate::{
    altering::{Alteration, AlteringEngine},
    args::{Cheat, CrashPoint},
    coarse::open_coarse,
    crashing::CrashingLog,
    deceiving::{Deceit, DeceivingCore},
    plane::BadPlane,
};

/// A worker that does one thing wrong, or dies at one point, or both.
pub struct BadWorker {
    pub cheat: Option<Cheat>,
    pub crash_at: Option<CrashPoint>,
}

impl Assembly for BadWorker {
    fn engine(&self, files: ModelFiles) -> Result<Arc<dyn Engine>, EngineError> {
        let alteration = match self.cheat {
            Some(Cheat::ModelSwap) => return open_coarse(files),
            Some(Cheat::AlteredOutput) => Alteration::Output,
            Some(Cheat::AlteredActivation) => Alteration::Activation,
            Some(Cheat::AlteredToken) => Alteration::Token,
            _ => return open(files),
        };
        Ok(Arc::new(AlteringEngine::new(open(files)?, alteration)))
    }

    fn worker(&self, mut parts: WorkerParts) -> WorkerParts {
        let deceit = match self.cheat {
            Some(Cheat::CopiedResult) => Some(Deceit::CopiedResult),
            Some(Cheat::CommitWithoutReveal) => Some(Deceit::CommitWithoutReveal),
            Some(Cheat::WithheldData) => Some(Deceit::WithheldData),
            Some(Cheat::Lazy) => Some(Deceit::Lazy),
            Some(Cheat::FalseChallenge) => Some(Deceit::FalseChallenge),
            _ => None,
        };
        if let Some(deceit) = deceit {
            parts.core = Box::new(DeceivingCore::new(parts.core, deceit, &parts.tools));
        }
        let withholds = self.cheat == Some(Cheat::WithheldData);
        let crashes = self.crash_at == Some(CrashPoint::MidGeneration);
        if withholds || crashes {
            let plane = parts.tools.plane;
            parts.tools.plane = Arc::new(BadPlane {
                plane,
                withholds,
                crashes,
            });
        }
        if let Some(point) = self.crash_at {
            parts.journal = Arc::new(CrashingLog::new(parts.journal, point));
        }
        parts
    }
}
