//! The invariants of the README.

use alloc::{collections::BTreeMap, vec::Vec};

use frame_support::ensure;
use sp_runtime::TryRuntimeError;
use surety_channels::{BatchNumber, ChannelId, Time};
use surety_types::traits::SoldModels;

use crate::{
    Batches, CHANNELS_MAX, Channels, ChannelsBy, ChannelsOf, Config, DISPUTED_MAX, Demand, Demands,
    DisputeRounds, DisputedReceipts, OFFERS_MAX, Offers, PAYEE_CHANNELS_MAX, PLACES_MAX, POOL_OFFERS_MAX,
    Pallet, Payers, PointsAudits, PoolId, Pools, Provider, Standings, Wanted, asset, calls::disputes::FROZEN,
};

/// How much, or how many, there is of somebody's.
type Of<Key, Value> = BTreeMap<Key, Value>;

impl<T: Config> Pallet<T> {
    /// Checks every invariant.
    pub fn do_try_state() -> Result<(), TryRuntimeError> {
        Self::chan_1_the_pot_has_what_is_recorded()?;
        Self::chan_2_purses_are_sound()?;
        Self::chan_3_who_is_paid_stands()?;
        Self::chan_4_channels_are_counted()?;
        Self::chan_5_batches_are_counted()?;
        Self::chan_6_audits_are_of_batches()?;
        Self::chan_7_disputes_are_counted()?;
        Self::chan_8_demands_are_counted()?;
        Self::chan_9_offers_are_stood_behind()?;
        Self::chan_10_pools_are_counted()?;
        Self::chan_11_models_of_offers_and_rounds_stay()
    }

    fn chan_1_the_pot_has_what_is_recorded() -> Result<(), TryRuntimeError> {
        let deposits = Channels::<T>::iter_values().map(|channel| channel.held());
        let prices = Demands::<T>::iter_values().flatten().map(|demand| demand.price);
        let recorded = deposits.chain(prices).fold(0, u128::saturating_add);
        ensure!(
            asset::covers::<T>(recorded),
            "CHAN-1: less is in the pot than channels and demands have"
        );
        Ok(())
    }

    fn chan_2_purses_are_sound() -> Result<(), TryRuntimeError> {
        for (id, channel) in Channels::<T>::iter() {
            let purse = channel.purse;
            let known = [purse.counts, purse.old_counts].map(|counts| counts.stood(Time::MAX, 0));
            let is_sound = purse.channel == id
                && purse.paid <= purse.counted.min(purse.signed)
                && purse.paid <= purse.deposit
                && known == [purse.counted; 2];
            ensure!(is_sound, "CHAN-2: a purse is not sound");
        }
        Ok(())
    }

    fn chan_3_who_is_paid_stands() -> Result<(), TryRuntimeError> {
        for (id, channel) in Channels::<T>::iter() {
            let payee = Standings::<T>::get(channel.payee).ok_or("CHAN-3: a channel pays who never stood")?;
            ensure!(
                payee.lock > 0 || id < payee.since.channel,
                "CHAN-3: a channel pays who does not stand"
            );
        }
        for provider in Standings::<T>::iter_values() {
            ensure!(
                provider.lock > 0 || (provider.signers.is_empty() && provider.standing.cap == 0),
                "CHAN-3: statements bind, or batches come from, who does not stand"
            );
            ensure!(
                provider.lock > 0 || !provider.is_leaving,
                "CHAN-3: who does not stand is still leaving"
            );
        }
        Ok(())
    }

    fn chan_4_channels_are_counted() -> Result<(), TryRuntimeError> {
        let payers = counted(Channels::<T>::iter_values().map(|channel| channel.payer));
        let of_payers = Payers::<T>::iter().map(|(who, payer)| (who, payer.channels));
        ensure!(
            of_payers.collect::<Of<_, _>>() == payers,
            "CHAN-4: a payer's channels are miscounted"
        );
        let payees = counted(Channels::<T>::iter_values().map(|channel| channel.payee));
        ensure!(
            Self::has_each(&payees, |provider| provider.channels),
            "CHAN-4: a provider's channels are miscounted"
        );
        // Counted, and each of them there: no other can be.
        let is_found = Channels::<T>::iter().all(|(id, channel)| {
            ChannelsOf::<T>::contains_key(&channel.payee, id)
                && ChannelsBy::<T>::contains_key(&channel.payer, id)
        });
        let all = Channels::<T>::iter_keys().count();
        let (of, by) = (ChannelsOf::<T>::iter_keys(), ChannelsBy::<T>::iter_keys());
        ensure!(
            is_found && (of.count(), by.count()) == (all, all),
            "CHAN-4: a channel is not found by who pays or is paid, or one that has ended is"
        );
        ensure!(
            payees.values().all(|channels| *channels <= PAYEE_CHANNELS_MAX)
                && payers.values().all(|channels| *channels <= CHANNELS_MAX),
            "CHAN-4: somebody has more channels than may be"
        );
        Ok(())
    }

