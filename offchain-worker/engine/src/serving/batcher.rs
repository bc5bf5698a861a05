//! The steps.

use std::{
    mem,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Instant,
};

use super::{
    ClientKey, Handle, Limits,
    admission::{Admission, Reservation},
    looks::{Looks, some_of},
    prefix::PrefixCache,
    share::{Want, share},
    stream::{Answer, End, Reader},
};
use crate::{
    error::EngineError,
    exact::{ExactLlama, Generating, StepMemory, Turn},
    pool::message,
};

/// A generation that has its memory.
struct Running {
    client: ClientKey,
    generating: Generating,
    reader: Reader,
    reservation: Reservation,
    /// The step that it was last part of.
    served: u64,
    /// Tokens after which what was computed is worth keeping.
    shared: Option<usize>,
    /// Tokens that a device has chosen and that were not passed on.
    held: Vec<u32>,
    /// Tokens that had gone through the model when the last ones were passed on.
    passed: usize,
    /// Whether none were.
    is_new: bool,
}

impl Running {
    /// Tokens that may go through the model in the next step. Pieces end where something is to be kept.
    fn rows(&self) -> usize {
        if !self.reader.has_room(self.held.len()) {
            return 0;
        }
        let until = self
            .shared
            .unwrap_or(usize::MAX)
            .saturating_sub(self.generating.fed());
        self.generating.pending().min(until)
    }

    /// Whether its first tokens are held back.
    fn holds_first(&self) -> bool {
        self.is_new && !self.held.is_empty()
    }

    /// Passes on what was held back.
    fn pass_on(&mut self) {
        let held = mem::take(&mut self.held);
        held.into_iter().for_each(|token| self.reader.pass_on(token));
        self.passed = self.generating.fed();
        self.is_new = false;
    }
}

/// Runs generations side by side, a step at a time. What is submitted to its [`Handle`]s begins in the next
/// step that there is memory for it.
pub struct Batcher {
    decoder: Arc<ExactLlama>,
    admission: Arc<Admission>,
    running: Vec<Running>,
    prefixes: PrefixCache,
    memory: StepMemory,
    looks: Looks,
    steps: u64,
}

impl Batcher {
    /// A batcher that has nothing to do.
    pub fn new(decoder: Arc<ExactLlama>, limits: Limits) -> Self {
        Self {
            memory: StepMemory::new(&decoder),
            decoder,
            admission: Arc::new(Admission::new(limits)),
            running: Vec::new(),
            prefixes: PrefixCache::new(limits.prefix_bytes_max),
            looks: Looks::default(),
            steps: 0,
        }
    }

    /// Takes requests.
    pub fn handle(&self) -> Handle {
        Handle {
            decoder: self.decoder.clone(),
            admission: self.admission.clone(),
        }
    }

    /// One step: a token for each generation whose prompt has been read and whose reader keeps up, and pieces
    /// of the others' prompts. `false` when there was nothing to do.
    ///
    /// It takes the threads of the rayon pool that it is called in.
    pub fn step(&mut self) -> bool {
        let _busy = self.admission.busy();
        self.end_gone();
        self.begin();
        let want = |running: &Running| Want {
            client: running.client,
            rows: running.rows(),
            served: running.served,
        };
        let wants: Vec<_> = self.running.iter().map(want).collect();
        let shares = share(&wants, self.admission.limits.step_rows.max(1));
        let fed: Vec<usize> = self
            .running
            .iter()
            .map(|running| running.generating.fed())
            .collect();
        let found = self.compute(&shares);
        let did = !found.is_empty();
        self.steps += u64::from(did);
        let rows = fed.into_iter().zip(shares).map(|(fed, rows)| fed..fed + rows);
        self.take(rows, found);
        let is_held = self.running.iter().any(|running| !running.held.is_empty());
        let holds_first = self.running.iter().any(Running::holds_first);
        // Where nobody can go on there is nothing to wait for.
        let looks = is_held && (!did || self.looks.is_due(holds_first));
        if looks {
            self.look();
        }
        did || looks
    }

    /// Runs steps until it is closed, and ends everything then.
    pub(super) fn run(&mut self) {
        while !self.admission.is_closed() {
            let changes = self.admission.changes();
            if !self.step() {
                self.admission.wait(changes);
            }
        }
        self.close();
    }

    /// Computes everybody's share of a step.
    fn compute(&mut self, shares: &[usize]) -> Vec<Result<Option<u32>, EngineError>> {
        let running = self.running.iter_mut().zip(shares);
        let mut turns: Vec<_> = running
            .filter(|(_, rows)| **rows > 0)
            .map(|(running, rows)| Turn {
                generating: &mut running.generating,
                rows: *rows,
            })
            .collect();
        if turns.is_empty() {
            return Vec::new();
        }
        let step = AssertUnwindSafe(|| self.decoder.step(&mut turns, &mut self.memory));
        catch_unwind(step).unwrap_or_else(|panic| {
            let panicked = || Err(EngineError::Panicked(message(&*panic)));
            turns.iter().map(|_| panicked()).collect()
        })
    }

    /// What a step has given those that had a share of it: these rows of theirs.
    fn take(
        &mut self,
        rows: impl Iterator<Item = Range<usize>>,
        found: Vec<Result<Option<u32>, EngineError>>,
    ) {
        let mut found = found.into_iter();
        for (mut running, rows) in mem::take(&mut self.running).into_iter().zip(rows) {
            let found = if rows.is_empty() { None } else { found.next() };
            match found {
                None => self.running.push(running),
                Some(Err(fault)) => {
                    let fault = self.who_fails(&running.generating, rows, fault);
                    running.reader.end(Err(fault));
                }
                Some(Ok(token)) => {
                    running.served = self.steps;
                    running.held.extend(token);
                    self.keep_shared(&mut running);
                    // Of a device's it is not known yet whether they are right.
                    match running.generating.is_on_device() {
                        true => self.running.push(running),
                        false => self.go_on(running),
                    }
                }
            }
        }
    }

