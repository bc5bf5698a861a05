//! Which provider is asked: by price, by how soon it has answered, by how often it has failed, by what the
//! chain remembers of it, and by where it says that it is.

use std::num::NonZeroU64;

use surety_channels::view::TrackRecord;

use crate::{
    AccountId,
    record::{FAILURE, is_failure},
};

/// What a provider that nobody has asked yet is taken to need for its first words.
const LATENCY_UNKNOWN_MS: u32 = 1_000;

/// Whoever has sold so many units, at its own price, in its newest batches is known by that. Selling to
/// oneself costs their levy, which is a percent or two.
const KNOWN_UNITS: u128 = 100_000;

/// Whoever has had the same stake and agent for so many blocks is known by that: a week.
const KNOWN_BLOCKS: u32 = 302_400;

/// In thousandths: what weighs against whoever is not known by what it has sold, not for how long it is
/// there, for each deadline of a task that it has missed, and for ever having been convicted. The first two
/// are small: a newcomer that asks a fifth less is as good as anybody.
const UNSOLD: u32 = 125;
const UNSETTLED: u32 = 125;
const MISSED: u32 = 125;
const CONVICTED: u32 = 1_000;

/// More missed deadlines than this say nothing more.
const MISSED_MAX: u32 = 8;

/// Whoever is worse than the best by more than this is not tried. A newcomer elsewhere, to whom no channel is
/// open and who asks a quarter more, is not, however good the best is: `2 * 5/4 * 3/2 * 2 * 5/4 < 10`.
const WORSE_MAX: u128 = 10;

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
    /// What the chain remembers of it.
    pub record: TrackRecord,
    /// Whether it says that it is where a provider is wanted, or that is anywhere.
    pub is_near: bool,
    /// Whether a channel to it is open.
    pub has_channel: bool,
    /// Whether it has said that a place is free.
    pub has_place: bool,
}

impl Candidate {
    /// Whether it has failed in the last ten minutes, or more than once in longer.
    pub const fn has_failed(&self) -> bool {
        is_failure(self.failures)
    }

    /// The lower the better: its price, times a second and what it needs for its first words, times the
    /// square of one and its failures, times one and what weighs against it by the chain. Half as much again
    /// where a channel has to be opened first; twice where it has said that all its places are taken, and
    /// where it is somewhere else than is wanted.
    pub fn score(&self) -> u128 {
        let latency = self.latency_ms.unwrap_or(LATENCY_UNKNOWN_MS);
        let failures = u128::from(self.failures.saturating_add(FAILURE));
        let against = u128::from(against(&self.record, self.unit_price));
        let mut score = self.unit_price.max(1);
        score = score.saturating_mul(u128::from(latency).saturating_add(1_000));
        score = score.saturating_mul(failures).saturating_mul(failures);
        score = score.saturating_mul(against.saturating_add(1_000));
        score = score.saturating_mul(if self.has_channel { 2 } else { 3 });
        score = score.saturating_mul(if self.has_place { 1 } else { 2 });
        score.saturating_mul(if self.is_near { 1 } else { 2 })
    }
}

/// What weighs against a provider that asks so much for a unit by what the chain remembers of it, in
/// thousandths.
fn against(record: &TrackRecord, unit_price: u128) -> u32 {
    let sold = record
        .settled
        .price
        .checked_div(unit_price.max(1))
        .unwrap_or_default();
    let unsold = KNOWN_UNITS.saturating_sub(sold).saturating_mul(UNSOLD.into());
    let unsold = unsold.div_ceil(KNOWN_UNITS);
    let unsettled = KNOWN_BLOCKS.saturating_sub(record.settled_for);
    let unsettled = u64::from(unsettled).saturating_mul(UNSETTLED.into());
    let unsettled = unsettled.div_ceil(KNOWN_BLOCKS.into());
    let new = u32::try_from(unsold).unwrap_or(UNSOLD);
    let new = new.saturating_add(u32::try_from(unsettled).unwrap_or(UNSETTLED));
    let missed = record.missed.min(MISSED_MAX).saturating_mul(MISSED);
    let convicted = if record.was_convicted { CONVICTED } else { 0 };
    new.saturating_add(missed).saturating_add(convicted)
}

/// The best first. Of two that are as good the order is that of their accounts. Nobody is among them who was
/// found at fault lately: what it loses for that may not be decided yet.
pub fn rank(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    candidates.retain(|candidate| candidate.record.faults == 0);
    candidates.sort_by_cached_key(|candidate| (candidate.score(), candidate.provider.clone()));
    candidates
}

/// Those of the ranked that may be asked for another reason than being the best: not ten times worse, with a
/// place, and they have not failed.
pub fn fit(ranked: &[Candidate]) -> impl Iterator<Item = &Candidate> {
    let most = ranked.first().map(|best| best.score().saturating_mul(WORSE_MAX));
    ranked.iter().filter(move |candidate| {
        let is_free = candidate.has_place && !candidate.has_failed();
        is_free && most.is_some_and(|most| candidate.score() <= most)
    })
}

