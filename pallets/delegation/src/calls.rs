//! What the calls do, once their origin is known.

use frame_support::{
    dispatch::{DispatchResultWithPostInfo, Pays},
    ensure,
    traits::{Get, fungible::Inspect as _},
};
use sp_runtime::{
    ArithmeticError, DispatchError, DispatchResult, Permill,
    traits::{BlockNumberProvider, Saturating},
};
use surety_types::traits::StakeLedger;

use crate::{
    ChunkOf, Config, Error, Event, POOLS_MAX, Pallet, Pending, Pools, RAISE_MAX, StakeOf, Stakes, Totals,
    asset, ledger,
    types::{Day, Pool},
};

impl<T: Config> Pallet<T> {
    pub(crate) fn do_open(operator: T::AccountId, bond: u128, commission: Permill) -> DispatchResult {
        ensure!(!Pools::<T>::contains_key(&operator), Error::<T>::AlreadyOpen);
        ledger::open::<T>(&operator, Pool::new(commission, Self::today()));
        Self::deposit_event(Event::PoolOpened {
            operator: operator.clone(),
            commission,
        });
        Self::do_delegate(operator.clone(), operator, bond)
    }

    pub(crate) fn do_delegate(who: T::AccountId, operator: T::AccountId, amount: u128) -> DispatchResult {
        // A ledger that was slashed to nothing stays while something is locked, which it does not cover then.
        ensure!(
            T::Ledgers::stake(&who) == 0 && T::Ledgers::covers_locks(&who),
            Error::<T>::WrongRole
        );
        let mut stake = Stakes::<T>::get(&who).unwrap_or_default();
        asset::hold::<T>(&who, amount)?;
        Self::join(&who, &mut stake, &operator, amount)?;
        ledger::write_stake::<T>(&who, stake)?;
        Self::deposit_event(Event::Delegated {
            operator,
            delegator: who,
            amount,
        });
        Ok(())
    }

    pub(crate) fn do_undelegate(who: T::AccountId, operator: T::AccountId, amount: u128) -> DispatchResult {
        let mut stake = read::<T>(&who)?;
        ensure!(amount > 0, Error::<T>::ZeroAmount);
        let day = Self::leaving_day(&operator);
        let (_, available_at) = Self::leave(&who, &mut stake, &operator, Some(amount), day)?;
        ledger::write_stake::<T>(&who, stake)?;
        Self::deposit_event(Event::Undelegated {
            operator,
            delegator: who,
            amount,
            day,
            available_at,
        });
        Ok(())
    }

    pub(crate) fn do_redelegate(
        who: T::AccountId,
        operator: T::AccountId,
        day: Day,
        to: T::AccountId,
        amount: u128,
    ) -> DispatchResult {
        let mut stake = read::<T>(&who)?;
        ensure!(amount > 0, Error::<T>::ZeroAmount);
        let is_last_own = who == operator && stake.left_on(&who) == Some(day);
        let mut chunk = stake.take_chunk(&operator, day).ok_or(Error::<T>::UnknownChunk)?;
        ensure!(!Self::is_kept(&chunk, is_last_own), Error::<T>::SlashPending);
        ensure!(
            to == operator || Self::is_movable(&chunk, is_last_own),
            Error::<T>::TooEarly
        );
        let mut bucket = ledger::read_bucket::<T>(&operator, day);
        Self::burn_lost(&who, &operator, &mut chunk.held, bucket.worth(chunk.shares));
        let stays = chunk.held.checked_sub(amount).ok_or(Error::<T>::NotEnoughStake)?;
        ensure!(
            stays == 0 || stays >= T::MinDelegation::get(),
            Error::<T>::BelowMinimum
        );
        let shares = match stays {
            0 => chunk.shares,
            _ => bucket.shares_worth(amount).ok_or(ArithmeticError::Overflow)?,
        };
        bucket.remove(shares);
        ledger::write_bucket::<T>(&operator, day, bucket);
        if stays > 0 {
            chunk.shares = chunk.shares.saturating_sub(shares);
            chunk.held = stays;
            stake
                .leaving
                .try_push(chunk)
                .map_err(|_| Error::<T>::TooManyStakes)?;
        }
        Self::join(&who, &mut stake, &to, amount)?;
        ledger::write_stake::<T>(&who, stake)?;
        Self::deposit_event(Event::Redelegated {
            operator,
            to,
            delegator: who,
            amount,
        });
        Ok(())
    }

    pub(crate) fn do_withdraw(who: T::AccountId) -> DispatchResult {
        let mut stake = read::<T>(&who)?;
        let now = T::BlockNumberProvider::current_block_number();
        let last = stake.left_on(&who);
        let is_over = |chunk: &ChunkOf<T>| chunk.available_at <= now;
        let is_last_own = |chunk: &ChunkOf<T>| chunk.operator == who && last == Some(chunk.day);
        let is_due = |chunk: &ChunkOf<T>| is_over(chunk) && !Self::is_kept(chunk, is_last_own(chunk));
        if !stake.leaving.iter().any(is_due) {
            ensure!(!stake.leaving.iter().any(is_over), Error::<T>::SlashPending);
            return Err(Error::<T>::NothingToWithdraw.into());
        }
        let mut amount = 0u128;
        for chunk in stake.leaving.iter_mut().filter(|chunk| is_due(chunk)) {
            let mut bucket = ledger::read_bucket::<T>(&chunk.operator, chunk.day);
            let worth = bucket.worth(chunk.shares);
            Self::burn_lost(&who, &chunk.operator, &mut chunk.held, worth);
            bucket.remove(chunk.shares);
            ledger::write_bucket::<T>(&chunk.operator, chunk.day, bucket);
            amount = amount.saturating_add(chunk.held);
        }
        stake.leaving.retain(|chunk| !is_due(chunk));
        asset::release::<T>(&who, amount)?;
        ledger::write_stake::<T>(&who, stake)?;
        Self::deposit_event(Event::Withdrawn {
            delegator: who,
            amount,
        });
        Ok(())
    }

