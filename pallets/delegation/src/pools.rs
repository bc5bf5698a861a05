//! What other pallets may do with pools.

use frame_support::{storage::with_storage_layer, traits::Defensive, weights::Weight};
use sp_runtime::{ArithmeticError, DispatchError, DispatchResult, Perquintill};
use surety_types::traits::{PoolLedger, PoolStakes, SessionIndex};

use crate::{
    Config, Error, Event, Pallet, Pending, Pools, SLASHED_DAYS_MAX, Stakes, Totals, WeightInfo, asset,
    ledger,
    types::{Day, PendingSlashes},
};

/// A slash takes from so many days after that of its offence at most.
const DAYS_AFTER: Day = SLASHED_DAYS_MAX.saturating_sub(1);

impl<T: Config> PoolStakes<T::AccountId> for Pallet<T> {
    fn is_staked(who: &T::AccountId) -> bool {
        Stakes::<T>::contains_key(who)
    }
}

impl<T: Config> PoolLedger<T::AccountId, u128> for Pallet<T> {
    fn backing(operator: &T::AccountId) -> u128 {
        Pools::<T>::get(operator).map_or(0, |pool| pool.fund.amount)
    }

    fn own(operator: &T::AccountId) -> u128 {
        Pools::<T>::get(operator).map_or(0, |pool| pool.fund.worth(pool.own_shares))
    }

    fn is_pending(operator: &T::AccountId) -> bool {
        Pending::<T>::contains_key(operator)
    }

    fn pot() -> T::AccountId {
        asset::pot::<T>()
    }

    fn reward(operator: &T::AccountId, amount: u128) -> u128 {
        let unpromised = asset::in_pot::<T>().saturating_sub(Totals::<T>::get().unclaimed);
        let amount = amount.min(unpromised);
        let shared = Pools::<T>::mutate_extant(operator, |pool| amount > 0 && pool.reward(amount));
        if !shared {
            return 0;
        }
        ledger::change::<T>(|totals| totals.unclaimed = totals.unclaimed.saturating_add(amount));
        Self::deposit_event(Event::Rewarded {
            operator: operator.clone(),
            amount,
        });
        amount
    }

    fn note_pending(operator: &T::AccountId, since: SessionIndex) {
        let last = Self::last_day_to_leave();
        let before = Pending::<T>::get(operator);
        // Where a convict stays a validator for want of others, its last day moves on as it is convicted
        // again. Who leaves leaves as of an earlier one then, so that the first slash still takes from
        // everybody who was there when it was deserved, and later ones from all who left since.
        let first = before
            .map_or(last, |before| before.since)
            .min(Self::day_of(since));
        let earliest = before
            .map_or(last, |before| before.until)
            .saturating_sub(DAYS_AFTER);
        let since = first.max(earliest);
        let until = before.map_or(last, |before| before.until.max(last));
        let until = until.min(since.saturating_add(DAYS_AFTER));
        let pending = PendingSlashes {
            since,
            until,
            count: before.map_or(0, |before| before.count).saturating_add(1),
        };
        ledger::write_pending::<T>(operator, pending);
        Self::deposit_event(Event::SlashNoted {
            operator: operator.clone(),
            since,
            until,
        });
    }

    fn spare(operator: &T::AccountId) {
        if let Some(mut pending) = Pending::<T>::get(operator) {
            pending.count = pending.count.saturating_sub(1);
            ledger::write_pending::<T>(operator, pending);
            Self::deposit_event(Event::Spared {
                operator: operator.clone(),
            });
        }
    }

