//! Somebody's answer, taken at its word token by token: what this machine would have claimed at each place.
//!
//! One pass over prompt and claimed continuation gives all states and all choices at once. Each depends on
//! what was claimed before it and on nothing after it, so the first difference between two views of one claim
//! has inputs that both agree on.

use rayon::prelude::*;
use surety_model_trace::{ClaimedOutput, finish_reason};
use surety_proofs::content_hash;
use surety_types::ContentHash;

use super::{
    backend::Decoder,
    generate::{ExactLlama, Task, count, failed},
    llama::Sequence,
    recheck::Found,
    sampler::Sampler,
    trace::{GenerationLeaves, TopLevel},
};
use crate::{
    engine::{Engine, Sink, report},
    error::EngineError,
};

/// Bytes of the logits that are kept at a time. Each time the weights behind them are read once.
const LOGIT_BYTES: usize = 16 << 20;
/// Rows of them, at least and at most.
const LOGIT_ROWS: [usize; 2] = [16, 64];

/// Rows of logits that are made at a time, of so many tokens.
pub(super) fn logit_rows(vocabulary: usize) -> usize {
    let [least, most] = LOGIT_ROWS;
    (LOGIT_BYTES / size_of::<f32>() / vocabulary.max(1)).clamp(least, most)
}

/// The own view of a claimed answer.
pub(super) struct TeacherForced {
    pub(super) leaves: Vec<ContentHash>,
    /// For each position the token that is chosen there.
    pub(super) choices: Vec<u32>,
    /// What the output should be, word by word.
    pub(super) output: Vec<u8>,
    pub(super) output_hash: ContentHash,
    pub(super) units: u32,
}

impl ExactLlama {
    /// The own view of an answer of `units` tokens with the prompt's; of as many as it has when nobody
    /// says, at least one and no more than there is room for. Whatever an answer is, there is one.
    ///
    /// # Errors
    /// The faults of the arithmetic.
    pub(super) fn teacher_forced(
        &self,
        task: &Task,
        output: &[u8],
        units: Option<u32>,
        sink: &mut dyn Sink,
    ) -> Result<TeacherForced, EngineError> {
        let claimed = claimed(task, output, units);
        let fed = self.fed(task, &claimed.tokens);
        let (trace, chosen) = self.computed(|on| {
            let mut trace = TopLevel::new(self.model.trace_shape());
            let chosen = self.choices(on, (task, &fed[..]), &mut trace, sink)?;
            Ok((trace, chosen))
        })?;
        let units = count(task.prompt.len() + claimed.tokens.len());
        let own = self.own_output(task, &claimed, &chosen);
        let output_hash = content_hash(&own);
        let choices = task.choices(&chosen);
        let leaves = GenerationLeaves {
            input: task.input,
            states: &trace,
            choices: &choices,
            output: output_hash,
        };
        Ok(TeacherForced {
            leaves: leaves.all(),
            choices,
            output: own,
            output_hash,
            units,
        })
    }

    /// What goes through the model: the last token of a continuation was never fed back. A token that there
    /// is not is read as the last one.
    pub(super) fn fed(&self, task: &Task, tokens: &[u32]) -> Vec<u32> {
        let last = count(self.model.vocabulary()).saturating_sub(1);
        let continuation = tokens.iter().take(tokens.len().saturating_sub(1));
        let continuation = continuation.map(|token| *token.min(&last));
        task.prompt.iter().copied().chain(continuation).collect()
    }

    /// One pass over all that is fed: the token that should come after each position, from the prompt's last
    /// on.
    fn choices(
        &self,
        on: &dyn Decoder,
        (task, fed): (&Task, &[u32]),
        trace: &mut TopLevel,
        sink: &mut dyn Sink,
    ) -> Result<Vec<u32>, EngineError> {
        let total = count(fed.len());
        let mut sequence = Sequence::behind(&self.model, on.kv(fed.len()));
        let sampler = Sampler::new(task);
        let mut chosen = Vec::new();
        report(sink, 0, total)?;
        for chunk in fed.chunks(on.chunk_rows()) {
            let first = sequence.len();
            // The first token was chosen at the prompt's last position.
            let from = task.prompt.len().saturating_sub(1).max(first) - first;
            let needed = chunk.len().saturating_sub(from);
            self.forward(&mut sequence, chunk, needed, trace)?;
            self.choose(on, sequence.states(), &sampler, &mut chosen)?;
            report(sink, count(sequence.len()), total)?;
        }
        self.recheck(&Found {
            task,
            kv: sequence.kv(),
            fed,
            trace,
            chosen: &chosen,
        })?;
        Ok(chosen)
    }

    /// Adds the tokens that these states lead to.
    fn choose(
        &self,
        on: &dyn Decoder,
        states: &[f32],
        sampler: &Sampler,
        chosen: &mut Vec<u32>,
    ) -> Result<(), EngineError> {
        let mut logits = Vec::new();
        for states in states.chunks(logit_rows(self.model.vocabulary()) * self.model.width()) {
            let first = chosen.len();
            on.logits(states, &mut logits)
                .map_err(|fault| failed(count(first), fault))?;
            let rows = logits.par_chunks(self.model.vocabulary()).enumerate();
            let tokens: Vec<_> = rows
                .map_init(Vec::new, |order, (row, logits)| {
                    let index = count(first + row);
                    let token = sampler.token(index, logits, order);
                    token.map_err(|fault| failed(index, fault))
                })
                .collect();
            for token in tokens {
                chosen.push(token?);
            }
        }
        Ok(())
    }

    /// What should be at each place of an output, given what is claimed before it. Where nothing can be
    /// right, what is claimed is not.
    fn own_output(&self, task: &Task, claimed: &ClaimedOutput, chosen: &[u32]) -> Vec<u8> {
        let stop = &self.manifest().text.stop;
        let (count, last) = (count(claimed.tokens.len()), claimed.tokens.last().copied());
        let reason = finish_reason(last.unwrap_or_default(), count, task.most(), stop);
        let before = [None].into_iter().chain(claimed.tokens.iter().map(Some));
        let token = |((claimed, chosen), before): ((&u32, &u32), Option<&u32>)| match before {
            Some(token) if self.ends(*token) => !claimed,
            _ => *chosen,
        };
        ClaimedOutput {
            finish_reason: reason.unwrap_or(!claimed.finish_reason),
            tokens: claimed.tokens.iter().zip(chosen).zip(before).map(token).collect(),
        }
        .encode()
    }
}

/// An answer's words, of as many tokens as are claimed: those that are missing are 0, and what is more is
/// cut.
pub(super) fn claimed(task: &Task, output: &[u8], units: Option<u32>) -> ClaimedOutput {
    let (words, _) = output.as_chunks::<4>();
    let mut words = words.iter().map(|word| u32::from_le_bytes(*word));
    let finish_reason = words.next().unwrap_or_default();
    let mut tokens: Vec<u32> = words.take(task.room as usize).collect();
    let wanted = match units {
        Some(units) => units.saturating_sub(count(task.prompt.len())),
        None => count(tokens.len()).max(1),
    };
    tokens.resize(wanted as usize, 0);
    ClaimedOutput {
        finish_reason,
        tokens,
    }
}