    pub(crate) fn do_claim(who: T::AccountId, operator: T::AccountId) -> DispatchResult {
        let mut pool = ledger::read_pool::<T>(&operator)?;
        let mut stake = Stakes::<T>::get(&who).unwrap_or_default();
        let delegation = stake.delegation_mut(&operator);
        ensure!(delegation.is_some() || who == operator, Error::<T>::NotDelegated);
        let due = Self::take_due(&who, &operator, &mut pool, delegation);
        ensure!(due > 0, Error::<T>::NothingToClaim);
        ledger::pay::<T>(&operator, &who, due)?;
        ledger::write_stake::<T>(&who, stake)?;
        ledger::write_pool::<T>(&operator, pool)
    }

    pub(crate) fn do_settle(who: T::AccountId, operator: T::AccountId) -> DispatchResultWithPostInfo {
        let mut stake = read::<T>(&who)?;
        let (burned, dropped) = Self::settle_all(&who, &mut stake, &operator)?;
        ensure!(burned > 0 || dropped, Error::<T>::NothingToSettle);
        ledger::write_stake::<T>(&who, stake)?;
        // A planck that did not divide is no reason to fill a block for nothing.
        let is_free = burned >= T::Currency::minimum_balance();
        Ok(if is_free { Pays::No } else { Pays::Yes }.into())
    }

    pub(crate) fn do_set_commission(operator: T::AccountId, commission: Permill) -> DispatchResult {
        let mut pool = ledger::read_pool::<T>(&operator)?;
        if commission > pool.commission {
            let today = Self::today();
            let is_first = pool.raised_on < today;
            let step = commission.saturating_sub(pool.commission);
            ensure!(is_first && step <= RAISE_MAX, Error::<T>::RaisedTooFast);
            pool.raised_on = today;
        }
        pool.commission = commission;
        ledger::write_pool::<T>(&operator, pool)?;
        Self::deposit_event(Event::CommissionSet { operator, commission });
        Ok(())
    }

    /// Puts `amount`, which is on hold already, behind an operator. The caller stores `stake`.
    fn join(
        who: &T::AccountId,
        stake: &mut StakeOf<T>,
        operator: &T::AccountId,
        amount: u128,
    ) -> DispatchResult {
        ensure!(amount > 0, Error::<T>::ZeroAmount);
        let is_own = who == operator;
        let pool = ledger::read_pool::<T>(operator)?;
        ensure!(!Pending::<T>::contains_key(operator), Error::<T>::SlashPending);
        if is_own && !pool.is_led() {
            ensure!(Totals::<T>::get().led < POOLS_MAX, Error::<T>::TooManyPools);
        }
        ensure!(is_own || pool.is_led(), Error::<T>::OperatorLeft);
        let shares = pool.fund.shares_for(amount).ok_or(Error::<T>::Depleted)?;
        if !is_own && stake.delegation(operator).is_none() {
            Self::make_room(operator, shares)?;
        }

        let mut pool = ledger::read_pool::<T>(operator)?;
        let mut delegation = match stake.take_delegation(operator) {
            Some(mut delegation) => {
                Self::touch(who, operator, &mut pool, &mut delegation)?;
                delegation
            }
            None => pool.new_delegation(operator.clone()),
        };
        let added = pool.fund.add(amount).ok_or(Error::<T>::Depleted)?;
        delegation.shares = delegation.shares.saturating_add(added);
        delegation.held = delegation.held.saturating_add(amount);
        let least = Self::least(who, operator);
        ensure!(delegation.held >= least, Error::<T>::BelowMinimum);
        Self::write_delegation(who, stake, pool, delegation)
    }

    /// Has the smallest delegator of a full pool leave for one that has so many shares.
    fn make_room(operator: &T::AccountId, shares: u128) -> DispatchResult {
        let Some((smallest, displaced)) = ledger::smallest_of_full::<T>(operator) else {
            return Ok(());
        };
        ensure!(shares > smallest, Error::<T>::PoolFull);
        let mut stake = read::<T>(&displaced)?;
        let day = Self::leaving_day(operator);
        let (amount, available_at) = Self::leave(&displaced, &mut stake, operator, None, day)?;
        ledger::write_stake::<T>(&displaced, stake)?;
        Self::deposit_event(Event::Displaced {
            operator: operator.clone(),
            delegator: displaced,
            amount,
            day,
            available_at,
        });
        Ok(())
    }

    /// The least that somebody may have behind an operator.
    pub(crate) fn least(who: &T::AccountId, operator: &T::AccountId) -> u128 {
        match who == operator {
            true => T::MinSelfBond::get(),
            false => T::MinDelegation::get(),
        }
    }
}

/// What somebody has in pools, or `NotDelegated`.
pub(crate) fn read<T: Config>(who: &T::AccountId) -> Result<StakeOf<T>, DispatchError> {
    Stakes::<T>::get(who).ok_or_else(|| Error::<T>::NotDelegated.into())
}
