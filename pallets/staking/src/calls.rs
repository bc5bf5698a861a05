//! What the calls do, once their origin is known.

use frame_support::{ensure, traits::Get};
use sp_runtime::{
    ArithmeticError, DispatchResult,
    traits::{BlockNumberProvider, CheckedAdd, Saturating, Zero},
};
use surety_types::{
    stake::{Role, UnlockChunk},
    traits::{Admission, Jail, PoolStakes},
};

use crate::{
    Agents, BalanceOf, Collaterals, Config, Error, Event, LedgerOf, Ledgers, Pallet, agents, asset,
    collateral, ledger,
};

impl<T: Config> Pallet<T> {
    pub(crate) fn do_bond(stash: T::AccountId, role: Role, amount: BalanceOf<T>) -> DispatchResult {
        ensure!(!amount.is_zero(), Error::<T>::ZeroAmount);
        let mut ledger = Ledgers::<T>::get(&stash).unwrap_or_else(|| ledger::new::<T>(role));
        ensure!(
            ledger.role == role && !T::Pools::is_staked(&stash),
            Error::<T>::WrongRole
        );
        ensure!(
            role != Role::Provider || T::Admission::is_admitted(&stash),
            Error::<T>::NotAdmitted
        );
        Self::add_bonded(&stash, &mut ledger, amount)?;
        asset::hold::<T>(&stash, amount)?;
        ledger::write::<T>(&stash, ledger);
        Self::deposit_event(Event::Bonded { stash, role, amount });
        Ok(())
    }

    pub(crate) fn do_unbond(stash: T::AccountId, amount: BalanceOf<T>) -> DispatchResult {
        let mut ledger = ledger::read::<T>(&stash)?;
        ensure!(!amount.is_zero(), Error::<T>::ZeroAmount);
        ensure!(amount <= ledger.bonded, Error::<T>::NotEnoughBonded);
        ensure!(amount <= ledger::unlocked::<T>(&ledger), Error::<T>::StakeLocked);
        ensure!(!T::Jail::is_suspended(&stash), Error::<T>::Suspended);
        ledger.bonded = ledger.bonded.saturating_sub(amount);
        ensure!(
            ledger.bonded.is_zero() || ledger.bonded >= T::MinBond::get(),
            Error::<T>::BelowMinimum
        );
        let now = T::BlockNumberProvider::current_block_number();
        let available_at = now.saturating_add(T::UnbondingPeriod::get());
        match ledger.unlocking.last_mut() {
            // One time needs one chunk only.
            Some(youngest) if youngest.available_at == available_at => {
                youngest.amount = youngest.amount.saturating_add(amount);
            }
            _ => ledger
                .unlocking
                .try_push(UnlockChunk { amount, available_at })
                .map_err(|_| Error::<T>::TooManyChunks)?,
        }
        ledger::write::<T>(&stash, ledger);
        Self::deposit_event(Event::Unbonded {
            stash,
            amount,
            available_at,
        });
        Ok(())
    }

    pub(crate) fn do_withdraw_unbonded(stash: T::AccountId) -> DispatchResult {
        let ledger = Ledgers::<T>::get(&stash);
        let is_provider = ledger
            .as_ref()
            .is_some_and(|ledger| ledger.role == Role::Provider);
        // Its account could not take it when the last of a provider's stake went. What is due of other stake
        // does not wait for that.
        let is_kept = !is_provider && Collaterals::<T>::contains_key(&stash);
        let given_back = is_kept.then(|| collateral::give_back::<T>(&stash));
        let Some(mut ledger) = ledger else {
            return given_back.unwrap_or_else(|| Err(Error::<T>::NotBonded.into()));
        };
        let now = T::BlockNumberProvider::current_block_number();
        let before = ledger::unlocking::<T>(&ledger);
        // Not only from the front: the period may have been shortened in between.
        ledger.unlocking.retain(|chunk| chunk.available_at > now);
        let amount = before.saturating_sub(ledger::unlocking::<T>(&ledger));
        if amount.is_zero() {
            return given_back.unwrap_or_else(|| Err(Error::<T>::NothingToWithdraw.into()));
        }
        asset::release::<T>(&stash, amount)?;
        Self::deposit_event(Event::Withdrawn {
            stash: stash.clone(),
            amount,
        });
        ledger::write::<T>(&stash, ledger);
        Ok(())
    }

    pub(crate) fn do_rebond(stash: T::AccountId, amount: BalanceOf<T>) -> DispatchResult {
        let mut ledger = ledger::read::<T>(&stash)?;
        ensure!(!amount.is_zero(), Error::<T>::ZeroAmount);
        ensure!(
            amount <= ledger::unlocking::<T>(&ledger),
            Error::<T>::NotEnoughUnlocking
        );
        let taken = ledger::take_youngest::<T>(&mut ledger, amount);
        Self::add_bonded(&stash, &mut ledger, taken)?;
        ledger::write::<T>(&stash, ledger);
        Self::deposit_event(Event::Rebonded { stash, amount: taken });
        Ok(())
    }

    pub(crate) fn do_set_agent(stash: T::AccountId, agent: T::AccountId) -> DispatchResult {
        ledger::read::<T>(&stash)?;
        ensure!(!Agents::<T>::contains_key(&agent), Error::<T>::AgentTaken);
        agents::nominate::<T>(&stash, &agent);
        Self::deposit_event(Event::AgentNominated { stash, agent });
        Ok(())
    }

    pub(crate) fn do_confirm_agent(agent: T::AccountId, stash: T::AccountId) -> DispatchResult {
        ensure!(Self::is_nominated(&stash, &agent), Error::<T>::NotNominated);
        // Several stashes may have nominated it; the first that it confirms gets it.
        ensure!(!Agents::<T>::contains_key(&agent), Error::<T>::AgentTaken);
        let mut ledger = ledger::read::<T>(&stash)?;
        agents::confirm::<T>(&stash, &agent);
        if let Some(before) = ledger.agent.replace(agent.clone()) {
            agents::dismiss::<T>(&before);
        }
        ledger::write::<T>(&stash, ledger);
        Self::deposit_event(Event::AgentConfirmed { stash, agent });
        Ok(())
    }

    pub(crate) fn do_remove_agent(stash: T::AccountId) -> DispatchResult {
        let mut ledger = ledger::read::<T>(&stash)?;
        let nominated = agents::forget_nomination::<T>(&stash);
        let agent = ledger.agent.take();
        ensure!(nominated || agent.is_some(), Error::<T>::NoAgent);
        if let Some(agent) = &agent {
            agents::dismiss::<T>(agent);
        }
        ledger::write::<T>(&stash, ledger);
        Self::deposit_event(Event::AgentRemoved { stash, agent });
        Ok(())
    }

    fn add_bonded(stash: &T::AccountId, ledger: &mut LedgerOf<T>, amount: BalanceOf<T>) -> DispatchResult {
        ledger.bonded = ledger
            .bonded
            .checked_add(&amount)
            .ok_or(ArithmeticError::Overflow)?;
        ensure!(ledger.bonded >= T::MinBond::get(), Error::<T>::BelowMinimum);
        match ledger.role {
            Role::Provider => collateral::secure::<T>(stash),
            Role::Verifier => Ok(()),
        }
    }
}
