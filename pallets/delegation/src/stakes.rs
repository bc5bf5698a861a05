//! What becomes of one delegator's stake in one pool: it is brought up to date, and leaves.
//!
//! Before shares of a delegation change, what they have earned is paid and what they have lost is burned
//! (`touch`). Both are O(1): a pool knows what a share has earned, and what it is worth.

use frame_support::{ensure, traits::Get};
use frame_system::pallet_prelude::BlockNumberFor;
use sp_runtime::{
    ArithmeticError, DispatchError, DispatchResult,
    traits::{BlockNumberProvider, Saturating},
};
use surety_types::traits::{LeavingPay, Sessions};

use crate::{
    ChunkOf, Config, Error, Event, Pallet, Pending, Pools, SESSIONS_TO_LEAVE, StakeOf, asset, ledger,
    types::{Chunk, Day, Delegation, Pool},
};

impl<T: Config> Pallet<T> {
    /// The day that a session belongs to.
    pub(crate) fn day_of(session: u32) -> Day {
        session.checked_div(T::SessionsKept::get()).unwrap_or_default()
    }

    /// The running day.
    pub(crate) fn today() -> Day {
        Self::day_of(T::Sessions::current())
    }

    /// Last day in which somebody who is convicted now, or has no stake any more, may be a validator still.
    pub(crate) fn last_day_to_leave() -> Day {
        Self::day_of(T::Sessions::current().saturating_add(SESSIONS_TO_LEAVE))
    }

    /// As of which day stake leaves an operator now: the last in which the operator may be a validator by
    /// that stake, as the set of the next session is made already.
    pub(crate) fn leaving_day(operator: &T::AccountId) -> Day {
        Pending::<T>::get(operator).map_or_else(Self::last_day_to_leave, |pending| pending.until)
    }

    /// Whether a slash that waits may take from a chunk. `is_last_own`: it is what its operator took out last
    /// ([`crate::types::Stake::left_on`]).
    pub(crate) fn is_kept(chunk: &ChunkOf<T>, is_last_own: bool) -> bool {
        let pending = Pending::<T>::get(&chunk.operator);
        pending.is_some_and(|pending| is_last_own || pending.since <= chunk.day)
    }

    /// Whether a chunk that no slash keeps may go to another operator: when every report of what it answers
    /// for has expired. What an operator took out last answers until it can be withdrawn.
    pub(crate) fn is_movable(chunk: &ChunkOf<T>, is_last_own: bool) -> bool {
        let is_due = chunk.available_at <= T::BlockNumberProvider::current_block_number();
        Self::today() >= chunk.day.saturating_add(2) && (is_due || !is_last_own)
    }

    /// Takes what a delegation has earned out of its pool, and the commission, too, where it is the
    /// operator's. The caller pays it.
    pub(crate) fn take_due(
        who: &T::AccountId,
        operator: &T::AccountId,
        pool: &mut Pool,
        delegation: Option<&mut Delegation<T::AccountId>>,
    ) -> u128 {
        let mut due = match who == operator {
            true => core::mem::take(&mut pool.earned),
            false => 0,
        };
        if let Some(delegation) = delegation {
            let (plancks, rest) = pool.due(delegation.shares, delegation.paid_to);
            due = due.saturating_add(plancks);
            pool.carried = pool.carried.saturating_add(rest);
            delegation.paid_to = pool.per_share;
        }
        due
    }

    /// Pays what a delegation has earned, and burns what it has lost.
    pub(crate) fn touch(
        who: &T::AccountId,
        operator: &T::AccountId,
        pool: &mut Pool,
        delegation: &mut Delegation<T::AccountId>,
    ) -> DispatchResult {
        let due = Self::take_due(who, operator, pool, Some(delegation));
        if due > 0 {
            ledger::pay::<T>(operator, who, due)?;
        }
        let worth = pool.fund.worth(delegation.shares);
        Self::burn_lost(who, operator, &mut delegation.held, worth);
        Ok(())
    }

    /// Burns what is on hold for shares beyond what they are worth. Returns how much that was.
    pub(crate) fn burn_lost(
        who: &T::AccountId,
        operator: &T::AccountId,
        held: &mut u128,
        worth: u128,
    ) -> u128 {
        let lost = held.saturating_sub(worth);
        if lost == 0 {
            return 0;
        }
        let burned = asset::burn::<T>(who, lost);
        *held = held.saturating_sub(burned);
        Self::deposit_event(Event::Burned {
            operator: operator.clone(),
            delegator: who.clone(),
            amount: burned,
        });
        burned
    }

