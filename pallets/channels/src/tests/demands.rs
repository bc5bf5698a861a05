//! What is not served or not batched, and who pays for having it shown.

use frame_support::traits::{LockableCurrency, WithdrawReasons, fungible::Mutate};
use sp_runtime::{DispatchResult, TokenError};
use surety_channels::{End, Ending};
use surety_proofs::content_hash;
use surety_types::trust::FaultKind;

use super::*;
use crate::{DEMANDS_MAX, DisputedReceipts, ReceiptSource};

fn request() -> Request {
    generation(100, CAP / 24)
}

/// Two tokens beyond a prompt of ten.
pub(super) fn receipt(channel: ChannelId, nonce: u32, is_over: bool) -> ChunkStatement<AccountId32> {
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
pub(super) fn committed(receipts: &[ChunkStatement<AccountId32>]) -> (BatchNumber, Batch) {
    let batch = batch_of(receipts);
    (commit_seeded(&batch), batch)
}

pub(super) fn demand_receipt(by: AccountId32, held: ChunkStatement<AccountId32>) -> DispatchResult {
    ChannelsPallet::demand_receipt(signed(by), Box::new(signed_one(held)))
}

pub(super) fn show_receipt(
    made: &(BatchNumber, Batch),
    statement: &ChunkStatement<AccountId32>,
) -> DispatchResult {
    let shown = Box::new(batched(&made.1, statement.clone()));
    ChannelsPallet::show_receipt(signed(agent()), payer(), made.0, shown, None)
}

fn demand_point(batch: BatchNumber, place: u32) -> DispatchResult {
    ChannelsPallet::demand_point(signed(verifier_agent()), stash(), batch, place, PROOF)
}

fn show_point(
    (number, batch): &(BatchNumber, Batch),
    statement: &ChunkStatement<AccountId32>,
) -> DispatchResult {
    show_asked(*number, batch, (statement, request()))
}

fn show_asked(
    number: BatchNumber,
    batch: &Batch,
    (statement, request): (&ChunkStatement<AccountId32>, Request),
) -> DispatchResult {
    ChannelsPallet::show_point(
        signed(agent()),
        verifier(),
        number,
        Box::new(batched(batch, statement.clone())),
        Box::new(request),
        None,
    )
}

fn end(demander: AccountId32) -> DispatchResult {
    ChannelsPallet::end_demand(signed(reporter()), stash(), demander)
}

/// Its time is over, and the provider is convicted for what it did not show, and of nothing else.
#[track_caller]
pub(super) fn end_as_withheld(demander: AccountId32) {
    assert_ok!(end(demander));
    assert_eq!(Convicted::get(), [FaultKind::WithheldData]);
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
        let other = receipt(channel, 1, true);
        let late = committed(std::slice::from_ref(&other));
        assert_noop!(show_receipt(&late, &other), Error::<Test>::WrongTime);
        let before = free(&payer());
        end_as_withheld(payer());
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
        let shown = ChannelsPallet::show_receipt(signed(agent()), payer(), made.0, Box::new(lied), None);
        assert_eq!(shown, Err(Error::<Test>::BadOpening.into()));
    });
}

/// What a provider might put in a batch instead of what it has signed: as long, as dear, and right.
pub(super) fn instead_of(receipt: &ChunkStatement<AccountId32>) -> ChunkStatement<AccountId32> {
    ChunkStatement {
        output: content_hash(&[8; 12]),
        ..receipt.clone()
    }
}

#[test]
fn what_was_signed_is_shown_and_nothing_else_of_its_number() {
    run(|| {
        let channel = open(5 * SURE);
        let (first, second) = (receipt(channel, 0, true), receipt(channel, 1, false));
        let others = [instead_of(&first), instead_of(&receipt(channel, 1, true))];
        let made = committed(&others);
        for (held, other) in [(first, &others[0]), (second, &others[1])] {
            assert_ok!(demand_receipt(payer(), held.clone()));
            assert_noop!(show_receipt(&made, other), Error::<Test>::NotDemanded);
            let whole = receipt(channel, held.nonce, true);
            // There is room again.
            pass(WINDOW + 1);
            let also = committed(std::slice::from_ref(&whole));
            assert_ok!(show_receipt(&also, &whole));
        }
    });
}

