//! The calls, and a step of the sweep, each where it costs most.

#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod points;
mod receipts;
mod setup;

use alloc::boxed::Box;

use frame_benchmarking::v2::*;
use frame_support::{
    assert_ok,
    pallet_prelude::TransactionSource,
    traits::{Authorize, Get, UnfilteredDispatchable},
};
use frame_system::RawOrigin;
use points::*;
use receipts::*;
use setup::*;
use sp_core::H256;
use surety_types::traits::BlockEntropy;

use crate::*;

#[benchmarks]
mod benchmarks {
    use super::*;

    /// The last channel that a payer may have.
    #[benchmark]
    fn open() {
        let (payee, _) = provider::<T>();
        let payer = rich::<T>("payer");
        let key: T::AccountId = account("key", 0, 0);
        let channels = CHANNELS_MAX - 1;
        Payers::<T>::insert(&payer, Payer { channels });
        let expiry = late::<T>().saturating_add(T::MaxLife::get());

        #[extrinsic_call]
        _(RawOrigin::Signed(payer), payee, key, DEPOSIT, expiry);

        assert!(Channels::<T>::contains_key(CHANNEL));
    }

    #[benchmark]
    fn top_up() {
        provider::<T>();
        let payer = channel::<T>(account("key", 0, 0), late::<T>());

        #[extrinsic_call]
        _(RawOrigin::Signed(payer), CHANNEL, DEPOSIT);

        assert_eq!(purse::<T>().deposit, 2 * DEPOSIT);
    }

    #[benchmark]
    fn extend() {
        provider::<T>();
        let payer = channel::<T>(account("key", 0, 0), late::<T>());
        let expiry = late::<T>().saturating_add(T::MaxLife::get());

        #[extrinsic_call]
        _(RawOrigin::Signed(payer), CHANNEL, expiry);

        assert!(Channels::<T>::get(CHANNEL).is_some_and(|channel| channel.expiry == expiry));
    }

    /// Of one that leaves while a channel is open, and as many batches as can be have become final: it
    /// empties as many offers as it may have, which costs more than to change its lock.
    #[benchmark]
    fn stand() {
        let (stash, _) = provider::<T>();
        fill_batches::<T>(0);
        fill_offers::<T>(OFFERS_MAX);
        channel::<T>(account("key", 0, 0), late::<T>());

        #[extrinsic_call]
        _(RawOrigin::Signed(stash.clone()), 0, 0);

        assert!(Standings::<T>::get(&stash).is_some_and(|of| of.is_leaving && of.unfinished.is_empty()));
        let mut offers = Offers::<T>::iter_prefix_values(stash);
        assert!(offers.all(|of| (of.places, of.busy) == (0, 0)));
    }

    /// As many earlier batches as can be have become final. The oldest is removed, and of the next one some
    /// audits are ended that nobody has opened: that costs more than to pay them.
    #[benchmark]
    fn commit_batch() {
        let (stash, agent) = provider::<T>();
        fill_batches::<T>(0);
        leave_sealed::<T>();

        #[extrinsic_call]
        _(RawOrigin::Signed(agent), small());

        assert!(!Batches::<T>::contains_key(&stash, 0));
        assert!(Batches::<T>::get(&stash, 1).is_some_and(|record| record.announced < LEFT));
        assert!(Batches::<T>::contains_key(&stash, UNFINISHED_MAX));
    }

    /// Of as many of the largest batches as one call takes, with a voucher that a wallet has signed.
    #[benchmark]
    fn redeem() {
        provider::<T>();
        let (signed, openings) = redeemable::<T>();
        let caller: T::AccountId = whitelisted_caller();

        #[extrinsic_call]
        _(RawOrigin::Signed(caller), signed, openings);

        assert!(purse::<T>().paid > 0 && purse::<T>().paid < purse::<T>().counted);
    }

    #[benchmark]
    fn hold() {
        let (_, agent) = provider::<T>();
        channel::<T>(account("key", 0, 0), late::<T>());
        fill_batches::<T>(late::<T>());
        let (root, opening) = deepest(0, H256::zero(), 1_000, 0);
        put_root::<T>(BATCH, root);

        #[extrinsic_call]
        _(RawOrigin::Signed(agent), CHANNEL, BATCH, opening.of);

        assert!(purse::<T>().held_until > 0);
    }

