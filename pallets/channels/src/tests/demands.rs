//! What is not served or not batched, and who pays for having it shown.

use frame_support::traits::fungible::Mutate;
use sp_runtime::{DispatchResult, TokenError};
use surety_channels::{End, Ending};
use surety_proofs::content_hash;
use surety_types::trust::FaultKind;

use super::*;
use crate::{Demands, DisputedReceipts, ReceiptSource};

fn request() -> Request {
    generation(100, CAP / 24)
}

/// Two tokens beyond a prompt of ten.
fn receipt(channel: ChannelId, nonce: u32, is_over: bool) -> ChunkStatement<AccountId32> {
    ChunkStatement {
        channel,
        payee: stash(),
        nonce,
        request: request().hash(),
        bytes: 12,
        output: content_hash(&[7; 12]),
        units: 12,
        price: request().price(12).expect("small"),
        end: is_over.then_some(Ending {
            how: End::Length,
            trace_root: H256::repeat_byte(3),
        }),
    }
}

/// A batch of receipts, whose seed is known.
fn committed(receipts: &[ChunkStatement<AccountId32>]) -> (BatchNumber, Batch) {
    let batch = batch_of(receipts);
    (commit_seeded(&batch), batch)
}

fn demand_receipt(by: AccountId32, held: ChunkStatement<AccountId32>) -> DispatchResult {
    ChannelsPallet::demand_receipt(signed(by), Box::new(signed_one(held)))
}

fn show_receipt(made: &(BatchNumber, Batch), statement: &ChunkStatement<AccountId32>) -> DispatchResult {
    let shown = Box::new(batched(&made.1, statement.clone()));
    ChannelsPallet::show_receipt(signed(agent()), payer(), made.0, shown)
}

fn demand_point(batch: BatchNumber, place: u32) -> DispatchResult {
    ChannelsPallet::demand_point(signed(verifier_agent()), stash(), batch, place, PROOF)
}

fn show_point(batch: &Batch, statement: &ChunkStatement<AccountId32>) -> DispatchResult {
    ChannelsPallet::show_point(
        signed(agent()),
        verifier(),
        Box::new(batched(batch, statement.clone())),
        Box::new(request()),
        None,
    )
}

fn end(demander: AccountId32) -> DispatchResult {
    ChannelsPallet::end_demand(signed(reporter()), stash(), demander)
}

#[test]
fn a_receipt_that_its_client_misses_is_batched_and_shown_or_was_withheld() {
    run(|| {
        let channel = open(5 * SURE);
        // The last that the client got is no receipt yet.
        assert_ok!(demand_receipt(payer(), receipt(channel, 0, false)));
        let again = demand_receipt(payer(), receipt(channel, 0, false));
        assert_eq!(again, Err(Error::<Test>::AlreadyDemanded.into()));
        let whole = receipt(channel, 0, true);
        let made = committed(std::slice::from_ref(&whole));
        let (before, stood) = (free(&payer()), free(&stash()));
        assert_ok!(show_receipt(&made, &whole));
        // Half of the price was for showing it.
        assert_eq!(free(&payer()) - before, 500);
        assert_eq!(free(&stash()) - stood, 500);
        assert_eq!(Demands::<Test>::iter().count(), 0);

        assert_ok!(demand_receipt(payer(), receipt(channel, 1, true)));
        pass(SUPPLY);
        assert_noop!(end(payer()), Error::<Test>::WrongTime);
        pass(1);
        let late = ChannelsPallet::show_receipt(
            signed(agent()),
            payer(),
            made.0,
            Box::new(batched(&made.1, whole)),
        );
        assert_eq!(late, Err(Error::<Test>::WrongTime.into()));
        let before = free(&payer());
        assert_ok!(end(payer()));
        assert_eq!(Convicted::get(), [FaultKind::WithheldData]);
        // Its money, and a part of the lock.
        assert_eq!(free(&payer()) - before, 1_000 + LOCK / 5);
        assert_eq!(lock(), 0);
    });
}

#[test]
fn another_receipt_or_one_that_says_less_does_not_meet_a_demand() {
    run(|| {
        let channel = open(5 * SURE);
        let (one, other) = (receipt(channel, 0, true), receipt(channel, 1, true));
        let short = ChunkStatement {
            bytes: 8,
            ..one.clone()
        };
        let longer = ChunkStatement {
            bytes: 13,
            end: None,
            ..one.clone()
        };
        assert_ok!(demand_receipt(payer(), longer));
        let made = committed(&[one.clone(), other.clone()]);
        assert_noop!(show_receipt(&made, &other), Error::<Test>::NotDemanded);
        assert_noop!(show_receipt(&made, &one), Error::<Test>::NotDemanded);
        let lied = batched(&made.1, one);
        let lied = Batched {
            statement: short,
            ..lied
        };
        let shown = ChannelsPallet::show_receipt(signed(agent()), payer(), made.0, Box::new(lied));
        assert_eq!(shown, Err(Error::<Test>::BadOpening.into()));
    });
}

