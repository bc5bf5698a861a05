//! Answers to `ChannelApi` of `surety-runtime-api`. None of it is asked by a call: what is walked through
//! here costs no block.

use alloc::{collections::BTreeMap, vec::Vec};

use frame_support::traits::Get;
use frame_system::pallet_prelude::BlockNumberFor;
use surety_channels::{
    BatchNumber, ChannelId, Sums, Time,
    view::{
        BatchView, ChannelRules, ChannelView, DemandView, DisputedView, OfferView, PointsView, PoolView,
        StandingView, TrackRecord,
    },
};
use surety_types::{
    TaskId,
    traits::{Jail, StakeLedger},
};

use crate::{
    BatchRecord, Batches, Channel, Channels, ChannelsBy, ChannelsOf, Config, Convictions, Demand, Demands,
    DemandsOf, DisputeRounds, DisputedReceipts, Offers, Pallet, PointsAudits, PointsState, Pool, PoolId,
    Pools, Provider, ReceiptKey, SETTLED_MAX, Since, Standings,
};

type BatchViewOf<T> = BatchView<<T as frame_system::Config>::AccountId, BlockNumberFor<T>>;

impl<T: Config> Pallet<T> {
    /// A channel that was not ended.
    pub fn channel(id: ChannelId) -> Option<ChannelView<T::AccountId>> {
        Channels::<T>::get(id).map(Self::channel_view)
    }

    /// The channels that pay a provider: [`PAYEE_CHANNELS_MAX`](crate::PAYEE_CHANNELS_MAX) at most.
    pub fn channels_of(payee: &T::AccountId) -> Vec<ChannelView<T::AccountId>> {
        let all = ChannelsOf::<T>::iter_key_prefix(payee);
        all.filter_map(Self::channel).collect()
    }

    /// The channels of a payer: [`CHANNELS_MAX`](crate::CHANNELS_MAX) at most.
    pub fn channels_by(payer: &T::AccountId) -> Vec<ChannelView<T::AccountId>> {
        let all = ChannelsBy::<T>::iter_key_prefix(payer);
        all.filter_map(Self::channel).collect()
    }

    fn channel_view(channel: Channel<T::AccountId>) -> ChannelView<T::AccountId> {
        ChannelView {
            channel: channel.purse.channel,
            demanded_until: Self::demanded_until(&channel.payee, channel.batch),
            demanded: channel.demanded,
            payer: channel.payer,
            payee: channel.payee,
            key: channel.key,
            expiry: channel.expiry,
            purse: channel.purse,
        }
    }

    /// All offers, but for those of providers that are in jail, leave, stand by old terms, or have less stake
    /// than is locked of it.
    pub fn offers() -> Vec<OfferView<T::AccountId>> {
        let pools: BTreeMap<PoolId, Pool> = Self::pools_now().collect();
        let all = Standings::<T>::iter();
        let shown = all.filter(|(stash, provider)| {
            let is_sold = provider.offers > 0 && Self::ensure_takes_new(stash, provider).is_ok();
            is_sold && !T::Jail::is_jailed(stash)
        });
        let mut offers = Vec::new();
        for (stash, mut provider) in shown {
            Self::finish_batches(&stash, &mut provider);
            let standing = provider.standing;
            let record = Self::track_record(&stash, &provider);
            for ((model, operation), offer) in Offers::<T>::iter_prefix(&stash) {
                let pool_price = pools.get(&(model, operation)).map_or(0, |pool| pool.price);
                offers.push(OfferView {
                    provider: stash.clone(),
                    model,
                    operation,
                    unit_price: offer.unit_price.max(pool_price),
                    places: offer.places,
                    busy: offer.busy,
                    signers: provider.signers.to_vec(),
                    room: standing.cap.saturating_sub(standing.open),
                    region: offer.region,
                    record,
                });
            }
        }
        offers
    }

    /// What is remembered of a provider whose final batches are finished.
    fn track_record(stash: &T::AccountId, provider: &Provider<T::AccountId>) -> TrackRecord {
        let (since, last) = (provider.since, provider.first_unfinished());
        let newest = last.saturating_sub(SETTLED_MAX);
        let first = newest.max(provider.oldest).max(since.batch);
        let kept = (first..last).filter_map(|batch| Batches::<T>::get(stash, batch));
        let settled = kept.fold(Sums::default(), |all, record| {
            let of_batch = record.window.settled();
            all.plus(of_batch).unwrap_or(all)
        });
        let faults = T::Convictions::remembered(stash);
        TrackRecord {
            settled,
            batches: last.saturating_sub(since.batch),
            was_convicted: since != Since::default(),
            faults: faults.lately,
            missed: faults.missed,
            settled_for: T::Stake::settled_for(stash),
        }
    }

    /// What each operation of a model costs at least.
    pub fn pools() -> Vec<PoolView> {
        let view = |((model, operation), pool): (PoolId, Pool)| PoolView {
            model,
            operation,
            price: pool.price,
            places: pool.places,
            busy: pool.busy,
        };
        Self::pools_now().map(view).collect()
    }

