//! Several generations, a step at a time: each weight is read once for all of them.
//!
//! A row's numbers depend on the rows before it in its own sequence and on nothing else. So each generation
//! gives the bits that it gives alone, tokens, trace and faults, whatever else is in its steps.

use std::ops::Range;

use rayon::prelude::*;
use surety_exact::{ArithmeticError, BLOCK, HEAD_PRECISION, LANES};

use super::{
    backend::{Fault, Standing},
    generate::{ExactLlama, Task, count, failed, outcome},
    kv::{KvCache, Piece},
    llama::Workspace,
    recheck::Found,
    sampler::Sampler,
    teacher_forced::logit_rows,
    trace::TopLevel,
};
use crate::{
    engine::{Job, Outcome},
    error::EngineError,
    generation::{FinishReason, Generation},
};

/// Bytes of a digest.
const DIGEST: usize = 32;

/// Bytes of so many positions' keys and values, in blocks of whole lanes: neither a processor nor a device's
/// pages take more.
pub(super) fn kv_bytes((layers, kv_heads, head_dim): (usize, usize, usize), positions: usize) -> usize {
    let head = HEAD_PRECISION.bytes() * head_dim.next_multiple_of(LANES) + size_of::<f32>();
    positions.next_multiple_of(BLOCK) * layers * kv_heads * 2 * head
}

/// Memory of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceBytes {
    /// For keys and values, where they are: a device has them in its own.
    pub keys_values: u64,
    /// For the digests that its trace is made of.
    pub trace: u64,
}

/// A request that has been read, and what it takes.
pub(crate) struct Request {
    task: Task,
    /// Bytes of memory, once it runs.
    pub(crate) bytes: u64,
}

impl Request {
    pub(crate) fn prompt(&self) -> &[u32] {
        &self.task.prompt
    }
}

/// What a model has made of some tokens: it depends on them alone.
pub(crate) struct Computed {
    kv: KvCache,
    trace: TopLevel,
}

impl Computed {
    /// Whether a device has it that is used no more.
    pub(crate) fn is_lost(&self) -> bool {
        self.kv.device().is_some_and(|device| device.dropped().is_some())
    }
}

/// A generation that is under way.
pub(crate) struct Generating {
    task: Task,
    computed: Computed,
    tokens: Vec<u32>,
    finish_reason: Option<FinishReason>,
}

impl Generating {
    /// Tokens that go through the model before the next one is chosen; 0 once it is done.
    pub(crate) fn pending(&self) -> usize {
        match self.finish_reason {
            Some(_) => 0,
            None => (self.task.prompt.len() + self.tokens.len()).saturating_sub(self.computed.kv.len()),
        }
    }

    /// Tokens that went through the model.
    pub(crate) fn fed(&self) -> usize {
        self.computed.kv.len()
    }

    /// Why it is done, once it is.
    pub(crate) fn finish_reason(&self) -> Option<FinishReason> {
        self.finish_reason
    }

    /// Whether a device has computed what there is of it.
    pub(crate) fn is_on_device(&self) -> bool {
        self.computed.kv.device().is_some()
    }

    /// Whether it can go on: its device, if it has one, is still used.
    ///
    /// # Errors
    /// Why that is used no more.
    pub(crate) fn stands(&self) -> Result<(), EngineError> {
        let dropped = self.computed.kv.device().and_then(|device| device.dropped());
        dropped.map_or(Ok(()), Err)
    }

    /// The first of its tokens, those of the prompt included, and what was made of them: of all that went
    /// through the model.
    pub(crate) fn computed(&self) -> (Vec<u32>, &Computed) {
        let all = self.task.prompt.iter().chain(&self.tokens);
        (all.take(self.fed()).copied().collect(), &self.computed)
    }

    fn found<'a>(&'a self, fed: &'a [u32], computed: &'a Computed) -> Found<'a> {
        Found {
            task: &self.task,
            kv: &computed.kv,
            fed,
            trace: &computed.trace,
            chosen: &self.tokens,
        }
    }

    /// What is left to say of it, and what may be of use to others.
    pub(crate) fn into_generated(self) -> (Generated, Computed) {
        let generated = Generated {
            trace: self.computed.trace.clone(),
            task: self.task,
            tokens: self.tokens,
            finish_reason: self.finish_reason,
        };
        (generated, self.computed)
    }
}

