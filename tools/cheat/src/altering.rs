//! Results with one bit changed.

use std::{
    ops::ControlFlow,
    sync::{Arc, OnceLock},
};

use surety_engine::{Claimed, Engine, EngineError, Event, Job, Outcome, Sink, content_hash, exact::OwnTrace};
use surety_model_trace::{ClaimedOutput, Layout, Op, Part};
use surety_types::{ContentHash, model::ModelManifest, task::ResultClaim};

/// What is altered: of the trace, of the claim that stands on it, and with `Output` of what is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alteration {
    /// The lowest bit of the last number of the output.
    Output,
    /// One bit of one number in the middle of the model.
    Activation,
    /// What a token of the input is looked up as.
    Token,
}

/// Which results are altered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    All,
    /// Generations that end by their length: whoever asked takes any token for the last one of these.
    FullLength,
    /// Those of the first input for which an answer is audited that is right.
    First,
}

/// An engine whose results have one bit changed, and that stands by it in disputes.
pub struct AlteringEngine {
    engine: Arc<dyn Engine>,
    alteration: Alteration,
    of: Of,
    first: OnceLock<ContentHash>,
}

/// A leaf, a step, a row and a byte.
type Place = (u32, u32, u32, u32);

impl AlteringEngine {
    pub fn new(engine: Arc<dyn Engine>, alteration: Alteration, of: Of) -> Self {
        Self {
            engine,
            alteration,
            of,
            first: OnceLock::new(),
        }
    }

    /// Whether it is altered what a job with this output comes to.
    fn alters(&self, job: &Job, output: &[u8]) -> bool {
        match self.of {
            Of::All => true,
            Of::FullLength => output.first_chunk() == Some(&ClaimedOutput::LENGTH.to_le_bytes()),
            Of::First => self.first.get() == Some(&content_hash(&job.input)),
        }
    }

    fn place(&self, layout: &Layout, output_bytes: usize) -> Option<Place> {
        match self.alteration {
            Alteration::Output => {
                let byte = altered_byte(output_bytes)?;
                Some((layout.leaf_of(Part::Output)?, 0, 0, u32::try_from(byte).ok()?))
            }
            // The first step looks the first token up.
            Alteration::Token => Some((layout.leaf_of(first_chunk(0))?, 0, 0, 0)),
            Alteration::Activation => {
                let stride = layout.cut().strides() / 2;
                let leaf = layout.leaf_of(first_chunk(stride))?;
                let layer = layout.cut().layers_of(stride).start;
                // The numbers of steps do not depend on the length.
                let step = layout.plan(leaf, 1)?.number(layer, Op::Activation)?;
                Some((leaf, step, 0, 0))
            }
        }
    }

    fn altered(
        &self,
        mut trace: OwnTrace,
        output_bytes: usize,
    ) -> Result<(OwnTrace, ContentHash), EngineError> {
        let place = self.place(trace.layout(), output_bytes);
        let (leaf, step, row, byte) = place.ok_or(EngineError::NotInTrace)?;
        let root = trace.alter(leaf, step, row, byte)?;
        Ok((trace, root))
    }
}

/// Which byte of an output is changed: the lowest of its last number, of a generation that of its last token.
fn altered_byte(output_bytes: usize) -> Option<usize> {
    output_bytes.checked_sub(4)
}

const fn first_chunk(stride: u32) -> Part {
    Part::Rows {
        sequence: 0,
        chunk: 0,
        stride,
    }
}

fn silent() -> Box<dyn Sink + Send> {
    Box::new(|_: Event| ControlFlow::Continue(()))
}

impl Engine for AlteringEngine {
    fn manifest(&self) -> &ModelManifest {
        self.engine.manifest()
    }

    fn run(&self, job: &Job, sink: &mut dyn Sink) -> Result<Outcome, EngineError> {
        let outcome = self.engine.run(job, sink)?;
        if !self.alters(job, &outcome.output) {
            return Ok(outcome);
        }
        let Outcome {
            mut output, claim, ..
        } = outcome;
        if self.alteration == Alteration::Output {
            let byte = altered_byte(output.len()).and_then(|at| output.get_mut(at));
            *byte.ok_or(EngineError::NotInTrace)? ^= 1;
        }
        let bytes = output.len();
        let trace =
            self.engine
                .clone()
                .trace(job.clone(), Claimed::whole(output.clone(), claim.units), silent())?;
        let (_, trace_root) = self.altered(trace, bytes)?;
        let claim = ResultClaim {
            output: content_hash(&output),
            trace_root,
            units: claim.units,
        };
        // It shows nobody where it differs.
        Ok(Outcome {
            output,
            claim,
            leaves: Vec::new(),
        })
    }

    fn audit(&self, job: &Job, output: &[u8], sink: &mut dyn Sink) -> Result<ResultClaim, EngineError> {
        let claim = self.engine.audit(job, output, sink)?;
        // The worker tries how fast it is with outputs that are not right.
        if self.of == Of::First && claim.output == content_hash(output) {
            self.first.get_or_init(|| content_hash(&job.input));
        }
        match self.alters(job, output) {
            true => self.run(job, sink).map(|outcome| outcome.claim),
            false => Ok(claim),
        }
    }

    fn trace(
        self: Arc<Self>,
        job: Job,
        claimed: Claimed,
        sink: Box<dyn Sink + Send>,
    ) -> Result<OwnTrace, EngineError> {
        let alters = self.alters(&job, &claimed.bytes);
        let trace = self.engine.clone().trace(job, claimed, sink)?;
        if !alters {
            return Ok(trace);
        }
        let bytes = trace.layout().output_bytes() as usize;
        self.altered(trace, bytes).map(|(trace, _)| trace)
    }
}