    /// Why a generation ends. That a device has no result for something is told once the processor has none
    /// either.
    fn who_fails(&self, generating: &Generating, rows: Range<usize>, fault: EngineError) -> EngineError {
        match fault {
            EngineError::NotFinite { .. } | EngineError::Panicked(_) => {
                let checked = caught(|| self.decoder.recheck_fault(generating, rows));
                checked.err().unwrap_or(fault)
            }
            fault => fault,
        }
    }

    /// Passes on what a generation has chosen.
    fn go_on(&mut self, mut running: Running) {
        match running.generating.finish_reason() {
            Some(reason) => self.end(running, End::Finished(reason)),
            None => {
                running.pass_on();
                self.running.push(running);
            }
        }
    }

    /// Holds some of what devices have computed against the processor, and passes on what was held back, but
    /// for first words of which there are too many. Nothing of a device that is found out is passed on,
    /// whoever it was for.
    fn look(&mut self) {
        let begun = Instant::now();
        let mut new_left = self.admission.limits.new_looked_at.max(1);
        // Who came first is first among those that run.
        let is_next = |running: &mut Running| {
            let is_next = !running.holds_first() || new_left > 0;
            new_left -= usize::from(is_next && running.holds_first());
            is_next && !running.held.is_empty()
        };
        let mut held: Vec<Running> = self.running.extract_if(.., is_next).collect();
        // Of those that are done more is computed again, before anything is passed on to others.
        held.sort_by_key(|running| running.generating.finish_reason().is_none());
        let going_on = held.iter().filter(|running| !running.is_new).count();
        let mut drawn = some_of(going_on, self.admission.limits.looked_at).into_iter();
        let look = |running: &Running| {
            if running.is_new || drawn.next().unwrap_or(false) {
                caught(|| self.decoder.recheck_said(&running.generating, running.passed))
            } else {
                Ok(())
            }
        };
        let looked: Vec<_> = held.iter().map(look).collect();
        for (running, looked) in held.into_iter().zip(looked) {
            match looked.and_then(|()| running.generating.stands()) {
                Ok(()) => self.go_on(running),
                Err(fault) => running.reader.end(Err(fault)),
            }
        }
        self.looks.took(begun.elapsed());
    }

    fn begin(&mut self) {
        for (waiting, reservation) in self.admission.admit() {
            let copy = |computed: &_| self.decoder.copy(computed);
            let known = self.prefixes.find(waiting.client, waiting.request.prompt(), copy);
            let generating = self.decoder.begin(waiting.request, known.computed);
            self.running.push(Running {
                client: waiting.client,
                held: Vec::new(),
                passed: generating.fed(),
                is_new: true,
                generating,
                reader: waiting.reader,
                reservation,
                // Behind those that are waiting for their turn already.
                served: self.steps,
                shared: known.shared,
            });
        }
    }

    /// Ends those that nobody reads, and those whose device is used no more.
    fn end_gone(&mut self) {
        let is_over =
            |running: &mut Running| running.reader.is_gone() || running.generating.stands().is_err();
        let gone: Vec<_> = self.running.extract_if(.., is_over).collect();
        gone.into_iter()
            .for_each(|running| self.end(running, End::Cancelled));
        self.prefixes.forget_lost();
    }

    /// Keeps what a prompt has in common with another, once it has been computed.
    fn keep_shared(&mut self, running: &mut Running) {
        if running.shared == Some(running.generating.fed()) {
            running.shared = None;
            let (tokens, computed) = running.generating.computed();
            let bytes = self.decoder.computed_bytes(tokens.len());
            if self.prefixes.takes(tokens.len(), bytes)
                && let Some(computed) = self.decoder.copy(computed)
            {
                self.prefixes.keep(running.client, tokens, computed, bytes);
            }
        }
    }

    fn end(&mut self, mut running: Running, end: End) {
        if running.generating.is_on_device() && !running.reader.is_waited_for() {
            // Nothing is said of it, and nothing kept that was not looked at.
            return;
        }
        if let Err(fault) = caught(|| self.decoder.recheck_served(&running.generating)) {
            return running.reader.end(Err(fault));
        }
        running.pass_on();
        let Running {
            client,
            generating,
            reader,
            mut reservation,
            ..
        } = running;
        let (tokens, _) = generating.computed();
        let bytes = self.decoder.computed_bytes(tokens.len());
        let (generated, computed) = generating.into_generated();
        // A conversation goes on from here.
        self.prefixes.keep(client, tokens, computed, bytes);
        reservation.shrink(generated.bytes());
        reader.end(Ok(Answer {
            end,
            generated: Some(generated),
            _memory: Some(reservation),
        }));
    }

    fn close(&mut self) {
        let _busy = self.admission.busy();
        self.admission.close();
        for running in mem::take(&mut self.running) {
            self.end(running, End::Cut);
        }
    }
}

/// What a device has may be anything: a panic over it costs one generation.
fn caught(check: impl FnOnce() -> Result<(), EngineError>) -> Result<(), EngineError> {
    let checked = catch_unwind(AssertUnwindSafe(check));
    checked.unwrap_or_else(|panic| Err(EngineError::Panicked(message(&*panic))))
}

impl Drop for Batcher {
    /// Ends everything with what there is of it.
    fn drop(&mut self) {
        self.close();
    }
}
