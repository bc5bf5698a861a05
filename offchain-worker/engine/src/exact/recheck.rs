//! What a device computes, held against the processor: whole passes before it is trusted with anything, and a
//! random piece of each job before anything is claimed of it.

use std::{
    hash::{BuildHasher, RandomState},
    iter,
    ops::Range,
    sync::Arc,
};

use surety_exact::{ArithmeticError, greedy};
use surety_types::ContentHash;

use super::{
    backend::{Copies, Decoder, Devices, Encoder, Fault},
    bert::{BertModel, Scratch},
    generate::{ExactLlama, Task, count, failed},
    kv::{KvCache, Piece},
    llama::{LlamaModel, Workspace},
    sampler::Sampler,
    trace::TopLevel,
};
use crate::error::EngineError;

/// Positions of a generation that are computed again: each weight is read once for all of them.
const ROWS: usize = 16;

/// Longest sequence of a self-test: more than a block of attention.
const TEST_ROWS: usize = 140;

/// A number below `end`, or 0. Nobody has to be kept from guessing it: a device that fails does not look who
/// is looking.
pub(crate) fn random_below(end: usize) -> usize {
    let random = RandomState::new().hash_one(end);
    usize::try_from(random % (end as u64).max(1)).unwrap_or(0)
}

/// What passes give: numbers as bits, and leaves. Nothing where the numbers have no canonical result.
type Passes = Option<(Vec<u32>, Vec<Vec<Vec<ContentHash>>>)>;

fn bits(values: &[f32]) -> impl Iterator<Item = u32> {
    values.iter().map(|value| value.to_bits())
}

/// So many tokens, few of them alike.
fn tokens(vocabulary: usize, length: usize) -> Vec<u32> {
    (0..length).map(|i| count((i * 7919 + 13) % vocabulary)).collect()
}

fn passed<T>(result: Result<T, Fault>) -> Result<Option<T>, EngineError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Fault::Arithmetic(_)) => Ok(None),
        Err(fault) => Err(failed(0, fault)),
    }
}

fn encoded(model: &BertModel, by: &dyn Encoder) -> Result<Passes, EngineError> {
    let lengths = [1, 7, TEST_ROWS].map(|length| length.min(model.positions()));
    let sequences = lengths.map(|length| tokens(model.vocabulary(), length));
    let sequences: Vec<&[u32]> = sequences.iter().map(|ids| &ids[..]).collect();
    let mut trace = TopLevel::new(model.trace_shape());
    let vectors = passed(by.embed(&sequences, &mut Scratch::default(), &mut trace))?;
    Ok(vectors.map(|vectors| (bits(&vectors).collect(), trace.leaves(&lengths))))
}

fn decoded(model: &LlamaModel, by: &dyn Decoder) -> Result<Passes, EngineError> {
    let all = tokens(model.vocabulary(), TEST_ROWS.min(model.context()));
    // A prompt, and then what follows it one by one.
    let (prompt, rest) = all.split_at(all.len().saturating_sub(3).max(1));
    let (mut kv, mut workspace) = (by.kv(all.len()), Workspace::new(model));
    let mut trace = TopLevel::new(model.trace_shape());
    let (mut found, mut logits) = (Vec::new(), Vec::new());
    for tokens in [prompt].into_iter().chain(rest.chunks(1)) {
        let pieces = &mut [Piece {
            kv: &mut kv,
            tokens,
            states: 1,
            chooses: by.chooses(),
        }];
        if passed(by.forward_together(pieces, &mut workspace, &mut trace))?.is_none() {
            return Ok(None);
        }
        if passed(by.logits(workspace.states(), &mut logits))?.is_none() {
            return Ok(None);
        }
        found.extend(bits(&logits));
        // What a device chooses by itself, it chooses of these.
        let Some(likeliest) = passed(greedy(&logits).map_err(Fault::from))? else {
            return Ok(None);
        };
        let chosen = match by.chooses() {
            true => workspace.chosen().first().copied(),
            false => Some(likeliest),
        };
        found.extend(chosen);
    }
    Ok(Some((found, trace.leaves(&[all.len()]))))
}

/// A model on those devices that give its vectors and traces, for short and long sequences together.
///
/// # Errors
/// Those of [`Copies::make`].
pub(super) fn encoders(
    model: &Arc<BertModel>,
    devices: &Devices,
) -> Result<Copies<dyn Encoder>, EngineError> {
    if devices.is_empty() {
        return Ok(Copies::default());
    }
    let own = encoded(model, &**model)?;
    Copies::make(
        devices,
        |backend| backend.encoder(model),
        |there| Ok(encoded(model, there)? == own),
    )
}

/// A model on those devices that give its logits and traces, for a prompt and for tokens one by one.
///
/// # Errors
/// Those of [`Copies::make`].
pub(super) fn decoders(
    model: &Arc<LlamaModel>,
    devices: &Devices,
) -> Result<Copies<dyn Decoder>, EngineError> {
    if devices.is_empty() {
        return Ok(Copies::default());
    }
    let own = decoded(model, &**model)?;
    Copies::make(
        devices,
        |backend| backend.decoder(model),
        |there| Ok(decoded(model, there)? == own),
    )
}

/// What a device has of a generation.
pub(super) struct Found<'a> {
    pub(super) task: &'a Task,
    pub(super) kv: &'a KvCache,
    /// All that went through the model.
    pub(super) fed: &'a [u32],
    pub(super) trace: &'a TopLevel,
    /// The tokens of the continuation that were chosen, as far as they are there.
    pub(super) chosen: &'a [u32],
}

