//! What other pallets may do with stake.

use frame_support::ensure;
use sp_runtime::{
    ArithmeticError, DispatchResult, SaturatedConversion,
    traits::{CheckedAdd, Saturating, Zero},
};
use surety_types::{stake::Role, traits::StakeLedger};

use crate::{
    Agents, BalanceOf, BondedInAll, Config, Error, Event, LedgerOf, Ledgers, Pallet, asset, collateral,
    ledger,
};

impl<T: Config> StakeLedger<T::AccountId, BalanceOf<T>> for Pallet<T> {
    fn stash_of(agent: &T::AccountId, role: Role) -> Option<T::AccountId> {
        let stash = Agents::<T>::get(agent)?;
        let ledger = Ledgers::<T>::get(&stash)?;
        // Stake that is only on its way out stands behind nothing new.
        (ledger.role == role && !ledger.bonded.is_zero()).then_some(stash)
    }

    fn unlocked_stake(stash: &T::AccountId) -> BalanceOf<T> {
        Ledgers::<T>::get(stash).map_or_else(Zero::zero, |ledger| ledger::unlocked::<T>(&ledger))
    }

    fn lock(stash: &T::AccountId, amount: BalanceOf<T>) -> DispatchResult {
        let mut ledger = ledger::read::<T>(stash)?;
        ensure!(
            amount <= ledger::unlocked::<T>(&ledger),
            Error::<T>::NotEnoughUnlocked
        );
        ledger.locked = ledger
            .locked
            .checked_add(&amount)
            .ok_or(ArithmeticError::Overflow)?;
        ledger::write::<T>(stash, ledger);
        Self::deposit_event(Event::Locked {
            stash: stash.clone(),
            amount,
        });
        Ok(())
    }

    fn unlock(stash: &T::AccountId, amount: BalanceOf<T>) {
        let Some(mut ledger) = Ledgers::<T>::get(stash) else {
            return;
        };
        let amount = amount.min(ledger.locked);
        if amount.is_zero() {
            return;
        }
        ledger.locked = ledger.locked.saturating_sub(amount);
        ledger::write::<T>(stash, ledger);
        Self::deposit_event(Event::Unlocked {
            stash: stash.clone(),
            amount,
        });
    }

    fn covers_locks(stash: &T::AccountId) -> bool {
        Ledgers::<T>::get(stash).is_none_or(|ledger| ledger.locked <= ledger.bonded)
    }

    fn slash(stash: &T::AccountId, amount: BalanceOf<T>) -> BalanceOf<T> {
        Self::seize(stash, amount, Zero::zero(), &[])
    }

    fn stake(stash: &T::AccountId) -> BalanceOf<T> {
        Ledgers::<T>::get(stash).map_or_else(Zero::zero, |ledger| ledger::total::<T>(&ledger))
    }

    fn bonded(stash: &T::AccountId, role: Role) -> BalanceOf<T> {
        let ledger = Ledgers::<T>::get(stash).filter(|ledger| ledger.role == role);
        ledger.map_or_else(Zero::zero, |ledger| ledger.bonded)
    }

    fn bonded_in_all(role: Role) -> BalanceOf<T> {
        BondedInAll::<T>::get(role).bonded
    }

    fn stashes_in(role: Role) -> u32 {
        BondedInAll::<T>::get(role).stashes
    }

    fn settled_for(stash: &T::AccountId) -> u32 {
        let now = frame_system::Pallet::<T>::block_number();
        let since = Ledgers::<T>::get(stash).map_or(now, |ledger| ledger.settled_at);
        now.saturating_sub(since).saturated_into()
    }

    fn seize(
        stash: &T::AccountId,
        locked: BalanceOf<T>,
        more: BalanceOf<T>,
        shares: &[(T::AccountId, BalanceOf<T>)],
    ) -> BalanceOf<T> {
        let Some(mut ledger) = Ledgers::<T>::get(stash) else {
            return Zero::zero();
        };
        let taken = locked.saturating_add(more).min(ledger::total::<T>(&ledger));
        if taken.is_zero() {
            Self::unlock(stash, locked);
            return taken;
        }
        let mut left = taken;
        for (payee, share) in shares {
            let share = (*share).min(left);
            if !share.is_zero() && asset::award::<T>(stash, payee, share) {
                left = left.saturating_sub(share);
                Self::deposit_event(Event::Awarded {
                    stash: stash.clone(),
                    payee: payee.clone(),
                    amount: share,
                });
            }
        }
        let burned = asset::burn::<T>(stash, left);
        // The ledger follows what really left, so that it cannot come to differ from the hold.
        let taken = taken.saturating_sub(left).saturating_add(burned);
        ledger::seize::<T>(&mut ledger, locked, taken);
        Self::end_slash(stash, ledger, taken, burned);
        taken
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn endow(stash: &T::AccountId, agent: &T::AccountId, role: Role, amount: BalanceOf<T>) {
        use frame_support::{assert_ok, traits::Get};
        use surety_types::traits::Admission;

        use crate::Collateral;

        let amount = amount.max(T::MinBond::get());
        assert_ok!(asset::endow::<T>(stash, amount));
        T::Admission::admit_for_benchmark(stash);
        T::Collateral::demand_for_benchmark(stash);
        assert_ok!(Self::do_bond(stash.clone(), role, amount));
        if Agents::<T>::get(agent).as_ref() != Some(stash) {
            assert_ok!(Self::do_set_agent(stash.clone(), agent.clone()));
            assert_ok!(Self::do_confirm_agent(agent.clone(), stash.clone()));
            // Who loses everything loses this, too.
            let nominated = frame_benchmarking::account("nominated", 0, 0);
            assert_ok!(Self::do_set_agent(stash.clone(), nominated));
        }
    }
}

impl<T: Config> Pallet<T> {
    /// What every slash ends with: `taken` has left the ledger, `burned` of it for good. A provider's
    /// collateral loses the same part of what there was; what is kept of a verifier's earlier work does not.
    fn end_slash(stash: &T::AccountId, ledger: LedgerOf<T>, taken: BalanceOf<T>, burned: BalanceOf<T>) {
        if ledger.role == Role::Provider {
            let before = ledger::total::<T>(&ledger).saturating_add(taken);
            collateral::slash::<T>(stash, taken, before);
        }
        Self::deposit_event(Event::Slashed {
            stash: stash.clone(),
            amount: burned,
        });
        ledger::write::<T>(stash, ledger);
    }
}
