//! Text generation on the exact tier, and its audit.

use std::sync::Arc;

use surety_exact::ArithmeticError;
use surety_model_trace::{Layout, Prompt, Rows, TaskFacts, prompt_tokens};
use surety_models::{Form, ModelError, tokens::Prompts, units_max, weights::LlamaWeights};
use surety_proofs::content_hash;
use surety_types::{
    ContentHash,
    model::{Architecture, ModelManifest, Operation},
    task::ResultClaim,
};

use super::{
    dispute::{GenerateWork, OwnTrace},
    llama::{LlamaModel, Sequence},
    probe::Probe,
    sampler::Sampler,
    text::TextStream,
    trace::{GenerationLeaves, TopLevel},
};
use crate::{
    engine::{Engine, Event, Job, Outcome, Sink, report},
    error::EngineError,
    generation::{FinishReason, Generation, Request, RequestError},
    trace::claim,
};

/// A decoder of the exact tier.
pub struct ExactLlama {
    manifest: ModelManifest,
    architecture: Architecture,
    /// A longer sequence could not be disputed.
    pub(super) context: u32,
    pub(super) model: LlamaModel,
    pub(super) prompts: Prompts,
}

/// A request that can be served.
pub(super) struct Task {
    pub(super) request: Request,
    pub(super) prompt: Vec<u32>,
    /// Content hash of the input blob: what the random numbers come from, with the seed.
    pub(super) input: ContentHash,
    pub(super) units_max: u32,
}

impl Task {
    /// What the first leaf of a trace records: how tokens are chosen, and the prompt's.
    pub(super) fn token_rows(&self, output_bytes: u32, units: u32) -> Rows {
        let prompt = Prompt {
            tokens: &self.prompt,
            output_bytes,
            temperature_milli: self.request.temperature_milli,
            top_k: self.request.top_k,
            top_p_milli: self.request.top_p_milli,
            seed: self.request.seed,
        };
        prompt_tokens(&prompt, units)
    }

    /// For each position the token that is chosen there, given those of the continuation.
    pub(super) fn choices(&self, chosen: &[u32]) -> Vec<u32> {
        let mut choices = vec![0; self.prompt.len().saturating_sub(1)];
        choices.extend_from_slice(chosen);
        choices
    }
}

impl ExactLlama {
    /// Makes an engine of weights that have been checked, and of `tokenizer.json`.
    ///
    /// # Errors
    /// [`ModelError`] when they do not fit together.
    pub fn new(manifest: ModelManifest, weights: LlamaWeights, tokenizer: &[u8]) -> Result<Self, ModelError> {
        let checked = weights.check(&manifest);
        let model = LlamaModel::new(weights)
            .map_err(|_| ModelError::Malformed("its tensors do not fit together".into()))?;
        let architecture = checked?;
        Ok(Self {
            context: units_max(&manifest, &architecture, count(model.context()))?,
            architecture,
            manifest,
            prompts: Prompts::load(tokenizer, model.vocabulary())?,
            model,
        })
    }

    /// Reads a job's input. Every provider refuses the same ones.
    pub(super) fn task(&self, job: &Job) -> Result<Task, EngineError> {
        if job.operation != Operation::Generate || !self.manifest.operations.contains(&job.operation) {
            return Err(EngineError::OperationNotOffered(job.operation));
        }
        let request = Request::decode(&job.input)?;
        let tokens = self
            .prompts
            .encode(&request.prompt)
            .map_err(EngineError::Compute)?;
        let (prompt, max_tokens) = (count(tokens.len()), request.max_tokens);
        let (context, units_max) = (self.context, job.units_max);
        if prompt == 0 {
            return Err(RequestError::NoTokens.into());
        }
        if prompt.saturating_add(max_tokens) > context {
            return Err(RequestError::ContextExceeded {
                prompt,
                max_tokens,
                context,
            }
            .into());
        }
        if prompt.saturating_add(max_tokens) > units_max {
            return Err(RequestError::Unpaid {
                prompt,
                max_tokens,
                units_max,
            }
            .into());
        }
        Ok(Task {
            request,
            prompt: tokens,
            input: content_hash(&job.input),
            units_max,
        })
    }

