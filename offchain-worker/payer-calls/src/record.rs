//! How a provider has answered here, and how often it has not.

/// A failure counts half as much after so long.
pub(crate) const HALF_LIFE_MS: u64 = 300_000;

/// A failure, in thousandths.
pub(crate) const FAILURE: u32 = 1_000;

/// A request that is refused where the chain says that places are free: that may be a moment old, so that
/// only two of them are a failure, and any number no more. Whoever answers another between is only popular.
const REFUSAL: u32 = 400;

/// More failures than this say nothing more.
pub(crate) const FAILURES_MAX: u32 = 16 * FAILURE;

/// Whoever has failed so often, and has not answered between, gives its channel's place to others, and gets
/// none back for an hour: it may be this end's network that was down. Who has never answered does so at once,
/// and for a day: that is how long a channel takes to end.
const HOPELESS: u32 = 3 * FAILURE;
const HOPELESS_MS: u64 = 3_600_000;
const UNKNOWN_HOPELESS_MS: u64 = 86_400_000;

pub(crate) const fn is_failure(failures: u32) -> bool {
    failures >= FAILURE / 2
}

/// What is remembered of a provider while this program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    latency_ms: Option<u32>,
    /// In thousandths, as of the last of both.
    failures: u32,
    refusals: u32,
    failed_at_ms: u64,
    /// Both since it has answered last, in thousandths.
    in_a_row: u32,
}

impl Record {
    /// How long it has needed for its first words, the latest counting for a quarter.
    pub const fn latency_ms(&self) -> Option<u32> {
        self.latency_ms
    }

    /// How often it has failed of late, in thousandths. `now_ms` is of a clock that does not go back.
    pub fn failures(&self, now_ms: u64) -> u32 {
        let all = self.failures.saturating_add(self.refusals);
        all.checked_shr(self.halvings(now_ms)).unwrap_or_default()
    }

    fn halvings(&self, now_ms: u64) -> u32 {
        let halvings = now_ms.saturating_sub(self.failed_at_ms).checked_div(HALF_LIFE_MS);
        u32::try_from(halvings.unwrap_or_default()).unwrap_or(u32::MAX)
    }

    /// Whether it has failed in the last ten minutes, or more than once in longer.
    pub fn has_failed(&self, now_ms: u64) -> bool {
        is_failure(self.failures(now_ms))
    }

    /// Whether it has failed within a day, or again and again within an hour where it `has_answered` at any
    /// time, and has answered nothing since.
    pub fn is_hopeless(&self, has_answered: bool, now_ms: u64) -> bool {
        let (least, for_ms) = match has_answered || self.latency_ms.is_some() {
            true => (HOPELESS, HOPELESS_MS),
            false => (FAILURE, UNKNOWN_HOPELESS_MS),
        };
        self.in_a_row >= least && now_ms < self.failed_at_ms.saturating_add(for_ms)
    }

    /// It has said its first words.
    pub fn answered(&mut self, latency_ms: u32) {
        (self.refusals, self.in_a_row) = (0, 0);
        let before = self.latency_ms.unwrap_or(latency_ms);
        let mean = before.saturating_sub(before / 4).saturating_add(latency_ms / 4);
        self.latency_ms = Some(mean);
    }

    /// It has failed.
    pub fn failed(&mut self, now_ms: u64) {
        self.fails(now_ms, FAILURE);
        self.failures = self.failures.saturating_add(FAILURE).min(FAILURES_MAX);
    }

    /// It has refused a request though it says that it has a place.
    pub fn refused(&mut self, now_ms: u64) {
        self.fails(now_ms, REFUSAL);
        self.refusals = self.refusals.saturating_add(REFUSAL).min(FAILURE);
    }

    fn fails(&mut self, now_ms: u64, by: u32) {
        let halvings = self.halvings(now_ms);
        let left = |before: u32| before.checked_shr(halvings).unwrap_or_default();
        (self.failures, self.refusals) = (left(self.failures), left(self.refusals));
        self.in_a_row = self.in_a_row.saturating_add(by);
        self.failed_at_ms = now_ms;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_counts_more_than_what_is_taken_for_granted() {
        let mut record = Record::default();
        record.answered(200);
        assert_eq!(record.latency_ms(), Some(200));
        record.answered(1_000);
        assert_eq!(record.latency_ms(), Some(400));
    }

    #[test]
    fn two_refusals_are_a_failure_any_number_no_more_and_none_where_others_are_answered_between() {
        let mut record = Record::default();
        record.refused(0);
        assert!(!record.has_failed(0));
        record.refused(0);
        assert!(record.has_failed(0));
        (0..100).for_each(|_| record.refused(0));
        assert_eq!(record.failures(0), FAILURE);
        record.failed(0);
        assert_eq!(record.failures(0), 2 * FAILURE);
        record.answered(100);
        assert_eq!(record.failures(0), FAILURE);
        assert_eq!(record.failures(HALF_LIFE_MS), FAILURE / 2);
    }

    #[test]
    fn who_has_never_answered_is_hopeless_at_once_and_who_has_after_three_failures_in_a_row() {
        let mut record = Record::default();
        record.failed(0);
        assert!(
            record.is_hopeless(false, UNKNOWN_HOPELESS_MS - 1)
                && !record.is_hopeless(false, UNKNOWN_HOPELESS_MS)
        );
        // Over a channel, before this program began; and now.
        assert!(!record.is_hopeless(true, 0));
        record.answered(100);
        (0..2).for_each(|_| record.failed(0));
        assert!(!record.is_hopeless(false, 0));
        record.failed(0);
        assert!(record.is_hopeless(false, 0) && record.is_hopeless(true, 0));
        assert!(record.is_hopeless(true, HOPELESS_MS - 1) && !record.is_hopeless(true, HOPELESS_MS));
    }
}
