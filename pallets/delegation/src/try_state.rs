//! The invariants of the README, one function each.

use alloc::collections::{BTreeMap, BTreeSet};
use frame_support::ensure;
use sp_runtime::TryRuntimeError;

use crate::{
    Buckets, Config, Delegators, Fund, Pallet, Pending, Pools, SLASHED_DAYS_MAX, STAKES_MAX, Stakes, Totals,
    TotalsRecord, asset,
    types::{Day, PLANCK_PARTS, PendingSlashes},
};

/// Shares, worth and number of all who have a part of a fund.
#[derive(Default)]
struct Holders {
    shares: u128,
    worth: u128,
    count: u128,
}

impl Holders {
    fn add(&mut self, fund: &Fund, shares: u128) {
        self.shares = self.shares.saturating_add(shares);
        self.worth = self.worth.saturating_add(fund.worth(shares));
        self.count = self.count.saturating_add(1);
    }

    /// Whether the fund is what they have, and more by less than a planck for each of them.
    fn have(&self, fund: &Fund) -> bool {
        let rest = fund.amount.checked_sub(self.worth);
        fund.amount <= fund.shares && rest.is_some_and(|rest| rest < self.count)
    }
}

impl<T: Config> Pallet<T> {
    /// Checks every invariant.
    pub fn do_try_state() -> Result<(), TryRuntimeError> {
        Self::pool_1_holds_are_recorded()?;
        Self::pool_2_shares_are_held()?;
        Self::pool_3_shares_are_worth_their_fund()?;
        Self::pool_4_the_pot_has_what_is_promised()?;
        Self::pool_5_the_totals_add_up()?;
        Self::pool_6_pending_slashes_are_counted()
    }

    fn pool_1_holds_are_recorded() -> Result<(), TryRuntimeError> {
        let held = Stakes::<T>::iter().map(|(who, stake)| (who, stake.held()));
        ensure!(
            asset::are_recorded::<T>(&held.collect()),
            "POOL-1: the hold differs from what is delegated and leaving"
        );
        Ok(())
    }

    fn pool_2_shares_are_held() -> Result<(), TryRuntimeError> {
        let mut listed: BTreeMap<(T::AccountId, T::AccountId), u128> = BTreeMap::new();
        for (operator, delegators) in Delegators::<T>::iter() {
            let shares = || delegators.iter().map(|(shares, _)| *shares);
            ensure!(
                !delegators.is_empty() && shares().zip(shares().skip(1)).all(|(less, more)| less <= more),
                "POOL-2: a list of delegators is empty or not sorted"
            );
            for (shares, delegator) in delegators {
                let doubled = listed.insert((operator.clone(), delegator), shares);
                ensure!(doubled.is_none(), "POOL-2: a delegator is listed twice");
            }
        }
        for (who, stake) in Stakes::<T>::iter() {
            let operators: BTreeSet<_> = stake.delegations.iter().map(|one| &one.operator).collect();
            let days: BTreeSet<_> = stake.leaving.iter().map(|one| (&one.operator, one.day)).collect();
            ensure!(
                operators.len() == stake.delegations.len() && days.len() == stake.leaving.len(),
                "POOL-2: somebody has two of a kind"
            );
            let count = stake.count();
            ensure!(
                count > 0 && count <= STAKES_MAX as usize,
                "POOL-2: somebody has nothing, or too much"
            );
            let working = stake.delegations.iter().all(|one| one.shares > 0);
            let leaving = stake.leaving.iter().all(|one| one.shares > 0);
            ensure!(working && leaving, "POOL-2: somebody has a stake without shares");
            for one in &stake.delegations {
                let known = match one.operator == who {
                    true => Pools::<T>::get(&who).map(|pool| pool.own_shares),
                    false => listed.remove(&(one.operator.clone(), who.clone())),
                };
                ensure!(
                    known == Some(one.shares),
                    "POOL-2: a pool knows other shares of a delegation"
                );
            }
        }
        ensure!(listed.is_empty(), "POOL-2: somebody is listed who has no stake");
        let led = Pools::<T>::iter_values().filter(|pool| pool.is_led()).count();
        ensure!(
            Totals::<T>::get().led as usize == led,
            "POOL-2: pools are miscounted"
        );
        Ok(())
    }