    /// Runs the prompt, then token after token.
    fn generate(&self, task: &Task, sink: &mut dyn Sink) -> Result<Outcome, EngineError> {
        let prompt = count(task.prompt.len());
        let total = prompt.saturating_add(task.request.max_tokens);
        let mut sequence = Sequence::new(&self.model, total as usize);
        let mut trace = TopLevel::new(self.model.trace_shape());
        report(sink, 0, total)?;
        for chunk in task.prompt.chunks(self.model.chunk()) {
            self.forward(&mut sequence, chunk, &mut trace)?;
            report(sink, count(sequence.len()), total)?;
        }
        let mut sampler = Sampler::new(task);
        let mut stream = TextStream::new(&self.prompts);
        let (mut logits, mut tokens) = (Vec::new(), Vec::new());
        for index in 0..task.request.max_tokens {
            let last = sequence
                .states()
                .rchunks(self.model.width())
                .next()
                .unwrap_or_default();
            self.model
                .logits(last, &mut logits)
                .map_err(|fault| failed(prompt, fault))?;
            let token = sampler
                .token(index, &logits)
                .map_err(|fault| failed(prompt, fault))?;
            tokens.push(token);
            let ends = index + 1 == task.request.max_tokens || self.model.end_tokens().contains(&token);
            let text = stream.push(token, ends).map_err(EngineError::Compute)?;
            told(sink, Event::Token { index, token, text })?;
            report(sink, prompt + index + 1, total)?;
            if ends {
                break;
            }
            self.forward(&mut sequence, &[token], &mut trace)?;
        }
        let units = count(task.prompt.len() + tokens.len());
        let output = self.generation(task, &tokens)?.encode();
        let output_hash = content_hash(&output);
        let leaves = GenerationLeaves {
            tokens: task.token_rows(count(output.len()), units),
            states: &trace,
            choices: &task.choices(&tokens),
            output: output_hash,
        };
        let claim = claim(output_hash, leaves.all().into_iter(), units);
        Ok(Outcome { output, claim })
    }

    fn generation(&self, task: &Task, tokens: &[u32]) -> Result<Generation, EngineError> {
        Ok(Generation {
            text: self.prompts.decode(tokens).map_err(EngineError::Compute)?,
            prompt_tokens: count(task.prompt.len()),
            finish_reason: self.finish_reason(tokens),
            tokens: tokens.to_vec(),
        })
    }

    /// Why a continuation of these tokens ended, if they are all.
    pub(super) fn finish_reason(&self, tokens: &[u32]) -> FinishReason {
        if tokens
            .last()
            .is_some_and(|token| self.model.end_tokens().contains(token))
        {
            FinishReason::Stop
        } else {
            FinishReason::Length
        }
    }

    pub(super) fn forward(
        &self,
        sequence: &mut Sequence,
        tokens: &[u32],
        probe: &mut impl Probe,
    ) -> Result<(), EngineError> {
        let first = count(sequence.len());
        self.model
            .forward(sequence, tokens, probe)
            .map_err(|fault| failed(first, fault))
    }
}

impl Engine for ExactLlama {
    fn manifest(&self) -> &ModelManifest {
        &self.manifest
    }

    fn run(&self, job: &Job, sink: &mut dyn Sink) -> Result<Outcome, EngineError> {
        let task = self.task(job)?;
        self.generate(&task, sink)
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
        output: Vec<u8>,
        units: u32,
        sink: Box<dyn Sink + Send>,
    ) -> Result<OwnTrace, EngineError> {
        let task = self.task(&job)?;
        let facts = TaskFacts {
            family: self.manifest.family,
            operation: job.operation,
            input: task.input,
            units,
            output: content_hash(&output),
        };
        let layout = Layout::new(&self.architecture, facts)?;
        let work = GenerateWork::new(self, task, output, units)?;
        Ok(OwnTrace::new(layout, Box::new(work), sink))
    }
}

fn told(sink: &mut dyn Sink, event: Event) -> Result<(), EngineError> {
    if sink.event(event).is_break() {
        Err(EngineError::Cancelled)
    } else {
        Ok(())
    }
}

pub(super) fn failed(position: u32, fault: ArithmeticError) -> EngineError {
    match fault {
        ArithmeticError::Shape => EngineError::Compute("the tokens do not fit the model".into()),
        ArithmeticError::NotFinite | ArithmeticError::ZeroNorm => EngineError::NotFinite { item: position },
    }
}

/// Positions: bounded by the context, so nothing is ever cut off.
pub(super) fn count(positions: usize) -> u32 {
    u32::try_from(positions).unwrap_or(u32::MAX)
}