    fn chan_5_batches_are_counted() -> Result<(), TryRuntimeError> {
        for (stash, provider) in Standings::<T>::iter() {
            let (mut open, mut unfinished) = (0u128, Vec::new());
            for batch in provider.oldest..provider.next {
                let record = Batches::<T>::get(&stash, batch).ok_or("CHAN-5: a batch is gone")?;
                let is_open = provider.unfinished.contains(&batch);
                ensure!(
                    is_open || record.window.is_final(Self::now()),
                    "CHAN-5: a batch is not final, and not covered"
                );
                ensure!(
                    record.window.until < FROZEN || provider.are_places_taken(),
                    "CHAN-5: a batch is never final"
                );
                if is_open {
                    open = open.saturating_add(record.window.root.sums.price);
                    unfinished.push(batch);
                }
            }
            let kept = Batches::<T>::iter_prefix(&stash).count();
            ensure!(
                open == provider.standing.open
                    && kept == provider.next.saturating_sub(provider.oldest) as usize
                    && unfinished == provider.unfinished.to_vec(),
                "CHAN-5: batches are miscounted"
            );
        }
        Ok(())
    }

    fn chan_6_audits_are_of_batches() -> Result<(), TryRuntimeError> {
        let audits = counted(PointsAudits::<T>::iter_keys().map(|(of, _)| of));
        let announced = Batches::<T>::iter().map(|(stash, batch, record)| ((stash, batch), record.announced));
        ensure!(
            announced.filter(|(_, count)| *count > 0).collect::<Of<_, _>>() == audits,
            "CHAN-6: a batch's audits are miscounted, or are of no batch"
        );
        let of_providers = counted(PointsAudits::<T>::iter_keys().map(|((stash, _), _)| stash));
        ensure!(
            Self::has_each(&of_providers, |provider| provider.audits),
            "CHAN-6: a provider's audits are miscounted"
        );
        Ok(())
    }

    fn chan_7_disputes_are_counted() -> Result<(), TryRuntimeError> {
        for (round, of) in DisputedReceipts::<T>::iter() {
            ensure!(
                DisputeRounds::<T>::get(&of.provider, of.key()) == Some(round),
                "CHAN-7: a disputed receipt is not found by its name"
            );
        }
        ensure!(
            DisputeRounds::<T>::iter().count() == DisputedReceipts::<T>::iter().count(),
            "CHAN-7: a round is about no receipt"
        );
        let disputed = counted(DisputedReceipts::<T>::iter_values().map(|of| of.provider));
        ensure!(
            Self::has_each(&disputed, |provider| provider.disputes),
            "CHAN-7: a provider's disputes are miscounted"
        );
        let challenged = DisputedReceipts::<T>::iter_values().filter(|of| of.unserved.is_none());
        let challenged = counted(challenged.map(|of| of.provider));
        ensure!(
            Self::has_each(&challenged, |provider| provider.challenged)
                && challenged.values().all(|count| *count <= DISPUTED_MAX),
            "CHAN-7: a provider's places for disputes are miscounted"
        );
        let receipts = DisputedReceipts::<T>::iter_values().filter_map(|of| Some((of.provider, of.batch?)));
        let demands = Demands::<T>::iter().flat_map(|(stash, _, demands)| {
            let with_stash = move |demand| (stash.clone(), demand);
            demands.into_iter().map(with_stash)
        });
        let points = demands.filter_map(|(stash, demand)| match demand.wanted {
            Wanted::Point { batch, .. } => Some((stash, batch)),
            Wanted::Receipt { .. } => None,
        });
        let open: Of<(T::AccountId, BatchNumber), u32> = counted(receipts.chain(points));
        let of_batches =
            Batches::<T>::iter().map(|(stash, batch, record)| ((stash, batch), record.window.disputes));
        ensure!(
            of_batches.filter(|(_, count)| *count > 0).collect::<Of<_, _>>() == open,
            "CHAN-7: a batch's disputes are miscounted"
        );
        Ok(())
    }

