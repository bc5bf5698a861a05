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
    plane::{BadPlane, Faces, Serving},
};

/// A worker that does one thing wrong, or dies at one point, or both.
pub struct BadWorker {
    pub cheat: Option<Cheat>,
    pub crash_at: Option<CrashPoint>,
}

impl BadWorker {
    fn deceit(&self) -> Option<Deceit> {
        Some(match self.cheat? {
            Cheat::CopiedResult => Deceit::CopiedResult,
            Cheat::CommitWithoutReveal | Cheat::Abort => Deceit::OpensNothing,
            Cheat::WithheldData => Deceit::WithheldData,
            Cheat::WithheldOutput => Deceit::WithheldOutput,
            Cheat::Crowding => Deceit::Crowding,
            Cheat::Lazy => Deceit::Lazy,
            Cheat::FalseChallenge => Deceit::FalseChallenge,
            Cheat::AlteredOutput
            | Cheat::AlteredActivation
            | Cheat::AlteredToken
            | Cheat::ModelSwap
            | Cheat::TwoFaced => return None,
        })
    }
}

impl Assembly for BadWorker {
    fn engine(&self, files: ModelFiles) -> Result<Arc<dyn Engine>, EngineError> {
        let alteration = match self.cheat {
            Some(Cheat::ModelSwap) => return open_coarse(files),
            Some(Cheat::AlteredOutput | Cheat::WithheldOutput | Cheat::Crowding) => Alteration::Output,
            Some(Cheat::AlteredActivation) => Alteration::Activation,
            Some(Cheat::AlteredToken) => Alteration::Token,
            _ => return open(files),
        };
        Ok(Arc::new(AlteringEngine::new(open(files)?, alteration)))
    }

    fn worker(&self, mut parts: WorkerParts) -> WorkerParts {
        if let Some(deceit) = self.deceit() {
            parts.core = Box::new(DeceivingCore::new(parts.core, deceit, &parts.tools));
        }
        let serving = match self.cheat {
            Some(Cheat::WithheldData) => Serving::Lost,
            Some(Cheat::WithheldOutput) => Serving::Hidden,
            Some(Cheat::TwoFaced) => Serving::TwoFaced(Box::new(Faces::new(&parts.tools))),
            _ => Serving::Honest,
        };
        let crashes = self.crash_at == Some(CrashPoint::MidGeneration);
        if crashes || !matches!(serving, Serving::Honest) {
            parts.tools.plane = Arc::new(BadPlane::new(parts.tools.plane, serving, crashes));
        }
        if let Some(point) = self.crash_at {
            parts.journal = Arc::new(CrashingLog::new(parts.journal, point));
        }
        parts
    }
}
