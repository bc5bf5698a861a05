//! What is refused, and leaves everything as it was.

use surety_channels::BatchRoot;

use super::*;
use crate::{CHANNELS_MAX, PAYEE_CHANNELS_MAX};

#[test]
fn a_channel_pays_somebody_else_and_a_payer_has_a_bounded_number_of_them() {
    run(|| {
        let own = ChannelsPallet::open(signed(stash()), stash(), stash(), SURE, 100);
        assert_eq!(own, Err(Error::<Test>::OwnChannel.into()));
        (0..CHANNELS_MAX).for_each(|_| {
            open(1_000);
        });
        let one_more = ChannelsPallet::open(signed(payer()), stash(), payer(), 1_000, 100);
        assert_eq!(one_more, Err(Error::<Test>::TooManyChannels.into()));
        assert_ok!(ChannelsPallet::close_agreed(signed(agent()), 0));
        // Its record stays as long as the payee answers for it.
        let one_more = ChannelsPallet::open(signed(payer()), stash(), payer(), 1_000, 100);
        assert_eq!(one_more, Err(Error::<Test>::TooManyChannels.into()));
        pass(CLOSING + 1);
        ignore(ChannelsPallet::end(signed(reporter()), 0));
        assert!(Channels::<Test>::get(0).is_none());
        open(1_000);
    });
}

#[test]
fn no_more_channels_pay_a_provider_than_are_read_at_once() {
    run(|| {
        let has = |channels| Standings::<Test>::mutate_extant(stash(), |of| of.channels = channels);
        has(PAYEE_CHANNELS_MAX);
        let one_more = ChannelsPallet::open(signed(payer()), stash(), payer(), SURE, 100);
        assert_eq!(one_more, Err(Error::<Test>::PayeeFull.into()));
        has(0);
        open(SURE);
    });
}

#[test]
fn nothing_is_done_with_a_channel_that_is_not_there() {
    run(|| {
        let channel = open(SURE);
        let made = batch(channel, 0, &[1]);
        let (number, opening) = (commit(&made), made.open_channel(channel).expect("has it"));
        assert_ok!(ChannelsPallet::close_agreed(signed(agent()), channel));
        pass(CLOSING + 2);
        let gone = || Error::<Test>::NoChannel;
        let of_payer = |call: fn(RuntimeOrigin, ChannelId) -> _| call(signed(payer()), channel);
        assert_noop!(of_payer(ChannelsPallet::close), gone());
        assert_noop!(of_payer(ChannelsPallet::end), gone());
        assert_noop!(ChannelsPallet::top_up(signed(payer()), channel, 1), gone());
        assert_noop!(ChannelsPallet::extend(signed(payer()), channel, 100), gone());
        assert_noop!(ChannelsPallet::close_agreed(signed(agent()), channel), gone());
        assert_noop!(redeem(channel, 1, &[]), gone());
        assert_noop!(
            ChannelsPallet::hold(signed(agent()), channel, number, opening),
            gone()
        );
    });
}

#[test]
fn nobody_stands_where_no_lock_would_do() {
    run(|| {
        let endless = ChannelsPallet::stand(signed(stash()), LOCK, u128::MAX);
        assert_noop!(endless, Error::<Test>::NotInsurable);
    });
}

#[test]
fn a_batch_has_receipts_is_drawn_on_and_its_audits_are_paid_for() {
    run(|| {
        let channel = open(SURE);
        block();
        let commit = |root| ChannelsPallet::commit_batch(signed(agent()), root);
        let made = batch(channel, 0, &[SURE]).root();
        let empty = BatchRoot { channels: 0, ..made };
        assert_noop!(commit(empty), Error::<Test>::ImpossibleBatch);
        assert_ok!(ChannelsPallet::stand(signed(stash()), LOCK, 2 * CAP));
        // A point for each SURE.
        let dear = batch(channel, 0, &[16 * SURE + SURE / 2]).root();
        assert_noop!(commit(dear), Error::<Test>::TooDear);
        assert_ok!(Balances::transfer_all(signed(stash()), reporter(), true));
        assert_noop!(commit(made), Error::<Test>::CannotPayLevy);
    });
}

#[test]
fn a_voucher_is_good_for_no_more_than_the_deposit() {
    run(|| {
        let channel = open(5 * SURE);
        assert_noop!(redeem(channel, 5 * SURE + 1, &[]), Error::<Test>::BadVoucher);
    });
}

#[test]
fn a_batch_that_is_final_holds_nothing_back() {
    run(|| {
        let channel = open(SURE);
        let made = batch(channel, 0, &[1]);
        let (number, opening) = (commit(&made), made.open_channel(channel).expect("has it"));
        pass(WINDOW + 1);
        assert_noop!(
            ChannelsPallet::hold(signed(agent()), channel, number, opening),
            Error::<Test>::NotHeld
        );
    });
}
