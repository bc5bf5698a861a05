//! Where the decorators go.

use std::sync::Arc;

use surety_cli::assembly::{Assembly, WorkerParts};
use surety_engine::{Devices, Engine, EngineError, open, open_on};
use surety_models::ModelFiles;
use surety_payer_calls::Config as PayerConfig;

use crate::{
    altering::{Alteration, AlteringEngine, Of},
    args::{Cheat, CrashPoint},
    coarse::open_coarse,
    crashing::CrashingLog,
    deceiving::{Deceit, DeceivingCore},
    lines::{Replays, Standing},
    plane::{BadPlane, Faces, Serving},
    quiet::QuietChain,
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
            | Cheat::TwoFaced
            | Cheat::WrongToken
            | Cheat::OmittedReceipt
            | Cheat::DoubleReceipt
            | Cheat::SaysOther
            | Cheat::BreaksOff
            | Cheat::VoucherReplay
            | Cheat::FalseDispute
            | Cheat::UnpaidLastChunk => return None,
        })
    }
}

impl Assembly for BadWorker {
    fn engine(&self, files: ModelFiles, devices: &Devices) -> Result<Arc<dyn Engine>, EngineError> {
        let (alteration, of) = match self.cheat {
            Some(Cheat::ModelSwap) => return open_coarse(files),
            Some(Cheat::AlteredOutput | Cheat::WithheldOutput | Cheat::Crowding) => {
                (Alteration::Output, Of::All)
            }
            Some(Cheat::AlteredActivation) => (Alteration::Activation, Of::All),
            Some(Cheat::AlteredToken) => (Alteration::Token, Of::All),
            Some(Cheat::WrongToken) => (Alteration::Output, Of::FullLength),
            Some(Cheat::FalseDispute) => (Alteration::Output, Of::First),
            _ => return open_on(files, devices),
        };
        Ok(Arc::new(AlteringEngine::new(open(files)?, alteration, of)))
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
        let tools = &mut parts.tools;
        let lines = match self.cheat {
            Some(Cheat::DoubleReceipt) => Some(Standing::DoubleReceipt(
                Box::new(tools.signer.clone()),
                tools.chain.info().genesis,
            )),
            Some(Cheat::SaysOther) => Some(Standing::SaysOther(
                Box::new(tools.signer.clone()),
                tools.chain.info().genesis,
            )),
            Some(Cheat::BreaksOff) => Some(Standing::BreaksOff(
                Box::new(tools.signer.clone()),
                tools.chain.info().genesis,
            )),
            Some(Cheat::VoucherReplay) => Some(Standing::VoucherReplay(Arc::new(Replays::new(tools)))),
            _ => None,
        };
        if crashes || lines.is_some() || !matches!(serving, Serving::Honest) {
            let plane = BadPlane::new(tools.plane.clone(), serving, crashes);
            tools.plane = Arc::new(match lines {
                Some(lines) => plane.standing_on(lines),
                None => plane,
            });
        }
        if self.cheat == Some(Cheat::OmittedReceipt) {
            tools.chain = Arc::new(QuietChain(tools.chain.clone()));
        }
        if let Some(point) = self.crash_at {
            parts.journal = Arc::new(CrashingLog::new(parts.journal, point));
        }
        parts
    }

    fn payer(&self, mut config: PayerConfig) -> PayerConfig {
        if self.cheat == Some(Cheat::UnpaidLastChunk) {
            let plane = BadPlane::new(config.plane, Serving::Honest, false);
            config.plane = Arc::new(plane.standing_on(Standing::UnpaidLastChunk));
        }
        config
    }
}