    fn chan_8_demands_are_counted() -> Result<(), TryRuntimeError> {
        let (mut demanded, mut held) = (Of::<T::AccountId, u32>::new(), Of::<ChannelId, u32>::new());
        for (stash, _, demands) in Demands::<T>::iter() {
            ensure!(!demands.is_empty(), "CHAN-8: nothing is demanded, and kept");
            for (place, one) in demands.iter().enumerate() {
                let is_same = |other: &Demand<_>| other.wanted.is_about_same(&one.wanted);
                ensure!(
                    !demands.iter().skip(place.saturating_add(1)).any(is_same),
                    "CHAN-8: somebody demands a receipt twice at once"
                );
                if let Wanted::Receipt { channel, .. } = one.wanted {
                    let held = held.entry(channel).or_default();
                    *held = held.saturating_add(1);
                }
            }
            let count = demanded.entry(stash).or_default();
            *count = count.saturating_add(u32::try_from(demands.len()).unwrap_or(u32::MAX));
        }
        ensure!(
            Self::has_each(&demanded, |provider| provider.demands),
            "CHAN-8: a provider's demands are miscounted"
        );
        for (id, channel) in Channels::<T>::iter() {
            ensure!(
                channel.purse.demands == held.get(&id).copied().unwrap_or_default(),
                "CHAN-8: a channel is held by other demands than those that there are"
            );
        }
        Ok(())
    }

    fn chan_9_offers_are_stood_behind() -> Result<(), TryRuntimeError> {
        let mut offered = Of::<T::AccountId, (u32, u32)>::new();
        for (stash, _, offer) in Offers::<T>::iter() {
            let (offers, places) = offered.entry(stash).or_default();
            *offers = offers.saturating_add(1);
            *places = places.saturating_add(offer.covered());
            let is_possible = offer.busy <= offer.places && offer.places <= PLACES_MAX;
            ensure!(is_possible, "CHAN-9: more places are taken, or offered, than may");
        }
        for (stash, provider) in Standings::<T>::iter() {
            let (offers, places) = offered.remove(&stash).unwrap_or_default();
            ensure!(
                (offers, places) == (provider.offers, provider.places) && offers <= OFFERS_MAX,
                "CHAN-9: a provider's offers are miscounted"
            );
            ensure!(
                offers == 0 || provider.lock > 0 && Self::cap_for(places) <= provider.standing.cap,
                "CHAN-9: an offer that nobody stands behind"
            );
        }
        ensure!(offered.is_empty(), "CHAN-9: an offer of who never stood");
        Ok(())
    }

    fn chan_10_pools_are_counted() -> Result<(), TryRuntimeError> {
        let mut offered = Of::<PoolId, (u32, u32, u32)>::new();
        for (_, pool, offer) in Offers::<T>::iter() {
            let (offers, places, busy) = offered.entry(pool).or_default();
            *offers = offers.saturating_add(1);
            *places = places.saturating_add(offer.places);
            *busy = busy.saturating_add(offer.busy);
        }
        for (id, pool) in Pools::<T>::iter() {
            let counted = (pool.offers, pool.places, pool.busy);
            ensure!(
                offered.remove(&id) == Some(counted) && pool.offers <= POOL_OFFERS_MAX,
                "CHAN-10: a pool is miscounted, or nothing is in it"
            );
            let is_past = pool.at <= Self::now() && pool.taken <= pool.there;
            ensure!(is_past && pool.price > 0, "CHAN-10: a pool's price is not sound");
        }
        ensure!(offered.is_empty(), "CHAN-10: an offer is in no pool");
        Ok(())
    }

    fn chan_11_models_of_offers_and_rounds_stay() -> Result<(), TryRuntimeError> {
        let offered = Offers::<T>::iter_keys().map(|(_, (model, _))| model);
        let disputed = DisputedReceipts::<T>::iter_values().map(|of| of.model);
        let uses = counted(offered.chain(disputed));
        ensure!(
            uses.iter().all(|(model, count)| T::Models::uses(model) == *count),
            "CHAN-11: a model is kept for other sales than those that there are"
        );
        Ok(())
    }

    /// Whether providers' counters say what was counted, and nobody else has anything.
    fn has_each(counted: &Of<T::AccountId, u32>, counter: impl Fn(&Provider<T::AccountId>) -> u32) -> bool {
        let counters = Standings::<T>::iter().map(|(stash, provider)| (stash, counter(&provider)));
        counters.filter(|(_, count)| *count > 0).collect::<Of<_, _>>() == *counted
    }
}

fn counted<Key: Ord>(keys: impl Iterator<Item = Key>) -> Of<Key, u32> {
    let mut counts = Of::new();
    for key in keys {
        let count: &mut u32 = counts.entry(key).or_default();
        *count = count.saturating_add(1);
    }
    counts
}
