//! The only file that writes ledgers, and the arithmetic on one ledger.
//!
//! `write` closes a ledger that has run empty, whatever emptied it: stake that came out by
//! `withdraw_unbonded`, or a slash. It takes the agent and the nomination along, so that STAKE-4 and STAKE-5
//! hold without further care, and tells whoever keeps something for the stash.
//!
//! What is locked is the sum of what others have locked and not given back. A slash takes stake, and no lock
//! but the fault's own: what others have on record stays what they give back. So more may be locked than is
//! bonded, until as much is bonded again or given back. A ledger stays, without stake, as long as that.

use sp_runtime::{
    DispatchError,
    traits::{Saturating, Zero},
};
use surety_types::{
    stake::{Role, StakeRecord},
    traits::StashClosed,
};

use crate::{BalanceOf, BondedInAll, Config, Error, Event, LedgerOf, Ledgers, Pallet, agents, collateral};

/// A ledger without stake; not to be stored like that.
pub(crate) fn new<T: Config>(role: Role) -> LedgerOf<T> {
    StakeRecord {
        role,
        bonded: Zero::zero(),
        locked: Zero::zero(),
        unlocking: Default::default(),
        agent: None,
        settled_at: Zero::zero(),
    }
}

/// The stash's ledger, or `NotBonded` where there is no stake.
pub(crate) fn read<T: Config>(stash: &T::AccountId) -> Result<LedgerOf<T>, DispatchError> {
    let ledger = Ledgers::<T>::get(stash).filter(has_stake::<T>);
    ledger.ok_or_else(|| Error::<T>::NotBonded.into())
}

fn has_stake<T: Config>(ledger: &LedgerOf<T>) -> bool {
    !ledger.bonded.is_zero() || !ledger.unlocking.is_empty()
}

/// Stores the ledger, or closes it when nothing is in it.
pub(crate) fn write<T: Config>(stash: &T::AccountId, mut ledger: LedgerOf<T>) {
    let before = Ledgers::<T>::get(stash);
    count::<T>(before.as_ref(), &ledger);
    let had_stake = before.as_ref().is_none_or(has_stake::<T>);
    if before.is_none_or(|before| before.bonded < ledger.bonded || before.agent != ledger.agent) {
        // A height, like the randomness that seats are drawn with.
        ledger.settled_at = frame_system::Pallet::<T>::block_number();
    }
    if has_stake::<T>(&ledger) {
        Ledgers::<T>::insert(stash, ledger);
        return;
    }
    let agent = ledger.agent.take();
    match ledger.locked.is_zero() {
        true => Ledgers::<T>::remove(stash),
        false => Ledgers::<T>::insert(stash, ledger),
    }
    if !had_stake {
        return;
    }
    agents::forget_nomination::<T>(stash);
    if let Some(agent) = &agent {
        agents::dismiss::<T>(agent);
    }
    // Whoever administers the asset may have blocked the account. That is no reason to keep the stake: what
    // cannot be given back stays on hold and on record, and the stash asks for it again.
    if collateral::give_back::<T>(stash).is_err() {
        let stash = stash.clone();
        Pallet::<T>::deposit_event(Event::CollateralKept { stash });
    }
    T::OnClosed::closed(stash);
    Pallet::<T>::deposit_event(Event::Closed { stash: stash.clone() });
}

/// Keeps the sum of what is bonded in the ledger's role, which never changes, and the number of those who
/// have any.
fn count<T: Config>(before: Option<&LedgerOf<T>>, ledger: &LedgerOf<T>) {
    let before = before.map_or_else(Zero::zero, |ledger| ledger.bonded);
    if before != ledger.bonded {
        let works = |bonded: BalanceOf<T>| u32::from(!bonded.is_zero());
        BondedInAll::<T>::mutate(ledger.role, |all| {
            all.bonded = all.bonded.saturating_sub(before).saturating_add(ledger.bonded);
            let others = all.stashes.saturating_sub(works(before));
            all.stashes = others.saturating_add(works(ledger.bonded));
        });
    }
}

/// Bonded stake that no task has locked.
pub(crate) fn unlocked<T: Config>(ledger: &LedgerOf<T>) -> BalanceOf<T> {
    ledger.bonded.saturating_sub(ledger.locked)
}

/// Stake on its way out, all chunks together.
pub(crate) fn unlocking<T: Config>(ledger: &LedgerOf<T>) -> BalanceOf<T> {
    let amounts = ledger.unlocking.iter().map(|chunk| chunk.amount);
    amounts.fold(Zero::zero(), |sum: BalanceOf<T>, amount| {
        sum.saturating_add(amount)
    })
}

/// All the stake there is, which is also what is on hold.
pub(crate) fn total<T: Config>(ledger: &LedgerOf<T>) -> BalanceOf<T> {
    ledger.bonded.saturating_add(unlocking::<T>(ledger))
}

/// Takes up to `amount` out of the chunks, youngest first. Returns what was taken.
pub(crate) fn take_youngest<T: Config>(ledger: &mut LedgerOf<T>, amount: BalanceOf<T>) -> BalanceOf<T> {
    let mut wanted = amount;
    for chunk in ledger.unlocking.iter_mut().rev() {
        let part = chunk.amount.min(wanted);
        chunk.amount = chunk.amount.saturating_sub(part);
        wanted = wanted.saturating_sub(part);
        if wanted.is_zero() {
            break;
        }
    }
    ledger.unlocking.retain(|chunk| !chunk.amount.is_zero());
    amount.saturating_sub(wanted)
}

/// Takes up to `amount`: of the bonded stake that nothing else has locked than `lock`, then chunks, youngest
/// first, then of what others have locked. `lock` is given back, whatever was there of it.
pub(crate) fn seize<T: Config>(ledger: &mut LedgerOf<T>, lock: BalanceOf<T>, amount: BalanceOf<T>) {
    ledger.locked = ledger.locked.saturating_sub(lock);
    let free = unlocked::<T>(ledger).min(amount);
    let from_chunks = take_youngest::<T>(ledger, amount.saturating_sub(free));
    let from_bonded = amount.saturating_sub(from_chunks);
    ledger.bonded = ledger.bonded.saturating_sub(from_bonded);
}
