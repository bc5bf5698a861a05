//! Doing things wrong on purpose, so that it can be seen what comes of it. Nothing here is reachable without a hidden
//! flag, and nothing else depends on it.

use std::{ops::ControlFlow, sync::Arc};

use clap::ValueEnum;
use surety_chain_client::{AccountId, Call, Hash, When};
use surety_engine::{content_hash, exact::OwnTrace, open, Engine, EngineError, Event, Job, Outcome, Sink};
use surety_model_trace::{Layout, Op, Part, PROMPT_WORDS};
use surety_models::{format, Form, ModelFiles};
use surety_types::{
    model::{ModelManifest, Operation},
    task::{MemberProgress, ResultClaim, RoundPhase},
    ContentHash, TaskId,
};
use surety_worker_core::{EffectKind, TaskSnapshot};

use super::Tools;

/// What to do wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Cheat {
    /// Provider: deliver vectors with one bit changed.
    AlteredOutput,
    /// Provider: change one bit of one number in the middle of the model.
    AlteredActivation,
    /// Provider: read a token of the input as another one.
    AlteredToken,
    /// Provider: compute with weights of four bits.
    ModelSwap,
    /// Provider: commit to what another one committed to.
    CopiedResult,
    /// Provider: commit, and keep silent.
    CommitWithoutReveal,
    /// Provider: reveal, and serve nothing.
    WithheldData,
    /// Verifier: announce audits without computing anything.
    Lazy,
    /// Verifier: challenge a result that is right.
    FalseChallenge,
}

impl Cheat {
    /// Whether it is a provider's.
    pub fn is_providers(self) -> bool {
        !matches!(self, Self::Lazy | Self::FalseChallenge)
    }

    /// Whether a call is left out.
    pub(super) fn keeps_silent(self, kind: EffectKind) -> bool {
        match self {
            Self::CommitWithoutReveal => kind == EffectKind::Reveal,
            Self::WithheldData => matches!(kind, EffectKind::Supply(_)),
            Self::Lazy => matches!(kind, EffectKind::AuditReveal(_)),
            _ => false,
        }
    }
}

/// What somebody else committed to for a task, if anybody has.
pub(super) async fn others_commitment(tools: &Tools, task: TaskId) -> Option<Hash> {
    let info = tools.chain.task(When::Best, task).await.ok()??;
    let round = info.round?;
    round.members.iter().find_map(|member| match member.progress {
        MemberProgress::Committed(hash) if member.provider != tools.stash => Some(hash),
        _ => None,
    })
}

/// A right result to challenge.
pub(super) fn challengeable(tasks: &[TaskSnapshot], stash: &AccountId) -> Option<Call> {
    tasks.iter().find_map(|seen| {
        let round = seen.round.as_ref()?;
        let open = matches!(round.phase, RoundPhase::Challengeable { .. }) && round.challenges == 0;
        let mut members = round.members.iter().filter(|_| open);
        let member = members.find(|member| member.standing_claim().is_some() && member.provider != *stash)?;
        Some(Call::Challenge {
            task: seen.id,
            provider: member.provider.clone(),
        })
    })
}

/// An engine that does what was asked for.
pub fn disguise(engine: Arc<dyn Engine>, cheat: Option<Cheat>) -> Arc<dyn Engine> {
    match cheat {
        Some(cheat @ (Cheat::AlteredOutput | Cheat::AlteredActivation | Cheat::AlteredToken)) => {
            Arc::new(Cheater { engine, cheat })
        }
        _ => engine,
    }
}

/// A model with coarser weights, under the name of the right one. Models of other tiers stay as they are.
///
/// # Errors
/// When the files are not those of a model.
pub fn swap(mut files: ModelFiles) -> Result<Arc<dyn Engine>, EngineError> {
    let manifest = files.manifest.clone();
    if manifest.exact.is_none() {
        return open(files);
    }
    coarsen(&mut files.weights).ok_or(EngineError::NotTraced)?;
    let weights = format::read(files.weights.clone(), &files.config, manifest.family)?;
    files.manifest.exact = Some(weights.form()?);
    let engine = open(files)?;
    Ok(Arc::new(Swapped { engine, manifest }))
}

