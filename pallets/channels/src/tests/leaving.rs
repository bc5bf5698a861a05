//! Who wants its lock back gets it, whatever others do.

use sp_runtime::DispatchResult;

use super::*;
use crate::Pools;

fn stand(lock: u128, cap: u128) -> DispatchResult {
    ChannelsPallet::stand(signed(stash()), lock, cap)
}

fn try_open() -> DispatchResult {
    let expiry = ChannelsPallet::time() + LIFE;
    ChannelsPallet::open(signed(payer()), stash(), payer(), MinDeposit::get(), expiry)
}

fn offer(places: u32) -> DispatchResult {
    let (stash, model) = (signed(stash()), model(1));
    ChannelsPallet::offer(stash, model, Operation::Generate, FLOOR, places, None)
}

/// In each of so many blocks somebody opens a channel for as long as it may, and extends all others.
fn besiege(blocks: u32) {
    for _ in 0..blocks {
        ignore(try_open());
        let expiry = ChannelsPallet::time() + LIFE;
        for id in Channels::<Test>::iter_keys().collect::<Vec<_>>() {
            ignore(ChannelsPallet::extend(signed(payer()), id, expiry));
        }
        pass(1);
    }
}

#[test]
fn a_provider_gets_its_lock_back_from_a_payer_that_opens_a_channel_in_every_block() {
    run(|| {
        besiege(20);
        assert_eq!(Channels::<Test>::iter().count(), 20);
        assert_noop!(stand(LOCK - 1, CAP), Error::<Test>::InUse);
        let is_leaving = || ChannelsPallet::standing_view(&stash()).map(|of| of.is_leaving);
        assert_eq!(is_leaving(), Some(false));
        assert_ok!(stand(0, 0));
        assert_eq!((lock(), is_leaving()), (LOCK, Some(true)));
        assert_noop!(stand(0, 0), Error::<Test>::InUse);
        // None lives longer than it may already, and the sweep needs a while.
        besiege(LIFE + 20);
        assert_eq!(Channels::<Test>::iter().count(), 0);
        assert_ok!(stand(0, 0));
        assert_ok!(Staking::unbond(signed(stash()), 200 * SURE));
    });
}

#[test]
fn who_leaves_sells_nothing_new_keeps_what_it_has_sold_and_can_stay() {
    run(|| {
        assert_ok!(offer(1));
        let channel = open(5 * SURE);
        assert_eq!(ChannelsPallet::offers().len(), 1);
        assert_ok!(stand(0, 0));
        let leaving = || Error::<Test>::Leaving;
        let later = ChannelsPallet::time() + 300;
        let top_up = || ChannelsPallet::top_up(signed(payer()), channel, SURE);
        let extend = || ChannelsPallet::extend(signed(payer()), channel, later);
        assert_noop!(try_open(), leaving());
        assert_noop!(top_up(), leaving());
        assert_noop!(extend(), leaving());
        assert_noop!(offer(2), leaving());
        assert!(ChannelsPallet::offers().is_empty());
        assert_ok!(offer(0));
        // Nobody loses by it what was sold, and its lock is behind that.
        let made = batch(channel, 0, &[SURE]);
        let made = [(commit(&made), made)];
        pass(WINDOW + 1);
        redeem_and_wait(channel, SURE, &made);
        assert_eq!((held(), lock()), (4 * SURE, LOCK));
        assert_ok!(stand(LOCK, CAP));
        assert_ok!(try_open());
        assert_ok!(top_up());
        assert_ok!(extend());
        assert_ok!(offer(1));
        assert_eq!(ChannelsPallet::offers().len(), 1);
    });
}

#[test]
fn places_of_who_leaves_move_no_price_any_more() {
    run(|| {
        assert_ok!(offer(2));
        let of = (model(1), Operation::Generate);
        assert_ok!(ChannelsPallet::report_busy(signed(agent()), of.0, of.1, 2));
        open(5 * SURE);
        let pool = || Pools::<Test>::get(of).map(|pool| (pool.offers, pool.places, pool.busy));
        assert_eq!(pool(), Some((1, 2, 2)));
        assert_ok!(stand(0, 0));
        assert_eq!(pool(), Some((1, 0, 0)));
        let report = || ChannelsPallet::report_busy(signed(agent()), of.0, of.1, 1);
        assert_noop!(report(), Error::<Test>::TooBusy);
        // Who stays offers again.
        assert_ok!(stand(LOCK, CAP));
        assert_ok!(offer(2));
        assert_eq!(pool(), Some((1, 2, 0)));
    });
}
