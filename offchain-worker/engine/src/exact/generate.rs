//! Text generation on the exact tier, and its audit.

use surety_exact::{sample, Fault, Sampling};
use surety_types::{
    model::{ModelManifest, Operation},
    task::ResultClaim,
    ContentHash,
};

use super::{
    llama::{LlamaModel, Sequence},
    probe::{Blind, Probe},
    prompt::Prompts,
    text::TextStream,
    trace::{DeepRecorder, Opened, Shape, TopLevel},
    weights::LlamaWeights,
};
use crate::{
    engine::{report, Engine, Event, Job, Outcome, Refutation, Sink},
    error::EngineError,
    generation::{FinishReason, Generation, Request, RequestError},
    hash::content_hash,
    model_error::ModelError,
    trace::claim,
};

/// Rows of logits that are kept at a time: a large vocabulary's take megabytes.
const LOGIT_ROWS: usize = 16;

/// A decoder of the exact tier.
pub struct ExactLlama {
    manifest: ModelManifest,
    model: LlamaModel,
    prompts: Prompts,
    shape: Shape,
}

/// A request that can be served.
struct Task {
    request: Request,
    prompt: Vec<u32>,
    /// Hash of the input blob: what the random numbers come from, with the seed.
    input: ContentHash,
}

/// Chooses the tokens of a continuation.
struct Sampler {
    how: Sampling,
    input: ContentHash,
    seed: u64,
    order: Vec<u32>,
}

impl Sampler {
    fn new(task: &Task) -> Self {
        Self {
            how: task.request.sampling(),
            input: task.input,
            seed: task.request.seed,
            order: Vec::new(),
        }
    }

    /// Token `index` of the continuation.
    fn token(&mut self, index: u32, logits: &[f32]) -> Result<u32, Fault> {
        self.order.resize(logits.len(), 0);
        let random = sampling_random(&self.input, self.seed, index);
        sample(logits, &self.how, random, &mut self.order)
    }
}

