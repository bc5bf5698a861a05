//! How far the chain is final, by what nodes have shown.
//!
//! A header comes without a proof, and what one node has called final is held against all others. So a number
//! is believed only where so many blocks can have been made by now.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use surety_chain_client::BlockNumber;
use surety_types::BLOCK_SECONDS;

const BLOCK: Duration = Duration::from_secs(BLOCK_SECONDS as u64);
/// Before the first block of any such chain, since 1970: the first of January 2025.
const BEGINNING: Duration = Duration::from_secs(1_735_689_600);
/// So much more may become final than was made since: for whoever begins while finality stands still. What is
/// used of it comes back with the time.
const AHEAD: Duration = Duration::from_secs(600);

/// The newest final block.
pub(super) struct Finality {
    newest: Shown,
    /// Since when nodes call blocks final that cannot be yet, while none has named one that can be.
    doubted: Option<Instant>,
}

/// A final block.
struct Shown {
    number: BlockNumber,
    /// When it was shown, since 1970, by a clock that goes on while the machine sleeps; or when so many
    /// blocks had been made at the earliest, if that is later.
    at: Duration,
}

impl Default for Finality {
    fn default() -> Self {
        Self {
            newest: Shown {
                number: 0,
                at: BEGINNING,
            },
            doubted: None,
        }
    }
}

impl Finality {
    /// Height of the newest final block.
    pub fn newest(&self) -> BlockNumber {
        self.newest.number
    }

    /// Takes note of a block that a node calls final; the newest one known before. Nothing where so many
    /// cannot have been made by now, unless nodes have said so for `patience` and none has denied it: what
    /// was known before may be of a node that was behind.
    pub fn note(&mut self, number: BlockNumber, patience: Duration) -> Option<BlockNumber> {
        let before = self.newest.number;
        if number <= before {
            self.doubted = None;
            return Some(before);
        }
        if number > self.newest.highest_by_now() && !self.is_undenied(patience) {
            return None;
        }
        self.believe(number);
        Some(before)
    }

    fn is_undenied(&mut self, patience: Duration) -> bool {
        let since = *self.doubted.get_or_insert_with(Instant::now);
        since.elapsed() >= patience
    }

    fn believe(&mut self, number: BlockNumber) {
        let more = number.saturating_sub(self.newest.number);
        let made = self.newest.at.saturating_add(BLOCK.saturating_mul(more));
        // What was not believed at first may be far ahead of time: that is forgotten.
        let at = now().max(made.min(now().saturating_add(AHEAD)));
        self.newest = Shown { number, at };
        self.doubted = None;
    }
}

impl Shown {
    /// The highest block that can be final by now.
    fn highest_by_now(&self) -> BlockNumber {
        let time = now().saturating_add(AHEAD).saturating_sub(self.at);
        self.number.saturating_add(made_in(time))
    }
}

/// Since 1970.
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Blocks that can be made in that time, at most.
fn made_in(time: Duration) -> BlockNumber {
    let blocks = time.as_secs() / BLOCK.as_secs().max(1);
    BlockNumber::try_from(blocks).unwrap_or(BlockNumber::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);
    const FALSE: BlockNumber = 4_000_000_000;

    #[test]
    fn more_than_can_be_final_is_believed_once_nobody_has_denied_it_for_long() {
        let mut finality = Finality::default();
        // Also by whoever has seen nothing yet.
        assert_eq!(finality.note(FALSE, HOUR), None);
        assert_eq!(finality.note(1_000_000, HOUR), Some(0));
        assert_eq!(finality.note(FALSE, HOUR), None);
        assert_eq!(finality.note(1_000_001, HOUR), Some(1_000_000));
        assert_eq!(finality.note(1_010_000, HOUR), None);
        // Somebody has named one that can be.
        assert_eq!(finality.note(1_000_001, HOUR), Some(1_000_001));
        assert_eq!(finality.note(1_010_000, HOUR), None);
        assert_eq!(finality.note(1_010_000, Duration::ZERO), Some(1_000_001));
        assert_eq!(finality.newest(), 1_010_000);
    }

    #[test]
    fn what_is_ahead_of_time_is_bounded_however_many_steps_it_is_taken_in() {
        let mut finality = Finality::default();
        assert_eq!(finality.note(1_000_000, HOUR), Some(0));
        let mut last = 1_000_000;
        for more in (1..).map(|step| 1_000_000 + 100 * step) {
            if finality.note(more, HOUR).is_none() {
                break;
            }
            last = more;
        }
        assert!((1_000_200..=1_000_400).contains(&last), "{last}");
    }
}