    fn pools_now() -> impl Iterator<Item = (PoolId, Pool)> {
        Pools::<T>::iter().map(|(id, pool)| {
            let pool = Self::pool_now(&id, Some(pool));
            (id, pool)
        })
    }

    /// What a provider stands behind, if it ever stood.
    pub fn standing_view(stash: &T::AccountId) -> Option<StandingView<T::AccountId>> {
        let mut provider = Standings::<T>::get(stash)?;
        Self::finish_batches(stash, &mut provider);
        let unfinished = provider.first_unfinished();
        let needed_lock = Self::needed_lock(provider.standing.cap);
        let Provider {
            lock,
            standing,
            channels,
            oldest,
            next,
            batched_at,
            signers,
            disputes,
            demands,
            since,
            is_leaving,
            ..
        } = provider;
        Some(StandingView {
            provider: stash.clone(),
            lock,
            cap: standing.cap,
            open: standing.open,
            signers: signers.to_vec(),
            oldest,
            unfinished,
            next,
            batched_at,
            channels,
            disputes,
            demands,
            since_channel: since.channel,
            since_batch: since.batch,
            needed_lock,
            is_leaving,
        })
    }

    /// The batches of a provider that are kept, in their order.
    pub fn batches(stash: &T::AccountId) -> Vec<BatchViewOf<T>> {
        let provider = Standings::<T>::get(stash);
        let numbers = provider.map(|provider| provider.oldest..provider.next);
        Self::batch_views(stash, numbers.unwrap_or_default())
    }

    /// The batches of all providers for which verifiers can still announce points.
    pub fn open_batches() -> Vec<BatchViewOf<T>> {
        let all = Standings::<T>::iter();
        let unfinished = all.flat_map(|(stash, of)| Self::batch_views(&stash, of.unfinished));
        unfinished
            .filter(|batch| Self::now() <= batch.announce_until)
            .collect()
    }

    fn batch_views(
        stash: &T::AccountId,
        numbers: impl IntoIterator<Item = BatchNumber>,
    ) -> Vec<BatchViewOf<T>> {
        let view = |batch| {
            let record = Batches::<T>::get(stash, batch)?;
            // Before the first announcement it is nowhere else.
            let seed = Self::seed_of(stash, batch, &record);
            let BatchRecord {
                window,
                mut draw,
                rate,
                announce_until,
                announced,
                begun: _,
            } = record;
            draw.seed = seed;
            Some(BatchView {
                provider: stash.clone(),
                batch,
                window,
                draw,
                rate,
                announce_until,
                announced,
            })
        };
        numbers.into_iter().filter_map(view).collect()
    }

    /// What is demanded of a provider.
    pub fn demands(stash: &T::AccountId) -> Vec<DemandView<T::AccountId>> {
        let of_demander = |(demander, demands): (T::AccountId, DemandsOf<_>)| {
            let view = move |demand: Demand<_>| DemandView {
                provider: stash.clone(),
                demander: demander.clone(),
                wanted: demand.wanted,
                until: demand.until,
            };
            demands.into_iter().map(view)
        };
        Demands::<T>::iter_prefix(stash).flat_map(of_demander).collect()
    }

    /// The rounds that there are about a provider's receipts.
    pub fn disputed(stash: &T::AccountId) -> Vec<DisputedView> {
        let view = |((batch, channel, nonce), round): (ReceiptKey, TaskId)| DisputedView {
            round,
            batch,
            channel,
            nonce,
            is_challenged: DisputedReceipts::<T>::get(round).is_some_and(|of| of.unserved.is_none()),
        };
        DisputeRounds::<T>::iter_prefix(stash).map(view).collect()
    }

    /// The verifiers that have announced points of a batch.
    pub fn points(stash: &T::AccountId, batch: BatchNumber) -> Vec<PointsView<T::AccountId>> {
        let view = |(verifier, audit): (_, crate::PointsAudit)| PointsView {
            verifier,
            bond: audit.bond,
            output: audit.output,
            mean: audit.mean,
            opened: matches!(audit.state, PointsState::Opened { .. }),
        };
        PointsAudits::<T>::iter_prefix((stash, batch)).map(view).collect()
    }

    /// Parameters that everybody works by, as they are now.
    pub fn rules() -> ChannelRules {
        ChannelRules {
            min_deposit: T::MinDeposit::get(),
            max_life: T::MaxLife::get(),
            closing_period: T::ClosingPeriod::get(),
            batch_window: T::BatchWindowLength::get(),
            announce_window: T::AnnounceWindow::get(),
            refute_window: T::RefuteWindow::get(),
            redeem_by: T::RedeemBy::get(),
            supply_window: T::SupplyWindow::get(),
            dispute_window: T::DisputeWindow::get(),
            demand_price: T::DemandPrice::get(),
            point_bond: T::PointBond::get(),
            point_cost: T::PointCost::get(),
        }
    }

    /// The least standing lock for a cap, in plancks: the same for everybody. Nothing where no lock would do.
    pub fn least_lock(cap: u128) -> Option<u128> {
        Self::needed_lock(cap)
    }

    /// The time on the chain's clock.
    pub fn time() -> Time {
        Self::now()
    }
}
