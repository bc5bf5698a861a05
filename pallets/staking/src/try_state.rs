//! The invariants of the README, one function each.

use alloc::collections::BTreeMap;
use frame_support::ensure;
use sp_runtime::{
    TryRuntimeError,
    traits::{Saturating, Zero},
};
use surety_types::{
    stake::{Role, RoleTotal},
    traits::PoolStakes,
};

use crate::{
    Agents, BalanceOf, BondedInAll, Collateral, Collaterals, Config, Ledgers, Pallet, PendingAgents, asset,
    ledger,
};

impl<T: Config> Pallet<T> {
    /// Checks every invariant.
    pub fn do_try_state() -> Result<(), TryRuntimeError> {
        Self::stake_1_holds_are_ledgers()?;
        Self::stake_2_what_is_locked_has_not_left()?;
        Self::stake_3_nothing_is_empty()?;
        Self::stake_4_agents_mirror_ledgers()?;
        Self::stake_5_nominations_have_ledgers()?;
        Self::stake_6_the_sums_add_up()?;
        Self::stake_7_agents_have_accounts()?;
        Self::stake_8_nobody_backs_validators_beside()?;
        Self::stake_9_collateral_is_recorded()
    }

    fn stake_1_holds_are_ledgers() -> Result<(), TryRuntimeError> {
        let stakes = Ledgers::<T>::iter().map(|(stash, ledger)| (stash, ledger::total::<T>(&ledger)));
        ensure!(
            asset::are_recorded::<T>(&stakes.collect()),
            "STAKE-1: the hold differs from the ledger"
        );
        Ok(())
    }

    fn stake_2_what_is_locked_has_not_left() -> Result<(), TryRuntimeError> {
        for ledger in Ledgers::<T>::iter_values() {
            ensure!(
                ledger.locked <= ledger.bonded || ledger.unlocking.is_empty(),
                "STAKE-2: stake is on its way out that is locked"
            );
        }
        Ok(())
    }

    fn stake_3_nothing_is_empty() -> Result<(), TryRuntimeError> {
        for ledger in Ledgers::<T>::iter_values() {
            ensure!(
                !ledger::total::<T>(&ledger).is_zero() || !ledger.locked.is_zero(),
                "STAKE-3: a ledger is empty"
            );
            let empty_chunk = ledger.unlocking.iter().any(|chunk| chunk.amount.is_zero());
            ensure!(!empty_chunk, "STAKE-3: a chunk is empty");
        }
        Ok(())
    }

    fn stake_4_agents_mirror_ledgers() -> Result<(), TryRuntimeError> {
        for (agent, stash) in Agents::<T>::iter() {
            let named = Ledgers::<T>::get(&stash).and_then(|ledger| ledger.agent);
            ensure!(
                named == Some(agent),
                "STAKE-4: an agent is not named by its stash"
            );
        }
        for (stash, ledger) in Ledgers::<T>::iter() {
            let known = ledger
                .agent
                .is_none_or(|agent| Agents::<T>::get(agent) == Some(stash));
            ensure!(
                known,
                "STAKE-4: a ledger names an agent that serves somebody else"
            );
        }
        Ok(())
    }

    fn stake_5_nominations_have_ledgers() -> Result<(), TryRuntimeError> {
        for stash in PendingAgents::<T>::iter_keys() {
            ensure!(
                Ledgers::<T>::contains_key(stash),
                "STAKE-5: a nomination has no ledger"
            );
        }
        Ok(())
    }

    fn stake_6_the_sums_add_up() -> Result<(), TryRuntimeError> {
        for role in [Role::Provider, Role::Verifier] {
            let all = Ledgers::<T>::iter_values().filter(|ledger| ledger.role == role);
            let all = all.fold(RoleTotal::default(), |all: RoleTotal<BalanceOf<T>>, ledger| {
                RoleTotal {
                    bonded: all.bonded.saturating_add(ledger.bonded),
                    stashes: all.stashes.saturating_add(u32::from(!ledger.bonded.is_zero())),
                }
            });
            ensure!(
                BondedInAll::<T>::get(role) == all,
                "STAKE-6: the sum of a role differs from its ledgers"
            );
        }
        Ok(())
    }

    fn stake_7_agents_have_accounts() -> Result<(), TryRuntimeError> {
        let mut references: BTreeMap<T::AccountId, u32> = BTreeMap::new();
        for agent in Agents::<T>::iter_keys().chain(PendingAgents::<T>::iter_values()) {
            let count = references.entry(agent).or_default();
            *count = count.saturating_add(1);
        }
        // Nobody else counts such references.
        for (account, info) in frame_system::Account::<T>::iter() {
            ensure!(
                references.remove(&account).unwrap_or_default() == info.sufficients,
                "STAKE-7: an account is kept for an agent that is none, or not for one that is"
            );
        }
        ensure!(references.is_empty(), "STAKE-7: an agent has no account");
        Ok(())
    }

    fn stake_8_nobody_backs_validators_beside() -> Result<(), TryRuntimeError> {
        ensure!(
            !Ledgers::<T>::iter_keys().any(|stash| T::Pools::is_staked(&stash)),
            "STAKE-8: a stash has stake behind a validator, too"
        );
        Ok(())
    }

    fn stake_9_collateral_is_recorded() -> Result<(), TryRuntimeError> {
        for (stash, held) in Collaterals::<T>::iter() {
            ensure!(
                !held.amount.is_zero() && T::Collateral::held(&held.asset, &stash) == held.amount,
                "STAKE-9: the hold of another asset differs from what is recorded"
            );
        }
        if let Some((asset, _)) = T::Collateral::required() {
            for who in frame_system::Account::<T>::iter_keys() {
                ensure!(
                    Collaterals::<T>::contains_key(&who) || T::Collateral::held(&asset, &who).is_zero(),
                    "STAKE-9: another asset is on hold, and nothing is recorded"
                );
            }
        }
        Ok(())
    }
}
