//! Nobody is paid past what is demanded, and nobody loses its pay by that.

use surety_channels::{ChunkStatement, kept_back_for};

use super::{
    demands::{committed, demand_receipt, end_as_withheld, instead_of, receipt, show_receipt},
    *,
};
use crate::DEMANDS_MAX;

/// A demand keeps back what was counted for so long at most.
const KEPT_BACK: u32 = kept_back_for(SUPPLY);

/// A channel of which these receipts were counted, and what that pays.
fn counted(receipts: &[ChunkStatement<AccountId32>]) -> (BatchNumber, Batch) {
    let made = committed(receipts);
    pass(WINDOW + 1);
    assert_ok!(redeem(
        receipts[0].channel,
        10 * SURE,
        std::slice::from_ref(&made)
    ));
    made
}

fn price(receipts: &[ChunkStatement<AccountId32>]) -> u128 {
    receipts.iter().map(|receipt| receipt.price).sum()
}

/// What the channel has paid.
fn paid(channel: ChannelId) -> u128 {
    Channels::<Test>::get(channel).expect("it is there").purse.paid
}

#[test]
fn whoever_says_one_thing_and_batches_another_is_convicted_before_it_is_paid() {
    run(|| {
        let channel = open(10 * SURE);
        let held_ones = [receipt(channel, 0, true), receipt(channel, 1, true)];
        let others = held_ones.clone().map(|held| instead_of(&held));
        counted(&others);
        // Its payer has that long to ask, and to demand.
        pass(WAIT - 1);
        assert_ok!(redeem(channel, 10 * SURE, &[]));
        assert_eq!(paid(channel), 0);
        assert_ok!(demand_receipt(payer(), held_ones[0].clone()));
        // It may commit whatever it likes now.
        let late = committed(&held_ones);
        for _ in 0..SUPPLY {
            pass(1);
            assert_ok!(redeem(channel, 10 * SURE, &[]));
        }
        assert_noop!(show_receipt(&late, &held_ones[0]), Error::<Test>::NotDemanded);
        pass(1);
        end_as_withheld(payer());
        assert_noop!(redeem(channel, 10 * SURE, &[]), Error::<Test>::TooLate);
        assert_ok!(ChannelsPallet::close(signed(payer()), channel));
        assert_eq!((held(), free(&payer())), (0, START + LOCK / 5));
    });
}

#[test]
fn what_a_demand_holds_back_is_paid_as_it_is_shown_and_nothing_of_other_channels_is_held() {
    run(|| {
        let (channel, other) = (open(10 * SURE), open(10 * SURE));
        let all = [0, 1].map(|nonce| receipt(channel, nonce, true));
        let made = counted(&all);
        let beside = [receipt(other, 0, true)];
        counted(&beside);
        for one in &all {
            assert_ok!(demand_receipt(payer(), one.clone()));
        }
        pass(WAIT);
        assert_ok!(redeem(channel, 10 * SURE, &[]));
        assert_ok!(redeem(other, 10 * SURE, &[]));
        assert_eq!((paid(channel), paid(other)), (0, price(&beside)));
        let before = free(&stash());
        assert_ok!(show_receipt(&made, &all[1]));
        // Half of the demand's price, and nothing more: something is demanded still.
        assert_eq!((free(&stash()) - before, paid(channel)), (500, 0));
        assert_ok!(show_receipt(&made, &all[0]));
        assert_eq!(free(&stash()) - before, 1_000 + price(&all));
        assert_eq!(paid(channel), price(&all));
    });
}

#[test]
fn what_is_not_due_as_it_is_shown_is_redeemed_when_it_is() {
    run(|| {
        let channel = open(10 * SURE);
        let one = [receipt(channel, 0, true)];
        let made = counted(&one);
        assert_ok!(demand_receipt(payer(), one[0].clone()));
        assert_ok!(show_receipt(&made, &one[0]));
        assert_eq!(paid(channel), 0);
        pass(WAIT);
        assert_ok!(redeem(channel, 0, &[]));
        // A voucher that was redeemed counts on, whichever comes later.
        assert_eq!(paid(channel), price(&one));
    });
}