/// Tokens `fed .. fed + rows` of a prompt, or of what was added to it.
fn next<'a>(task: &'a Task, tokens: &'a [u32], fed: usize, rows: usize) -> &'a [u32] {
    let prompt = task.prompt.len();
    let rest = if fed < prompt {
        task.prompt.get(fed..)
    } else {
        tokens.get(fed - prompt..)
    };
    let rest = rest.unwrap_or_default();
    rest.get(..rows).unwrap_or(rest)
}

/// A generation that is over, or was broken off.
pub(crate) struct Generated {
    task: Task,
    trace: TopLevel,
    tokens: Vec<u32>,
    finish_reason: Option<FinishReason>,
}

impl Generated {
    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> u64 {
        let ids = size_of::<u32>() * (self.task.prompt.len() + self.tokens.len());
        (self.trace.digests() * DIGEST + self.task.blob.len() + ids) as u64
    }

    /// Tokens that were added to the prompt.
    pub(crate) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// What its first tokens come to, if it ends there: what [`Engine::run`](crate::Engine::run) gives where
    /// no more units are paid for. Nothing without a token: no claim is about so little.
    pub(crate) fn outcome(&self, tokens: usize) -> Option<Outcome> {
        let finish_reason = match self.finish_reason {
            Some(reason) if tokens == self.tokens.len() => reason,
            _ => FinishReason::Length,
        };
        let generation = Generation {
            tokens: self
                .tokens
                .get(..tokens)
                .filter(|tokens| !tokens.is_empty())?
                .to_vec(),
            finish_reason,
        };
        Some(outcome(&self.task, &generation, &self.trace))
    }
}

/// A generation's part of a step.
pub(crate) struct Turn<'a> {
    pub(crate) generating: &'a mut Generating,
    /// How many of its tokens go through the model, from 1 to [`Generating::pending`].
    pub(crate) rows: usize,
}

/// The memory of steps. Reuse one: it keeps it.
pub(crate) struct StepMemory {
    workspace: Workspace,
    /// The last states of those that choose a token in this step.
    states: Vec<f32>,
    logits: Vec<f32>,
}

impl StepMemory {
    pub(crate) fn new(engine: &ExactLlama) -> Self {
        Self {
            workspace: Workspace::new(&engine.model),
            states: Vec::new(),
            logits: Vec::new(),
        }
    }
}

impl ExactLlama {
    /// Reads a job.
    ///
    /// # Errors
    /// Those of [`Engine::run`](crate::Engine::run) before it computes anything.
    pub(crate) fn request(&self, job: &Job) -> Result<Request, EngineError> {
        let task = self.task(job)?;
        // The last token does not go through the model.
        let positions = task.prompt.len() + task.most() as usize - 1;
        // The input as bytes and as ids, and the ids that are added.
        let words = 2 * job.input.len() + size_of::<u32>() * task.most() as usize;
        Ok(Request {
            bytes: self.computed_bytes(positions).saturating_add(words as u64),
            task,
        })
    }

    /// Bytes that hold what so many positions are computed to.
    pub(crate) fn computed_bytes(&self, positions: usize) -> u64 {
        let bytes = self.bytes_of(positions);
        bytes.keys_values + bytes.trace
    }

    /// What so many positions of a generation take while it runs.
    pub fn bytes_of(&self, positions: usize) -> SequenceBytes {
        let model = &self.model;
        let weights = model.weights();
        let kv = kv_bytes((model.layers(), weights.kv_heads, weights.head_dim), positions);
        let trace = positions * model.trace_shape().strides() as usize * DIGEST;
        SequenceBytes {
            keys_values: kv as u64,
            trace: trace as u64,
        }
    }

    /// The same again, if there is memory for it, and its device is still used and answers.
    pub(crate) fn copy(&self, computed: &Computed) -> Option<Computed> {
        let answers = computed.kv.device().is_none_or(Standing::answers);
        if computed.is_lost() || !answers {
            return None;
        }
        Some(Computed {
            kv: self.runs_of(&computed.kv).copy(&computed.kv).ok()?,
            trace: computed.trace.clone(),
        })
    }

