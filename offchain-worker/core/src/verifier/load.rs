//! How much a verifier may have to compute at once.
//!
//! Whoever has computed some items and is shown nothing of the provider's trace computes all, or loses its
//! bond. Several silent providers at once must not make that more than the time for openings has room for:
//! each audit of items counts as work of the whole from when its input is here until it is compared, or until
//! the game about it is over where it is played without what the provider has shown.
//!
//! What the whole is, only the input says: items may have ids in common, so that its size bounds nothing. So
//! inputs are fetched as long as there may be room, and only what fits beside what is owed is begun then.

use surety_audit_economics::{AuditWork, OFFERED_SLACK};
use surety_types::TaskId;

use super::{Verifier, audit_task::AuditTask, items::Duty};
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
        let mut owed = 0u64;
        let mut offered: Vec<(TaskId, Hash, u64)> = Vec::new();
        let mut unread = Vec::new();
        for (task, entry) in &self.tasks {
            let Some(seen) = entry.seen() else { continue };
            let whole = self.millis(seen, entry.tokens_at_most(seen));
            // A token at least for each of its items. Until its input is here it keeps nothing else out.
            let least = self.millis(seen, seen.task.spec.units_max.into());
            for (key, duty) in entry.duties(stash, clock) {
                match duty {
                    Duty::Owed => owed = owed.saturating_add(whole),
                    Duty::Offered => offered.push((*task, key, whole)),
                    Duty::Unread => unread.push((*task, key, least)),
                }
            }
        }
        for (task, key, whole) in offered {
            let all = owed.saturating_add(whole);
            if all > room {
                continue;
            }
            owed = all;
            self.set_fits(task, key, true);
        }
        for (task, key, least) in unread {
            self.set_fits(task, key, owed.saturating_add(least) <= room);
        }
    }

    fn set_fits(&mut self, task: TaskId, key: Hash, fits: bool) {
        if let Some(entry) = self.tasks.get_mut(&task) {
            entry.checks.entry(key).or_default().fits = fits;
        }
    }

    /// Milliseconds that all of a task of so many tokens takes, as far as audits have been measured here.
    /// Speed is measured by items, and those may have been shorter than this task's: no less is counted than
    /// its tokens take a machine that is just fast enough to offer audits.
    fn millis(&self, seen: &TaskSnapshot, tokens: u64) -> u64 {
        let measured = self.role.speeds.measured(&seen.task.spec).unwrap_or(0);
        measured.max(slowest_millis(tokens, seen.task.audits.speed))
    }
}

impl AuditTask {
    /// Takes in how many tokens the input has, once it is here; as many as the chain takes it to have, where
    /// nobody could count. What was to be audited was not held against the room that there is for so many.
    pub(super) fn count(&mut self, tokens: Option<u64>) {
        if self.tokens.is_some() {
            return;
        }
        self.tokens = tokens.or(self.seen().map(metered));
        for check in self.checks.values_mut() {
            check.fits = false;
        }
    }

    fn tokens_at_most(&self, seen: &TaskSnapshot) -> u64 {
        self.tokens.unwrap_or_else(|| metered(seen))
    }
}

/// The tokens for which the chain gives auditors time.
fn metered(seen: &TaskSnapshot) -> u64 {
    AuditWork::of(&seen.task.audits, seen.task.spec.units_max).tokens(u32::MAX)
}

/// Milliseconds that so many tokens take a machine that is just fast enough, where the reference machine does
/// `speed` of them in 1,000 seconds.
fn slowest_millis(tokens: u64, speed: u32) -> u64 {
    let reference_millis = tokens.saturating_mul(1_000_000);
    reference_millis.saturating_mul(OFFERED_SLACK) / u64::from(speed).max(1)
}
