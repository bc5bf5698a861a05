//! When what devices have computed is held against the processor, and whose.

use std::time::{Duration, Instant};

use crate::exact::random_below;

/// Devices work so many times as long as they are looked at, while they have something to do.
const WORK: u32 = 3;

/// But no longer than this while somebody waits for the first words of an answer.
const NEW_WAIT: Duration = Duration::from_secs(2);

/// When to look next.
#[derive(Default)]
pub(super) struct Looks {
    /// The end of the last time, and how long that took.
    last: Option<(Instant, Duration)>,
}

impl Looks {
    /// Whether it is time to, where first words are held back or not.
    pub(super) fn is_due(&self, holds_first: bool) -> bool {
        let most = if holds_first { NEW_WAIT } else { Duration::MAX };
        self.last
            .is_none_or(|(end, took)| end.elapsed() >= took.saturating_mul(WORK).min(most))
    }

    /// It has taken so long.
    pub(super) fn took(&mut self, time: Duration) {
        self.last = Some((Instant::now(), time));
    }
}

/// For each of `count` whether it is one of those that were drawn, `drawn` of them at most.
pub(super) fn some_of(count: usize, drawn: usize) -> Vec<bool> {
    let mut is_drawn = vec![false; count];
    for end in count.saturating_sub(drawn)..count {
        // As likely any of the first ones as the next, and that where the other was drawn already.
        let at = random_below(end + 1);
        let at = if is_drawn.get(at) == Some(&true) { end } else { at };
        if let Some(is_drawn) = is_drawn.get_mut(at) {
            *is_drawn = true;
        }
    }
    is_drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_drawn_as_are_wanted_and_there_and_any_of_them() {
        for count in 0..9 {
            for drawn in 0..12 {
                let found = some_of(count, drawn);
                assert_eq!(found.len(), count);
                assert_eq!(found.iter().filter(|drawn| **drawn).count(), count.min(drawn));
            }
        }
        let mut often = [0; 5];
        for _ in 0..2_000 {
            for (often, drawn) in often.iter_mut().zip(some_of(5, 2)) {
                *often += u32::from(drawn);
            }
        }
        // 800 each: 16 deviations.
        let is_near = |often: &u32| (450..1_150).contains(often);
        assert!(often.iter().all(is_near), "{often:?}");
    }

    #[test]
    fn after_a_look_devices_work_three_times_as_long() {
        let mut looks = Looks::default();
        assert!(looks.is_due(false));
        looks.took(Duration::from_secs(600));
        assert!(!looks.is_due(false));
        looks.took(Duration::ZERO);
        assert!(looks.is_due(false));
    }

    #[test]
    fn who_waits_for_first_words_does_not_wait_for_a_long_look_three_times() {
        let end = Instant::now()
            .checked_sub(NEW_WAIT)
            .expect("a clock that began before");
        let looks = Looks {
            last: Some((end, Duration::from_secs(600))),
        };
        assert!(looks.is_due(true));
        assert!(!looks.is_due(false));
        let mut looks = looks;
        looks.took(Duration::from_secs(600));
        assert!(!looks.is_due(true), "devices work in between");
    }
}