    /// Its payee was convicted: the money goes back at once.
    #[benchmark]
    fn close() {
        provider::<T>();
        let payer = channel::<T>(account("key", 0, 0), late::<T>());
        change::<T>(|provider| provider.since.channel = CHANNEL + 1);

        #[extrinsic_call]
        _(RawOrigin::Signed(payer), CHANNEL);

        assert!(purse::<T>().deposit == 0 && purse::<T>().closing.is_some());
    }

    #[benchmark]
    fn close_agreed() {
        let (_, agent) = provider::<T>();
        channel::<T>(account("key", 0, 0), late::<T>());

        #[extrinsic_call]
        _(RawOrigin::Signed(agent), CHANNEL);

        assert!(purse::<T>().kept == T::MinDeposit::get() && purse::<T>().closing.is_some());
    }

    #[benchmark]
    fn end() {
        provider::<T>();
        channel::<T>(account("key", 0, 0), 0);
        let caller: T::AccountId = whitelisted_caller();

        #[extrinsic_call]
        _(RawOrigin::Signed(caller), CHANNEL);

        assert!(!Channels::<T>::contains_key(CHANNEL));
    }

    /// The last that there is room for.
    #[benchmark]
    fn add_signer() {
        let (stash, agent) = provider::<T>();
        change::<T>(|provider| {
            provider.signers.pop();
        });

        #[extrinsic_call]
        _(RawOrigin::Signed(agent.clone()));

        assert!(Standings::<T>::get(stash).is_some_and(|provider| provider.signers.contains(&agent)));
    }

    /// Two of the longest statements, which the last segment of what was said tells apart. All offers end,
    /// and as many batches as can be are void.
    #[benchmark]
    fn report_equivocation() {
        provider::<T>();
        fill::<T>();
        let equivocation = equivocation::<T>();
        let caller: T::AccountId = whitelisted_caller();

        #[extrinsic_call]
        _(RawOrigin::Signed(caller), Box::new(equivocation));

        assert!(is_convicted::<T>());
    }

    /// Two receipts of the largest batches, which clash as in `report_equivocation`. Where the other one was
    /// only signed its signature is checked instead of its way up; here it is both.
    #[benchmark]
    fn report_batch() {
        let (stash, _) = provider::<T>();
        fill::<T>();
        let (evidence, also) = (contradiction::<T>(), signed::<T>());
        let call = Call::<T>::report_batch {
            provider: stash,
            batch: BATCH,
            other: Some(0),
            evidence: Box::new(evidence),
        };
        let caller: T::AccountId = whitelisted_caller();

        #[block]
        {
            assert!(also.is_signed(&T::Genesis::get(), T::Signatures::is_signed));
            assert_ok!(call.dispatch_bypass_filter(RawOrigin::Signed(caller).into()));
        }

        assert!(is_convicted::<T>());
    }

    /// A receipt at the end of the largest batch, of the longest generation, which a stop id has ended. It is
    /// the last that may be disputed at once: all windows stand still then.
    #[benchmark]
    fn dispute() {
        provider::<T>();
        fill_batches::<T>(late::<T>());
        change::<T>(|provider| provider.challenged = DISPUTED_MAX - 1);
        let (request, head, batched) = disputable::<T>();
        let source = ReceiptSource::Batch(BATCH, batched);
        let challenger = rich::<T>("challenger");

        #[extrinsic_call]
        _(
            RawOrigin::Signed(challenger),
            Box::new(source),
            Box::new(request),
            Some(head),
        );

        assert!(is_disputed::<T>());
    }

    /// The last that its client may demand beside points: it is a verifier, too.
    #[benchmark]
    fn demand_receipt() {
        let (stash, _) = provider::<T>();
        let held = signed::<T>();
        let key = rich::<T>("key");
        channel::<T>(key.clone(), late::<T>());
        fill_batches::<T>(late::<T>());
        demand::<T>(&key, &key, points(BATCH, DEMANDS_MAX - 1), late::<T>());

        #[extrinsic_call]
        _(RawOrigin::Signed(key.clone()), Box::new(held));

        assert_eq!(demanded::<T>(&stash, &key), DEMANDS_MAX);
    }