fn sampling_random(input: &ContentHash, seed: u64, index: u32) -> u64 {
    let mut preimage = [0; 44];
    preimage[..32].copy_from_slice(input.as_bytes());
    preimage[32..40].copy_from_slice(&seed.to_le_bytes());
    preimage[40..].copy_from_slice(&index.to_le_bytes());
    let [a, b, c, d, e, f, g, h, ..] = content_hash(&preimage).0;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

impl ExactLlama {
    /// Makes an engine of weights that have been checked, and of `tokenizer.json`.
    ///
    /// # Errors
    /// [`ModelError`] when they do not fit together.
    pub fn new(manifest: ModelManifest, weights: LlamaWeights, tokenizer: &[u8]) -> Result<Self, ModelError> {
        let model = LlamaModel::new(weights)
            .map_err(|_| ModelError::Malformed("its tensors do not fit together".into()))?;
        Ok(Self {
            manifest,
            prompts: Prompts::load(tokenizer, model.vocabulary())?,
            shape: Shape::decoder(model.width(), model.kv_width(), model.layers()),
            model,
        })
    }

    /// Reads a job's input. Every provider refuses the same ones.
    fn task(&self, job: &Job) -> Result<Task, EngineError> {
        if job.operation != Operation::Generate || !self.manifest.operations.contains(&job.operation) {
            return Err(EngineError::OperationNotOffered(job.operation));
        }
        let request = Request::decode(&job.input)?;
        let tokens = self
            .prompts
            .encode(&request.prompt)
            .map_err(EngineError::Compute)?;
        let (prompt, max_tokens) = (count(tokens.len()), request.max_tokens);
        let (context, units_max) = (count(self.model.context()), job.units_max);
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
        })
    }

    /// Runs the prompt, then token after token.
    fn generate(&self, task: &Task, sink: &mut dyn Sink) -> Result<Outcome, EngineError> {
        let prompt = count(task.prompt.len());
        let total = prompt.saturating_add(task.request.max_tokens);
        let mut sequence = Sequence::new(&self.model, total as usize);
        let mut trace = TopLevel::new(self.shape);
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
        let output = self.generation(task, tokens)?.encode();
        let leaves = trace.leaves(&[sequence.len()]).concat();
        let claim = claim(&output, leaves.into_iter(), units);
        Ok(Outcome { output, claim })
    }

    fn generation(&self, task: &Task, tokens: Vec<u32>) -> Result<Generation, EngineError> {
        let stopped = tokens
            .last()
            .is_some_and(|token| self.model.end_tokens().contains(token));
        Ok(Generation {
            text: self.prompts.decode(&tokens).map_err(EngineError::Compute)?,
            prompt_tokens: count(task.prompt.len()),
            finish_reason: match stopped {
                true => FinishReason::Stop,
                false => FinishReason::Length,
            },
            tokens,
        })
    }

    fn forward(
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

    /// The tokens of an output that has the form of an answer to this task, whatever they are.
    fn claimed(&self, task: &Task, output: &[u8]) -> Result<Vec<u32>, EngineError> {
        let claimed = Generation::decode(output).map_err(|error| Refutation::Malformed(error.to_string()))?;
        let max = task.request.max_tokens;
        let (tokens, ends) = (claimed.tokens, self.model.end_tokens());
        let inner = tokens.len().saturating_sub(1);
        let early = tokens.iter().take(inner).any(|token| ends.contains(token));
        let ended = tokens.last().is_some_and(|token| ends.contains(token));
        let length = count(tokens.len());
        if early || length == 0 || length > max || (length < max && !ended) {
            return Err(Refutation::Length { tokens: length }.into());
        }
        if let Some(token) = tokens
            .iter()
            .find(|token| **token as usize >= self.model.vocabulary())
        {
            return Err(Refutation::UnknownToken { token: *token }.into());
        }
        // Text, number of tokens and reason follow from the tokens, and there is one way to write them.
        match self.generation(task, tokens.clone())?.encode() == output {
            true => Ok(tokens),
            false => Err(Refutation::Encoding.into()),
        }
    }

    /// One pass over prompt and continuation, in which every token is checked: the logits are all there at once.
    fn check(&self, job: &Job, output: &[u8], sink: &mut dyn Sink) -> Result<Checked, EngineError> {
        let task = self.task(job)?;
        let tokens = self.claimed(&task, output)?;
        let fed = fed(&task, &tokens);
        let (total, prompt) = (count(fed.len()), task.prompt.len());
        let mut sequence = Sequence::new(&self.model, fed.len());
        let mut trace = TopLevel::new(self.shape);
        let mut sampler = Sampler::new(&task);
        report(sink, 0, total)?;
        for chunk in fed.chunks(self.model.chunk()) {
            let first = sequence.len();
            self.forward(&mut sequence, chunk, &mut trace)?;
            // The first token was chosen at the prompt's last position.
            let from = (prompt - 1).max(first);
            let states = sequence.states().get((from - first) * self.model.width()..);
            let index = from + 1 - prompt;
            let (states, tokens) = (
                states.unwrap_or_default(),
                tokens.get(index..).unwrap_or_default(),
            );
            self.check_tokens(states, tokens, index, &mut sampler)?;
            report(sink, count(sequence.len()), total)?;
        }
        Ok(Checked {
            leaves: trace.leaves(&[fed.len()]).concat(),
            units: count(prompt + tokens.len()),
        })
    }

    /// One leaf's steps. The tokens are taken as they are: who opens a leaf stands by them.
    fn opened(
        &self,
        job: &Job,
        output: &[u8],
        leaf: u32,
        sink: &mut dyn Sink,
    ) -> Result<Opened, EngineError> {
        let task = self.task(job)?;
        let tokens = self.claimed(&task, output)?;
        let fed = fed(&task, &tokens);
        let strides = count(self.shape.strides());
        let (chunk, stride) = (leaf / strides, leaf % strides);
        let positions = self
            .shape
            .chunks(fed.len())
            .nth(chunk as usize)
            .ok_or(EngineError::NoLeaf { leaf })?;
        let (before, rest) = fed.split_at(positions.start);
        let mut sequence = Sequence::new(&self.model, positions.end);
        for chunk in before.chunks(self.model.chunk()) {
            report(sink, count(sequence.len()), count(positions.end))?;
            self.forward(&mut sequence, chunk, &mut Blind)?;
        }
        let mut steps = DeepRecorder::new(self.shape.layers_of(stride as usize));
        let own = rest.get(..positions.len()).unwrap_or_default();
        self.forward(&mut sequence, own, &mut steps)?;
        let positions = count(positions.start)..count(positions.end);
        Ok(steps.opened(&self.shape, 0, positions))
    }

    /// Whether the tokens are what these states lead to; the first of them is number `index`.
    fn check_tokens(
        &self,
        states: &[f32],
        tokens: &[u32],
        index: usize,
        sampler: &mut Sampler,
    ) -> Result<(), EngineError> {
        let mut logits = Vec::new();
        let mut places = (count(index)..).zip(tokens);
        for states in states.chunks(LOGIT_ROWS * self.model.width()) {
            self.model
                .logits(states, &mut logits)
                .map_err(|fault| failed(count(index), fault))?;
            for (row, (index, token)) in logits.chunks(self.model.vocabulary()).zip(&mut places) {
                let expected = sampler.token(index, row).map_err(|fault| failed(index, fault))?;
                if expected != *token {
                    return Err(Refutation::Token {
                        index,
                        claimed: *token,
                        expected,
                    }
                    .into());
                }
            }
        }
        Ok(())
    }
}

/// What a checked output's claim is made of.
struct Checked {
    leaves: Vec<ContentHash>,
    units: u32,
}

/// What goes through the model: the last token of a continuation was never fed back.
fn fed(task: &Task, tokens: &[u32]) -> Vec<u32> {
    let continuation = tokens.iter().take(tokens.len().saturating_sub(1));
    task.prompt.iter().chain(continuation).copied().collect()
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
        let checked = self.check(job, output, sink)?;
        Ok(claim(output, checked.leaves.into_iter(), checked.units))
    }

    fn leaves(&self, job: &Job, output: &[u8], sink: &mut dyn Sink) -> Result<Vec<ContentHash>, EngineError> {
        self.check(job, output, sink).map(|checked| checked.leaves)
    }

    fn open_leaf(
        &self,
        job: &Job,
        output: &[u8],
        leaf: u32,
        sink: &mut dyn Sink,
    ) -> Result<Opened, EngineError> {
        self.opened(job, output, leaf, sink)
    }
}

fn told(sink: &mut dyn Sink, event: Event) -> Result<(), EngineError> {
    match sink.event(event).is_break() {
        true => Err(EngineError::Cancelled),
        false => Ok(()),
    }
}

fn failed(position: u32, fault: Fault) -> EngineError {
    match fault {
        Fault::Shape => EngineError::Compute("the tokens do not fit the model".into()),
        Fault::NotFinite | Fault::ZeroNorm => EngineError::NotFinite { item: position },
    }
}

/// Positions: bounded by the context, so nothing is ever cut off.
fn count(positions: usize) -> u32 {
    u32::try_from(positions).unwrap_or(u32::MAX)
}
