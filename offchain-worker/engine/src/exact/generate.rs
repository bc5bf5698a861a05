//! Text generation on the exact tier, and its audit.

use std::{sync::Arc, time::Duration};

use surety_exact::ArithmeticError;
use surety_model_trace::{Layout, TaskFacts};
use surety_models::{Form, ModelError, smallest, weights::LlamaWeights};
use surety_proofs::content_hash;
use surety_types::{
    ContentHash,
    input::{IdBounds, InputReader, Settings},
    model::{Architecture, ModelManifest, Operation},
    task::ResultClaim,
};

use super::{
    backend::{Copies, Decoder, Devices, Fault, Runs},
    dispute::{GenerateWork, OwnTrace},
    kv::{KvCache, Piece},
    llama::{LlamaModel, Sequence},
    probe::Probe,
    recheck::{Found, decoders},
    sampler::Sampler,
    trace::{GenerationLeaves, TopLevel},
};
use crate::{
    engine::{Claimed, Engine, Event, Job, Outcome, Sink, report},
    error::EngineError,
    generation::{FinishReason, Generation},
    trace::claim,
};

/// A decoder of the exact tier.
pub struct ExactLlama {
    manifest: ModelManifest,
    architecture: Architecture,
    pub(super) model: Arc<LlamaModel>,
    /// On devices, where there are any.
    copies: Copies<dyn Decoder>,
}

/// A request, read.
pub(super) struct Task {
    pub(super) settings: Settings,
    pub(super) prompt: Vec<u32>,
    /// The input blob, the first leaf of every trace.
    pub(super) blob: Vec<u8>,
    /// Its content hash: what the random numbers come from, with the seed.
    pub(super) input: ContentHash,
    pub(super) units_max: u32,
    /// Most tokens that there is room for.
    pub(super) room: u32,
}

impl Task {
    /// Tokens that are added unless one of them ends the continuation.
    pub(super) fn most(&self) -> u32 {
        self.settings.new_tokens(self.room)
    }

    /// For each position the token that is chosen there, given those of the continuation.
    pub(super) fn choices(&self, chosen: &[u32]) -> Vec<u32> {
        let mut choices = vec![0; self.prompt.len().saturating_sub(1)];
        choices.extend_from_slice(chosen);
        choices
    }
}

impl ExactLlama {
    /// Makes an engine of weights that have been checked.
    ///
    /// # Errors
    /// [`ModelError`] when they do not fit together.
    pub fn new(manifest: ModelManifest, weights: LlamaWeights) -> Result<Self, ModelError> {
        let checked = weights.check(&manifest);
        let model = LlamaModel::new(weights)
            .map_err(|_| ModelError::Malformed("its tensors do not fit together".into()))?;
        let architecture = checked?;
        smallest(&manifest, &architecture)?;
        let model = Arc::new(model);
        Ok(Self {
            architecture,
            manifest,
            model,
            copies: Copies::default(),
        })
    }

    /// The same on devices: on those that give this model's numbers.
    ///
    /// # Errors
    /// [`EngineError::Device`], [`EngineError::DeviceDiffers`], where none of them can be used, or one has
    /// too little memory.
    pub fn on(self, devices: &Devices) -> Result<Self, EngineError> {
        Ok(Self {
            copies: decoders(&self.model, devices)?,
            ..self
        })
    }

    /// Whether what begins now is on a device.
    pub(crate) fn is_on_device(&self) -> bool {
        self.copies.count() > 0
    }

    /// Whether who is at a pass for so long may wait for a device that does not answer.
    pub(crate) fn may_wait(&self, time: Duration) -> bool {
        self.copies.may_keep(time)
    }

