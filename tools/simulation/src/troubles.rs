//! What befalls the honest by nobody's doing: standstills of finality, and models that nobody may audit.

use sp_arithmetic::Perquintill;
use surety_audit_economics::AuditPolicy;

use crate::life::Life;

/// Blocks of the clock that may pass at once when finality is back.
const CATCH_UP: u32 = 6;

impl Life<'_> {
    /// Finality stands still while an honest party has something to do, which takes at most a third of its
    /// window: what it does rests on final state, so that it waits as long.
    pub fn stall(&mut self) {
        self.tally.stalls += 1;
        let blocks = self.rules.blocks;
        let windows = [blocks.audit, blocks.reveal, blocks.opening, blocks.clock];
        let place = self.dice.below(4) as usize;
        let window = windows.get(place).copied().unwrap_or(blocks.clock);
        let work = 1 + self.dice.below(window / 3);
        let lasts = 1 + self.dice.below(10 * window);
        let counted = if self.rules.running_clock {
            lasts.min(CATCH_UP)
        } else {
            lasts
        };
        self.tally.honest_slashes += u64::from(work + counted > window);
    }

    /// The task is posted for a model that any part of the verifiers may be able to audit, and again for its
    /// own when it is refused. A task that is taken where nobody honest may audit it is a loss.
    pub fn post_somewhere(&mut self) {
        let policy = AuditPolicy {
            able: Perquintill::from_percent(self.dice.below(101).into()),
            ..self.rules.policy.clone()
        };
        let terms = self.market.terms();
        let plan = policy.plan(
            self.market.level,
            self.market.clean_tasks,
            &terms,
            self.market.stake,
        );
        self.tally.refusals += u64::from(plan.is_err());
        self.tally.honest_slashes += u64::from(plan.is_ok() && policy.able <= policy.corrupt);
    }
}