#[test]
fn a_payer_that_demands_again_and_again_keeps_back_no_pay() {
    run(|| {
        let channel = open(10 * SURE);
        let all = [0, 1].map(|nonce| receipt(channel, nonce, true));
        let made = counted(&all);
        let before = ChannelsPallet::time();
        assert_ok!(demand_receipt(payer(), all[0].clone()));
        // Whenever one is shown the next one is demanded in the same block.
        for at in 0..12 {
            pass(1);
            let (one, next) = (&all[at % 2], &all[(at + 1) % 2]);
            assert_ok!(show_receipt(&made, one));
            assert_ok!(demand_receipt(payer(), next.clone()));
            let is_due = ChannelsPallet::time() >= before + WAIT;
            assert_eq!(paid(channel), if is_due { price(&all) } else { 0 });
        }
        assert_ok!(show_receipt(&made, &all[0]));
    });
}

#[test]
fn demands_of_two_receipts_in_turn_keep_back_pay_no_longer_than_they_can_be_open() {
    run(|| {
        let channel = open(10 * SURE);
        let all = [0, 1].map(|nonce| receipt(channel, nonce, true));
        let made = counted(&all);
        let counted_at = ChannelsPallet::time();
        for one in &all {
            assert_ok!(demand_receipt(payer(), one.clone()));
        }
        for at in 0..2 * KEPT_BACK as usize {
            pass(1);
            // One of them is demanded all the time.
            assert_ok!(show_receipt(&made, &all[at % 2]));
            assert_ok!(demand_receipt(payer(), all[at % 2].clone()));
            assert_ok!(redeem(channel, 10 * SURE, &[]));
            let is_kept_back = ChannelsPallet::time() < counted_at + KEPT_BACK;
            assert_eq!(paid(channel), if is_kept_back { 0 } else { price(&all) });
        }
        for one in &all {
            assert_ok!(show_receipt(&made, one));
        }
    });
}

#[test]
fn what_is_batched_beside_what_was_counted_is_shown_once_it_is_final() {
    run(|| {
        let channel = open(10 * SURE);
        let told = [receipt(channel, 0, true)];
        let others = committed(&[instead_of(&told[0])]);
        pass(WINDOW);
        assert_ok!(demand_receipt(payer(), told[0].clone()));
        pass(1);
        assert_ok!(redeem(channel, 10 * SURE, &[others]));
        // Points and disputes have their time for it before anything is paid.
        let beside = committed(&told);
        for blocks in [0, WINDOW] {
            pass(blocks);
            assert_noop!(show_receipt(&beside, &told[0]), Error::<Test>::NotSettled);
            assert_ok!(redeem(channel, 10 * SURE, &[]));
        }
        assert_eq!(paid(channel), 0);
        pass(1);
        assert_ok!(show_receipt(&beside, &told[0]));
        assert_eq!(paid(channel), price(&told));
    });
}

#[test]
fn what_is_batched_beside_and_void_is_not_shown() {
    run(|| {
        let channel = open(10 * SURE);
        let told = [receipt(channel, 0, true)];
        let others = committed(&[instead_of(&told[0])]);
        pass(WINDOW);
        assert_ok!(demand_receipt(payer(), told[0].clone()));
        pass(1);
        assert_ok!(redeem(channel, 10 * SURE, &[others]));
        let beside = committed(&told);
        ChannelsPallet::change_batch(&stash(), beside.0, |record| record.window.void());
        pass(WINDOW + 1);
        assert_noop!(show_receipt(&beside, &told[0]), Error::<Test>::NotSettled);
    });
}

#[test]
fn a_demand_lets_no_deadline_pass_that_its_provider_has() {
    run(|| {
        let channel = open(10 * SURE);
        let one = [receipt(channel, 0, true)];
        let made = committed(&one);
        assert_ok!(ChannelsPallet::close(signed(payer()), channel));
        pass(CLOSING);
        // The last block in which the payee has time.
        assert_ok!(demand_receipt(payer(), one[0].clone()));
        pass(SUPPLY);
        assert_noop!(
            ChannelsPallet::end(signed(payer()), channel),
            Error::<Test>::NotOver
        );
        assert_ok!(redeem(channel, 10 * SURE, std::slice::from_ref(&made)));
        assert_ok!(show_receipt(&made, &one[0]));
        pass(WAIT);
        assert_ok!(redeem(channel, 10 * SURE, &[]));
        assert_eq!(paid(channel), price(&one));
        pass(2 * SUPPLY);
        assert!(Channels::<Test>::get(channel).is_none());
        assert_eq!(held(), 0);
    });
}