/// Leaves four bits of every quantised weight of a safetensors file.
fn coarsen(file: &mut [u8]) -> Option<()> {
    let header_bytes = usize::try_from(u64::from_le_bytes(*file.first_chunk()?)).ok()?;
    let data = header_bytes.checked_add(8)?;
    let header: serde_json::Value = serde_json::from_slice(file.get(8..data)?).ok()?;
    for tensor in header.as_object()?.values() {
        let dtype = tensor.get("dtype").and_then(|dtype| dtype.as_str());
        let offset = |at: usize| usize::try_from(tensor.get("data_offsets")?.get(at)?.as_u64()?).ok();
        let range = data.checked_add(offset(0)?)?..data.checked_add(offset(1)?)?;
        let values = file.get_mut(range)?;
        match dtype {
            Some("I8") => {
                for byte in values {
                    *byte = (byte.cast_signed() / 16 * 16).cast_unsigned();
                }
            }
            Some("I16") => {
                for pair in values.as_chunks_mut::<2>().0 {
                    *pair = (i16::from_le_bytes(*pair) / 256 * 256).to_le_bytes();
                }
            }
            _ => {}
        }
    }
    Some(())
}

struct Swapped {
    engine: Arc<dyn Engine>,
    /// The right model's.
    manifest: ModelManifest,
}

impl Engine for Swapped {
    fn manifest(&self) -> &ModelManifest {
        &self.manifest
    }

    fn run(&self, job: &Job, sink: &mut dyn Sink) -> Result<Outcome, EngineError> {
        self.engine.run(job, sink)
    }

    fn trace(
        self: Arc<Self>,
        job: Job,
        output: Vec<u8>,
        units: u32,
        sink: Box<dyn Sink + Send>,
    ) -> Result<OwnTrace, EngineError> {
        self.engine.clone().trace(job, output, units, sink)
    }
}

struct Cheater {
    engine: Arc<dyn Engine>,
    cheat: Cheat,
}

/// A leaf, a step, a row and a byte.
type Place = (u32, u32, u32, u32);

impl Cheater {
    fn place(&self, layout: &Layout, output_bytes: usize) -> Option<Place> {
        match self.cheat {
            Cheat::AlteredOutput => {
                let byte = altered_byte(output_bytes)?;
                Some((layout.leaf_of(Part::Output)?, 0, 0, u32::try_from(byte).ok()?))
            }
            Cheat::AlteredToken => {
                let byte = altered_token(layout.facts().operation).checked_mul(4)?;
                Some((layout.leaf_of(Part::Tokens)?, 0, 0, byte))
            }
            _ => {
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

impl Engine for Cheater {
    fn manifest(&self) -> &ModelManifest {
        self.engine.manifest()
    }

    fn run(&self, job: &Job, sink: &mut dyn Sink) -> Result<Outcome, EngineError> {
        let Outcome { mut output, claim } = self.engine.run(job, sink)?;
        if self.cheat == Cheat::AlteredOutput && job.operation == Operation::Embed {
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
    use surety_model_trace::{encoder_tokens, prompt_tokens, Prompt};

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

    #[test]
    fn coarse_weights_have_four_bits_and_everything_else_stays() {
        let header = br#"{"a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},"c":{"dtype":"I16","shape":[2],"data_offsets":[8,12]}}"#;
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend_from_slice(header);
        file.extend([15, 16, 0xf1, 0x91, 1, 2, 3, 4]);
        file.extend([0x11fi16, -2047].map(i16::to_le_bytes).as_flattened());
        coarsen(&mut file).unwrap();
        let right = [0, 16, 0, 0xa0, 1, 2, 3, 4].into_iter();
        let right = right.chain([0x100i16, -0x700].map(i16::to_le_bytes).concat());
        assert_eq!(file[8 + header.len()..], right.collect::<Vec<u8>>());
        assert_eq!(coarsen(&mut [1, 2]), None);
    }
}
