//! Which provider is asked: by price, by how soon it has answered, and by how often it has failed.

use crate::AccountId;

/// What a provider that nobody has asked yet is taken to need for its first words.
const LATENCY_UNKNOWN_MS: u32 = 1_000;

/// A failure counts half as much after so long.
const HALF_LIFE_MS: u64 = 300_000;

/// A failure, in thousandths.
const FAILURE: u32 = 1_000;

/// More of them than this say nothing more.
const FAILURES_MAX: u32 = 16 * FAILURE;

/// A provider that could be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its stash.
    pub provider: AccountId,
    /// What it asks for a unit, in plancks.
    pub unit_price: u128,
    /// How long it has needed for its first words, where it was asked.
    pub latency_ms: Option<u32>,
    /// How often it has failed of late, in thousandths.
    pub failures: u32,
    /// Whether a channel to it is open.
    pub has_channel: bool,
    /// Whether it has said that a place is free.
    pub has_place: bool,
}

impl Candidate {
    /// Whether it has failed in the last ten minutes, or more than once in longer.
    pub const fn has_failed(&self) -> bool {
        self.failures >= FAILURE / 2
    }

    /// The lower the better: its price, times a second and what it needs for its first words, times the
    /// square of one and its failures. Half as much again where a channel has to be opened first; twice where
    /// it has said that all its places are taken.
    pub fn score(&self) -> u128 {
        let latency = self.latency_ms.unwrap_or(LATENCY_UNKNOWN_MS);
        let failures = u128::from(self.failures.saturating_add(FAILURE));
        let mut score = self.unit_price.max(1);
        score = score.saturating_mul(u128::from(latency).saturating_add(1_000));
        score = score.saturating_mul(failures).saturating_mul(failures);
        score = score.saturating_mul(if self.has_channel { 2 } else { 3 });
        score.saturating_mul(if self.has_place { 1 } else { 2 })
    }
}

/// The best first. Of two that are as good the order is that of their accounts.
pub fn rank(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    candidates.sort_by_cached_key(|candidate| (candidate.score(), candidate.provider.clone()));
    candidates
}

/// What is remembered of a provider while this program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    latency_ms: Option<u32>,
    failures: u32,
    failed_at_ms: u64,
}

impl Record {
    /// How long it has needed for its first words, the latest counting for a quarter.
    pub const fn latency_ms(&self) -> Option<u32> {
        self.latency_ms
    }

    /// How often it has failed of late, in thousandths. `now_ms` is of a clock that does not go back.
    pub fn failures(&self, now_ms: u64) -> u32 {
        let halvings = now_ms.saturating_sub(self.failed_at_ms).checked_div(HALF_LIFE_MS);
        let halvings = u32::try_from(halvings.unwrap_or_default()).unwrap_or(u32::MAX);
        self.failures.checked_shr(halvings).unwrap_or_default()
    }

    /// It has said its first words.
    pub fn answered(&mut self, latency_ms: u32) {
        let before = self.latency_ms.unwrap_or(latency_ms);
        let mean = before.saturating_sub(before / 4).saturating_add(latency_ms / 4);
        self.latency_ms = Some(mean);
    }

    /// It has failed.
    pub fn failed(&mut self, now_ms: u64) {
        self.failures = self.failures(now_ms).saturating_add(FAILURE).min(FAILURES_MAX);
        self.failed_at_ms = now_ms;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_candidate() -> impl Strategy<Value = Candidate> {
        (
            any::<[u8; 32]>(),
            0u128..1_000_000_000_000,
            proptest::option::of(0u32..60_000),
            0u32..=FAILURES_MAX,
            any::<bool>(),
            any::<bool>(),
        )
            .prop_map(
                |(provider, unit_price, latency_ms, failures, has_channel, has_place)| Candidate {
                    provider: provider.into(),
                    unit_price,
                    latency_ms,
                    failures,
                    has_channel,
                    has_place,
                },
            )
    }

    proptest! {
        #[test]
        fn who_is_worse_in_one_thing_and_as_good_in_all_others_never_comes_first(
            one in any_candidate(), what in 0usize..5, more in 1u32..1_000,
        ) {
            let mut worse = one.clone();
            worse.provider = [7; 32].into();
            match what {
                0 => worse.unit_price += u128::from(more),
                1 => worse.latency_ms = Some(one.latency_ms.unwrap_or(LATENCY_UNKNOWN_MS) + more),
                2 => worse.failures += more,
                3 => worse.has_channel = false,
                _ => worse.has_place = false,
            }
            prop_assert!(worse.score() >= one.score());
        }

        #[test]
        fn all_are_ranked_the_best_first(candidates in prop::collection::vec(any_candidate(), 0..20)) {
            let ranked = rank(candidates.clone());
            prop_assert!(ranked.is_sorted_by_key(Candidate::score));
            prop_assert_eq!(ranked.len(), candidates.len());
            prop_assert!(candidates.iter().all(|candidate| ranked.contains(candidate)));
        }
    }

    #[test]
    fn a_provider_that_fails_is_asked_after_one_that_is_dearer_and_again_once_that_is_long_ago() {
        let candidate = |seed: u8, unit_price, failures| Candidate {
            provider: [seed; 32].into(),
            unit_price,
            latency_ms: Some(400),
            failures,
            has_channel: true,
            has_place: true,
        };
        let mut record = Record::default();
        record.failed(1_000);
        let first = |now| {
            let ranked = rank(vec![
                candidate(1, 100, record.failures(now)),
                candidate(2, 250, 0),
            ]);
            ranked.first().map(|candidate| candidate.unit_price)
        };
        assert_eq!(first(1_000), Some(250));
        assert_eq!(first(1_000 + HALF_LIFE_MS), Some(100));
        assert_eq!(record.failures(u64::MAX), 0);
    }

    #[test]
    fn what_was_measured_counts_more_than_what_is_taken_for_granted() {
        let mut record = Record::default();
        record.answered(200);
        assert_eq!(record.latency_ms(), Some(200));
        record.answered(1_000);
        assert_eq!(record.latency_ms(), Some(400));
    }
}