    /// Holds some of a generation that is over against the processor, if a device has computed it.
    ///
    /// # Errors
    /// [`EngineError::DeviceDiffers`]; those of the device.
    pub(crate) fn recheck_served(&self, generating: &Generating) -> Result<(), EngineError> {
        let (fed, computed) = generating.computed();
        self.recheck(&generating.found(&fed, computed))
    }

    /// The same of a generation that goes on, from so many positions on.
    ///
    /// # Errors
    /// Those of [`ExactLlama::recheck_served`].
    pub(crate) fn recheck_said(&self, generating: &Generating, since: usize) -> Result<(), EngineError> {
        let (fed, computed) = generating.computed();
        self.recheck_newest(&generating.found(&fed, computed), since)
    }

    /// Holds a turn that gave nothing against the processor, if a device was to compute it, and where that
    /// gives nothing either, some of what the device has of it before.
    ///
    /// # Errors
    /// Those of [`ExactLlama::recheck_served`], where it is the device that has no result.
    pub(crate) fn recheck_fault(
        &self,
        generating: &Generating,
        rows: Range<usize>,
    ) -> Result<(), EngineError> {
        let all = generating.task.prompt.iter().chain(&generating.tokens);
        let all: Vec<u32> = all.copied().collect();
        let found = generating.found(&all, &generating.computed);
        self.hold_fault(&found, &rows)?;
        self.recheck_served(generating)
    }

    /// Begins a generation, behind what was computed of the first tokens of its prompt, but not of all.
    pub(crate) fn begin(&self, request: Request, prefix: Option<Computed>) -> Generating {
        // What others go on from has room for them: memory is taken as positions come.
        let empty = || Computed {
            kv: self.runs_together().kv(self.model.context()),
            trace: TopLevel::new(self.model.trace_shape()),
        };
        Generating {
            task: request.task,
            computed: prefix.unwrap_or_else(empty),
            tokens: Vec::new(),
            finish_reason: None,
        }
    }