    fn slash(operator: &T::AccountId, part: Perquintill, since: SessionIndex) -> u128 {
        let pending = Pending::<T>::get(operator);
        let until = pending.map_or_else(Self::last_day_to_leave, |pending| pending.until);
        // Not that a report could be of an earlier day: no caller makes this take longer. And who left after
        // a later one left as of the last that there is.
        let earliest = until.saturating_sub(DAYS_AFTER);
        let since = Self::day_of(since).clamp(earliest, until);
        let taken = with_storage_layer(|| {
            let mut taken = 0u128;
            if let Some(mut pool) = Pools::<T>::get(operator) {
                taken = pool.fund.slash(part);
                ledger::write_pool::<T>(operator, pool)?;
            }
            for day in since..=until {
                let mut bucket = ledger::read_bucket::<T>(operator, day);
                if bucket.shares > 0 {
                    taken = taken.saturating_add(bucket.slash(part));
                    ledger::write_bucket::<T>(operator, day, bucket);
                }
            }
            taken = taken.saturating_add(Self::slash_last_own(operator, part, since)?);
            Self::burn_own(operator)?;
            Ok::<_, DispatchError>(taken)
        });
        let taken = taken.defensive_unwrap_or_default();
        if let Some(mut pending) = pending {
            pending.count = pending.count.saturating_sub(1);
            ledger::write_pending::<T>(operator, pending);
        }
        Self::deposit_event(Event::Slashed {
            operator: operator.clone(),
            part,
            amount: taken,
        });
        taken
    }

    fn slash_weight() -> Weight {
        <T as Config>::WeightInfo::slash()
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn open_for_benchmark(operator: &T::AccountId, own: u128) {
        use frame_support::{assert_ok, traits::Get};
        use sp_runtime::Permill;

        let own = own.max(T::MinSelfBond::get());
        // Pools of genesis take no place from those that are measured.
        ledger::change::<T>(|totals| totals.led = totals.led.min(crate::POOLS_MAX.saturating_sub(1)));
        assert_ok!(asset::endow::<T>(operator, own));
        assert_ok!(Self::do_open(operator.clone(), own, Permill::from_percent(10)));
    }
}

impl<T: Config> Pallet<T> {
    /// Takes a part of what an operator took out last, where nothing of its own worked any more and that left
    /// before `since`. Others whose stake left on the same day lose nothing. Returns how much that is.
    fn slash_last_own(operator: &T::AccountId, part: Perquintill, since: Day) -> Result<u128, DispatchError> {
        let mut stake = Stakes::<T>::get(operator).unwrap_or_default();
        let last = stake.left_on(operator).filter(|day| *day < since);
        let Some(mut chunk) = last.and_then(|day| stake.take_chunk(operator, day)) else {
            return Ok(0);
        };
        let mut bucket = ledger::read_bucket::<T>(operator, chunk.day);
        let worth = bucket.worth(chunk.shares);
        let lost = part.mul_ceil(worth);
        let shares = match worth.saturating_sub(lost) {
            0 => chunk.shares,
            _ => bucket.shares_worth(lost).ok_or(ArithmeticError::Overflow)?,
        };
        bucket.remove(shares);
        chunk.shares = chunk.shares.saturating_sub(shares);
        Self::burn_lost(operator, operator, &mut chunk.held, bucket.worth(chunk.shares));
        ledger::write_bucket::<T>(operator, chunk.day, bucket);
        if chunk.shares > 0 {
            stake
                .leaving
                .try_push(chunk)
                .map_err(|_| Error::<T>::TooManyStakes)?;
        }
        ledger::write_stake::<T>(operator, stake)?;
        Ok(lost)
    }

    /// Burns what an operator has lost of its own. What is worth nothing stays until somebody settles it.
    fn burn_own(operator: &T::AccountId) -> DispatchResult {
        let Some(mut stake) = Stakes::<T>::get(operator) else {
            return Ok(());
        };
        for chunk in stake
            .leaving
            .iter_mut()
            .filter(|chunk| chunk.operator == *operator)
        {
            let worth = ledger::read_bucket::<T>(operator, chunk.day).worth(chunk.shares);
            Self::burn_lost(operator, operator, &mut chunk.held, worth);
        }
        if let Some(delegation) = stake.delegation_mut(operator) {
            let worth = Self::worth_of(delegation);
            Self::burn_lost(operator, operator, &mut delegation.held, worth);
        }
        ledger::write_stake::<T>(operator, stake)
    }
}