#[test]
fn what_was_signed_is_demanded_after_something_else_was_counted_with_its_number() {
    run(|| {
        let channel = open(5 * SURE);
        let held = receipt(channel, 0, true);
        let made = committed(&[instead_of(&held)]);
        pass(WINDOW + 1);
        assert_ok!(redeem(channel, 5 * SURE, &[made]));
        assert_ok!(demand_receipt(payer(), held.clone()));
        // It could have batched that before: what was counted is what a batch has had by then.
        let late = committed(std::slice::from_ref(&held));
        assert_noop!(show_receipt(&late, &held), Error::<Test>::NotSettled);
        pass(WINDOW + 1);
        assert_noop!(show_receipt(&late, &held), Error::<Test>::NotDemanded);
        pass(SUPPLY - WINDOW);
        end_as_withheld(payer());
    });
}

#[test]
fn nobody_demands_receipts_of_others_or_for_nothing() {
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
        Balances::set_lock(*b"pyconvot", &payer(), START, WithdrawReasons::all());
        assert_noop!(
            demand_receipt(payer(), receipt(channel, 1, true)),
            TokenError::Frozen
        );
        Balances::remove_lock(*b"pyconvot", &payer());
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
        let made = [(number, batch)];
        assert_noop!(redeem(channel, SURE, &made), Error::<Test>::NotCounted);
        let place = usize::from(points[0] >= all[0].price);
        assert_noop!(show_point(&made[0], &all[1 - place]), Error::<Test>::NotDemanded);
        assert_ok!(show_point(&made[0], &all[place]));
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
        let made = committed(std::slice::from_ref(&one));
        assert_ok!(demand_point(made.0, 0));
        pass(SUPPLY + 1);
        assert_noop!(show_point(&made, &one), Error::<Test>::WrongTime);
        end_as_withheld(verifier());
        // What was not paid by then is its payer's.
        assert_noop!(redeem(channel, 5 * SURE, &[made]), Error::<Test>::TooLate);
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
        assert_ok!(ChannelsPallet::stand(signed(stash()), 0, 0));
        assert_eq!(lock(), LOCK);
        pass(SUPPLY + 1);
        end_as_withheld(payer());
    });
}

#[test]
fn a_provider_that_fills_its_own_cap_has_no_excuse() {
    run(|| {
        let channel = open(5 * SURE);
        // They fill the cap, and a dispute keeps them from being final.
        let all = [receipt(channel, 0, true), receipt(channel, 1, true)];
        let (number, batch) = committed(&all);
        let source = ReceiptSource::Batch(number, batched(&batch, all[0].clone()));
        let disputed =
            ChannelsPallet::dispute(signed(reporter()), Box::new(source), Box::new(request()), None);
        assert_ok!(disputed);
        // It has signed more than it had room for.
        assert_ok!(demand_receipt(payer(), receipt(channel, 2, true)));
        pass(SUPPLY);
        assert_noop!(end(payer()), Error::<Test>::WrongTime);
        pass(1);
        end_as_withheld(payer());
    });
}

#[test]
fn disputes_keep_nobody_from_batching_what_it_left_room_for() {
    run(|| {
        let channel = open(5 * SURE);
        let first = receipt(channel, 0, true);
        let (number, batch) = committed(std::slice::from_ref(&first));
        let wanted = receipt(channel, 1, true);
        let source = ReceiptSource::Batch(number, batched(&batch, first));
        let disputed =
            ChannelsPallet::dispute(signed(reporter()), Box::new(source), Box::new(request()), None);
        assert_ok!(disputed);
        assert_ok!(demand_receipt(payer(), wanted.clone()));
        pass(SUPPLY);
        let made = committed(std::slice::from_ref(&wanted));
        assert_ok!(show_receipt(&made, &wanted));
        assert_eq!(Demands::<Test>::iter().count(), 0);
    });
}

