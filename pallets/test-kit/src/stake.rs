//! A ledger of stake without holds, chunks or calls.

use std::{cell::RefCell, collections::BTreeMap};

use sp_runtime::{DispatchError, DispatchResult, TokenError};
use surety_types::{stake::Role, traits::StakeLedger};

use crate::{AccountId, Balance};

struct Entry {
    agent: Option<AccountId>,
    role: Role,
    bonded: Balance,
    locked: Balance,
    slashed: Balance,
    settled_for: u32,
}

thread_local! {
    static AWARDS: RefCell<BTreeMap<AccountId, Balance>> = const { RefCell::new(BTreeMap::new()) };
    static LEDGERS: RefCell<BTreeMap<AccountId, Entry>> = const { RefCell::new(BTreeMap::new()) };
}

/// Mock of [`StakeLedger`].
pub struct MockStake;

impl MockStake {
    /// What [`StakeLedger::lock`] answers when too little is unlocked.
    pub const NOT_ENOUGH: DispatchError = DispatchError::Token(TokenError::FundsUnavailable);

    /// Forgets everything.
    pub fn reset() {
        AWARDS.with_borrow_mut(BTreeMap::clear);
        LEDGERS.with_borrow_mut(BTreeMap::clear);
    }

    /// Bonds `amount` more for `stash` in `role`, served by `agent` from now on.
    pub fn bond(stash: AccountId, agent: AccountId, role: Role, amount: Balance) {
        LEDGERS.with_borrow_mut(|ledgers| {
            let entry = ledgers.entry(stash).or_insert(Entry {
                agent: None,
                role,
                bonded: 0,
                locked: 0,
                slashed: 0,
                settled_for: u32::MAX,
            });
            entry.agent = Some(agent);
            entry.role = role;
            entry.bonded = entry.bonded.saturating_add(amount);
        });
    }

    /// Takes `stash` out of the ledger, stake and agent.
    pub fn remove(stash: AccountId) {
        LEDGERS.with_borrow_mut(|ledgers| ledgers.remove(&stash));
    }

    /// Takes the stash's agent away; its stake stays.
    pub fn dismiss_agent(stash: AccountId) {
        LEDGERS.with_borrow_mut(|ledgers| {
            if let Some(entry) = ledgers.get_mut(&stash) {
                entry.agent = None;
            }
        });
    }

    /// Says how many blocks ago the stash got more stake or another agent. Long ago, without this.
    pub fn settle(stash: AccountId, blocks: u32) {
        LEDGERS.with_borrow_mut(|ledgers| {
            if let Some(entry) = ledgers.get_mut(&stash) {
                entry.settled_for = blocks;
            }
        });
    }

    /// Bonded stake, locked part included.
    pub fn bonded(stash: AccountId) -> Balance {
        Self::read(stash, |entry| entry.bonded)
    }

    /// Locked stake.
    pub fn locked(stash: AccountId) -> Balance {
        Self::read(stash, |entry| entry.locked)
    }

    /// What has been slashed so far.
    pub fn slashed(stash: AccountId) -> Balance {
        Self::read(stash, |entry| entry.slashed)
    }

    /// What the account has been handed out of others' stake so far.
    pub fn awarded(payee: AccountId) -> Balance {
        AWARDS.with_borrow(|awards| awards.get(&payee).copied().unwrap_or_default())
    }

    /// Locked stake of everybody.
    pub fn locked_in_all() -> Balance {
        LEDGERS.with_borrow(|ledgers| ledgers.values().map(|entry| entry.locked).sum())
    }

    fn read(stash: AccountId, field: impl Fn(&Entry) -> Balance) -> Balance {
        LEDGERS.with_borrow(|ledgers| ledgers.get(&stash).map(field).unwrap_or_default())
    }
}

impl StakeLedger<AccountId, Balance> for MockStake {
    fn stash_of(agent: &AccountId, role: Role) -> Option<AccountId> {
        LEDGERS.with_borrow(|ledgers| {
            let serves =
                |entry: &Entry| entry.agent == Some(*agent) && entry.role == role && entry.bonded > 0;
            ledgers
                .iter()
                .find(|(_, entry)| serves(entry))
                .map(|(stash, _)| *stash)
        })
    }

    fn unlocked_stake(stash: &AccountId) -> Balance {
        Self::read(*stash, |entry| entry.bonded.saturating_sub(entry.locked))
    }