    fn pool_3_shares_are_worth_their_fund() -> Result<(), TryRuntimeError> {
        let mut pools: BTreeMap<T::AccountId, Holders> = BTreeMap::new();
        let mut buckets: BTreeMap<(T::AccountId, Day), Holders> = BTreeMap::new();
        for stake in Stakes::<T>::iter_values() {
            for one in stake.delegations {
                let fund = Pools::<T>::get(&one.operator)
                    .map(|pool| pool.fund)
                    .unwrap_or_default();
                ensure!(
                    fund.worth(one.shares) <= one.held,
                    "POOL-3: a delegation is worth more than is on hold for it"
                );
                pools.entry(one.operator).or_default().add(&fund, one.shares);
            }
            for one in stake.leaving {
                let fund = Buckets::<T>::get(&one.operator, one.day).unwrap_or_default();
                ensure!(
                    fund.worth(one.shares) <= one.held,
                    "POOL-3: a chunk is worth more than is on hold for it"
                );
                let holders = buckets.entry((one.operator, one.day)).or_default();
                holders.add(&fund, one.shares);
            }
        }
        for (operator, pool) in Pools::<T>::iter() {
            let holders = pools.remove(&operator).unwrap_or_default();
            ensure!(
                holders.shares == pool.fund.shares && holders.have(&pool.fund),
                "POOL-3: a pool is not what its delegators have"
            );
        }
        for (operator, day, bucket) in Buckets::<T>::iter() {
            let holders = buckets.remove(&(operator, day)).unwrap_or_default();
            ensure!(
                holders.shares == bucket.shares && holders.have(&bucket),
                "POOL-3: what left on a day is not what its chunks are"
            );
        }
        ensure!(
            pools.is_empty() && buckets.is_empty(),
            "POOL-3: somebody has shares of what is not there"
        );
        Ok(())
    }

    fn pool_4_the_pot_has_what_is_promised() -> Result<(), TryRuntimeError> {
        let mut parts = 0u128;
        for pool in Pools::<T>::iter_values() {
            let earned = pool.earned.saturating_mul(PLANCK_PARTS);
            parts = parts.saturating_add(earned).saturating_add(pool.carried);
        }
        for stake in Stakes::<T>::iter_values() {
            for one in stake.delegations {
                let per_share = Pools::<T>::get(&one.operator).map_or(0, |pool| pool.per_share);
                let since = per_share
                    .checked_sub(one.paid_to)
                    .ok_or("POOL-4: a delegation was paid what was not earned yet")?;
                parts = parts.saturating_add(one.shares.saturating_mul(since));
            }
        }
        let unclaimed = Totals::<T>::get().unclaimed;
        ensure!(
            unclaimed.checked_mul(PLANCK_PARTS) == Some(parts),
            "POOL-4: what can be claimed is not what was shared"
        );
        ensure!(
            asset::in_pot::<T>() >= unclaimed,
            "POOL-4: the pot has less than can be claimed"
        );
        Ok(())
    }

    fn pool_5_the_totals_add_up() -> Result<(), TryRuntimeError> {
        let held = Stakes::<T>::iter_values().map(|stake| stake.held());
        let backing = Pools::<T>::iter_values().map(|pool| pool.fund.amount);
        let backing = backing.chain(Buckets::<T>::iter_values().map(|bucket| bucket.amount));
        let totals = Totals::<T>::get();
        let expected = TotalsRecord {
            held: held.fold(0, u128::saturating_add),
            backing: backing.fold(0, u128::saturating_add),
            ..totals
        };
        ensure!(
            totals == expected,
            "POOL-5: the totals differ from what they are of"
        );
        Ok(())
    }

    fn pool_6_pending_slashes_are_counted() -> Result<(), TryRuntimeError> {
        let is_sound = |pending: PendingSlashes| {
            let days = pending.until.checked_sub(pending.since);
            pending.count > 0 && days.is_some_and(|days| days < SLASHED_DAYS_MAX)
        };
        ensure!(
            Pending::<T>::iter_values().all(is_sound),
            "POOL-6: slashes wait that are none, of no days or of too many"
        );
        Ok(())
    }
}
