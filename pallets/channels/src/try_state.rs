//! The invariants of the README.

use alloc::collections::BTreeMap;

use frame_support::ensure;
use sp_runtime::TryRuntimeError;
use surety_pallet_holds::are_recorded;

use crate::{Batches, Channels, Config, HoldReason, Pallet, Payers, Standings, UNFINISHED_MAX};

impl<T: Config> Pallet<T> {
    /// Checks every invariant.
    pub fn do_try_state() -> Result<(), TryRuntimeError> {
        let mut held = BTreeMap::<T::AccountId, u128>::new();
        let mut payers = BTreeMap::<T::AccountId, u32>::new();
        let mut payees = BTreeMap::<T::AccountId, u32>::new();
        for (id, channel) in Channels::<T>::iter() {
            let purse = channel.purse;
            let is_sound = purse.channel == id && purse.paid <= purse.counted && purse.paid <= purse.deposit;
            ensure!(is_sound, "CHAN-2: a purse is not sound");
            let of_payer = held.entry(channel.payer.clone()).or_default();
            *of_payer = of_payer.saturating_add(channel.held());
            let of_payer = payers.entry(channel.payer).or_default();
            *of_payer = of_payer.saturating_add(1);
            let of_payee = payees.entry(channel.payee).or_default();
            *of_payee = of_payee.saturating_add(1);
        }
        ensure!(
            are_recorded::<T, T::Currency>(&HoldReason::Channel.into(), &held),
            "CHAN-1: money is on hold that channels do not explain"
        );
        let counted = Payers::<T>::iter().map(|(who, payer)| (who, payer.channels));
        ensure!(
            counted.collect::<BTreeMap<_, _>>() == payers,
            "CHAN-4: a payer's channels are miscounted"
        );
        for (stash, provider) in Standings::<T>::iter() {
            let of_payee = payees.remove(&stash).unwrap_or_default();
            ensure!(
                of_payee == provider.channels,
                "CHAN-4: a provider's channels are miscounted"
            );
            ensure!(
                provider.lock > 0 || of_payee == 0,
                "CHAN-3: a channel pays who does not stand"
            );
            let needed = Self::needed_lock(provider.standing.cap);
            ensure!(
                provider.lock == 0 || needed.is_some_and(|needed| needed <= provider.lock),
                "CHAN-3: a standing lock is too small"
            );
            let mut open = 0u128;
            for batch in provider.oldest..provider.next {
                let window = Batches::<T>::get(&stash, batch).ok_or("CHAN-5: a batch is gone")?;
                if batch >= provider.unfinished {
                    open = open.saturating_add(window.root.sums.price);
                }
            }
            let kept = Batches::<T>::iter_prefix(&stash).count();
            let unfinished = provider.next.saturating_sub(provider.unfinished);
            ensure!(
                open == provider.standing.open
                    && kept == provider.next.saturating_sub(provider.oldest) as usize
                    && unfinished <= UNFINISHED_MAX,
                "CHAN-5: batches are miscounted"
            );
        }
        ensure!(payees.is_empty(), "CHAN-3: a channel pays who never stood");
        Ok(())
    }
}