    fn lock(stash: &AccountId, amount: Balance) -> DispatchResult {
        if Self::unlocked_stake(stash) < amount {
            return Err(Self::NOT_ENOUGH);
        }
        LEDGERS.with_borrow_mut(|ledgers| {
            let entry = ledgers.get_mut(stash).ok_or(Self::NOT_ENOUGH)?;
            entry.locked = entry.locked.saturating_add(amount);
            Ok(())
        })
    }

    fn unlock(stash: &AccountId, amount: Balance) {
        LEDGERS.with_borrow_mut(|ledgers| {
            if let Some(entry) = ledgers.get_mut(stash) {
                entry.locked = entry.locked.saturating_sub(amount);
            }
        });
    }

    fn covers_locks(stash: &AccountId) -> bool {
        Self::read(*stash, |entry| entry.locked) <= Self::bonded(*stash)
    }

    fn slash(stash: &AccountId, amount: Balance) -> Balance {
        LEDGERS.with_borrow_mut(|ledgers| {
            let Some(entry) = ledgers.get_mut(stash) else {
                return 0;
            };
            let taken = amount.min(entry.bonded);
            entry.bonded = entry.bonded.saturating_sub(taken);
            entry.locked = entry.locked.saturating_sub(amount);
            entry.slashed = entry.slashed.saturating_add(taken);
            taken
        })
    }

    fn stake(stash: &AccountId) -> Balance {
        Self::bonded(*stash)
    }

    fn bonded(stash: &AccountId, role: Role) -> Balance {
        LEDGERS.with_borrow(|ledgers| {
            let entry = ledgers.get(stash).filter(|entry| entry.role == role);
            entry.map(|entry| entry.bonded).unwrap_or_default()
        })
    }

    fn bonded_in_all(role: Role) -> Balance {
        LEDGERS.with_borrow(|ledgers| {
            let of_role = ledgers.values().filter(|entry| entry.role == role);
            of_role.map(|entry| entry.bonded).sum()
        })
    }

    fn stashes_in(role: Role) -> u32 {
        LEDGERS.with_borrow(|ledgers| {
            let bonded = |entry: &&Entry| entry.role == role && entry.bonded > 0;
            u32::try_from(ledgers.values().filter(bonded).count()).unwrap_or(u32::MAX)
        })
    }

    fn settled_for(stash: &AccountId) -> u32 {
        LEDGERS.with_borrow(|ledgers| ledgers.get(stash).map_or(0, |entry| entry.settled_for))
    }

    /// Shares are paid to nobody's account: [`MockStake::awarded`] tells them.
    fn seize(stash: &AccountId, locked: Balance, more: Balance, shares: &[(AccountId, Balance)]) -> Balance {
        let taken = LEDGERS.with_borrow_mut(|ledgers| {
            let Some(entry) = ledgers.get_mut(stash) else {
                return 0;
            };
            let taken = locked.saturating_add(more).min(entry.bonded);
            entry.bonded = entry.bonded.saturating_sub(taken);
            entry.locked = entry.locked.saturating_sub(locked);
            entry.slashed = entry.slashed.saturating_add(taken);
            taken
        });
        let mut left = taken;
        for (payee, share) in shares {
            let share = (*share).min(left);
            left -= share;
            AWARDS.with_borrow_mut(|awards| *awards.entry(*payee).or_default() += share);
        }
        taken
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn endow(stash: &AccountId, agent: &AccountId, role: Role, amount: Balance) {
        Self::bond(*stash, *agent, role, amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_stay_within_the_bond_and_slashes_take_the_locked_part_first() {
        MockStake::reset();
        MockStake::bond(1, 11, Role::Provider, 100);
        assert_eq!(MockStake::stash_of(&11, Role::Provider), Some(1));
        assert_eq!(MockStake::stash_of(&11, Role::Verifier), None);
        assert_eq!(MockStake::lock(&1, 101), Err(MockStake::NOT_ENOUGH));
        assert_eq!(MockStake::lock(&1, 60), Ok(()));
        assert_eq!(MockStake::slash(&1, 50), 50);
        assert_eq!((MockStake::bonded(1), MockStake::locked(1)), (50, 10));
        assert_eq!(MockStake::slash(&1, 90), 50);
        assert_eq!(MockStake::slashed(1), 100);
    }
}
