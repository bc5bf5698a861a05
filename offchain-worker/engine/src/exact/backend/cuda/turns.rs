//! Turns on a device: who waits for one while it does not answer is told.

use std::{
    sync::{Condvar, Mutex, PoisonError},
    time::Duration,
};

use super::locked;

/// How often who waits looks whether the device answers.
const LOOK: Duration = Duration::from_millis(100);

/// Something that is used by one at a time.
pub(super) struct Turns<T> {
    /// Nothing while somebody has it.
    free: Mutex<Option<T>>,
    returned: Condvar,
}

impl<T> Turns<T> {
    pub(super) fn new(value: T) -> Self {
        Self {
            free: Mutex::new(Some(value)),
            returned: Condvar::new(),
        }
    }

    /// Does something with it once nobody else has it. Nothing if somebody has it, and it does not answer.
    pub(super) fn take<R>(&self, answers: impl Fn() -> bool, run: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut free = locked(&self.free);
        while free.is_none() {
            if !answers() {
                return None;
            }
            let waited = self.returned.wait_timeout(free, LOOK);
            (free, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let value = free.take();
        drop(free);
        let mut turn = Turn { of: self, value };
        turn.value.as_mut().map(run)
    }
}

/// Who has it gives it back, also after a panic: what was computed before is void then.
struct Turn<'a, T> {
    of: &'a Turns<T>,
    value: Option<T>,
}

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        *locked(&self.of.free) = self.value.take();
        self.of.returned.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::{
        panic::{AssertUnwindSafe, catch_unwind},
        sync::mpsc,
        thread,
    };

    use super::*;

    #[test]
    fn who_waits_for_a_turn_is_told_when_the_device_does_not_answer() {
        let turns = Turns::new(1);
        let (has_it, begun) = mpsc::channel();
        let (go, wait) = mpsc::channel::<()>();
        thread::scope(|scope| {
            let turns = &turns;
            scope.spawn(move || {
                turns.take(
                    || true,
                    |_| {
                        has_it.send(()).ok();
                        wait.recv().ok();
                    },
                )
            });
            begun.recv().expect("it begins");
            assert_eq!(turns.take(|| false, |value| *value), None);
            drop(go);
            assert_eq!(turns.take(|| true, |value| *value), Some(1));
        });
        // Nobody has it.
        assert_eq!(turns.take(|| false, |value| *value), Some(1));
    }

    #[test]
    fn a_turn_that_panics_is_given_back() {
        let turns = Turns::new(1);
        let panics = AssertUnwindSafe(|| turns.take(|| true, |_| -> i32 { panic!("as asked for") }));
        assert!(catch_unwind(panics).is_err());
        assert_eq!(turns.take(|| true, |value| *value), Some(1));
    }
}
