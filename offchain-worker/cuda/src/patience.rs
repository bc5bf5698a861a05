//! Waiting for what may never come.

use std::time::Duration;

/// How long a device may take to answer: what it is given before somebody waits for it takes seconds.
pub const ANSWER_MAX: Duration = Duration::from_secs(300);

/// So long nobody sleeps: a step of a small model ends within it.
#[cfg(any(test, feature = "cuda"))]
const AWAKE: Duration = Duration::from_millis(2);
/// A sleep is so small a part of what was waited, so that what comes is seen little later.
#[cfg(any(test, feature = "cuda"))]
const SLEEP_PART: u32 = 32;
/// And never longer.
#[cfg(any(test, feature = "cuda"))]
const SLEEP_MAX: Duration = Duration::from_millis(5);

/// Asks again and again whether something is there, for so long at most: whether it has come.
///
/// # Errors
/// Those of who is asked.
#[cfg(any(test, feature = "cuda"))]
pub(crate) fn wait<E>(most: Duration, mut is_there: impl FnMut() -> Result<bool, E>) -> Result<bool, E> {
    let begun = std::time::Instant::now();
    loop {
        // Before it is asked: this process may be stopped in between, and what came meanwhile is there.
        let waited = begun.elapsed();
        if is_there()? {
            return Ok(true);
        }
        if waited >= most {
            return Ok(false);
        }
        if waited < AWAKE {
            std::thread::yield_now();
        } else {
            std::thread::sleep((waited / SLEEP_PART).min(SLEEP_MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn what_comes_is_seen_and_what_fails_is_told() {
        let mut asked = 0;
        let comes = |after: Duration| {
            let begun = Instant::now();
            wait::<()>(ANSWER_MAX, move || Ok(begun.elapsed() >= after))
        };
        assert_eq!(comes(Duration::ZERO), Ok(true));
        assert_eq!(comes(2 * AWAKE), Ok(true));
        let fails = wait(ANSWER_MAX, || {
            asked += 1;
            if asked < 3 { Ok(false) } else { Err("gone") }
        });
        assert_eq!((fails, asked), (Err("gone"), 3));
    }

    /// As a process is that was stopped meanwhile.
    #[test]
    fn what_came_before_it_was_asked_for_the_last_time_has_come() {
        let most = 2 * AWAKE;
        let mut asked = 0;
        let found = wait::<()>(most, || {
            asked += 1;
            if asked == 1 {
                std::thread::sleep(2 * most);
            }
            Ok(asked == 2)
        });
        assert_eq!((found, asked), (Ok(true), 2));
    }

    #[test]
    fn what_does_not_come_is_not_waited_for_without_end() {
        let begun = Instant::now();
        let most = 10 * AWAKE;
        assert_eq!(wait::<()>(most, || Ok(false)), Ok(false));
        assert!(begun.elapsed() >= most);
    }
}
