//! Providers, channels and batches, with as much about each of them as there can be.

use alloc::vec::Vec;

use frame_benchmarking::v2::account;
use frame_support::{
    BoundedVec, assert_ok,
    traits::{Get, fungible::Mutate},
};
use frame_system::pallet_prelude::BlockNumberFor;
use sp_core::H256;
use sp_runtime::{FixedU128, traits::BlockNumberProvider};
use surety_audit_economics::channels::SURE;
use surety_channels::{
    BatchNumber, BatchRoot, BatchWindow, ChannelId, Counted, Demanded, Purse, Seasoned, Standing, Struck,
    Sums, Time, view::Says, window::STRUCK_MAX,
};
use surety_types::{
    model::Operation,
    stake::Role,
    task::AuditDraw,
    traits::{SoldModels, StakeLedger},
};

use crate::{
    BatchRecord, Batches, CHANNELS_MAX, Channel, Channels, ChannelsBy, ChannelsOf, Config, Convictions,
    DEMANDS_MAX, Demand, Demands, NextChannel, OFFERS_MAX, Offer, Offers, PLACES_MAX, POOL_OFFERS_MAX,
    Pallet, Payer, Payers, Pool, PoolId, Pools, Provider, SIGNERS_MAX, Standings, UNFINISHED_MAX, Wanted,
    asset,
};

/// The channel of all benchmarks.
pub(super) const CHANNEL: ChannelId = 0;

/// The batch of all benchmarks: the last of those that are not final.
pub(super) const BATCH: BatchNumber = UNFINISHED_MAX - 1;

/// What is deposited in the channel, in plancks.
pub(super) const DEPOSIT: u128 = 1_000 * SURE;

/// What an account has free, and what a stash has bonded, in plancks.
pub(super) const RICH: u128 = 1_000_000 * SURE;

/// The provider's cap, in plancks: more than all places that a benchmark has it offer need.
pub(super) const CAP: u128 = 1_000 * SURE;

/// Block before which keys and stake have to be there that are drawn. Theirs are there in block 1.
pub(super) const SETTLED: u32 = 2;

/// More periods than a pool makes up for at once.
const PERIODS: u32 = 300;

/// It is this block, and this time.
pub(super) fn at<T: Config>(block: u32, time: Time) {
    frame_system::Pallet::<T>::set_block_number(block.into());
    T::Clock::set_block_number(time.into());
}

/// The time of the calls: all that is kept from the beginning is over, and pools are far behind.
pub(super) fn late<T: Config>() -> Time {
    let batches = T::RedeemBy::get().saturating_add(T::RefuteWindow::get());
    let pools = T::PoolPeriod::get().saturating_mul(PERIODS);
    batches.saturating_add(pools).saturating_add(1)
}

/// Gives an account some money.
pub(super) fn endow<T: Config>(who: &T::AccountId) {
    assert_ok!(T::Currency::mint_into(who, RICH));
}

/// An account with some money.
pub(super) fn rich<T: Config>(name: &'static str) -> T::AccountId {
    let who = account(name, 0, 0);
    endow::<T>(&who);
    who
}

/// The provider of all benchmarks.
pub(super) fn stash<T: Config>() -> T::AccountId {
    account("provider", 0, 0)
}

/// Lets it stand, with as many signers as there can be. Returns its stash and its agent.
pub(super) fn provider<T: Config>() -> (T::AccountId, T::AccountId) {
    at::<T>(1, late::<T>());
    let (stash, agent) = (stash::<T>(), account("agent", 0, 0));
    T::Stake::endow(&stash, &agent, Role::Provider, RICH);
    let lock = Pallet::<T>::needed_lock(CAP).expect("there are verifiers");
    assert_ok!(T::Stake::lock(&stash, lock));
    endow::<T>(&stash);
    endow::<T>(&Pallet::<T>::pot());
    let signer = |place| account("signer", place, 0);
    let provider = Provider {
        lock,
        standing: Standing { cap: CAP, open: 0 },
        signers: BoundedVec::truncate_from((0..SIGNERS_MAX).map(signer).collect()),
        ..Provider::new()
    };
    Standings::<T>::insert(&stash, provider);
    (stash, agent)
}

