//! What is removed in time, and is no alibi.

use super::{
    demands::{committed, demand_receipt, end_as_withheld, instead_of, receipt, show_receipt},
    *,
};

/// It is that time, and the channel lives on.
fn wait(channel: ChannelId, until: u32) {
    while ChannelsPallet::time() < until {
        let now = ChannelsPallet::time();
        assert_ok!(ChannelsPallet::extend(signed(payer()), channel, now + LIFE));
        pass((LIFE - 100).min(until - now));
    }
}

/// Last time at which a batch is kept for sure.
fn kept(batch: BatchNumber) -> u32 {
    let record = Batches::<Test>::get(stash(), batch).expect("committed");
    record.window.until + REDEEM_BY
}

#[test]
fn pruning_is_no_alibi_for_what_was_demanded_before() {
    run(|| {
        let channel = open(5 * SURE);
        let held = receipt(channel, 0, true);
        let made = committed(&[instead_of(&held)]);
        let kept = kept(made.0);
        // Counted at the last moment, and demanded at the last moment.
        wait(channel, kept - 4 * SUPPLY);
        assert_ok!(redeem(channel, 5 * SURE, std::slice::from_ref(&made)));
        wait(channel, kept - SUPPLY);
        assert_ok!(demand_receipt(payer(), held));
        pass(SUPPLY);
        commit(&batch(channel, 1, &[1]));
        assert!(Batches::<Test>::contains_key(stash(), made.0));
        pass(1);
        commit(&batch(channel, 2, &[1]));
        assert!(!Batches::<Test>::contains_key(stash(), made.0));
        end_as_withheld(payer());
    });
}

#[test]
fn what_is_demanded_at_the_last_moment_can_be_shown_until_the_end() {
    run(|| {
        let channel = open(5 * SURE);
        let held = receipt(channel, 0, true);
        let made = committed(std::slice::from_ref(&held));
        let kept = kept(made.0);
        pass(WINDOW + 1);
        assert_ok!(redeem(channel, 5 * SURE, std::slice::from_ref(&made)));
        wait(channel, kept - SUPPLY);
        assert_ok!(demand_receipt(payer(), held.clone()));
        pass(SUPPLY);
        commit(&batch(channel, 1, &[1]));
        assert_ok!(show_receipt(&made, &held));
    });
}

#[test]
fn batches_of_who_has_left_or_lost_its_lock_go_by_time_alone() {
    let commit_five = || {
        let channel = open(5 * SURE);
        (0..5).for_each(|nonce| {
            commit(&batch(channel, nonce, &[1]));
        });
        assert_ok!(ChannelsPallet::close_agreed(signed(agent()), channel));
        (channel, kept(4))
    };
    let are_gone_after = |kept: u32| {
        pass(kept - ChannelsPallet::time());
        assert_eq!(Batches::<Test>::iter().count(), 5);
        pass(6);
        assert_eq!(Batches::<Test>::iter().count(), 0);
    };
    run(|| {
        let (_, kept) = commit_five();
        pass(CLOSING + 2);
        assert_ok!(ChannelsPallet::stand(signed(stash()), 0, 0));
        are_gone_after(kept);
    });
    run(|| {
        let (channel, kept) = commit_five();
        assert_ok!(demand_receipt(payer(), receipt(channel, 5, true)));
        pass(SUPPLY + 1);
        end_as_withheld(payer());
        are_gone_after(kept);
    });
}

#[test]
fn what_may_be_gone_before_it_can_be_shown_is_neither_demanded_nor_counted() {
    run(|| {
        let channel = open(5 * SURE);
        let held = [receipt(channel, 0, true), receipt(channel, 1, true)];
        let counted = committed(&held[..1]);
        let kept = kept(counted.0);
        pass(WINDOW + 1);
        assert_ok!(redeem(channel, 5 * SURE, &[counted]));
        let late = committed(&held[1..]);
        wait(channel, kept - SUPPLY + 1);
        let [old, new] = held;
        assert_noop!(demand_receipt(payer(), old), Error::<Test>::AlreadyCounted);
        // What was not counted may be in the same batch, for all that is known.
        assert_noop!(demand_receipt(payer(), new), Error::<Test>::TooLate);
        let view = ChannelsPallet::channel(channel).expect("it is open");
        assert_eq!(view.demanded_until, kept - SUPPLY);
        let late_kept = self::kept(late.0);
        wait(channel, late_kept - 4 * SUPPLY + 1);
        let redeemed = redeem(channel, 5 * SURE, &[late]);
        assert_eq!(redeemed, Err(Error::<Test>::NotCounted.into()));
    });
}