    /// One sr25519 VRF is verified. The agent has no money: its stash pays. It is the last that may be
    /// demanded at once.
    #[benchmark]
    fn demand_point() {
        let (agent, proof) = T::Signatures::draw_for_benchmark();
        let (stash, _) = provider::<T>();
        let verifier = drawing::<T>(&agent);
        demand::<T>(&verifier, &verifier, points(0, DEMANDS_MAX - 1), late::<T>());

        #[extrinsic_call]
        _(RawOrigin::Signed(agent), stash.clone(), BATCH, 0, proof);

        assert_eq!(demanded::<T>(&stash, &verifier), DEMANDS_MAX);
    }

    /// The receipt at the end of the largest batch, of the longest answer, of which all but a word was heard.
    /// All of the price, and what was held back, are paid.
    #[benchmark]
    fn show_receipt() {
        let (stash, agent) = provider::<T>();
        fill_batches::<T>(late::<T>());
        let (key, batched, shown) = demanded_receipt::<T>();

        #[extrinsic_call]
        _(
            RawOrigin::Signed(agent),
            key.clone(),
            BATCH,
            Box::new(batched),
            Some(shown),
        );

        assert_eq!(demanded::<T>(&stash, &key), DEMANDS_MAX - 1);
        assert_eq!(purse::<T>().paid, 1_000);
    }

    /// The same, as many points as may be demanded at once are in it, and a round about it is opened.
    #[benchmark]
    fn show_point() {
        let (stash, agent) = provider::<T>();
        fill_batches::<T>(late::<T>());
        let (request, head, batched) = disputable::<T>();
        let (verifier, by): (T::AccountId, T::AccountId) = (account("verifier", 0, 0), account("by", 0, 0));
        demand::<T>(&verifier, &by, points(BATCH, DEMANDS_MAX), late::<T>());

        #[extrinsic_call]
        _(
            RawOrigin::Signed(agent),
            verifier.clone(),
            BATCH,
            Box::new(batched),
            Box::new(request),
            Some(head),
        );

        assert!(!Demands::<T>::contains_key(stash, verifier));
        assert!(is_disputed::<T>());
    }

    /// Receipts of as many channels as can be: all offers end, and as many batches as can be are void.
    #[benchmark]
    fn end_demand() {
        let (stash, _) = provider::<T>();
        fill::<T>();
        let payer = channel::<T>(account("key", 0, 0), late::<T>());
        demand::<T>(&payer, &payer, of_many_channels::<T>(), 0);
        let by = whitelisted_caller();

        #[extrinsic_call]
        _(RawOrigin::Signed(by), stash.clone(), payer.clone());

        assert!(!Demands::<T>::contains_key(&stash, payer));
        assert!(is_convicted::<T>());
    }

    /// One sr25519 VRF is verified, for the last place that the batch has. Who comes first looks for the
    /// seed; here that is done beside it, since the proof is of one that is known.
    #[benchmark]
    fn announce_points() {
        let (agent, proof) = T::Signatures::draw_for_benchmark();
        let (stash, _) = provider::<T>();
        let verifier = drawing::<T>(&agent);
        T::Entropy::fill_for_benchmark(SETTLED.into());
        let unseeded = record::<T>(small(), late::<T>());

        #[block]
        {
            assert!(Pallet::<T>::seed_of(&stash, BATCH, &unseeded).is_some());
            assert_ok!(Pallet::<T>::announce_points(
                RawOrigin::Signed(agent).into(),
                stash.clone(),
                BATCH,
                proof,
                H256::zero(),
            ));
        }

        assert!(PointsAudits::<T>::contains_key((stash, BATCH), verifier));
    }

    #[benchmark]
    fn open_points() {
        let (call, verifier) = opening::<T>();

        #[block]
        {
            assert_ok!(call.dispatch_bypass_filter(RawOrigin::Authorized.into()));
        }

        let audit = PointsAudits::<T>::get((stash::<T>(), BATCH), verifier);
        assert!(audit.is_some_and(|audit| matches!(audit.state, PointsState::Opened { .. })));
    }

