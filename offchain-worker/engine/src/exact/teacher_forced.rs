//! Somebody's answer, taken at its word token by token: what this machine would have claimed at each place.
//!
//! One pass over prompt and claimed continuation gives all states and all choices at once. Each depends on
//! what was claimed before it and on nothing after it, so the first difference between two views of one claim
//! has inputs that both agree on.

use surety_model_trace::ClaimedOutput;
use surety_proofs::content_hash;
use surety_types::ContentHash;

use super::{
    generate::{ExactLlama, Task, count, failed},
    llama::Sequence,
    sampler::Sampler,
    trace::{GenerationLeaves, TopLevel},
};
use crate::{
    engine::{Refutation, Sink, report},
    error::EngineError,
};

/// Rows of logits that are kept at a time: a large vocabulary's take megabytes.
const LOGIT_ROWS: usize = 16;

/// Stands for the reason of an end in the own view of an answer that cannot be all of one, or whose text is
/// not that of its tokens.
const NO_END: u32 = 2;

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
    /// The own view of an answer of `units` tokens with the prompt's; of as many as it says when nobody else
    /// does.
    ///
    /// # Errors
    /// [`Refutation`] for what has not the form of an answer to this task; the faults of the arithmetic.
    pub(super) fn teacher_forced(
        &self,
        task: &Task,
        output: &[u8],
        units: Option<u32>,
        sink: &mut dyn Sink,
    ) -> Result<TeacherForced, EngineError> {
        let claimed = self.claimed(task, output, units)?;
        let fed = self.fed(task, &claimed.tokens);
        let mut trace = TopLevel::new(self.model.trace_shape());
        let chosen = self.choices(task, &fed, &mut trace, sink)?;
        let units = count(task.prompt.len() + claimed.tokens.len());
        let own = self.own_output(task, claimed, &chosen);
        let output_hash = content_hash(&own);
        let choices = task.choices(&chosen);
        let leaves = GenerationLeaves {
            tokens: task.token_rows(count(output.len()), units),
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

    /// Reads an answer that could be one to this task.
    pub(super) fn claimed<'a>(
        &self,
        task: &Task,
        output: &'a [u8],
        units: Option<u32>,
    ) -> Result<ClaimedOutput<'a>, EngineError> {
        let prompt = count(task.prompt.len());
        let tokens = units.map(|units| units.saturating_sub(prompt));
        let claimed = ClaimedOutput::decode(output, tokens)
            .map_err(|error| Refutation::Malformed(error.to_string()))?;
        let tokens = count(claimed.tokens.len());
        let most = task.units_max.min(self.context);
        if tokens > 0 && prompt.saturating_add(tokens) <= most {
            Ok(claimed)
        } else {
            Err(Refutation::Length { tokens }.into())
        }
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
        task: &Task,
        fed: &[u32],
        trace: &mut TopLevel,
        sink: &mut dyn Sink,
    ) -> Result<Vec<u32>, EngineError> {
        let total = count(fed.len());
        let mut sequence = Sequence::new(&self.model, fed.len());
        let mut sampler = Sampler::new(task);
        let mut chosen = Vec::new();
        report(sink, 0, total)?;
        for chunk in fed.chunks(self.model.chunk()) {
            let first = sequence.len();
            self.forward(&mut sequence, chunk, trace)?;
            // The first token was chosen at the prompt's last position.
            let from = task.prompt.len().saturating_sub(1).max(first) - first;
            let states = sequence.states().get(from * self.model.width()..);
            self.choose(states.unwrap_or_default(), &mut sampler, &mut chosen)?;
            report(sink, count(sequence.len()), total)?;
        }
        Ok(chosen)
    }

    /// Adds the tokens that these states lead to.
    fn choose(
        &self,
        states: &[f32],
        sampler: &mut Sampler,
        chosen: &mut Vec<u32>,
    ) -> Result<(), EngineError> {
        let mut logits = Vec::new();
        for states in states.chunks(LOGIT_ROWS * self.model.width()) {
            let index = count(chosen.len());
            self.model
                .logits(states, &mut logits)
                .map_err(|fault| failed(index, fault))?;
            for row in logits.chunks(self.model.vocabulary()) {
                let index = count(chosen.len());
                chosen.push(sampler.token(index, row).map_err(|fault| failed(index, fault))?);
            }
        }
        Ok(())
    }

    /// What should be at each place of an output, given what is claimed before it.
    fn own_output(&self, task: &Task, claimed: ClaimedOutput<'_>, chosen: &[u32]) -> Vec<u8> {
        ClaimedOutput {
            prompt_tokens: count(task.prompt.len()),
            finish_reason: self.reason(task, &claimed.tokens, claimed.text),
            tokens: chosen.to_vec(),
            text: claimed.text,
        }
        .encode()
    }

    fn reason(&self, task: &Task, tokens: &[u32], text: &[u8]) -> u32 {
        let (max, ends) = (task.request.max_tokens as usize, self.model.end_tokens());
        let inner = tokens.len().saturating_sub(1);
        let early = tokens.iter().take(inner).any(|token| ends.contains(token));
        let ended = tokens.last().is_some_and(|token| ends.contains(token));
        let whole = !early && (tokens.len() == max || tokens.len() < max && ended);
        let decoded = self.prompts.decode(tokens);
        if whole && decoded.is_ok_and(|decoded| decoded.as_bytes() == text) {
            self.finish_reason(tokens).word()
        } else {
            NO_END
        }
    }
}