#[test]
fn nobody_demands_receipts_of_others_or_such_as_are_counted_or_for_nothing() {
    run(|| {
        let channel = open(5 * SURE);
        let one = receipt(channel, 0, true);
        assert_noop!(
            demand_receipt(reporter(), one.clone()),
            Error::<Test>::MayNotDemand
        );
        let mut forged = signed_one(one.clone());
        forged.signature[0] ^= 1;
        assert_noop!(
            ChannelsPallet::demand_receipt(signed(payer()), Box::new(forged)),
            Error::<Test>::BadSignature
        );
        let nothing = ChunkStatement {
            bytes: 0,
            units: 0,
            price: 0,
            ..receipt(channel, 0, false)
        };
        assert_noop!(demand_receipt(payer(), nothing), Error::<Test>::MayNotDemand);
        let made = committed(std::slice::from_ref(&one));
        pass(WINDOW + 1);
        assert_ok!(redeem(channel, 5 * SURE, &[made]));
        assert_noop!(demand_receipt(payer(), one), Error::<Test>::AlreadyCounted);
        let free = free(&payer());
        assert_ok!(Balances::burn_from(
            &payer(),
            free - 100,
            frame_support::traits::tokens::Preservation::Expendable,
            frame_support::traits::tokens::Precision::Exact,
            frame_support::traits::tokens::Fortitude::Force,
        ));
        assert_noop!(
            demand_receipt(payer(), receipt(channel, 1, true)),
            TokenError::FundsUnavailable
        );
    });
}

#[test]
fn a_verifier_that_is_served_nothing_has_its_point_shown_and_may_demand_the_rest() {
    run(|| {
        let channel = open(5 * SURE);
        let all = [receipt(channel, 0, true), receipt(channel, 1, true)];
        let (number, batch) = committed(&all);
        let points = points(number);
        assert!(!points.is_empty());
        let number_of_points = points.len() as u32;
        assert_noop!(demand_point(number, number_of_points), Error::<Test>::NotDrawn);
        assert_ok!(demand_point(number, 0));
        // Nothing of it is final before that.
        pass(WINDOW + 1);
        let made = [(number, batch.clone())];
        assert_noop!(redeem(channel, SURE, &made), Error::<Test>::NotCounted);
        let place = usize::from(points[0] >= all[0].price);
        assert_noop!(show_point(&batch, &all[1 - place]), Error::<Test>::NotDemanded);
        assert_ok!(show_point(&batch, &all[place]));
        // Nobody has paid for a place for disputes.
        let standing = Standings::<Test>::get(stash()).expect("stands");
        assert_eq!((standing.disputes, standing.challenged), (1, 0));
        // In the round about it the verifier is what a client is in others.
        assert_eq!(ChannelsPallet::receipt_client(0), Some(verifier_agent()));
        assert_eq!(
            ChannelsPallet::receipt_input(0),
            Some((request().input, request().input_bytes))
        );
        assert_noop!(redeem(channel, SURE, &made), Error::<Test>::NotCounted);
        ChannelsPallet::receipt_decided(0, true);
        assert_eq!(DisputedReceipts::<Test>::iter().count(), 0);
        assert_ok!(redeem(channel, SURE, &made));
    });
}

#[test]
fn a_point_that_is_not_shown_was_withheld() {
    run(|| {
        let channel = open(5 * SURE);
        let one = receipt(channel, 0, true);
        let (number, batch) = committed(std::slice::from_ref(&one));
        assert_ok!(demand_point(number, 0));
        pass(SUPPLY + 1);
        assert_noop!(show_point(&batch, &one), Error::<Test>::WrongTime);
        assert_ok!(end(verifier()));
        assert_eq!(Convicted::get(), [FaultKind::WithheldData]);
        assert_ok!(redeem(channel, 5 * SURE, &[(number, batch)]));
        assert_eq!(held(), 5 * SURE);
    });
}

