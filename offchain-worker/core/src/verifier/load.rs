//! How much a verifier may have to compute at once.
//!
//! Whoever has computed some items and is shown nothing of the provider's trace computes all, or loses its
//! bond. Several silent providers at once must not make that more than the time for openings has room for:
//! each audit of items counts as work of the whole from when it is begun until it is compared, or until the
//! game about it is over where it is played without what the provider has shown.

use surety_audit_economics::OFFERED_SLACK;
use surety_types::{TaskId, input::WORD_BYTES};

use super::Verifier;
use crate::{Hash, TaskSnapshot};

/// How much of the time for openings is filled, in per cent. The rest is for looking for what is not served,
/// and for an audit that has begun.
const FILLED_PERCENT: u64 = 75;

impl Verifier {
    /// Takes on audits of items that fit, in the order of their tasks.
    pub(super) fn take_duties(&mut self) {
        let places = self.config.computing_max.max(1) as u64;
        let seconds = u64::from(self.config.opening_seconds).saturating_mul(places);
        let room = seconds.saturating_mul(10 * FILLED_PERCENT);
        let (stash, clock) = (&self.config.stash, self.clocks.finalized);
        let mut millis = 0u64;
        let mut offered: Vec<(TaskId, Hash, u64)> = Vec::new();
        for (task, entry) in &self.tasks {
            let duties: Vec<_> = entry.duties(stash, clock).collect();
            let Some(seen) = entry.seen().filter(|_| !duties.is_empty()) else {
                continue;
            };
            let whole = self.millis_of_all(seen);
            for (key, is_taken) in duties {
                match is_taken {
                    true => millis = millis.saturating_add(whole),
                    false => offered.push((*task, key, whole)),
                }
            }
        }
        for (task, key, whole) in offered {
            let all = millis.saturating_add(whole);
            if all > room {
                continue;
            }
            millis = all;
            if let Some(entry) = self.tasks.get_mut(&task) {
                entry.take_on(key);
            }
        }
    }

    /// Milliseconds that all of a task takes, as far as audits have been measured here. Speed is measured by
    /// items, and those may have been shorter than this task's: no less is counted than its tokens take a
    /// machine that is just fast enough to offer audits.
    fn millis_of_all(&self, seen: &TaskSnapshot) -> u64 {
        let spec = &seen.task.spec;
        let measured = self.role.speeds.measured(spec).unwrap_or(0);
        measured.max(slowest_millis(
            spec.input_bytes / WORD_BYTES,
            seen.task.audits.speed,
        ))
    }
}

/// Milliseconds that so many tokens take a machine that is just fast enough, where the reference machine does
/// `speed` of them in 1,000 seconds.
fn slowest_millis(tokens: u32, speed: u32) -> u64 {
    let reference_millis = u64::from(tokens).saturating_mul(1_000_000);
    reference_millis.saturating_mul(OFFERED_SLACK) / u64::from(speed).max(1)
}
