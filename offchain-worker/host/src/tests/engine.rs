//! An engine that does what tests want to see.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use surety_chain_client::Hash;
use surety_engine::{
    Engine, EngineError, Event, InputError, Job, Outcome, Sink, content_hash,
    generation::{FinishReason, Generation, Request, RequestError},
};
use surety_types::{
    ContentHash,
    model::{ModelFamily, ModelManifest, Operation, Tier},
    task::ResultClaim,
};

/// Positions that it pretends to have.
pub const CONTEXT: u32 = 8;

/// Counts lines, and refuses inputs that say so. Goes on from a prompt by saying its words again, each when
/// it is let.
pub struct Puppet {
    manifest: ModelManifest,
    runs: AtomicUsize,
    ended: AtomicUsize,
    tokens_let: AtomicUsize,
}

impl Default for Puppet {
    fn default() -> Self {
        Self {
            manifest: manifest(),
            runs: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
            tokens_let: AtomicUsize::new(0),
        }
    }
}

impl Puppet {
    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    /// Whether no job runs any more: one that was cancelled goes on until it notices.
    pub fn is_idle(&self) -> bool {
        self.ended.load(Ordering::SeqCst) == self.runs()
    }

    pub fn let_tokens(&self, count: usize) {
        self.tokens_let.fetch_add(count, Ordering::SeqCst);
    }

    /// Waits until a token may be made, or the job is cancelled.
    fn wait_for_leave(&self, sink: &mut dyn Sink) -> Result<(), EngineError> {
        loop {
            let take = |left: usize| left.checked_sub(1);
            if self
                .tokens_let
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, take)
                .is_ok()
            {
                return Ok(());
            }
            if sink.event(Event::Progress { done: 0, total: 1 }).is_break() {
                return Err(EngineError::Cancelled);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn make(&self, job: &Job, sink: &mut dyn Sink) -> Result<(Vec<u8>, u32), EngineError> {
        match job.operation {
            Operation::Embed if job.input.starts_with(b"refuse") => Err(InputError::NoItems.into()),
            Operation::Embed => {
                let units = job.input.iter().filter(|b| **b == b'\n').count() as u32;
                Ok((format!("{units} items").into_bytes(), units))
            }
            Operation::Generate => self.generate(job, sink),
        }
    }

    fn generate(&self, job: &Job, sink: &mut dyn Sink) -> Result<(Vec<u8>, u32), EngineError> {
        let request = Request::decode(&job.input)?;
        let words: Vec<&str> = request.prompt.split(' ').collect();
        let prompt_tokens = words.len() as u32;
        if prompt_tokens + request.max_tokens > CONTEXT {
            return Err(RequestError::ContextExceeded {
                prompt: prompt_tokens,
                max_tokens: request.max_tokens,
                context: CONTEXT,
            }
            .into());
        }
        let (mut text, mut tokens) = (String::new(), Vec::new());
        for (index, word) in (0..request.max_tokens).zip(words.iter().cycle()) {
            self.wait_for_leave(sink)?;
            let piece = format!(" {word}");
            text.push_str(&piece);
            tokens.push(index);
            let event = Event::Token {
                index,
                token: index,
                text: piece,
            };
            if sink.event(event).is_break() {
                return Err(EngineError::Cancelled);
            }
        }
        let generation = Generation {
            text,
            tokens,
            prompt_tokens,
            finish_reason: FinishReason::Length,
        };
        Ok((generation.encode(), prompt_tokens + request.max_tokens))
    }
}

impl Engine for Puppet {
    fn manifest(&self) -> &ModelManifest {
        &self.manifest
    }

    fn run(&self, job: &Job, sink: &mut dyn Sink) -> Result<Outcome, EngineError> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let made = self.make(job, sink);
        self.ended.fetch_add(1, Ordering::SeqCst);
        let (output, units) = made?;
        let claim = ResultClaim {
            output: content_hash(&output),
            trace_root: Hash::repeat_byte(1),
            units,
        };
        Ok(Outcome { output, claim })
    }
}

pub fn manifest() -> ModelManifest {
    ModelManifest {
        name: b"puppet".to_vec().try_into().unwrap(),
        family: ModelFamily::Bert,
        tier: Tier::HardwareClass,
        operations: vec![Operation::Embed, Operation::Generate].try_into().unwrap(),
        weights: ContentHash::zero(),
        weights_bytes: 0,
        tokenizer: ContentHash::zero(),
        config: ContentHash::zero(),
        exact: None,
    }
}
