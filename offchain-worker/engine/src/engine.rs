//! What every engine is: a job goes in, a blob and a claim come out.

use std::{ops::ControlFlow, sync::Arc};

use surety_types::{
    model::{ModelFamily, ModelManifest, Operation, Tier},
    task::ResultClaim,
    ContentHash,
};

use crate::{
    bert::BertEngine,
    error::EngineError,
    exact::{self, Opened},
    store::ModelFiles,
};

/// What is to be computed.
#[derive(Clone, Debug)]
pub struct Job {
    /// What to do with the input.
    pub operation: Operation,
    /// The input blob. Its hash has been checked by whoever fetched it.
    pub input: Vec<u8>,
    /// Most units the client pays for. More in the input is an error: a claim above it is refused by the chain.
    pub units_max: u32,
}

/// What was computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The output blob.
    pub output: Vec<u8>,
    /// What the provider may say of it on chain: the blob's hash, the trace's root, the units done.
    pub claim: ResultClaim,
}

/// What an engine tells while it works. Long operations add their own kinds: a generation its tokens, a training its
/// checkpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// So much is done.
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
        /// The token.
        token: u32,
        /// What it adds to the text; empty while a character is not complete.
        text: String,
    },
}

/// Where an engine's events go. The answer says whether to go on, so an engine that reports often can be stopped soon.
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
/// `run` blocks for as long as the computation takes; [`crate::EnginePool`] keeps it off the async threads. It runs
/// inside a rayon pool of the configured size, and an engine starts no threads of its own. The outcome depends on the
/// model and the job alone.
pub trait Engine: Send + Sync {
    /// Everything that fixes this model's answers.
    fn manifest(&self) -> &ModelManifest;

    /// Runs one job to its end.
    fn run(&self, job: &Job, sink: &mut dyn Sink) -> Result<Outcome, EngineError>;

    /// Checks somebody's output. The claim equals that of [`Engine::run`] if and only if the output is its output,
    /// and no other output gives it; where less than running it all again tells so, less is done.
    ///
    /// # Errors
    /// Those of `run`, and [`EngineError::Refuted`] for an output that is shown to be wrong before there is a claim.
    fn audit(&self, job: &Job, output: &[u8], sink: &mut dyn Sink) -> Result<ResultClaim, EngineError> {
        let outcome = self.run(job, sink)?;
        match outcome.output == output {
            true => Ok(outcome.claim),
            false => Err(Refutation::Different.into()),
        }
    }

    /// The leaves under a result's trace root, in their order. `output` is what the job gave.
    ///
    /// # Errors
    /// [`EngineError::NotTraced`] where a root is all there is; those of `audit`.
    fn leaves(&self, job: &Job, output: &[u8], sink: &mut dyn Sink) -> Result<Vec<ContentHash>, EngineError> {
        let _ = (job, output, sink);
        Err(EngineError::NotTraced)
    }

    /// Recomputes one leaf with every step on the way to it. What came before its layers is computed too, but not
    /// given.
    ///
    /// # Errors
    /// [`EngineError::NoLeaf`], and those of [`Engine::leaves`].
    fn open_leaf(
        &self,
        job: &Job,
        output: &[u8],
        leaf: u32,
        sink: &mut dyn Sink,
    ) -> Result<Opened, EngineError> {
        let _ = (job, output, leaf, sink);
        Err(EngineError::NotTraced)
    }
}

/// How an audited output differs from the right one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refutation {
    /// Other bytes than running the job again gives.
    #[error("it is not what the job gives")]
    Different,
    /// Not an output of the operation.
    #[error("it has not the form of an output: {0}")]
    Malformed(String),
    /// Fewer or more tokens than there could be, or an end token before the end.
    #[error("a continuation of these {tokens} tokens would have ended elsewhere")]
    Length {
        /// How many there are.
        tokens: u32,
    },
    /// No token of this model.
    #[error("there is no token {token}")]
    UnknownToken {
        /// The token.
        token: u32,
    },
    /// Text, numbers or form are not those that go with the tokens.
    #[error("what is beside the tokens does not follow from them")]
    Encoding,
    /// Another token than the logits and the task's random numbers give.
    #[error("token {index} is {claimed}, but should be {expected}")]
    Token {
        /// Which token of the continuation, from 0.
        index: u32,
        /// As in the output.
        claimed: u32,
        /// As computed.
        expected: u32,
    },
}

pub(crate) fn report(sink: &mut dyn Sink, done: u32, total: u32) -> Result<(), EngineError> {
    match sink.event(Event::Progress { done, total }).is_break() {
        true => Err(EngineError::Cancelled),
        false => Ok(()),
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