#[test]
fn whoever_has_lost_its_lock_owes_nothing_more_and_demanders_have_their_money_back() {
    run(|| {
        let channel = open(5 * SURE);
        let before = free(&payer());
        let one = receipt(channel, 0, true);
        assert_ok!(demand_receipt(payer(), one.clone()));
        let other = ChunkStatement {
            output: H256::zero(),
            ..one.clone()
        };
        let two = surety_channels::Equivocation {
            one: signed_one(one),
            other: signed_one(other),
            shown: None,
        };
        assert_ok!(ChannelsPallet::report_equivocation(
            signed(reporter()),
            Box::new(two)
        ));
        // With a new lock it owes no more of what came before.
        assert_ok!(ChannelsPallet::stand(signed(stash()), LOCK, CAP));
        pass(SUPPLY + 1);
        assert_ok!(end(payer()));
        assert_eq!(free(&payer()), before);
        assert_eq!(Convicted::get(), [FaultKind::Equivocation]);
        assert_eq!(lock(), LOCK);
    });
}

#[test]
fn what_is_demanded_keeps_the_provider_behind_its_offer() {
    run(|| {
        let channel = open(5 * SURE);
        assert_ok!(demand_receipt(payer(), receipt(channel, 0, true)));
        assert_ok!(ChannelsPallet::close_agreed(signed(agent()), channel));
        assert_noop!(ChannelsPallet::stand(signed(stash()), 0, 0), Error::<Test>::InUse);
        pass(SUPPLY + 1);
        assert_ok!(end(payer()));
        assert_eq!(Convicted::get(), [FaultKind::WithheldData]);
    });
}

#[test]
fn nobody_is_convicted_for_what_there_was_no_room_to_batch() {
    run(|| {
        let channel = open(5 * SURE);
        // They fill the cap, and a dispute keeps them from being final.
        let all = [receipt(channel, 0, true), receipt(channel, 1, true)];
        let (number, batch) = committed(&all);
        let source = ReceiptSource::Batch(number, batched(&batch, all[0].clone()));
        let disputed =
            ChannelsPallet::dispute(signed(reporter()), Box::new(source), Box::new(request()), None);
        assert_ok!(disputed);
        assert_ok!(demand_receipt(payer(), receipt(channel, 2, true)));
        pass(SUPPLY + 1);
        assert_ok!(end(payer()));
        assert_eq!(Demands::<Test>::iter().count(), 1);
        pass(SUPPLY);
        ChannelsPallet::receipt_decided(0, true);
        // There is room only now: the provider has all of its time.
        pass(1);
        assert_ok!(end(payer()));
        pass(SUPPLY);
        assert_noop!(end(payer()), Error::<Test>::WrongTime);
        assert!(Convicted::get().is_empty());
        pass(1);
        assert_ok!(end(payer()));
        assert_eq!(Convicted::get(), [FaultKind::WithheldData]);
    });
}

#[test]
fn what_is_late_for_want_of_room_can_still_be_shown() {
    run(|| {
        let channel = open(5 * SURE);
        committed(&[receipt(channel, 0, true), receipt(channel, 1, true)]);
        let wanted = receipt(channel, 2, true);
        assert_ok!(demand_receipt(payer(), wanted.clone()));
        pass(SUPPLY + 1);
        let made = committed(std::slice::from_ref(&wanted));
        assert_ok!(show_receipt(&made, &wanted));
        assert_eq!(Demands::<Test>::iter().count(), 0);
    });
}

#[test]
fn room_is_kept_for_what_was_demanded_first() {
    run(|| {
        let expiry = ChannelsPallet::time() + 200;
        let (one, two) = (open(5 * SURE), open(5 * SURE));
        assert_ok!(ChannelsPallet::open(
            signed(reporter()),
            stash(),
            reporter(),
            5 * SURE,
            expiry
        ));
        let other = two + 1;
        committed(&[receipt(one, 0, true)]);
        // Half of the cap is left.
        assert_ok!(demand_receipt(payer(), receipt(two, 0, true)));
        assert_ok!(demand_receipt(reporter(), receipt(other, 0, true)));
        pass(SUPPLY + 1);
        assert_ok!(end(reporter()));
        assert!(Convicted::get().is_empty());
        assert_ok!(end(payer()));
        assert_eq!(Convicted::get(), [FaultKind::WithheldData]);
    });
}

#[test]
fn nobody_is_convicted_for_what_was_batched_too_long_ago_to_be_shown() {
    run(|| {
        let channel = open(5 * SURE);
        let one = receipt(channel, 0, true);
        committed(std::slice::from_ref(&one));
        for _ in 0..3 {
            let expiry = ChannelsPallet::time() + LIFE;
            assert_ok!(ChannelsPallet::extend(signed(payer()), channel, expiry));
            pass(LIFE - 100);
        }
        assert_ok!(demand_receipt(payer(), one.clone()));
        commit(&batch(channel, 1, &[1]));
        assert!(Batches::<Test>::get(stash(), 0).is_none());
        assert_ok!(end(payer()));
        assert!(Convicted::get().is_empty());
        assert_noop!(demand_receipt(payer(), one), Error::<Test>::TooLate);
    });
}
