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

impl Measured {
    fn add(&mut self, units: u32, millis: u64) {
        let kept = |before: u64| before / 8 * KEPT_EIGHTHS;
        self.milliunits = kept(self.milliunits).saturating_add(milliunits(units));
        self.millis = kept(self.millis).saturating_add(millis.max(1));
    }

    /// Milliseconds that so many units take, by the last runs; none where there were none.
    fn time(&self, units: u32) -> u64 {
        in_proportion(units, self.milliunits, self.millis)
    }
}

fn milliunits(units: u32) -> u64 {
    u64::from(units).saturating_mul(1000)
}

/// Milliseconds for so many units, where work and time are known.
fn in_proportion(units: u32, milliunits: u64, millis: u64) -> u64 {
    let needed = u128::from(units).saturating_mul(1000);
    let needed = needed.saturating_mul(millis.into());
    let time = needed.div_ceil(u128::from(milliunits).max(1));
    u64::try_from(time).unwrap_or(u64::MAX)
}

impl Speeds {
    /// Takes a run in.
    pub fn measure(&mut self, model: ModelId, operation: Operation, units: u32, millis: u64) {
        let Some(of) = self.of(model, operation) else {
            return;
        };
        of.add(units, millis);
    }

    /// Takes in a run that was stopped: so many units take longer than that. It makes nothing faster, and
    /// nothing more than half as fast: a machine may have been slow only for a while, and whoever bids for
    /// nothing any more never finds out. Who never ends a run in time would else believe in the last one that
    /// it did for ever.
    pub fn took_longer(&mut self, model: ModelId, operation: Operation, units: u32, millis: u64) {
        let Some(of) = self.of(model, operation) else {
            return;
        };
        let units = units.max(1);
        match of.time(units) {
            0 => of.add(units, millis),
            expected if expected < millis => {
                let slower = u128::from(of.millis)
                    .saturating_mul(millis.into())
                    .div_ceil(expected.into());
                let slower = u64::try_from(slower).unwrap_or(u64::MAX);
                of.millis = slower.min(of.millis.saturating_mul(2));
            }
            _ => {}
        }
    }

    /// What is known of a kind of work, where there is room for it.
    fn of(&mut self, model: ModelId, operation: Operation) -> Option<&mut Measured> {
        let key = (model, operation);
        if self.0.len() >= MEASURED_MAX && !self.0.contains_key(&key) {
            return None;
        }
        Some(self.0.entry(key).or_default())
    }

    /// Milliseconds of computing that a task takes at most, as far as that was measured.
    pub fn measured(&self, spec: &TaskSpec) -> Option<u64> {
        let of = self.0.get(&(spec.model, spec.operation))?;
        Some(of.time(spec.units_max))
    }

    /// The same, for which the owner's word counts until it is measured.
    pub fn millis(&self, spec: &TaskSpec, offer: &Offer) -> u64 {
        let key = (spec.model, spec.operation);
        let measured = self.0.get(&key).copied().unwrap_or_default();
        let prior = PRIOR_MILLIS.saturating_mul(offer.units_per_second.max(1).into());
        let milliunits = measured.milliunits.saturating_add(prior);
        let millis = measured.millis.saturating_add(PRIOR_MILLIS);
        in_proportion(spec.units_max, milliunits, millis)
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
    fn a_run_that_was_stopped_makes_what_is_expected_slower_by_no_more_than_half_and_never_faster() {
        let (model, embed) = (H256([1; 32]), Operation::Embed);
        let mut speeds = Speeds::default();
        speeds.took_longer(model, embed, 100, 60_000);
        assert_eq!(speeds.measured(&spec(100)), Some(60_000), "nothing else is known");

        let mut speeds = Speeds::default();
        for _ in 0..20 {
            speeds.measure(model, embed, 100, 1_000);
        }
        let millis = |speeds: &Speeds| speeds.measured(&spec(100)).unwrap_or_default();
        let before = millis(&speeds);
        speeds.took_longer(model, embed, 100, 900);
        assert_eq!(
            speeds.measured(&spec(100)),
            Some(before),
            "it was stopped before its time"
        );
        for times in [2, 4, 8] {
            speeds.took_longer(model, embed, 100, 400_000);
            let now = millis(&speeds);
            assert!(
                (times * before - times..=times * before + times).contains(&now),
                "{now}"
            );
        }
        speeds.took_longer(model, embed, 100, 10_000);
        assert!((9_990..=10_010).contains(&millis(&speeds)));
        // A machine that is fast again is found to be, run by run.
        for _ in 0..60 {
            speeds.measure(model, embed, 100, 1_000);
        }
        assert!(millis(&speeds) < 1_100);
    }

    #[test]
    fn numbers_at_the_limits_do_not_overflow() {
        let mut speeds = Speeds::default();
        speeds.took_longer(H256([1; 32]), Operation::Embed, 0, u64::MAX);
        speeds.millis(&spec(u32::MAX), &offer(u32::MAX));
        for _ in 0..100 {
            speeds.measure(H256([1; 32]), Operation::Embed, u32::MAX, u64::MAX);
        }
        speeds.millis(&spec(u32::MAX), &offer(u32::MAX));
        assert!(speeds.measured(&spec(u32::MAX)) > Some(u64::from(u32::MAX)));
        speeds.measure(H256([1; 32]), Operation::Embed, 0, 0);
    }
}