#[test]
fn a_verifier_demands_all_its_points_at_once_and_one_showing_meets_those_in_one_receipt() {
    run(|| {
        let channel = open(9 * SURE);
        let all: Vec<_> = (0..2).map(|nonce| receipt(channel, nonce, true)).collect();
        let one = committed(&all[..1]);
        let two = committed(&all[1..]);
        let counts = [one.0, two.0].map(|number| points(number).len() as u32);
        assert!(counts.iter().all(|count| *count > 1), "{counts:?}");
        let (before, stood) = (whole(&verifier_agent()), free(&stash()));
        for (made, count) in [&one, &two].into_iter().zip(counts) {
            for place in 0..count {
                assert_ok!(demand_point(made.0, place));
            }
            let again = demand_point(made.0, 0);
            assert_eq!(again, Err(Error::<Test>::AlreadyDemanded.into()));
        }
        // A client of it has its receipt beside that.
        let owed = counts[0] + counts[1];
        let standing = || Standings::<Test>::get(stash()).expect("stands");
        assert_eq!(standing().demands, owed);
        let view = ChannelsPallet::demands(&stash());
        assert_eq!(view.len(), owed as usize);
        assert_ok!(show_point(&one, &all[0]));
        assert_eq!(standing().demands, counts[1]);
        // A point costs twice what a receipt does, and what is shown once is paid once.
        let (price, open) = (2 * DemandPrice::get(), u128::from(counts[1]));
        assert_eq!(
            (whole(&verifier_agent()), in_pot() - held()),
            (before - price / 2 - open * price, open * price)
        );
        assert_eq!(free(&stash()) - stood, price / 2);
        assert_noop!(show_point(&one, &all[0]), Error::<Test>::NotDemanded);
        // What was not shown of the other is withheld, and all of it is over with that.
        pass(SUPPLY + 1);
        end_as_withheld(verifier());
        assert_eq!(Demands::<Test>::iter().count(), 0);
    });
}

#[test]
fn no_more_is_demanded_at_once_than_may_be() {
    run(|| {
        let channel = open(9 * SURE);
        let (mut demanded, mut nonce) = (0, 0);
        'batches: loop {
            let made = committed(&[receipt(channel, nonce, true)]);
            nonce += 1;
            for place in 0..points(made.0).len() as u32 {
                if demanded == DEMANDS_MAX {
                    assert_noop!(demand_point(made.0, place), Error::<Test>::TooManyDemands);
                    break 'batches;
                }
                assert_ok!(demand_point(made.0, place));
                demanded += 1;
            }
            // The next one takes no more of the cap.
            Standings::<Test>::mutate_extant(stash(), |provider| provider.standing.cap += CAP / 2);
        }
    });
}

#[test]
fn a_point_of_a_model_that_is_gone_is_shown_and_its_receipt_is_not_paid() {
    run(|| {
        let channel = open(5 * SURE);
        let gone = Request {
            model: UNSOLD,
            ..request()
        };
        let one = ChunkStatement {
            request: gone.hash(),
            ..receipt(channel, 0, true)
        };
        let other = receipt(channel, 1, true);
        let made = committed(&[one.clone(), other.clone()]);
        let place = points(made.0).iter().position(|point| *point < one.price);
        assert_ok!(demand_point(made.0, place.expect("one is in it") as u32));
        // Not by saying that another model was asked.
        let lie = show_asked(made.0, &made.1, (&one, request()));
        assert_eq!(lie, Err(Error::<Test>::NotDisputable.into()));
        assert_ok!(show_asked(made.0, &made.1, (&one, gone)));
        assert_eq!((lock(), DisputedReceipts::<Test>::iter().count()), (LOCK, 0));
        assert!(Convicted::get().is_empty());
        pass(WINDOW + 1);
        redeem_and_wait(channel, 5 * SURE, &[made]);
        assert_eq!(held(), 5 * SURE - other.price);
    });
}