/// Which of those that are ranked is chosen: the best, but for one time in so many (`tries`). Then it is any
/// that is [`fit`], all equally often: nobody is known who is never asked. Of those to whom no channel is
/// open only where one `may_open`.
pub fn chosen(
    ranked: &[Candidate],
    tries: Option<NonZeroU64>,
    may_open: bool,
    draw: u64,
) -> Option<&Candidate> {
    let best = ranked.first()?;
    let tries = match tries {
        Some(tries) if draw.checked_rem(tries.get()) == Some(0) => tries,
        _ => return Some(best),
    };
    let fit: Vec<&Candidate> = fit(ranked)
        .filter(|candidate| candidate.has_channel || may_open)
        .collect();
    let count = u64::try_from(fit.len()).unwrap_or(u64::MAX);
    let place = draw
        .checked_div(tries.get())
        .and_then(|draw| draw.checked_rem(count));
    let place = place.and_then(|place| usize::try_from(place).ok());
    let tried = place.and_then(|place| fit.get(place).copied());
    Some(tried.unwrap_or(best))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::record::{FAILURES_MAX, HALF_LIFE_MS, Record};
    use proptest::prelude::*;
    use surety_channels::Sums;

    fn any_record() -> impl Strategy<Value = TrackRecord> {
        let sold = prop_oneof![Just(0u128), 0..10u128.pow(18), any::<u128>()];
        (
            sold,
            any::<bool>(),
            prop_oneof![4 => Just(0u32), 1 => 1u32..9],
            0u32..20,
            prop_oneof![Just(0u32), any::<u32>()],
        )
            .prop_map(
                |(price, was_convicted, faults, missed, settled_for)| TrackRecord {
                    settled: Sums { receipts: 1, price },
                    batches: 1,
                    was_convicted,
                    faults,
                    missed,
                    settled_for,
                },
            )
    }

    fn any_candidate() -> impl Strategy<Value = Candidate> {
        (
            any::<[u8; 32]>(),
            prop_oneof![0u128..20, 0u128..1_000_000_000_000],
            proptest::option::of(0u32..60_000),
            prop_oneof![3 => Just(0), 1 => 0u32..=FAILURES_MAX],
            any_record(),
            any::<[bool; 3]>(),
        )
            .prop_map(
                |(provider, unit_price, latency_ms, failures, record, is)| Candidate {
                    provider: provider.into(),
                    unit_price,
                    latency_ms,
                    failures,
                    record,
                    is_near: is[0],
                    has_channel: is[1],
                    has_place: is[2],
                },
            )
    }

    /// Ways of being worse in one thing.
    const WAYS: usize = 11;

    fn worse(one: &Candidate, way: usize, more: u32) -> Candidate {
        let mut worse = one.clone();
        let record = &mut worse.record;
        match way {
            0 => worse.unit_price += u128::from(more),
            1 => worse.latency_ms = Some(one.latency_ms.unwrap_or(LATENCY_UNKNOWN_MS) + more),
            2 => worse.failures += more,
            3 => worse.has_channel = false,
            4 => worse.has_place = false,
            5 => worse.is_near = false,
            6 => record.settled.price = record.settled.price.saturating_sub(u128::from(more) << 30),
            7 => record.settled_for = record.settled_for.saturating_sub(more),
            8 => record.missed += more,
            9 => record.was_convicted = true,
            _ => record.faults += more,
        }
        worse
    }

    const TRIES: u64 = 4;

    /// How often each is chosen, of all that may be drawn: a multiple of how many there may be.
    fn shares(candidates: &[Candidate], may_open: bool) -> impl Fn(&Candidate) -> u64 {
        const DRAWS: u64 = TRIES * 60;
        let ranked = rank(candidates.to_vec());
        let draws = 0..DRAWS;
        let chosen = draws.filter_map(|draw| chosen(&ranked, NonZeroU64::new(TRIES), may_open, draw));
        let chosen: Vec<AccountId> = chosen.map(|of| of.provider.clone()).collect();
        assert!(chosen.is_empty() || chosen.len() as u64 == DRAWS);
        move |of| chosen.iter().filter(|provider| **provider == of.provider).count() as u64
    }

    fn candidates() -> impl Strategy<Value = Vec<Candidate>> {
        let unique = |all: &Vec<Candidate>| {
            all.iter().all(|one| {
                let same = all.iter().filter(|other| other.provider == one.provider);
                same.count() == 1
            })
        };
        prop::collection::vec(any_candidate(), 1..=6).prop_filter("accounts differ", unique)
    }

    proptest! {
        #[test]
        fn who_is_worse_in_one_thing_is_never_chosen_more_often(
            all in candidates(), way in 0..WAYS, more in 1u32..1_000_000, may_open: bool, at: prop::sample::Index,
        ) {
            let at = at.index(all.len());
            let mut changed = all.clone();
            changed[at] = worse(&all[at], way, more);
            let before = shares(&all, may_open)(&all[at]);
            let after = shares(&changed, may_open)(&changed[at]);
            prop_assert!(after <= before, "{after} > {before}");
        }

        #[test]
        fn whoever_was_found_at_fault_lately_is_never_chosen_and_somebody_else_always_is(
            all in candidates(), may_open: bool,
        ) {
            let share = shares(&all, may_open);
            for one in &all {
                prop_assert!(one.record.faults == 0 || share(one) == 0);
            }
            let is_any = all.iter().any(|one| one.record.faults == 0);
            prop_assert_eq!(all.iter().map(&share).sum::<u64>() > 0, is_any);
        }

        #[test]
        fn a_newcomer_that_asks_no_more_than_the_best_has_its_share_of_the_tries_and_of_nothing_else(
            mut all in candidates(), provider: [u8; 32], is_near: bool, has_channel: bool,
        ) {
            all.retain(|one| one.record.faults == 0 && one.provider != provider.into());
            all.truncate(5);
            let best = rank(all.clone()).into_iter().next();
            prop_assume!(best.is_some());
            let best = best.unwrap();
            let newcomer = Candidate {
                provider: provider.into(),
                unit_price: best.unit_price,
                latency_ms: None,
                failures: 0,
                record: TrackRecord::default(),
                is_near,
                has_channel,
                has_place: true,
            };
            all.push(newcomer.clone());
            let share = shares(&all, true);
            let all_draws: u64 = all.iter().map(&share).sum();
            prop_assert!(share(&newcomer) * TRIES * all.len() as u64 >= all_draws);
            // And all that are not the best have no more than the tries together.
            let first = rank(all.clone()).into_iter().next().unwrap();
            prop_assert!(share(&first) * TRIES >= all_draws * (TRIES - 1));
        }

        #[test]
        fn all_are_ranked_the_best_first(candidates in prop::collection::vec(any_candidate(), 0..20)) {
            let ranked = rank(candidates.clone());
            let may_be = candidates.iter().filter(|candidate| candidate.record.faults == 0);
            prop_assert!(ranked.is_sorted_by_key(Candidate::score));
            prop_assert_eq!(ranked.len(), may_be.clone().count());
            prop_assert!(may_be.clone().all(|candidate| ranked.contains(candidate)));
        }

        #[test]
        fn what_the_chain_remembers_weighs_no_more_than_it_should(record in any_record(), price in 0u128..1 << 60) {
            let most = UNSOLD + UNSETTLED + MISSED_MAX * MISSED + CONVICTED;
            prop_assert!(against(&record, price) <= most);
            prop_assert_eq!(against(&TrackRecord::default(), price), UNSOLD + UNSETTLED);
        }
    }

    fn candidate(seed: u8, unit_price: u128, failures: u32) -> Candidate {
        Candidate {
            provider: [seed; 32].into(),
            unit_price,
            latency_ms: Some(400),
            failures,
            record: TrackRecord::default(),
            is_near: true,
            has_channel: true,
            has_place: true,
        }
    }

    #[test]
    fn a_provider_that_fails_is_asked_after_one_that_is_dearer_and_again_once_that_is_long_ago() {
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
    fn whoever_is_known_may_ask_a_quarter_more_and_one_that_was_convicted_has_to_ask_half() {
        let known = |seed, unit_price| {
            let mut known = candidate(seed, unit_price, 0);
            known.record.settled.price = KNOWN_UNITS * unit_price;
            known.record.settled_for = KNOWN_BLOCKS;
            known
        };
        assert!(known(1, 124).score() < candidate(2, 100, 0).score());
        assert!(known(1, 126).score() > candidate(2, 100, 0).score());
        let mut convicted = known(3, 100);
        convicted.record.was_convicted = true;
        assert!(convicted.score() < known(1, 201).score());
        assert!(convicted.score() > known(1, 199).score());
    }

    #[test]
    fn without_tries_the_best_is_always_chosen_and_nobody_gets_a_channel_for_a_try_who_may_not() {
        let mut newcomer = candidate(2, 100, 0);
        newcomer.has_channel = false;
        let ranked = rank(vec![candidate(1, 100, 0), newcomer.clone()]);
        let tried = |tries, may_open| {
            let chosen = (0..64).filter_map(|draw| chosen(&ranked, NonZeroU64::new(tries), may_open, draw));
            chosen.filter(|one| **one == newcomer).count()
        };
        assert_eq!(
            [tried(0, true), tried(16, false), tried(16, true), tried(1, true)],
            [0, 0, 2, 32]
        );
    }
}