    /// Burns all that somebody has lost behind an operator, and drops what is worth nothing any more. Returns
    /// what was burned, and whether anything was dropped. The caller stores `stake`.
    pub(crate) fn settle_all(
        who: &T::AccountId,
        stake: &mut StakeOf<T>,
        operator: &T::AccountId,
    ) -> Result<(u128, bool), DispatchError> {
        let (mut burned, before) = (0u128, stake.count());
        let left = |chunk: &ChunkOf<T>| chunk.operator == *operator;
        for chunk in stake.leaving.iter_mut().filter(|chunk| left(chunk)) {
            let mut bucket = ledger::read_bucket::<T>(operator, chunk.day);
            let worth = bucket.worth(chunk.shares);
            burned = burned.saturating_add(Self::burn_lost(who, operator, &mut chunk.held, worth));
            if chunk.held == 0 {
                bucket.remove(chunk.shares);
                ledger::write_bucket::<T>(operator, chunk.day, bucket);
            }
        }
        stake.leaving.retain(|chunk| !left(chunk) || chunk.held > 0);
        if let Some(delegation) = stake.delegation_mut(operator) {
            let mut pool = ledger::read_pool::<T>(operator)?;
            let worth = pool.fund.worth(delegation.shares);
            burned = burned.saturating_add(Self::burn_lost(who, operator, &mut delegation.held, worth));
            if delegation.held == 0
                && let Some(mut delegation) = stake.take_delegation(operator)
            {
                Self::touch(who, operator, &mut pool, &mut delegation)?;
                pool.fund.remove(delegation.shares);
                delegation.shares = 0;
                Self::write_delegation(who, stake, pool, delegation)?;
            }
        }
        Ok((burned, stake.count() < before))
    }

    /// Puts `amount` of somebody's delegation, or all of it, on its way out as of a day. Returns how much
    /// that is, and from when on it can be withdrawn. The caller stores `stake`.
    pub(crate) fn leave(
        who: &T::AccountId,
        stake: &mut StakeOf<T>,
        operator: &T::AccountId,
        amount: Option<u128>,
        day: Day,
    ) -> Result<(u128, BlockNumberFor<T>), DispatchError> {
        let mut delegation = stake.take_delegation(operator).ok_or(Error::<T>::NotDelegated)?;
        // Others' stake earns its part of a day by being there at its end. The operator's does all of the
        // work and cannot wait, and without it nobody may be there then.
        if who == operator || !ledger::read_pool::<T>(operator)?.is_led() {
            T::Pay::pay_leaving(operator);
        }
        let mut pool = ledger::read_pool::<T>(operator)?;
        Self::touch(who, operator, &mut pool, &mut delegation)?;
        let amount = amount.unwrap_or(delegation.held);
        let stays = delegation
            .held
            .checked_sub(amount)
            .ok_or(Error::<T>::NotEnoughStake)?;
        ensure!(
            stays == 0 || stays >= Self::least(who, operator),
            Error::<T>::BelowMinimum
        );
        let shares = match stays {
            0 => delegation.shares,
            _ => pool.fund.shares_worth(amount).ok_or(ArithmeticError::Overflow)?,
        };
        let worth = pool.fund.remove(shares);
        delegation.shares = delegation.shares.saturating_sub(shares);
        delegation.held = stays;
        Self::write_delegation(who, stake, pool, delegation)?;
        let now = T::BlockNumberProvider::current_block_number();
        let available_at = now.saturating_add(T::UnbondingPeriod::get());
        if amount > 0 {
            let mut bucket = ledger::read_bucket::<T>(operator, day);
            let chunk = Chunk {
                operator: operator.clone(),
                day,
                shares: bucket.add(worth).ok_or(Error::<T>::LeaveTomorrow)?,
                held: amount,
                available_at,
            };
            ledger::write_bucket::<T>(operator, day, bucket);
            merge::<T>(stake, chunk)?;
        }
        Ok((amount, available_at))
    }

    /// Stores a pool with a delegation that has changed, which goes where it has no shares.
    pub(crate) fn write_delegation(
        who: &T::AccountId,
        stake: &mut StakeOf<T>,
        mut pool: Pool,
        delegation: Delegation<T::AccountId>,
    ) -> DispatchResult {
        let operator = delegation.operator.clone();
        match *who == operator {
            true => pool.own_shares = delegation.shares,
            false => ledger::place::<T>(&operator, who, delegation.shares)?,
        }
        if delegation.shares > 0 {
            stake
                .delegations
                .try_push(delegation)
                .map_err(|_| Error::<T>::TooManyDelegations)?;
        }
        ledger::write_pool::<T>(&operator, pool)
    }

    /// What a delegation is worth now.
    pub(crate) fn worth_of(delegation: &Delegation<T::AccountId>) -> u128 {
        let pool = Pools::<T>::get(&delegation.operator);
        pool.map_or(0, |pool| pool.fund.worth(delegation.shares))
    }
}

/// What left one operator on one day is one chunk. The older part of it waits a little longer for that.
fn merge<T: Config>(stake: &mut StakeOf<T>, chunk: ChunkOf<T>) -> DispatchResult {
    let chunk = match stake.take_chunk(&chunk.operator, chunk.day) {
        Some(older) => Chunk {
            shares: older.shares.saturating_add(chunk.shares),
            held: older.held.saturating_add(chunk.held),
            available_at: older.available_at.max(chunk.available_at),
            ..chunk
        },
        None => chunk,
    };
    stake
        .leaving
        .try_push(chunk)
        .map_err(|_| Error::<T>::TooManyStakes.into())
}
