//! The invariants of the README.

use alloc::{collections::BTreeMap, vec::Vec};

use frame_support::ensure;
use sp_runtime::TryRuntimeError;
use surety_channels::{BatchNumber, ChannelId};
use surety_pallet_holds::are_recorded;

use crate::{
    Batches, Channels, Config, Demands, DisputedReceipts, HoldReason, Pallet, Payers, PointsAudits,
    Standings, UNFINISHED_MAX, Wanted,
};

impl<T: Config> Pallet<T> {
    /// Checks every invariant.
    pub fn do_try_state() -> Result<(), TryRuntimeError> {
        let mut held = BTreeMap::<T::AccountId, u128>::new();
        let mut payers = BTreeMap::<T::AccountId, u32>::new();
        let mut payees = BTreeMap::<T::AccountId, Vec<ChannelId>>::new();
        for (id, channel) in Channels::<T>::iter() {
            let purse = channel.purse;
            let is_sound = purse.channel == id && purse.paid <= purse.counted && purse.paid <= purse.deposit;
            ensure!(is_sound, "CHAN-2: a purse is not sound");
            let of_payer = held.entry(channel.payer.clone()).or_default();
            *of_payer = of_payer.saturating_add(channel.held());
            let of_payer = payers.entry(channel.payer).or_default();
            *of_payer = of_payer.saturating_add(1);
            payees.entry(channel.payee).or_default().push(id);
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
        let mut audits_of_batches = 0usize;
        let mut disputed = BTreeMap::<(T::AccountId, Option<BatchNumber>), u32>::new();
        for of in DisputedReceipts::<T>::iter_values() {
            let keys = [
                Some((of.provider.clone(), None)),
                of.batch.map(|batch| (of.provider, Some(batch))),
            ];
            for key in keys.into_iter().flatten() {
                let count = disputed.entry(key).or_default();
                *count = count.saturating_add(1);
            }
        }
        let (mut demanded, mut prices) = (
            BTreeMap::<T::AccountId, u32>::new(),
            BTreeMap::<T::AccountId, u128>::new(),
        );
        for (stash, _, demand) in Demands::<T>::iter() {
            let price = prices.entry(demand.by).or_default();
            *price = price.saturating_add(demand.price);
            if let Wanted::Point { batch, .. } = demand.wanted {
                let count = disputed.entry((stash.clone(), Some(batch))).or_default();
                *count = count.saturating_add(1);
            }
            let count = demanded.entry(stash).or_default();
            *count = count.saturating_add(1);
        }
        ensure!(
            are_recorded::<T, T::Currency>(&HoldReason::Demand.into(), &prices),
            "CHAN-8: money is on hold that demands do not explain"
        );
        let disputes = |stash: &T::AccountId, batch| disputed.get(&(stash.clone(), batch)).copied();
        for (stash, provider) in Standings::<T>::iter() {
            ensure!(
                disputes(&stash, None).unwrap_or_default() == provider.disputes,
                "CHAN-7: a provider's disputes are miscounted"
            );
            ensure!(
                demanded.remove(&stash).unwrap_or_default() == provider.demands,
                "CHAN-8: a provider's demands are miscounted"
            );
            let of_payee = payees.remove(&stash).unwrap_or_default();
            ensure!(
                of_payee.len() == provider.channels as usize,
                "CHAN-4: a provider's channels are miscounted"
            );
            ensure!(
                provider.lock > 0 || of_payee.iter().all(|id| *id < provider.since.channel),
                "CHAN-3: a channel pays who does not stand"
            );
            ensure!(
                provider.lock > 0 || provider.signers.is_empty(),
                "CHAN-3: statements bind who does not stand"
            );
            let needed = Self::needed_lock(provider.standing.cap);
            ensure!(
                provider.lock == 0 || needed.is_some_and(|needed| needed <= provider.lock),
                "CHAN-3: a standing lock is too small"
            );
            let mut open = 0u128;
            for batch in provider.oldest..provider.next {
                let record = Batches::<T>::get(&stash, batch).ok_or("CHAN-5: a batch is gone")?;
                if batch >= provider.unfinished {
                    open = open.saturating_add(record.window.root.sums.price);
                }
                ensure!(
                    disputes(&stash, Some(batch)).unwrap_or_default() == record.window.disputes,
                    "CHAN-7: a batch's disputes are miscounted"
                );
                let audits = PointsAudits::<T>::iter_prefix_values((&stash, batch)).count();
                ensure!(
                    audits == record.announced as usize,
                    "CHAN-6: a batch's audits are miscounted"
                );
                audits_of_batches = audits_of_batches.saturating_add(audits);
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
        ensure!(
            PointsAudits::<T>::iter_keys().count() == audits_of_batches,
            "CHAN-6: an audit is of no batch"
        );
        ensure!(
            demanded.is_empty(),
            "CHAN-8: something is demanded of who never stood"
        );
        ensure!(payees.is_empty(), "CHAN-3: a channel pays who never stood");
        Ok(())
    }
}