    /// Takes a turn of each: the token that it has chosen, if it was its turn to. After a fault a generation
    /// is of no use; the others are as if it had not been there.
    pub(crate) fn step(
        &self,
        turns: &mut [Turn<'_>],
        memory: &mut StepMemory,
    ) -> Vec<Result<Option<u32>, EngineError>> {
        memory.states.clear();
        let mut found: Vec<_> = turns.iter().map(|_| Ok(None)).collect();
        let chosen = self.feed(turns, memory, true).unwrap_or_else(|_| {
            // One of them has a fault: alone it shows which, and whether it is in the tokens that were fed.
            for (turn, found) in turns.chunks_mut(1).zip(&mut found) {
                let first = turn.first().map_or(0, |turn| turn.generating.fed());
                if let Err(fault) = self.feed(turn, memory, false) {
                    *found = Err(failed(count(first), fault));
                }
            }
            vec![None; turns.len()]
        });
        let mut choosing = Vec::new();
        for ((turn, found), chosen) in turns.iter_mut().zip(&mut found).zip(chosen) {
            if let Some(token) = chosen {
                *found = Ok(Some(self.add(turn.generating, token)));
            } else if found.is_ok() && turn.generating.pending() == 0 {
                choosing.push((&mut *turn.generating, found));
            }
        }
        let rows = logit_rows(self.model.vocabulary());
        let states = memory.states.chunks(rows * self.model.width());
        for (choosing, states) in choosing.chunks_mut(rows).zip(states) {
            let generating: Vec<&Generating> = choosing.iter().map(|(generating, _)| &**generating).collect();
            let chosen = self.draw(&generating, states, &mut memory.logits);
            for ((generating, found), chosen) in choosing.iter_mut().zip(chosen) {
                let prompt = count(generating.task.prompt.len());
                **found = match chosen {
                    Ok(token) => Ok(Some(self.add(generating, token))),
                    Err(fault) => Err(failed(prompt, fault)),
                };
            }
        }
        found
    }

    /// Runs the turns' rows: the token of each turn that the pass has chosen. It chooses only if it may, and
    /// keeps the last state of all others that choose a token then.
    fn feed(
        &self,
        turns: &mut [Turn<'_>],
        memory: &mut StepMemory,
        may_choose: bool,
    ) -> Result<Vec<Option<u32>>, Fault> {
        let mut trace = TopLevel::new(self.model.trace_shape());
        // Where they are not all in one place, each is taken alone.
        let Some(on) = turns
            .first()
            .map(|first| self.runs_of(&first.generating.computed.kv))
        else {
            return Ok(Vec::new());
        };
        let mut choices = match may_choose && on.chooses() {
            true => logit_rows(self.model.vocabulary()),
            false => 0,
        };
        let mut pieces: Vec<_> = turns.iter_mut().map(|turn| turn.piece(&mut choices)).collect();
        let lengths: Vec<usize> = pieces.iter().map(|piece| piece.tokens.len()).collect();
        let choosing: Vec<bool> = pieces.iter().map(|piece| piece.chooses).collect();
        on.forward_together(&mut pieces, &mut memory.workspace, &mut trace)?;
        memory.states.extend(memory.workspace.states());
        let mut end = 0;
        for (turn, rows) in turns.iter_mut().zip(lengths) {
            let own: Range<usize> = end..end + rows;
            end = own.end;
            turn.generating.computed.trace.extend(&trace, &own);
        }
        let mut chosen = memory.workspace.chosen().iter().copied();
        let token = |chooses: bool| if chooses { chosen.next() } else { None };
        Ok(choosing.into_iter().map(token).collect())
    }

    /// The tokens that these states lead to, each chosen where all else of its sequence is: a look is at that
    /// place.
    fn draw(
        &self,
        generating: &[&Generating],
        states: &[f32],
        logits: &mut Vec<f32>,
    ) -> Vec<Result<u32, Fault>> {
        let same = match generating {
            [first, others @ ..] => {
                let is_there = |other: &&Generating| other.computed.kv.is_with(&first.computed.kv);
                others
                    .iter()
                    .all(is_there)
                    .then(|| self.runs_of(&first.computed.kv))
            }
            [] => None,
        };
        let found = same.map_or(Err(Fault::Arithmetic(ArithmeticError::Shape)), |on| {
            on.logits(states, logits)
        });
        match found {
            Ok(()) => logits
                .par_chunks(self.model.vocabulary())
                .zip(generating)
                .map_init(Vec::new, |order, (logits, generating)| {
                    let index = count(generating.tokens.len());
                    let token = Sampler::new(&generating.task).token(index, logits, order);
                    token.map_err(Fault::from)
                })
                .collect(),
            Err(fault) if generating.len() == 1 => vec![Err(fault)],
            // They are not all in one place, or alone it shows whose fault it is.
            Err(_) => {
                let each = generating.chunks(1).zip(states.chunks(self.model.width()));
                each.flat_map(|(one, state)| self.draw(one, state, logits))
                    .collect()
            }
        }
    }

    fn add(&self, generating: &mut Generating, token: u32) -> u32 {
        generating.tokens.push(token);
        if self.ends(token) {
            generating.finish_reason = Some(FinishReason::Stop);
        } else if count(generating.tokens.len()) == generating.task.most() {
            generating.finish_reason = Some(FinishReason::Length);
        }
        token
    }
}

impl Turn<'_> {
    /// What it adds to the pass, of which so many more may choose a token by themselves.
    fn piece(&mut self, choices: &mut usize) -> Piece<'_> {
        // Who has nothing left to feed then chooses a token behind the last one.
        let ends = self.rows >= self.generating.pending();
        let chooses = ends && *choices > 0 && Sampler::new(&self.generating.task).is_greedy();
        *choices -= usize::from(chooses);
        let Generating {
            task,
            computed,
            tokens,
            ..
        } = &mut *self.generating;
        let tokens = next(task, tokens, computed.kv.len(), self.rows);
        Piece {
            kv: &mut computed.kv,
            tokens,
            states: usize::from(ends && !chooses),
            chooses,
        }
    }
}
