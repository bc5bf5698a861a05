//! What the chain remembers of whoever sells.

use surety_channels::{End, Ending, Equivocation, Sums, view::TrackRecord};
use surety_types::stake::Role;

use super::*;
use crate::{Faults, ReceiptSource, SETTLED_MAX};

fn offer() {
    let offered = ChannelsPallet::offer(signed(stash()), model(1), Operation::Generate, FLOOR, 1, None);
    assert_ok!(offered);
}

/// Of the one offer that there is.
fn record() -> TrackRecord {
    let offers = ChannelsPallet::offers();
    assert_eq!(offers.len(), 1);
    offers[0].record
}

fn sums(receipts: u32, price: u128) -> Sums {
    Sums { receipts, price }
}

fn receipt(channel: ChannelId, nonce: u32, output: u8) -> (Request, ChunkStatement<AccountId32>) {
    let request = generation(100, 5);
    let statement = ChunkStatement {
        channel,
        payee: stash(),
        nonce,
        request: request.hash(),
        bytes: 12,
        output: H256::repeat_byte(output),
        units: 12,
        price: 60,
        end: Some(Ending {
            how: End::Length,
            trace_root: H256::repeat_byte(3),
        }),
    };
    (request, statement)
}

#[test]
fn a_provider_is_known_by_what_stands_of_its_final_batches() {
    run(|| {
        offer();
        assert_eq!((record().settled, record().batches), (sums(0, 0), 0));
        let channel = open(5 * SURE);
        let (request, wrong) = receipt(channel, 0, 1);
        let made = batch_of(&[wrong.clone(), receipt(channel, 1, 1).1]);
        let number = commit(&made);
        pass(WINDOW);
        assert_eq!((record().settled, record().batches), (sums(0, 0), 0), "not final");
        let source = ReceiptSource::Batch(number, batched(&made, wrong));
        let disputed = ChannelsPallet::dispute(signed(reporter()), Box::new(source), Box::new(request), None);
        assert_ok!(disputed);
        pass(1);
        // A later one is final, and this is not: what counts is what nothing can change any more.
        commit(&batch(channel, 2, &[SURE]));
        pass(WINDOW + 1);
        assert_eq!(record().batches, 0);
        ChannelsPallet::receipt_decided(0, false);
        assert_eq!(
            record().settled,
            sums(2, 60 + SURE),
            "the wrong receipt is none of them"
        );
        assert_eq!(record().batches, 2);
    });
}

#[test]
fn a_record_is_made_of_so_many_batches_however_many_are_kept() {
    run(|| {
        offer();
        let channel = open(5 * SURE);
        let all = SETTLED_MAX + 3;
        for number in 0..all {
            commit(&batch(channel, number, &[100 + u128::from(number)]));
            pass(1);
        }
        pass(WINDOW + 1);
        let newest: u128 = (3..all).map(|number| 100 + u128::from(number)).sum();
        assert_eq!(record().settled, sums(SETTLED_MAX, newest));
        assert_eq!(record().batches, all);
    });
}

#[test]
fn whoever_was_at_fault_begins_anew_and_it_stays_known_that_it_was() {
    run(|| {
        offer();
        let channel = open(5 * SURE);
        commit(&batch(channel, 0, &[SURE]));
        pass(WINDOW + 1);
        assert_eq!((record().settled, record().was_convicted), (sums(1, SURE), false));
        let clash = Equivocation {
            one: signed_one(receipt(channel, 1, 1).1),
            other: signed_one(receipt(channel, 1, 2).1),
            shown: None,
        };
        let reported = ChannelsPallet::report_equivocation(signed(reporter()), Box::new(clash));
        assert_ok!(reported);
        assert_ok!(ChannelsPallet::stand(signed(stash()), LOCK, CAP));
        offer();
        let fresh = record();
        assert_eq!((fresh.settled, fresh.batches), (sums(0, 0), 0));
        assert!(fresh.was_convicted);
    });
}

#[test]
fn faults_elsewhere_and_how_long_its_stake_is_there_are_known_too() {
    run(|| {
        offer();
        let before = record();
        assert_eq!((before.faults, before.missed), (0, 0));
        Remembered::set(Faults { lately: 2, missed: 3 });
        block();
        let after = record();
        assert_eq!((after.faults, after.missed), (2, 3));
        assert_eq!(after.settled_for, before.settled_for + 1);
        let more = Balances::transfer_allow_death(signed(payer()), stash(), 10 * SURE);
        assert_ok!(more);
        assert_ok!(Staking::bond(signed(stash()), Role::Provider, SURE));
        assert_eq!(record().settled_for, 0);
    });
}
