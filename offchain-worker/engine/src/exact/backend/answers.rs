//! Whether a device answers what it is asked.

use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use surety_cuda::ANSWER_MAX;

/// How long a device may be silent while somebody waits for it.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// After this nothing new is given to it, until it answers: that goes to others, or to the processor.
    pub silent: Duration,
    /// After this it is used no more.
    pub lost: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            // What is asked at once takes seconds on the slowest, and a move of a dispute has minutes.
            silent: Duration::from_secs(30),
            lost: ANSWER_MAX,
        }
    }
}

/// What a device was asked, and when it has answered last.
#[derive(Debug)]
pub(super) struct Calls {
    begun: Instant,
    pub(super) patience: Patience,
    /// Calls that have not returned.
    open: AtomicUsize,
    /// When the last one returned, or the first of those that are open began: milliseconds from `begun`.
    heard: AtomicU64,
}

impl Calls {
    pub(super) fn new(patience: Patience) -> Self {
        Self {
            begun: Instant::now(),
            patience,
            open: AtomicUsize::new(0),
            heard: AtomicU64::new(0),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Begins a call, which ends when the answer is dropped.
    pub(super) fn begin(&self) -> Call<'_> {
        if self.open.load(Ordering::SeqCst) == 0 {
            self.heard.store(self.now(), Ordering::SeqCst);
        }
        self.open.fetch_add(1, Ordering::SeqCst);
        Call(self)
    }

    /// How long it has answered nothing of what it was asked.
    pub(super) fn silence(&self) -> Duration {
        if self.open.load(Ordering::SeqCst) == 0 {
            return Duration::ZERO;
        }
        let heard = self.heard.load(Ordering::SeqCst);
        Duration::from_millis(self.now().saturating_sub(heard))
    }
}

/// Something that a device was asked.
pub(super) struct Call<'a>(&'a Calls);

impl Drop for Call<'_> {
    fn drop(&mut self) {
        // Whoever begins meanwhile is waited for from now on.
        self.0.heard.store(self.0.now(), Ordering::SeqCst);
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}
