//! How much a verifier may have to compute at once.
//!
//! Whoever has sealed some items has to hold them against the provider's trace, or it loses its bond. What
//! that takes is demanded on chain where nobody serves it, so that an audit of items counts as the work of
//! those alone. Where the time for that was missed, all may have to be computed, and that is what counts
//! then: until it is compared, or until the game about it is over where it is played without what the
//! provider has shown. Several such providers at once must not be more than the time for openings has room
//! for.
//!
//! A whole that takes seconds is computed all the same where nobody serves: it costs less than the demand. It
//! takes no room from audits, and where there is none beside what is owed, the demand is made.
//!
//! What the whole is, only the input says: items may have ids in common, so that its size bounds nothing. So
//! inputs are fetched as long as there may be room, and only what fits beside what is owed is begun then.

use surety_audit_economics::{AuditWork, OFFERED_SLACK};
use surety_types::TaskId;

use super::{
    Verifier,
    audit_task::{AuditTask, Check},
    items::{Comes, Duty},
};
use crate::{Hash, TaskSnapshot};

/// How much of the time for openings is filled, in per cent. The rest is for looking for what is not served,
/// and for an audit that has begun.
const FILLED_PERCENT: u64 = 75;

/// A whole that takes no longer, in milliseconds, is computed rather than demanded. A demand costs whoever
/// makes it a mSURE at least, in fees and in its part of the price of what is shown, and its provider more. A
/// second of work is worth a tenth of that (`WorkPrice` of the chain's pallet `Results`).
const CHEAP_MILLIS: u64 = 10_000;

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
        let mut wholes = Vec::new();
        for (task, entry) in &self.tasks {
            let Some(seen) = entry.seen() else { continue };
            for (key, duty, comes) in entry.duties(stash, clock) {
                let items = match comes {
                    Comes::ToItems => entry.items_of(key),
                    Comes::ToAll => seen.task.spec.units_max,
                };
                let millis = self.millis(seen, entry.tokens_at_most(seen, items), items);
                match duty {
                    Duty::Owed => {
                        owed = owed.saturating_add(millis);
                        let all = seen.task.spec.units_max;
                        let whole = self.millis(seen, entry.tokens_at_most(seen, all), all);
                        wholes.push((*task, key, whole, whole.saturating_sub(millis)));
                    }
                    Duty::Offered => offered.push((*task, key, millis)),
                    // A token at least for each. Until its input is here it keeps nothing else out.
                    Duty::Unread => unread.push((*task, key, self.millis(seen, items.into(), items))),
                }
            }
        }
        for (task, key, millis) in offered {
            let all = owed.saturating_add(millis);
            if all > room {
                continue;
            }
            owed = all;
            self.set_fits(task, key, true);
        }
        for (task, key, least) in unread {
            self.set_fits(task, key, owed.saturating_add(least) <= room);
        }
        for (task, key, whole, more) in wholes {
            let all = owed.saturating_add(more);
            let is_cheap = whole <= CHEAP_MILLIS && all <= room;
            if is_cheap {
                owed = all;
            }
            self.change(task, key, |check| check.computes_all = is_cheap);
        }
    }

    fn set_fits(&mut self, task: TaskId, key: Hash, fits: bool) {
        self.change(task, key, |check| check.fits = fits);
    }

    fn change(&mut self, task: TaskId, key: Hash, change: impl FnOnce(&mut Check)) {
        if let Some(entry) = self.tasks.get_mut(&task) {
            change(entry.checks.entry(key).or_default());
        }
    }

    /// Milliseconds that so many items of a task take, of so many tokens, as far as audits have been measured
    /// here. Speed is measured by items, and those may have been shorter than this task's: no less is counted
    /// than their tokens take a machine that is just fast enough to offer audits.
    fn millis(&self, seen: &TaskSnapshot, tokens: u64, items: u32) -> u64 {
        let mut spec = seen.task.spec.clone();
        spec.units_max = spec.units_max.min(items);
        let measured = self.role.speeds.measured(&spec).unwrap_or(0);
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
        self.tokens = tokens.or(self.seen().map(|seen| metered(seen, u32::MAX)));
        for check in self.checks.values_mut() {
            check.fits = false;
        }
    }

    /// Most tokens of so many of its items.
    fn tokens_at_most(&self, seen: &TaskSnapshot, items: u32) -> u64 {
        let metered = metered(seen, items);
        match items < seen.task.spec.units_max {
            true => self.tokens.map_or(metered, |all| all.min(metered)),
            false => self.tokens.unwrap_or(metered),
        }
    }
}

/// The tokens for which the chain gives auditors of so many items time.
fn metered(seen: &TaskSnapshot, items: u32) -> u64 {
    AuditWork::of(&seen.task.audits, seen.task.spec.units_max).tokens(items)
}

/// Milliseconds that so many tokens take a machine that is just fast enough, where the reference machine does
/// `speed` of them in 1,000 seconds.
fn slowest_millis(tokens: u64, speed: u32) -> u64 {
    let reference_millis = tokens.saturating_mul(1_000_000);
    reference_millis.saturating_mul(OFFERED_SLACK) / u64::from(speed).max(1)
}
