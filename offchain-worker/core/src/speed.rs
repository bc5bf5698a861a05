//! How long work takes on this machine: as its owner says, until it has been measured.

use std::collections::BTreeMap;

use surety_types::{ModelId, model::Operation, task::TaskSpec};

use crate::Offer;

/// Models and operations whose speed is remembered.
const MEASURED_MAX: usize = 256;
/// What was measured before counts for so much, in eighths, when something new is measured.
const KEPT_EIGHTHS: u64 = 7;
/// For how much measured time the owner's word counts.
const PRIOR_MILLIS: u64 = 2_000;

/// Measured speeds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Speeds(BTreeMap<(ModelId, Operation), Measured>);

/// Work and time of the last runs, the older the less they count. Long runs count more than short ones, whose
/// time is mostly overhead.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    milliunits: u64,
    millis: u64,
}

impl Speeds {
    pub fn measure(&mut self, model: ModelId, operation: Operation, units: u32, millis: u64) {
        let key = (model, operation);
        if self.0.len() >= MEASURED_MAX && !self.0.contains_key(&key) {
            return;
        }
        let of = self.0.entry(key).or_default();
        let kept = |before: u64| before / 8 * KEPT_EIGHTHS;
        of.milliunits = kept(of.milliunits).saturating_add(u64::from(units).saturating_mul(1000));
        of.millis = kept(of.millis).saturating_add(millis.max(1));
    }

    /// Milliseconds of computing that a task takes at most, as far as that was measured.
    pub fn measured(&self, spec: &TaskSpec) -> Option<u64> {
        let of = self.0.get(&(spec.model, spec.operation))?;
        let needed = u128::from(spec.units_max)
            .saturating_mul(1000)
            .saturating_mul(of.millis.into());
        let millis = needed.div_ceil(u128::from(of.milliunits).max(1));
        Some(u64::try_from(millis).unwrap_or(u64::MAX))
    }

    /// The same, for which the owner's word counts until it is measured.
    pub fn millis(&self, spec: &TaskSpec, offer: &Offer) -> u64 {
        let key = (spec.model, spec.operation);
        let measured = self.0.get(&key).copied().unwrap_or_default();
        let prior = PRIOR_MILLIS.saturating_mul(offer.units_per_second.max(1).into());
        let milliunits = u128::from(measured.milliunits.saturating_add(prior));
        let millis = u128::from(measured.millis.saturating_add(PRIOR_MILLIS));
        let needed = u128::from(spec.units_max)
            .saturating_mul(1000)
            .saturating_mul(millis);
        u64::try_from(needed.div_ceil(milliunits)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use sp_core::H256;

    use super::*;

    fn spec(units_max: u32) -> TaskSpec {
        TaskSpec {
            model: H256([1; 32]),
            operation: Operation::Embed,
            input: H256([2; 32]),
            input_bytes: 1,
            units_max,
            redundancy: 1,
            sources: Default::default(),
            security: Default::default(),
            requirements: Default::default(),
        }
    }

    fn offer(units_per_second: u32) -> Offer {
        Offer {
            price: 1,
            seconds_ahead: 0,
            units_per_second,
        }
    }

    #[test]
    fn the_owners_word_counts_until_it_is_measured() {
        let mut speeds = Speeds::default();
        assert_eq!(speeds.measured(&spec(100)), None);
        assert_eq!(speeds.millis(&spec(100), &offer(20)), 5_000);
        assert_eq!(speeds.millis(&spec(100), &offer(0)), 100_000);
        for _ in 0..20 {
            // Ten times as slow.
            speeds.measure(H256([1; 32]), Operation::Embed, 100, 50_000);
        }
        let millis = speeds.millis(&spec(100), &offer(20));
        assert!((45_000..=50_000).contains(&millis), "{millis}");
        let measured = speeds.measured(&spec(100));
        assert!(
            measured.is_some_and(|millis| (49_990..=50_000).contains(&millis)),
            "{measured:?}"
        );
        // Another operation is another matter.
        let generate = TaskSpec {
            operation: Operation::Generate,
            ..spec(100)
        };
        assert_eq!(speeds.millis(&generate, &offer(20)), 5_000);
    }

    #[test]
    fn numbers_at_the_limits_do_not_overflow() {
        let mut speeds = Speeds::default();
        for _ in 0..100 {
            speeds.measure(H256([1; 32]), Operation::Embed, u32::MAX, u64::MAX);
        }
        speeds.millis(&spec(u32::MAX), &offer(u32::MAX));
        assert!(speeds.measured(&spec(u32::MAX)) > Some(u64::from(u32::MAX)));
        speeds.measure(H256([1; 32]), Operation::Embed, 0, 0);
    }
}
