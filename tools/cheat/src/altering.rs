//! Results with one bit changed.

use std::{ops::ControlFlow, sync::Arc};

use surety_engine::{Engine, EngineError, Event, Job, Outcome, Sink, content_hash, exact::OwnTrace};
use surety_model_trace::{Layout, Op, PROMPT_WORDS, Part};
use surety_types::{
    ContentHash,
    model::{ModelManifest, Operation},
    task::ResultClaim,
};

/// What is altered: of the claim, of the trace behind it, and of the output where that is vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alteration {
    /// The lowest bit of the last number of the output.
    Output,
    /// One bit of one number in the middle of the model.
    Activation,
    /// A token of what goes in.
    Token,
}

/// An engine whose results have one bit changed, and that stands by it in disputes.
pub struct AlteringEngine {
    engine: Arc<dyn Engine>,
    alteration: Alteration,
}

/// A leaf, a step, a row and a byte.
type Place = (u32, u32, u32, u32);

impl AlteringEngine {
    pub fn new(engine: Arc<dyn Engine>, alteration: Alteration) -> Self {
        Self { engine, alteration }
    }

    fn place(&self, layout: &Layout, output_bytes: usize) -> Option<Place> {
        match self.alteration {
            Alteration::Output => {
                let byte = altered_byte(output_bytes)?;
                Some((layout.leaf_of(Part::Output)?, 0, 0, u32::try_from(byte).ok()?))
            }
            Alteration::Token => {
                let byte = altered_token(layout.facts().operation).checked_mul(4)?;
                Some((layout.leaf_of(Part::Tokens)?, 0, 0, byte))
            }
            Alteration::Activation => {
                let stride = layout.cut().strides() / 2;
                let leaf = layout.leaf_of(Part::Rows {
                    sequence: 0,
                    chunk: 0,
                    stride,
                })?;
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

/// Which byte of vectors is changed: the lowest of the last number.
fn altered_byte(output_bytes: usize) -> Option<usize> {
    output_bytes.checked_sub(4)
}

/// Which word of the first row of what goes in is changed: a token that stands for text.
const fn altered_token(operation: Operation) -> u32 {
    match operation {
        // After the number of tokens and the one that begins each item.
        Operation::Embed => 2,
        Operation::Generate => PROMPT_WORDS,
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
        let Outcome { mut output, claim } = self.engine.run(job, sink)?;
        if self.alteration == Alteration::Output && job.operation == Operation::Embed {
            let byte = altered_byte(output.len()).and_then(|at| output.get_mut(at));
            *byte.ok_or(EngineError::NotInTrace)? ^= 1;
        }
        let bytes = output.len();
        let trace = self
            .engine
            .clone()
            .trace(job.clone(), output.clone(), claim.units, silent())?;
        let (_, trace_root) = self.altered(trace, bytes)?;
        let claim = ResultClaim {
            output: content_hash(&output),
            trace_root,
            units: claim.units,
        };
        Ok(Outcome { output, claim })
    }

    fn trace(
        self: Arc<Self>,
        job: Job,
        output: Vec<u8>,
        units: u32,
        sink: Box<dyn Sink + Send>,
    ) -> Result<OwnTrace, EngineError> {
        let bytes = output.len();
        let trace = self.engine.clone().trace(job, output, units, sink)?;
        self.altered(trace, bytes).map(|(trace, _)| trace)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use surety_model_trace::{Prompt, encoder_tokens, prompt_tokens};

    use super::*;

    #[test]
    fn the_altered_token_is_one_that_stands_for_text() {
        let items = encoder_tokens([&[101, 7, 102][..]].into_iter(), 6);
        let prompt = Prompt {
            tokens: &[7, 8],
            output_bytes: 12,
            temperature_milli: 0,
            top_k: 0,
            top_p_milli: 1_000,
            seed: 1,
        };
        let prompt = prompt_tokens(&prompt, 4);
        for (rows, operation) in [(items, Operation::Embed), (prompt, Operation::Generate)] {
            let at = altered_token(operation) as usize * 4;
            assert_eq!(rows.row(0).unwrap()[at..at + 4], [7, 0, 0, 0], "{operation:?}");
        }
    }
}
