//! What every engine is: a job goes in, a blob and a claim come out.

use std::{ops::ControlFlow, sync::Arc};

use surety_models::ModelFiles;
use surety_types::{
    ContentHash,
    model::{ModelFamily, ModelManifest, Operation, Tier},
    task::ResultClaim,
    trust::ItemsFound,
};

use crate::{
    bert::BertEngine,
    error::EngineError,
    exact::{self, OwnTrace},
};

/// What is to be computed.
#[derive(Clone, Debug)]
pub struct Job {
    /// What to do with the input.
    pub operation: Operation,
    /// The input blob. Its hash has been checked by whoever fetched it.
    pub input: Vec<u8>,
    /// Most units the client pays for. More in the input is an error: a claim above it is refused by the
    /// chain.
    pub units_max: u32,
}

/// A finished job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The output blob: safetensors, or the words, tokens and text of a generation.
    pub output: Vec<u8>,
    /// What the provider may say of it on chain: the blob's hash, the trace's root, the units done.
    pub claim: ResultClaim,
}

/// What was found of some items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundItems {
    /// As it is sealed and opened.
    pub found: ItemsFound,
    /// Which items.
    pub items: Vec<u32>,
}

/// What an engine tells while it works. Long operations add their own kinds: a generation its tokens, a
/// training its checkpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Part of the work is done.
    Progress {
        /// Units done.
        done: u32,
        /// Units in the input.
        total: u32,
    },
    /// A generation's next token.
    Token {
        /// Which token of the continuation, from 0.
        index: u32,
        /// Its number in the vocabulary.
        token: u32,
        /// What it adds to the text; empty while a character is not complete.
        text: String,
    },
}

/// Where an engine's events go. The answer says whether to go on, so an engine that reports often can be
/// stopped soon.
pub trait Sink {
    /// Takes an event. `Break` makes the engine return [`EngineError::Cancelled`].
    fn event(&mut self, event: Event) -> ControlFlow<()>;
}

impl<F: FnMut(Event) -> ControlFlow<()>> Sink for F {
    fn event(&mut self, event: Event) -> ControlFlow<()> {
        self(event)
    }
}

/// One loaded model, ready to run jobs.
///
/// `run` blocks for as long as the computation takes; [`crate::EnginePool`] keeps it off the async threads.
/// It runs inside a rayon pool of the configured size, and an engine starts no threads of its own. The
/// outcome depends on the model and the job alone.
pub trait Engine: Send + Sync {
    /// Everything that fixes this model's answers.
    fn manifest(&self) -> &ModelManifest;

    /// Runs one job to its end.
    fn run(&self, job: &Job, sink: &mut dyn Sink) -> Result<Outcome, EngineError>;

    /// The own claim about a job of which somebody has given an output. It equals that of [`Engine::run`] if
    /// the output is the right one. If not, it differs from any claim that can be made with that output: the
    /// first difference between the two traces is a number that is wrong, while all that it was computed from
    /// is agreed.
    ///
    /// Where less than running the job again tells so, less is done.
    ///
    /// # Errors
    /// Those of `run`, and [`EngineError::Refuted`] for what has not the form of an output.
    fn audit(&self, job: &Job, output: &[u8], sink: &mut dyn Sink) -> Result<ResultClaim, EngineError> {
        let _ = output;
        self.run(job, sink).map(|outcome| outcome.claim)
    }

    /// What an auditor finds that computes some of a job's items: those that `choose` picks once it hears how
    /// many there are, in ascending order. Each comes out as it does among all others. Nothing where it picks
    /// none, or the operation has no items that can be computed alone.
    ///
    /// # Errors
    /// Those of `run`, of the items that were picked alone: what is wrong with others is not seen.
    fn audit_items(
        &self,
        job: &Job,
        choose: &dyn Fn(u32) -> Option<Vec<u32>>,
        sink: &mut dyn Sink,
    ) -> Result<Option<FoundItems>, EngineError> {
        let _ = (job, choose, sink);
        Ok(None)
    }

    /// Whether a claim has the same in all that was found, shown by the leaves of its trace and its output.
    fn shows_items(
        &self,
        own: &FoundItems,
        claim: &ResultClaim,
        leaves: &[ContentHash],
        output: &[u8],
    ) -> bool {
        let _ = (own, claim, leaves, output);
        false
    }

    /// The leaves under the trace root of [`Engine::audit`]'s claim, in their order.
    ///
    /// # Errors
    /// [`EngineError::NotTraced`] where a root is all there is; those of `audit`.
    fn leaves(&self, job: &Job, output: &[u8], sink: &mut dyn Sink) -> Result<Vec<ContentHash>, EngineError> {
        let _ = (job, output, sink);
        Err(EngineError::NotTraced)
    }

    /// The own view of the trace of somebody's claim, to defend or to challenge it. `units` and `output` are
    /// as claimed. The own claim is another where [`Engine::audit`] says so.
    ///
    /// Nothing is computed yet. What is computed later can be stopped through `sink`, as a job can.
    ///
    /// # Errors
    /// [`EngineError::NotTraced`] where a root is all there is, [`EngineError::Untraceable`] and
    /// [`EngineError::Refuted`] for a claim that can have no trace, the input's faults.
    fn trace(
        self: Arc<Self>,
        job: Job,
        output: Vec<u8>,
        units: u32,
        sink: Box<dyn Sink + Send>,
    ) -> Result<OwnTrace, EngineError> {
        let _ = (job, output, units, sink);
        Err(EngineError::NotTraced)
    }
}

/// Why an output is none, so that there is nothing to compare it with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refutation {
    /// Not an output of the operation.
    #[error("it has not the form of an output: {0}")]
    Malformed(String),
    /// No tokens, or more than the model has positions for or the client pays for.
    #[error("no answer to this input has {tokens} tokens")]
    Length {
        /// Tokens of the continuation.
        tokens: u32,
    },
}

pub(crate) fn report(sink: &mut dyn Sink, done: u32, total: u32) -> Result<(), EngineError> {
    if sink.event(Event::Progress { done, total }).is_break() {
        Err(EngineError::Cancelled)
    } else {
        Ok(())
    }
}

/// Makes the engine that the manifest asks for out of files that the store has checked.
pub fn open(files: ModelFiles) -> Result<Arc<dyn Engine>, EngineError> {
    match (files.manifest.family, files.manifest.tier) {
        (ModelFamily::Bert, Tier::HardwareClass) => Ok(Arc::new(BertEngine::load(files)?)),
        (_, Tier::Exact) => exact::open(files),
        (family, tier) => Err(EngineError::NoEngine { family, tier }),
    }
}