/// Changes what is kept of it.
pub(super) fn change<T: Config>(change: impl FnOnce(&mut Provider<T::AccountId>)) {
    Standings::<T>::mutate_extant(stash::<T>(), change);
}

/// The last of its signers is this key.
pub(super) fn sign_by<T: Config>(key: &T::AccountId) {
    change::<T>(|provider| {
        provider.signers.pop();
        assert_ok!(provider.signers.try_push(key.clone()));
    });
}

/// A channel to the provider, of a payer with as many as there can be. Returns the payer.
pub(super) fn channel<T: Config>(key: T::AccountId, expiry: Time) -> T::AccountId {
    let payer = rich::<T>("payer");
    assert_ok!(asset::put::<T>(&payer, DEPOSIT));
    let channel = Channel {
        payer: payer.clone(),
        payee: stash::<T>(),
        key,
        expiry,
        batch: 0,
        counted: Counted::new(0),
        demanded: Demanded::default(),
        purse: Purse::new(CHANNEL, DEPOSIT, 0),
    };
    Channels::<T>::insert(CHANNEL, channel);
    ChannelsOf::<T>::insert(stash::<T>(), CHANNEL, ());
    ChannelsBy::<T>::insert(&payer, CHANNEL, ());
    NextChannel::<T>::put(CHANNEL + 1);
    let channels = CHANNELS_MAX;
    Payers::<T>::insert(&payer, Payer { channels });
    change::<T>(|provider| provider.channels = 1);
    payer
}

/// Its money.
pub(super) fn purse<T: Config>() -> Purse {
    Channels::<T>::get(CHANNEL).expect("it was opened").purse
}

/// A voucher for all of it was redeemed, and this much of what was counted is due.
pub(super) fn owe<T: Config>(due: u128) {
    Channels::<T>::mutate_extant(CHANNEL, |channel| {
        let purse = &mut channel.purse;
        (purse.counted, purse.counts, purse.signed) = (due, Seasoned::since(due, 0), DEPOSIT);
    });
}

/// A batch of one receipt.
pub(super) fn small() -> BatchRoot {
    BatchRoot {
        hash: H256::repeat_byte(1),
        channels: 1,
        sums: Sums {
            receipts: 1,
            price: 1_000,
        },
    }
}

/// A batch of which as many receipts of the channel were struck out as can be one by one: the first. It can
/// be disputed until `until`.
pub(super) fn record<T: Config>(root: BatchRoot, until: Time) -> BatchRecord<BlockNumberFor<T>> {
    let struck = (0..STRUCK_MAX).map(|nonce| Struck {
        channel: CHANNEL,
        nonce,
        price: 1,
    });
    BatchRecord {
        window: BatchWindow {
            struck: BoundedVec::truncate_from(struck.collect()),
            ..BatchWindow::new(root, until)
        },
        draw: AuditDraw {
            begun_at: SETTLED.into(),
            settled_by: SETTLED.into(),
            epoch_randomness: H256::repeat_byte(3),
            verifier_stake: 1,
            seed: None,
        },
        rate: FixedU128::from_u32(1),
        begun: 0,
        announce_until: until,
        announced: 0,
    }
}

/// All batches of the provider are final, and nothing of it is open.
pub(super) fn finish<T: Config>() {
    change::<T>(|provider| provider.unfinished = BoundedVec::new());
}

/// Commits as many batches as may be not final, all of which can be disputed until `until`.
pub(super) fn fill_batches<T: Config>(until: Time) {
    for batch in 0..UNFINISHED_MAX {
        Batches::<T>::insert(stash::<T>(), batch, record::<T>(small(), until));
    }
    change::<T>(|provider| {
        provider.next = UNFINISHED_MAX;
        provider.unfinished = BoundedVec::truncate_from((0..UNFINISHED_MAX).collect());
    });
}

/// Has one of them another root.
pub(super) fn put_root<T: Config>(batch: BatchNumber, root: BatchRoot) {
    Pallet::<T>::change_batch(&stash::<T>(), batch, |record| record.window.root = root);
}