    /// What a new sequence runs on.
    pub(super) fn runs(&self) -> Runs<'_, dyn Decoder> {
        self.copies.next(&*self.model)
    }

    /// What those run on that share their steps.
    pub(super) fn runs_together(&self) -> &dyn Decoder {
        self.copies.first(&*self.model)
    }

    /// What a sequence with these keys and values runs on: it stays where it began.
    pub(super) fn runs_of(&self, kv: &KvCache) -> &dyn Decoder {
        let device = kv.device().and_then(|device| self.copies.on(device));
        device.unwrap_or(&*self.model)
    }

    /// Computes something with new sequences. That a device has no result for it is told once the processor
    /// has none either.
    pub(super) fn computed<T>(
        &self,
        mut compute: impl FnMut(&dyn Decoder) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let on = self.runs();
        let result = compute(&*on);
        match (result, on.standing()) {
            (Err(EngineError::NotFinite { .. }), Some(device)) => {
                let own = compute(&*self.model)?;
                // The processor has one.
                device.differs();
                Ok(own)
            }
            (result, _) => result,
        }
    }

    /// Reads a job's input. Every provider refuses the same ones, and no chain takes them.
    pub(super) fn task(&self, job: &Job) -> Result<Task, EngineError> {
        if job.operation != Operation::Generate || !self.manifest.operations.contains(&job.operation) {
            return Err(EngineError::OperationNotOffered(job.operation));
        }
        let bounds = IdBounds {
            vocabulary: self.architecture.vocabulary,
            positions: self.architecture.positions,
        };
        let reader = InputReader::new(&job.input, bounds);
        let mut task = Task {
            settings: reader.settings(),
            prompt: reader.prompt(),
            blob: job.input.clone(),
            input: content_hash(&job.input),
            units_max: job.units_max,
            room: 0,
        };
        // As long as a claim can be.
        let units = job.units_max.min(bounds.positions);
        let layout = Layout::new(&self.architecture, self.facts(&task, units, ContentHash::zero()))?;
        task.room = layout.room();
        Ok(task)
    }

    /// What a claim about a task with this output is about.
    fn facts(&self, task: &Task, units: u32, output: ContentHash) -> TaskFacts {
        TaskFacts {
            family: self.manifest.family,
            operation: Operation::Generate,
            input: task.input,
            input_bytes: u32::try_from(task.blob.len()).unwrap_or(u32::MAX),
            units_max: task.units_max,
            stop: self.manifest.text.stop.clone(),
            units,
            output,
        }
    }

    /// Whether a token ends a continuation.
    pub(super) fn ends(&self, token: u32) -> bool {
        self.manifest.text.stop.contains(&token)
    }

    /// Runs the prompt, then token after token.
    fn generate(&self, on: &dyn Decoder, task: &Task, sink: &mut dyn Sink) -> Result<Outcome, EngineError> {
        let prompt = count(task.prompt.len());
        let total = prompt.saturating_add(task.most());
        let mut sequence = Sequence::behind(&self.model, on.kv(total as usize));
        let mut trace = TopLevel::new(self.model.trace_shape());
        report(sink, 0, total)?;
        let sampler = Sampler::new(task);
        let chooses = on.chooses() && sampler.is_greedy();
        let mut chosen = None;
        for chunk in task.prompt.chunks(on.chunk_rows()) {
            let is_last = sequence.len() + chunk.len() == task.prompt.len();
            chosen = self.forward_to_choice(&mut sequence, chunk, chooses && is_last, &mut trace)?;
            report(sink, count(sequence.len()), total)?;
        }
        let (mut logits, mut order, mut tokens) = (Vec::new(), Vec::new(), Vec::new());
        for index in 0..task.most() {
            let token = match chosen {
                Some(token) => token,
                None => {
                    let found = on.logits(sequence.states(), &mut logits);
                    let found = found.and_then(|()| Ok(sampler.token(index, &logits, &mut order)?));
                    found.map_err(|fault| failed(prompt, fault))?
                }
            };
            tokens.push(token);
            told(sink, Event::Token { index, token })?;
            report(sink, prompt + index + 1, total)?;
            if self.ends(token) || index + 1 == task.most() {
                break;
            }
            chosen = self.forward_to_choice(&mut sequence, &[token], chooses, &mut trace)?;
        }
        let fed: Vec<u32> = task.prompt.iter().chain(&tokens).copied().collect();
        let fed = fed.get(..sequence.len()).unwrap_or_default();
        self.recheck(&Found {
            task,
            kv: sequence.kv(),
            fed,
            trace: &trace,
            chosen: &tokens,
        })?;
        let ended = tokens.last().is_some_and(|token| self.ends(*token));
        let finish_reason = if ended {
            FinishReason::Stop
        } else {
            FinishReason::Length
        };
        let generation = Generation {
            tokens,
            finish_reason,
        };
        Ok(outcome(task, &generation, &trace))
    }

    /// Adds tokens to a sequence: the likeliest one behind them, if the pass `chooses`, or the sequence has
    /// the last one's state then. Where that is the fault, a pass that does not choose tells at which token.
    fn forward_to_choice(
        &self,
        sequence: &mut Sequence,
        tokens: &[u32],
        chooses: bool,
        probe: &mut impl Probe,
    ) -> Result<Option<u32>, EngineError> {
        if chooses {
            let first = count(sequence.len());
            match self.add_piece(sequence, tokens, (0, true), probe) {
                Ok(()) => return Ok(sequence.parts().1.chosen().first().copied()),
                Err(Fault::Arithmetic(_)) => (),
                Err(fault) => return Err(failed(first, fault)),
            }
        }
        self.forward(sequence, tokens, 1, probe)?;
        Ok(None)
    }

    /// Adds tokens to a sequence, which has the states of so many of the last ones then.
    pub(super) fn forward(
        &self,
        sequence: &mut Sequence,
        tokens: &[u32],
        states: usize,
        probe: &mut impl Probe,
    ) -> Result<(), EngineError> {
        let first = count(sequence.len());
        self.add_piece(sequence, tokens, (states, false), probe)
            .map_err(|fault| failed(first, fault))
    }

    fn add_piece(
        &self,
        sequence: &mut Sequence,
        tokens: &[u32],
        (states, chooses): (usize, bool),
        probe: &mut impl Probe,
    ) -> Result<(), Fault> {
        let on = self.runs_of(sequence.kv());
        let (kv, workspace) = sequence.parts();
        let piece = Piece {
            kv,
            tokens,
            states,
            chooses,
        };
        on.forward_together(&mut [piece], workspace, probe)
    }
}

