//! What a newcomer may earn with a model: by what was asked of it lately, what that paid, and who shared it.

use std::{cmp::Reverse, collections::BTreeSet};

use serde::Serialize;
use surety_chain_client::{AccountId, Balance, BlockNumber, TaskRecord};
use surety_types::{BLOCK_SECONDS, ModelId, TaskId, task::TaskState};

use super::super::payouts::{Payment, Payouts, payments};
use crate::amount::{Amount, Plancks};

const DAY_SECONDS: u32 = 86_400;
/// What is looked back at, at most.
const BLOCKS_MAX: BlockNumber = DAY_SECONDS / BLOCK_SECONDS;
/// Fewer settled tasks, or a shorter time, say nothing of the next day.
const TASKS_MIN: usize = 10;
const BLOCKS_MIN: BlockNumber = 3_600 / BLOCK_SECONDS;
/// Newest payments whose blocks are looked at for what auditors got.
const SPLITS_MAX: usize = 32;

/// The newest tasks on the chain, whatever model they ask for.
#[derive(Debug, Default)]
pub(super) struct Newest {
    pub(super) tasks: Vec<(TaskId, TaskRecord)>,
    /// Whether the chain keeps no others.
    pub(super) are_all: bool,
    /// Height of the block that they were read at.
    pub(super) now: BlockNumber,
    /// How long the chain keeps tasks that are over, in blocks, where that was set.
    pub(super) kept_blocks: Option<BlockNumber>,
    /// Providers that give signs of life, whatever they offer.
    pub(super) alive: usize,
}

/// What was asked of one model within the last so many blocks.
#[derive(Debug)]
pub(super) struct Market {
    blocks: BlockNumber,
    posted: usize,
    settled: usize,
    /// Units of each result that was paid for, newest first.
    results: Vec<(u32, Payment)>,
    alive: usize,
}

/// How fast this machine is with a model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speed {
    pub(super) units: u32,
    pub(super) millis: u64,
    /// Whether it was measured here, and not said or assumed.
    pub(super) is_measured: bool,
}

/// What a newcomer may earn. Amounts are in plancks, as text.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Estimate {
    /// With the lower price, where all providers that give signs of life share the work; and with the higher,
    /// where only those do that were paid. Less what auditors get, where that is known.
    per_day_least: Plancks,
    per_day_most: Plancks,
    hours: f64,
    tasks_per_hour: f64,
    /// A quarter of the results was paid less than the first, a quarter more than the second.
    price_per_unit_low: Plancks,
    price_per_unit_high: Plancks,
    /// Nothing where the node keeps none of the blocks that say it.
    auditors_share: Option<f64>,
    providers_paid: usize,
    providers_alive: usize,
    units_per_second: f64,
    is_speed_measured: bool,
}

impl Newest {
    /// What was asked of a model.
    pub(super) fn market(&self, model: ModelId) -> Market {
        let kept = self.kept_blocks.unwrap_or(BLOCKS_MAX);
        let mut since = self.now.saturating_sub(BLOCKS_MAX.min(kept));
        if !self.are_all {
            let oldest = self.tasks.iter().map(|(_, task)| task.posted_at).min();
            since = since.max(oldest.unwrap_or(self.now));
        }
        let is_recent =
            |(_, task): &&(TaskId, TaskRecord)| task.spec.model == model && task.posted_at >= since;
        let (mut posted, mut settled, mut results) = (0_usize, 0_usize, Vec::new());
        for task in self.tasks.iter().filter(is_recent) {
            posted = posted.saturating_add(1);
            if let TaskState::Settled { claim, .. } = &task.1.state {
                settled = settled.saturating_add(1);
                results.extend(payments(task).into_iter().map(|payment| (claim.units, payment)));
            }
        }
        results.sort_by_key(|(_, payment)| Reverse(payment.settled_at));
        Market {
            blocks: self.now.saturating_sub(since),
            posted,
            settled,
            results,
            alive: self.alive,
        }
    }
}

impl Market {
    /// The newest payments: who got them says what auditors get.
    pub(super) fn newest_payments(&self) -> Vec<Payment> {
        let newest = self.results.iter().take(SPLITS_MAX);
        newest.map(|(_, payment)| payment.clone()).collect()
    }