#[test]
fn what_is_counted_at_the_last_moment_is_paid_when_it_is_due() {
    run(|| {
        let channel = open(10 * SURE);
        let one = [receipt(channel, 0, true)];
        let made = committed(&one);
        assert_ok!(ChannelsPallet::close(signed(payer()), channel));
        pass(CLOSING);
        redeem_and_wait(channel, 10 * SURE, &[made]);
        assert_eq!(paid(channel), price(&one));
        pass(SUPPLY + 2);
        assert!(Channels::<Test>::get(channel).is_none());
    });
}

#[test]
fn what_was_committed_too_late_keeps_nobodys_money_by_being_counted() {
    run(|| {
        let channel = open(10 * SURE);
        let in_time = [receipt(channel, 0, true)];
        let first = committed(&in_time);
        assert_ok!(ChannelsPallet::close(signed(payer()), channel));
        pass(CLOSING);
        assert_ok!(redeem(channel, 10 * SURE, &[first]));
        let until = Channels::<Test>::get(channel).expect("held").purse.held_until;
        pass(1);
        let late = committed(&[receipt(channel, 1, true)]);
        pass(WINDOW + 1);
        assert_ok!(redeem(channel, 10 * SURE, &[late]));
        let held_until = Channels::<Test>::get(channel).expect("held").purse.held_until;
        assert_eq!(held_until, until);
    });
}

#[test]
fn demands_of_all_who_may_hold_back_a_channel() {
    run(|| {
        // Of somebody else's money, with the payer's key.
        let channel = crate::NextChannel::<Test>::get();
        let expiry = ChannelsPallet::time() + 200;
        assert_ok!(ChannelsPallet::open(
            signed(reporter()),
            stash(),
            payer(),
            10 * SURE,
            expiry
        ));
        let one = [receipt(channel, 0, true)];
        let made = counted(&one);
        assert_ok!(demand_receipt(payer(), one[0].clone()));
        assert_ok!(demand_receipt(reporter(), one[0].clone()));
        pass(WAIT);
        assert_ok!(show_receipt(&made, &one[0]));
        assert_eq!(paid(channel), 0);
        let shown = Box::new(batched(&made.1, one[0].clone()));
        assert_ok!(ChannelsPallet::show_receipt(
            signed(agent()),
            reporter(),
            made.0,
            shown,
            None
        ));
        assert_eq!(paid(channel), price(&one));
    });
}

#[test]
fn receipts_of_all_channels_are_demanded_at_once_and_no_more_than_may_be() {
    run(|| {
        let channels = [open(10 * SURE), open(10 * SURE)];
        for at in 0..DEMANDS_MAX {
            let one = receipt(channels[at as usize % 2], at / 2, true);
            assert_ok!(demand_receipt(payer(), one.clone()));
            assert_noop!(demand_receipt(payer(), one), Error::<Test>::AlreadyDemanded);
        }
        let demands = |id: ChannelId| Channels::<Test>::get(id).map(|channel| channel.purse.demands);
        assert_eq!(channels.map(demands), [Some(DEMANDS_MAX / 2); 2]);
        let more = receipt(channels[0], DEMANDS_MAX, true);
        assert_noop!(demand_receipt(payer(), more), Error::<Test>::TooManyDemands);
    });
}

#[test]
fn a_pot_that_lacks_the_pay_stops_no_showing_and_pays_it_later() {
    run(|| {
        let channel = open(10 * SURE);
        let one = [receipt(channel, 0, true)];
        let made = counted(&one);
        assert_ok!(demand_receipt(payer(), one[0].clone()));
        pass(WAIT);
        let there = free(&ChannelsPallet::pot());
        let take = |from, to, amount| {
            assert_ok!(Balances::transfer_allow_death(signed(from), to, amount));
        };
        take(
            ChannelsPallet::pot(),
            reporter(),
            there - ExistentialDeposit::get(),
        );
        assert_ok!(show_receipt(&made, &one[0]));
        assert_eq!(paid(channel), 0);
        take(reporter(), ChannelsPallet::pot(), there);
        assert_ok!(redeem(channel, 10 * SURE, &[]));
        assert_eq!(paid(channel), price(&one));
    });
}