impl ExactLlama {
    /// Computes some random positions of a device's generation again, behind the keys and values that it has
    /// of those before: their leaves, and the tokens that were chosen there. Nothing where the processor has
    /// computed them already. Once they differ, that device is not used any more.
    ///
    /// # Errors
    /// [`EngineError::DeviceDiffers`], also where the device was found out meanwhile; those of the device.
    pub(super) fn recheck(&self, found: &Found<'_>) -> Result<(), EngineError> {
        let start = random_below(found.fed.len().div_ceil(ROWS)) * ROWS;
        self.hold(found, iter::once(start..found.fed.len().min(start + ROWS)))
    }

    /// The same of those from `since` on: of all, or of the last ones and as many others.
    ///
    /// # Errors
    /// Those of [`ExactLlama::recheck`].
    pub(super) fn recheck_newest(&self, found: &Found<'_>, since: usize) -> Result<(), EngineError> {
        let end = found.fed.len();
        if end.saturating_sub(since) <= ROWS {
            return self.hold(found, iter::once(since..end));
        }
        let last = end - ROWS / 2;
        let start = since + random_below(last - since - ROWS / 2 + 1);
        self.hold(found, [last..end, start..start + ROWS / 2])
    }

    fn hold(
        &self,
        found: &Found<'_>,
        rows: impl IntoIterator<Item = Range<usize>>,
    ) -> Result<(), EngineError> {
        let Some(device) = found.kv.device() else {
            return Ok(());
        };
        // Another job may have found it out meanwhile.
        if let Some(reason) = device.dropped() {
            return Err(reason);
        }
        for rows in rows {
            if !self.is_right(found, rows)? {
                return Err(device.differs());
            }
        }
        Ok(())
    }

    fn is_right(&self, found: &Found<'_>, rows: Range<usize>) -> Result<bool, EngineError> {
        if rows.is_empty() {
            return Ok(true);
        }
        let again = self.again(found, &rows)?;
        Ok(again.is_some_and(|(own, workspace)| {
            found.trace.has(&rows, &own) && self.would_choose(found, &rows, &workspace)
        }))
    }

    /// What a device has found no result for, held against the processor: these rows, of all that goes
    /// through the model before the next token, and that token behind the last of them.
    ///
    /// # Errors
    /// [`EngineError::DeviceDiffers`], where the processor has a result, or the device was found out
    /// meanwhile; those of the device.
    pub(super) fn hold_fault(&self, found: &Found<'_>, rows: &Range<usize>) -> Result<(), EngineError> {
        let Some(device) = found.kv.device() else {
            return Ok(());
        };
        if let Some(reason) = device.dropped() {
            return Err(reason);
        }
        let again = self.again(found, rows)?;
        let has_result = again.is_some_and(|(_, workspace)| {
            rows.end < found.fed.len() || self.has_next(found, workspace.states())
        });
        match has_result {
            true => Err(device.differs()),
            false => Ok(()),
        }
    }

    /// Whether a token can be chosen behind the last of these states.
    fn has_next(&self, found: &Found<'_>, states: &[f32]) -> bool {
        let last = states.rchunks(self.model.width()).next().unwrap_or_default();
        let (mut logits, mut order) = (Vec::new(), Vec::new());
        let index = count(found.chosen.len());
        self.model.logits(last, &mut logits).is_ok()
            && Sampler::new(found.task).token(index, &logits, &mut order).is_ok()
    }

    /// What the processor makes of these rows, behind what a device has of those before; nothing where it has
    /// no result.
    fn again(
        &self,
        found: &Found<'_>,
        rows: &Range<usize>,
    ) -> Result<Option<(TopLevel, Workspace)>, EngineError> {
        let mut kept = match self.runs_of(found.kv).to_processor(found.kv, rows.start) {
            Ok(Some(kept)) => kept,
            Ok(None) => return Err(failed(0, ArithmeticError::Shape)),
            Err(fault) => return Err(Self::unread(found, fault)),
        };
        let mut own = TopLevel::new(self.model.trace_shape());
        let mut workspace = Workspace::new(&self.model);
        let tokens = found.fed.get(rows.clone()).unwrap_or_default();
        let piece = Piece {
            kv: &mut kept,
            tokens,
            states: tokens.len(),
            chooses: false,
        };
        let passed = self
            .model
            .forward_together(&mut [piece], &mut workspace, &mut own);
        Ok(passed.is_ok().then_some((own, workspace)))
    }

    /// Why a device's keys and values cannot be read: if not by the device's failure they are none.
    fn unread(found: &Found<'_>, fault: Fault) -> EngineError {
        match (&fault, found.kv.device()) {
            (Fault::Arithmetic(_), Some(device)) => device.differs(),
            _ => failed(0, fault),
        }
    }

    /// Whether the tokens that were chosen at these positions are those that their states lead to.
    fn would_choose(&self, found: &Found<'_>, rows: &Range<usize>, workspace: &Workspace) -> bool {
        // The first token was chosen at the prompt's last position.
        let first = found.task.prompt.len().saturating_sub(1).max(rows.start);
        let index = (first + 1).saturating_sub(found.task.prompt.len());
        let said = found.chosen.get(index..).unwrap_or_default();
        let states = workspace
            .states()
            .get((first - rows.start) * self.model.width()..)
            .unwrap_or_default();
        if states.is_empty() || said.is_empty() {
            return true;
        }
        let (mut logits, mut order) = (Vec::new(), Vec::new());
        if self.model.logits(states, &mut logits).is_err() {
            return false;
        }
        let sampler = Sampler::new(found.task);
        let mut chosen = (index..).zip(logits.chunks(self.model.vocabulary())).zip(said);
        chosen.all(|((index, logits), said)| {
            let token = sampler.token(count(index), logits, &mut order);
            token.is_ok_and(|token| token == *said)
        })
    }
}