impl Engine for ExactLlama {
    fn manifest(&self) -> &ModelManifest {
        &self.manifest
    }

    fn run(&self, job: &Job, sink: &mut dyn Sink) -> Result<Outcome, EngineError> {
        let task = self.task(job)?;
        self.computed(|on| self.generate(on, &task, sink))
    }

    fn audit(&self, job: &Job, output: &[u8], sink: &mut dyn Sink) -> Result<ResultClaim, EngineError> {
        let task = self.task(job)?;
        let own = self.teacher_forced(&task, output, None, sink)?;
        Ok(claim(own.output_hash, own.leaves.into_iter(), own.units))
    }

    fn leaves(&self, job: &Job, output: &[u8], sink: &mut dyn Sink) -> Result<Vec<ContentHash>, EngineError> {
        let task = self.task(job)?;
        self.teacher_forced(&task, output, None, sink)
            .map(|own| own.leaves)
    }

    fn trace(
        self: Arc<Self>,
        job: Job,
        claimed: Claimed,
        sink: Box<dyn Sink + Send>,
    ) -> Result<OwnTrace, EngineError> {
        let task = self.task(&job)?;
        let facts = self.facts(&task, claimed.units, claimed.output);
        let layout = Layout::new(&self.architecture, facts)?;
        let work = GenerateWork::new(self, task, &claimed.bytes, claimed.units)?;
        let leaves = claimed.known.map(|known| known.leaves);
        Ok(OwnTrace::new(layout, Box::new(work), sink, leaves))
    }

    /// On the processor: whoever signs tokens as they come stands by each of them.
    fn decoder(self: Arc<Self>) -> Option<Arc<ExactLlama>> {
        if self.copies.is_empty() {
            return Some(self);
        }
        Some(Arc::new(Self {
            manifest: self.manifest.clone(),
            architecture: self.architecture.clone(),
            model: self.model.clone(),
            copies: Copies::default(),
        }))
    }

    fn decoder_on_devices(self: Arc<Self>) -> Option<Arc<ExactLlama>> {
        Some(self)
    }
}

/// What a continuation comes to, of whose states, or of more, this is the trace.
pub(super) fn outcome(task: &Task, generation: &Generation, trace: &TopLevel) -> Outcome {
    let output = generation.encode();
    let output_hash = content_hash(&output);
    let leaves = GenerationLeaves {
        input: task.input,
        states: trace,
        choices: &task.choices(&generation.tokens),
        output: output_hash,
    };
    let leaves = leaves.all();
    let units = count(task.prompt.len() + generation.tokens.len());
    Outcome {
        claim: claim(output_hash, leaves.iter().copied(), units),
        output,
        leaves,
    }
}

fn told(sink: &mut dyn Sink, event: Event) -> Result<(), EngineError> {
    if sink.event(event).is_break() {
        Err(EngineError::Cancelled)
    } else {
        Ok(())
    }
}

pub(super) fn failed(position: u32, fault: impl Into<Fault>) -> EngineError {
    match fault.into() {
        Fault::Arithmetic(ArithmeticError::Shape) => {
            EngineError::Compute("the tokens do not fit the model".into())
        }
        Fault::Arithmetic(ArithmeticError::NotFinite | ArithmeticError::ZeroNorm) => {
            EngineError::NotFinite { item: position }
        }
        Fault::Device { device, error } => EngineError::Device { device, error },
    }
}

/// Positions: bounded by the context, so nothing is ever cut off.
pub(super) fn count(positions: usize) -> u32 {
    u32::try_from(positions).unwrap_or(u32::MAX)
}
