//! What leaves a machine: into a bounded number of pieces of page-locked memory, taken by turns.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use surety_exact::ArithmeticError;

use crate::{
    Error,
    backend::{GpuBackend, Landing},
};

/// Passes whose results may be under way or looked at, at a time.
const SLOTS: usize = 4;
/// Most bytes of a slot. Passes that show more use ordinary memory.
const SLOT_BYTES_MAX: usize = 128 << 20;
/// Least bytes of a slot: what a pass of a small model shows.
const SLOT_BYTES_MIN: usize = 1 << 20;
/// How often who waits asks whether that still leads to something.
const LOOK: Duration = Duration::from_millis(100);

/// Slots that are given out and come back.
#[derive(Debug)]
struct Slots<L> {
    state: Mutex<State<L>>,
    returned: Condvar,
    bytes_max: usize,
}

#[derive(Debug)]
struct State<L> {
    /// Those that nobody has; nothing is one without memory yet.
    free: Vec<Option<L>>,
    /// The least that was not given, and what was said: it is not asked for as much again. Nothing at all
    /// where copies were refused.
    refused: Option<(usize, Error)>,
}

impl<L> Slots<L> {
    /// What a panic leaves is whole: each change is one step.
    fn state(&self) -> MutexGuard<'_, State<L>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A bounded number of slots for what leaves a machine.
#[derive(Debug)]
pub struct Ring<M: GpuBackend>(Arc<Slots<M::Landing>>);

impl<M: GpuBackend> Default for Ring<M> {
    fn default() -> Self {
        Self::new(SLOTS, SLOT_BYTES_MAX)
    }
}

impl<M: GpuBackend> Ring<M> {
    /// So many slots, at least one, of at most so many bytes. They have no memory until they are used.
    pub fn new(slots: usize, slot_bytes_max: usize) -> Self {
        Self(Arc::new(Slots {
            state: Mutex::new(State {
                free: (0..slots.max(1)).map(|_| None).collect(),
                refused: None,
            }),
            returned: Condvar::new(),
            bytes_max: slot_bytes_max,
        }))
    }

    /// A slot for what a pass shows. While others have all of them it waits, as long as the machine answers:
    /// whoever asks may not have one already, nor anything that those need who do. A thread that takes up the
    /// work of others while it waits for its own, as a pool's do, has that without knowing: it asks for a
    /// [`Ring::late_slot`].
    pub fn slot(&self, answers: impl Fn() -> bool) -> Option<Slot<M::Landing>> {
        let mut state = self.0.state();
        loop {
            if let Some(landing) = state.free.pop() {
                return Some(Slot {
                    of: self.0.clone(),
                    is_taken: true,
                    landing,
                });
            }
            if !answers() {
                return None;
            }
            let waited = self.0.returned.wait_timeout(state, LOOK);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A slot that is taken only when something leaves into it, if one is free then; if none is, that goes
    /// through ordinary memory. It never waits.
    pub fn late_slot(&self) -> Slot<M::Landing> {
        Slot {
            of: self.0.clone(),
            is_taken: false,
            landing: None,
        }
    }

    /// Slots that nobody has.
    pub fn free(&self) -> usize {
        self.0.state().free.len()
    }

    /// Why some of what leaves goes through ordinary memory, if the system gave no other.
    pub fn refused(&self) -> Option<Error> {
        self.0.state().refused.as_ref().map(|(_, error)| error.clone())
    }
}

/// A place for what leaves the machine. Its memory stays with it when it goes back.
#[derive(Debug)]
pub struct Slot<L: Landing> {
    of: Arc<Slots<L>>,
    /// Whether it is one of the ring's, to be given back.
    is_taken: bool,
    landing: Option<L>,
}

impl<L: Landing> Slot<L> {
    /// Whether it has memory for so many bytes: one that is taken late is taken now.
    pub(crate) fn has_room(&mut self, bytes: usize) -> bool {
        self.take();
        self.landing
            .as_ref()
            .is_some_and(|landing| landing.room() >= bytes)
    }

    /// Takes one of the ring's, unless it is one: whether it is one then.
    fn take(&mut self) -> bool {
        if !self.is_taken
            && let Some(landing) = self.of.state().free.pop()
        {
            self.landing = landing;
            self.is_taken = true;
        }
        self.is_taken
    }

    /// Memory for so many bytes, where a slot is free, there may be so much and the system gives it.
    pub(crate) fn room_for<M: GpuBackend<Landing = L>>(
        &mut self,
        machine: &mut M,
        bytes: usize,
    ) -> Result<Option<&mut L>, Error> {
        if bytes == 0 || bytes > self.of.bytes_max {
            return Ok(None);
        }
        if !self.take() {
            return Ok(None);
        }
        if self.landing.as_ref().is_none_or(|landing| landing.room() < bytes) {
            let wanted = bytes
                .next_power_of_two()
                .max(SLOT_BYTES_MIN)
                .min(self.of.bytes_max);
            let refused = self.of.state().refused.as_ref().map(|(least, _)| *least);
            if refused.is_some_and(|least| wanted >= least) {
                return Ok(None);
            }
            // The old one first: both may not fit.
            self.landing = None;
            match machine.landing(wanted) {
                Ok(landing) => self.landing = landing,
                Err(error @ Error::PinnedMemory(_)) => self.of.state().refused = Some((wanted, error)),
                Err(error @ Error::NoCopies(_)) => self.of.state().refused = Some((0, error)),
                Err(error) => return Err(error),
            }
        }
        Ok(self.landing.as_mut())
    }
}

impl<L: Landing> Drop for Slot<L> {
    fn drop(&mut self) {
        if !self.is_taken {
            return;
        }
        // What is still copied into it is not for the next one. Where that fails, so does the machine.
        let landing = self.landing.take();
        let landing = landing.and_then(|mut landing| landing.wait(0).is_ok().then_some(landing));
        self.of.state().free.push(landing);
        self.of.returned.notify_one();
    }
}

/// What has left a machine, or is on its way. It keeps its slot until it is dropped.
#[derive(Debug)]
pub struct Departed<L: Landing> {
    slot: Slot<L>,
    len: usize,
    /// All of it, where it went through ordinary memory.
    read: Option<Vec<u8>>,
}

impl<L: Landing> Departed<L> {
    pub(crate) fn copied(slot: Slot<L>, len: usize) -> Self {
        Self {
            slot,
            len,
            read: None,
        }
    }

    pub(crate) fn read(slot: Slot<L>, bytes: Vec<u8>) -> Self {
        Self {
            slot,
            len: bytes.len(),
            read: Some(bytes),
        }
    }

    /// Whether it went through page-locked memory.
    pub fn is_copied(&self) -> bool {
        self.read.is_none()
    }

    /// Waits until all of it is there. The machine may compute something else meanwhile.
    ///
    /// # Errors
    /// The machine's own.
    pub fn bytes(&mut self) -> Result<&[u8], Error> {
        match (&self.read, &mut self.slot.landing) {
            (Some(bytes), _) => Ok(bytes),
            (None, Some(landing)) => landing.wait(self.len),
            (None, None) => Err(ArithmeticError::Shape.into()),
        }
    }
}