/// A pool of another model for each index, which `offers` are in, and which nobody has looked at for long.
pub(super) fn pool<T: Config>(index: u32, offers: u32) -> PoolId {
    let model = T::Models::register_for_benchmark(Operation::Generate, index);
    let pool = Pool {
        offers,
        places: u32::MAX,
        busy: u32::MAX,
        ..Pool::new(1, 0)
    };
    Pools::<T>::insert((model, Operation::Generate), pool);
    (model, Operation::Generate)
}

/// The provider has so many offers, in full pools. Returns the last of those.
pub(super) fn fill_offers<T: Config>(offers: u32) -> Option<PoolId> {
    let mut last = None;
    for index in 0..offers {
        let id = pool::<T>(index, POOL_OFFERS_MAX);
        T::Models::acquire(&id.0);
        let offer = Offer {
            unit_price: u128::MAX,
            places: PLACES_MAX,
            busy: PLACES_MAX,
            reported: Some(0),
            region: None,
        };
        Offers::<T>::insert(stash::<T>(), id, offer);
        last = Some(id);
    }
    change::<T>(|provider| (provider.offers, provider.places) = (offers, PLACES_MAX));
    last
}

/// All that a conviction of the provider ends, among the most convictions that there can be: offers, and
/// batches that are not final.
pub(super) fn fill<T: Config>() {
    fill_batches::<T>(late::<T>());
    fill_offers::<T>(OFFERS_MAX);
    T::Convictions::fill_for_benchmark();
}

/// Whether it was.
pub(super) fn is_convicted<T: Config>() -> bool {
    let lost = Standings::<T>::get(stash::<T>()).is_some_and(|provider| provider.lock == 0);
    lost && Offers::<T>::iter().next().is_none() && voided::<T>() == UNFINISHED_MAX as usize
}

fn voided<T: Config>() -> usize {
    let all = Batches::<T>::iter_prefix_values(stash::<T>());
    all.filter(|record| record.window.is_void).count()
}

/// Somebody demands all of this of the provider until `until`, for money of `by`.
pub(super) fn demand<T: Config>(
    demander: &T::AccountId,
    by: &T::AccountId,
    wanted: impl IntoIterator<Item = Wanted>,
    until: Time,
) {
    endow::<T>(by);
    let demand = |wanted: Wanted| {
        let price = wanted.price(T::DemandPrice::get());
        assert_ok!(asset::put::<T>(by, price));
        Demand {
            wanted,
            by: by.clone(),
            price,
            surplus: 0,
            until,
        }
    };
    let demands: Vec<_> = wanted.into_iter().map(demand).collect();
    for demand in &demands {
        if let Wanted::Receipt { channel, .. } = demand.wanted {
            Channels::<T>::mutate_extant(channel, |channel| channel.purse.demand(until));
        }
    }
    change::<T>(|provider| provider.demands = demands.len() as u32);
    Demands::<T>::insert(stash::<T>(), demander, BoundedVec::truncate_from(demands));
}

/// So many points at the beginning of a batch.
pub(super) fn points(batch: BatchNumber, many: u32) -> impl Iterator<Item = Wanted> {
    (0..many).map(move |point| Wanted::Point {
        batch,
        point: point.into(),
    })
}

/// A receipt of each of as many channels as somebody can demand at once.
pub(super) fn of_many_channels<T: Config>() -> Vec<Wanted> {
    let first = Channels::<T>::get(CHANNEL).expect("it was opened");
    let wanted = |channel| {
        let mut copy = first.clone();
        copy.purse.channel = channel;
        ChannelsOf::<T>::insert(&copy.payee, channel, ());
        ChannelsBy::<T>::insert(&copy.payer, channel, ());
        Channels::<T>::insert(channel, copy);
        Wanted::Receipt {
            channel,
            nonce: 0,
            says: Says::This(H256::zero()),
            counted: None,
        }
    };
    let all = (CHANNEL..).take(DEMANDS_MAX as usize).map(wanted).collect();
    NextChannel::<T>::put(ChannelId::from(DEMANDS_MAX));
    all
}

/// How much somebody demands of it.
pub(super) fn demanded<T: Config>(stash: &T::AccountId, demander: &T::AccountId) -> u32 {
    Demands::<T>::get(stash, demander).map_or(0, |demands| demands.len() as u32)
}