    /// What a newcomer that fast may earn.
    ///
    /// # Errors
    /// Why nothing can be said.
    pub(super) fn estimate(&self, payouts: Payouts, speed: Speed) -> Result<Estimate, String> {
        let seconds = self.blocks.saturating_mul(BLOCK_SECONDS);
        let mut prices: Vec<Balance> = self.results.iter().map(price_per_unit).collect();
        prices.sort_unstable();
        let (Some(low), Some(high), true) = (
            quarter(&prices, 1),
            quarter(&prices, 3),
            self.settled >= TASKS_MIN && self.blocks >= BLOCKS_MIN,
        ) else {
            let minutes = seconds / 60;
            return Err(format!(
                "too few tasks to say: {} for it were settled within the last {minutes} min, {TASKS_MIN} within an hour or \
                 more are needed",
                self.settled
            ));
        };
        let units: u128 = self.results.iter().map(|(units, _)| u128::from(*units)).sum();
        let units_a_day = units.saturating_mul(DAY_SECONDS.into()) / u128::from(seconds.max(1));
        let paid: BTreeSet<&AccountId> = self
            .results
            .iter()
            .map(|(_, payment)| &payment.provider)
            .collect();
        let told = payouts.to_auditors.saturating_add(payouts.kept);
        let part = |amount: Balance| match told {
            0 => amount,
            told => amount.saturating_mul(payouts.kept.saturating_mul(1_000_000) / told) / 1_000_000,
        };
        // The newcomer is one more.
        let earned = |sharing: usize, price: Balance| {
            let share = units_a_day / (sharing as u128).saturating_add(1);
            Plancks(part(share.min(speed.units_a_day()).saturating_mul(price)))
        };
        let hours = f64::from(seconds) / 3_600.0;
        Ok(Estimate {
            per_day_least: earned(self.alive.max(paid.len()), low),
            per_day_most: earned(paid.len(), high),
            hours,
            tasks_per_hour: self.posted as f64 / hours,
            price_per_unit_low: Plancks(low),
            price_per_unit_high: Plancks(high),
            auditors_share: (told > 0).then(|| payouts.to_auditors as f64 / told as f64),
            providers_paid: paid.len(),
            providers_alive: self.alive,
            units_per_second: speed.per_second(),
            is_speed_measured: speed.is_measured,
        })
    }
}

fn price_per_unit((units, payment): &(u32, Payment)) -> Balance {
    payment.price / Balance::from((*units).max(1))
}

/// What so many quarters of the values are below.
fn quarter(ascending: &[Balance], quarters: usize) -> Option<Balance> {
    let last = ascending.len().checked_sub(1)?;
    ascending.get(last.saturating_mul(quarters) / 4).copied()
}

impl Speed {
    fn units_a_day(self) -> u128 {
        let millis = u128::from(DAY_SECONDS).saturating_mul(1_000);
        u128::from(self.units).saturating_mul(millis) / u128::from(self.millis.max(1))
    }

    fn per_second(self) -> f64 {
        f64::from(self.units) * 1_000.0 / self.millis.max(1) as f64
    }
}

impl Estimate {
    /// What it comes to.
    pub(super) fn text(&self) -> String {
        let range = match self.per_day_least == self.per_day_most {
            true => format!("about {} a day", Amount(self.per_day_most.0)),
            false => format!(
                "{} to {} a day",
                Amount(self.per_day_least.0),
                Amount(self.per_day_most.0)
            ),
        };
        match self.auditors_share {
            Some(_) => format!("{range}, once its auditors have their part"),
            None => format!("{range}, of which its auditors get a part"),
        }
    }

    /// What that rests on.
    pub(super) fn reasons(&self) -> String {
        let auditors = match self.auditors_share {
            Some(share) => format!("{:.1} % of it for auditors", share * 100.0),
            None => "of which the node does not know what auditors got".into(),
        };
        format!(
            "{:.1} tasks an hour in the last {:.1} h, {} to {} a unit, {auditors}; {} providers were paid for it, {} give \
             signs of life; {:.1} units a second here, {}",
            self.tasks_per_hour,
            self.hours,
            Amount(self.price_per_unit_low.0),
            Amount(self.price_per_unit_high.0),
            self.providers_paid,
            self.providers_alive,
            self.units_per_second,
            match self.is_speed_measured {
                true => "as was measured",
                false => "which is assumed until it is measured",
            }
        )
    }
}

#[cfg(test)]
#[path = "estimate_tests.rs"]
mod tests;