    #[benchmark]
    fn authorize_open_points() -> Result<(), BenchmarkError> {
        let (call, _) = opening::<T>();

        #[block]
        {
            call.authorize(TransactionSource::External)
                .ok_or("no signature is asked for")??;
        }

        Ok(())
    }

    /// The last of the most points, in an item of the model with most leaves for one.
    #[benchmark]
    fn refute_points() {
        let (verifier, place, shown) = refutable::<T>();
        T::Convictions::fill_for_benchmark();
        let caller: T::AccountId = whitelisted_caller();

        #[extrinsic_call]
        _(
            RawOrigin::Signed(caller),
            stash::<T>(),
            BATCH,
            verifier.clone(),
            place,
            Box::new(shown),
        );

        assert!(!PointsAudits::<T>::contains_key((stash::<T>(), BATCH), verifier));
    }

    /// Of one that nobody has opened: that costs more than to pay it.
    #[benchmark]
    fn end_points() {
        let (stash, _) = provider::<T>();
        fill_batches::<T>(0);
        endow::<T>(&T::LevyPot::get());
        let verifier = audit::<T>(0, BATCH, sealed());
        T::Convictions::fill_for_benchmark();
        let caller: T::AccountId = whitelisted_caller();

        #[extrinsic_call]
        _(RawOrigin::Signed(caller), stash.clone(), BATCH, verifier.clone());

        assert!(!PointsAudits::<T>::contains_key((stash, BATCH), verifier));
    }

    /// The last offer that a provider may have, in a pool with room for one more that nobody has looked at
    /// for long, of a model that as many audit as may.
    #[benchmark]
    fn offer() {
        let (stash, _) = provider::<T>();
        change::<T>(|provider| provider.offers = OFFERS_MAX - 1);
        let id = pool::<T>(0, POOL_OFFERS_MAX - 1);

        let (origin, region) = (RawOrigin::Signed(stash.clone()), "DE".parse().ok());

        #[extrinsic_call]
        _(origin, id.0, id.1, u128::MAX, PLACES_MAX, region);

        assert_eq!(Offers::<T>::get(stash, id).and_then(|found| found.region), region);
        assert!(Pools::<T>::get(id).is_some_and(|pool| pool.offers == POOL_OFFERS_MAX));
    }

    /// As many batches as can be have become final.
    #[benchmark]
    fn withdraw_offer() {
        let (stash, _) = provider::<T>();
        fill_batches::<T>(0);
        let (model, operation) = fill_offers::<T>(1).expect("there is one");

        #[extrinsic_call]
        _(RawOrigin::Signed(stash.clone()), model, operation);

        assert!(!Offers::<T>::contains_key(stash, (model, operation)));
        assert!(Pools::<T>::get((model, operation)).is_some_and(|pool| pool.offers < POOL_OFFERS_MAX));
    }

    /// Of a pool that nobody has looked at for long.
    #[benchmark]
    fn report_busy() {
        let (stash, agent) = provider::<T>();
        let (model, operation) = fill_offers::<T>(1).expect("there is one");

        #[extrinsic_call]
        _(RawOrigin::Signed(agent), model, operation, 0);

        assert!(Offers::<T>::get(stash, (model, operation)).is_some_and(|said| said.busy == 0));
    }

    /// It finds a channel that is over.
    #[benchmark]
    fn sweep_one() {
        provider::<T>();
        channel::<T>(account("key", 0, 0), 0);

        #[block]
        {
            Pallet::<T>::sweep();
        }

        assert!(!Channels::<T>::contains_key(CHANNEL));
    }

    /// It finds a batch that is over, and a next one of which some audits are ended that nobody has opened:
    /// that costs more than to pay them.
    #[benchmark]
    fn sweep_batches() {
        let (stash, _) = provider::<T>();
        fill_batches::<T>(0);
        finish::<T>();
        leave_sealed::<T>();

        #[block]
        {
            Pallet::<T>::sweep_batches();
        }

        assert!(!Batches::<T>::contains_key(&stash, 0));
        assert!(Batches::<T>::get(&stash, 1).is_some_and(|record| record.announced < LEFT));
        assert_eq!(BatchCursor::<T>::get(), Some(stash));
    }

    impl_benchmark_test_suite!(
        Pallet,
        sp_io::TestExternalities::new(Default::default()),
        mock::Test
    );
}
