//! What comes of a receipt that somebody says is wrong.

use frame_support::assert_err;
use sp_runtime::{DispatchError, DispatchResult};
use surety_channels::{End, Ending};
use surety_proofs::{SegmentOpening, content_hash};
use surety_types::TaskId;

use super::*;
use crate::{DISPUTED_MAX, DisputedReceipts, ReceiptSource, UNFINISHED_MAX};

fn request() -> Request {
    generation(100, 5)
}

/// Two tokens beyond a prompt of ten.
fn said() -> Vec<u8> {
    [0u32, 1, 2].into_iter().flat_map(u32::to_le_bytes).collect()
}

fn receipt(channel: ChannelId, nonce: u32, how: End) -> ChunkStatement<AccountId32> {
    ChunkStatement {
        channel,
        payee: stash(),
        nonce,
        request: request().hash(),
        bytes: 12,
        output: content_hash(&said()),
        units: 12,
        price: 60,
        end: Some(Ending {
            how,
            trace_root: H256::repeat_byte(3),
        }),
    }
}

/// A batch of receipts of a channel's first requests.
fn committed(receipts: &[ChunkStatement<AccountId32>]) -> (BatchNumber, Batch) {
    let batch = batch_of(receipts);
    (commit(&batch), batch)
}

/// A channel, the receipt of its first request, and the batch of that.
fn one_batched() -> (ChannelId, ChunkStatement<AccountId32>, (BatchNumber, Batch)) {
    let channel = open(SURE);
    let one = receipt(channel, 0, End::Length);
    let made = committed(std::slice::from_ref(&one));
    (channel, one, made)
}

/// The same of its first two.
fn two_batched() -> (ChannelId, [ChunkStatement<AccountId32>; 2], (BatchNumber, Batch)) {
    let channel = open(SURE);
    let both = [receipt(channel, 0, End::Length), receipt(channel, 1, End::Length)];
    let made = committed(&both);
    (channel, both, made)
}

fn in_batch(
    (number, batch): &(BatchNumber, Batch),
    statement: &ChunkStatement<AccountId32>,
) -> ReceiptSource<AccountId32> {
    ReceiptSource::Batch(*number, batched(batch, statement.clone()))
}

fn dispute(source: ReceiptSource<AccountId32>) -> DispatchResult {
    let head = SegmentOpening::new(&said(), 0);
    ChannelsPallet::dispute(signed(reporter()), Box::new(source), Box::new(request()), head)
}

const FIRST: TaskId = 0;

#[test]
fn a_disputed_receipt_keeps_its_batch_open_and_is_paid_when_it_stands() {
    run(|| {
        let (channel, one, made) = one_batched();
        assert_ok!(dispute(in_batch(&made, &one)));
        let opened = Opened::get();
        assert_eq!((opened[0].price, opened[0].claim.output), (60, one.output));
        assert_eq!(opened[0].request, request());
        assert_eq!(ChannelsPallet::receipt_client(FIRST), Some(payer()));
        assert_noop!(dispute(in_batch(&made, &one)), Error::<Test>::AlreadyDisputed);
        pass(WINDOW + 1);
        let made = [made];
        assert_noop!(redeem(channel, SURE, &made), Error::<Test>::NotCounted);
        ChannelsPallet::receipt_decided(FIRST, true);
        redeem_and_wait(channel, SURE, &made);
        assert_eq!(held(), SURE - 60);
        assert_eq!(lock(), LOCK);
        assert_noop!(dispute(in_batch(&made[0], &one)), Error::<Test>::TooLate);
    });
}

#[test]
fn nothing_new_of_a_batch_is_disputed_after_its_window_though_something_keeps_it_open() {
    run(|| {
        let (_, [one, other], made) = two_batched();
        assert_ok!(dispute(in_batch(&made, &one)));
        pass(WINDOW);
        let late = dispute(in_batch(&made, &other));
        assert_ok!(late);
        pass(1);
        ChannelsPallet::receipt_decided(FIRST + 1, true);
        assert_noop!(dispute(in_batch(&made, &other)), Error::<Test>::TooLate);
    });
}

#[test]
fn a_batch_that_is_late_takes_neither_the_cap_nor_the_places_of_later_ones() {
    run(|| {
        let (channel, one, made) = one_batched();
        assert_ok!(dispute(in_batch(&made, &one)));
        for nonce in 1..UNFINISHED_MAX {
            commit(&batch(channel, nonce, &[1]));
        }
        block();
        let one_more = batch(channel, UNFINISHED_MAX, &[1]).root();
        let too_many = ChannelsPallet::commit_batch(signed(agent()), one_more);
        assert_eq!(too_many, Err(Error::<Test>::TooManyBatches.into()));
        pass(WINDOW + 1);
        commit(&batch(channel, UNFINISHED_MAX, &[CAP - 60]));
        let standing = Standings::<Test>::get(stash()).expect("stands");
        assert_eq!(standing.unfinished.to_vec(), [0, UNFINISHED_MAX]);
        assert_eq!(standing.standing.open, CAP);
    });
}

#[test]
fn a_round_about_what_came_before_a_fault_costs_no_later_lock() {
    run(|| {
        let (_, [one, other], made) = two_batched();
        assert_ok!(dispute(in_batch(&made, &one)));
        assert_ok!(dispute(in_batch(&made, &other)));
        assert_eq!(ChannelsPallet::receipt_convicted(FIRST, &stash()), Some(LOCK));
        assert_ok!(ChannelsPallet::stand(signed(stash()), LOCK, CAP));
        assert_eq!(ChannelsPallet::receipt_convicted(FIRST + 1, &stash()), None);
        assert_eq!(lock(), LOCK);
    });
}

#[test]
fn what_is_counted_is_final_also_as_it_was_signed() {
    run(|| {
        let (channel, one, made) = one_batched();
        pass(WINDOW + 1);
        assert_ok!(redeem(channel, SURE, &[made]));
        let again = dispute(ReceiptSource::Signed(signed_one(one)));
        assert_eq!(again, Err(Error::<Test>::AlreadyCounted.into()));
    });
}

#[test]
fn one_that_nobody_could_decide_is_not_paid_and_its_neighbors_are() {
    run(|| {
        let (channel, [one, _], made) = two_batched();
        assert_ok!(dispute(in_batch(&made, &one)));
        pass(WINDOW + 1);
        ChannelsPallet::receipt_decided(FIRST, false);
        redeem_and_wait(channel, SURE, &[made]);
        assert_eq!(held(), SURE - 60);
        assert_eq!(lock(), LOCK);
    });
}

#[test]
fn a_wrong_one_costs_the_standing_lock_once_and_all_that_is_not_final() {
    run(|| {
        let (channel, [one, other], made) = two_batched();
        assert_ok!(dispute(in_batch(&made, &one)));
        assert_ok!(dispute(in_batch(&made, &other)));
        assert_eq!(ChannelsPallet::receipt_convicted(FIRST, &agent()), None);
        assert_eq!(ChannelsPallet::receipt_convicted(FIRST, &stash()), Some(LOCK));
        assert_eq!(ChannelsPallet::receipt_convicted(FIRST + 1, &stash()), None);
        // What is not about a receipt is not this pallet's.
        assert_eq!(ChannelsPallet::receipt_convicted(FIRST + 2, &stash()), None);
        ChannelsPallet::receipt_decided(FIRST, false);
        ChannelsPallet::receipt_decided(FIRST + 1, false);
        assert_eq!(DisputedReceipts::<Test>::iter().count(), 0);
        pass(WINDOW + 1);
        assert_noop!(redeem(channel, SURE, &[made]), Error::<Test>::TooLate);
        assert_eq!(held(), SURE);
    });
}

#[test]
fn what_was_signed_and_never_batched_is_disputed_too() {
    run(|| {
        let channel = open(SURE);
        let one = receipt(channel, 0, End::Length);
        let mut forged = signed_one(one.clone());
        forged.signature[3] ^= 1;
        assert_noop!(
            dispute(ReceiptSource::Signed(forged)),
            Error::<Test>::BadSignature
        );
        assert_ok!(dispute(ReceiptSource::Signed(signed_one(one))));
        // It stays behind what it has signed.
        assert_ok!(ChannelsPallet::close_agreed(signed(agent()), channel));
        pass(CLOSING + 1);
        assert!(Channels::<Test>::get(channel).is_none());
        assert_ok!(ChannelsPallet::stand(signed(stash()), 0, 0));
        assert_eq!(lock(), LOCK);
        assert_eq!(ChannelsPallet::receipt_convicted(FIRST, &stash()), Some(LOCK));
    });
}

#[test]
fn a_provider_that_gives_all_money_back_can_still_be_held_to_what_it_signed() {
    run(|| {
        let (channel, other) = (open(SURE), open(SURE));
        let one = receipt(channel, 0, End::Length);
        for id in [channel, other] {
            assert_ok!(ChannelsPallet::close_agreed(signed(agent()), id));
        }
        pass(CLOSING);
        assert_ok!(dispute(ReceiptSource::Signed(signed_one(one.clone()))));
        assert_eq!(ChannelsPallet::receipt_client(FIRST), Some(payer()));
        let held = Box::new(signed_one(receipt(other, 1, End::Length)));
        assert_ok!(ChannelsPallet::demand_receipt(signed(payer()), held));
        pass(1);
        ignore(ChannelsPallet::end(signed(payer()), channel));
        // What is demanded keeps the channel; otherwise it is as if the payer had closed it.
        assert!(Channels::<Test>::contains_key(other));
        let late = dispute(ReceiptSource::Signed(signed_one(receipt(
            channel,
            2,
            End::Length,
        ))));
        assert_eq!(late, Err(Error::<Test>::NoChannel.into()));
    });
}

#[test]
fn a_challengers_bond_follows_the_lock_that_a_round_can_cost() {
    run(|| {
        let (_, [one, other], made) = two_batched();
        assert_ok!(dispute(in_batch(&made, &one)));
        assert_eq!(Challenged::get(), [(stash(), reporter(), Some(LOCK))]);
        assert_ok!(dispute(in_batch(&made, &other)));
        assert_eq!(ChannelsPallet::receipt_convicted(FIRST, &stash()), Some(LOCK));
        // There is nothing to lose any more, nor is a new lock for what came before.
        assert_eq!(ChannelsPallet::receipt_at_stake(FIRST + 1), None);
        assert_ok!(ChannelsPallet::stand(signed(stash()), LOCK, CAP));
        assert_eq!(ChannelsPallet::receipt_at_stake(FIRST + 1), None);
        assert_eq!(ChannelsPallet::receipt_at_stake(FIRST + 7), None);
    });
}

#[test]
fn a_payer_does_not_outlast_its_payee_while_windows_stand_still() {
    run(|| {
        let (channel, last) = (open(SURE), open(SURE));
        let all: Vec<_> = (0..DISPUTED_MAX)
            .map(|nonce| receipt(channel, nonce, End::Length))
            .collect();
        let sham = committed(&all);
        let made = committed(&[receipt(last, 0, End::Length)]);
        for one in &all {
            assert_ok!(dispute(in_batch(&sham, one)));
        }
        assert_ok!(ChannelsPallet::close(signed(payer()), last));
        let hold = || {
            let opening = made.1.open_channel(last).expect("has it");
            ChannelsPallet::hold(signed(agent()), last, made.0, opening)
        };
        // Beyond the expiry and a closing period after it.
        for _ in 0..12 {
            assert_ok!(hold());
            pass(CLOSING);
        }
        let expiry = Channels::<Test>::get(last).expect("held").expiry;
        assert!(expiry + CLOSING < ChannelsPallet::time());
        for round in 0..TaskId::from(DISPUTED_MAX) {
            ChannelsPallet::receipt_decided(round, true);
        }
        assert_ok!(hold());
        pass(WINDOW.max(AGAIN) + 1);
        let before = held();
        redeem_and_wait(last, SURE, &[made]);
        assert_eq!(before - held(), 60);
        pass(CLOSING);
        assert!(Channels::<Test>::get(last).is_none());
    });
}

#[test]
fn an_answer_that_was_cut_is_disputed_as_if_no_more_had_been_asked_for() {
    run(|| {
        let channel = open(SURE);
        let cut = receipt(channel, 0, End::Cut);
        assert_ok!(dispute(ReceiptSource::Signed(signed_one(cut))));
        assert_eq!(Opened::get()[0].request.units_max, 12);
        // One that a stop id has ended begins with another word.
        let stopped = receipt(channel, 1, End::Stop);
        assert_ok!(dispute(ReceiptSource::Signed(signed_one(stopped.clone()))));
        assert_ne!(Opened::get()[1].claim.output, stopped.output);
        let without_head = ChannelsPallet::dispute(
            signed(reporter()),
            Box::new(ReceiptSource::Signed(signed_one(receipt(channel, 2, End::Stop)))),
            Box::new(request()),
            None,
        );
        assert_eq!(without_head, Err(Error::<Test>::NotDisputable.into()));
    });
}

#[test]
fn nothing_is_disputed_that_is_not_there_or_not_shown() {
    run(|| {
        let (_, one, made) = one_batched();
        let mut other = one.clone();
        other.output = H256::zero();
        assert_noop!(dispute(in_batch(&made, &other)), Error::<Test>::BadOpening);
        let unended = ChunkStatement {
            end: None,
            ..one.clone()
        };
        assert_noop!(
            dispute(ReceiptSource::Signed(signed_one(unended))),
            Error::<Test>::NotDisputable
        );
        let misstated = ChunkStatement {
            price: 61,
            ..one.clone()
        };
        assert_noop!(
            dispute(ReceiptSource::Signed(signed_one(misstated))),
            Error::<Test>::NotDisputable
        );
        RoundsRefused::set(true);
        assert_err!(dispute(in_batch(&made, &one)), DispatchError::Unavailable);
        RoundsRefused::set(false);
        ChannelsPallet::receipt_decided(FIRST, false);
        pass(WINDOW + 1);
        assert_noop!(dispute(in_batch(&made, &one)), Error::<Test>::TooLate);
    });
}

#[test]
fn nothing_becomes_final_while_all_places_are_taken_and_others_have_time_again() {
    run(|| {
        let (channel, early, other) = (open(SURE), open(SURE), open(SURE));
        let before = committed(&[receipt(early, 0, End::Length)]);
        pass(WINDOW + 1);
        let all: Vec<_> = (0..=DISPUTED_MAX)
            .map(|nonce| receipt(channel, nonce, End::Length))
            .collect();
        let made = committed(&all);
        for one in &all[..DISPUTED_MAX as usize] {
            assert_ok!(dispute(in_batch(&made, one)));
        }
        let last = &all[DISPUTED_MAX as usize];
        assert_noop!(dispute(in_batch(&made, last)), Error::<Test>::TooManyDisputed);
        let beside = committed(&[receipt(other, 0, End::Length)]);
        pass(WINDOW + 5);
        check();
        // What was final stays so.
        assert_ok!(redeem(early, SURE, &[before]));
        let beside = [beside];
        assert_noop!(redeem(other, SURE, &beside), Error::<Test>::NotCounted);
        for round in 0..TaskId::from(DISPUTED_MAX) {
            ChannelsPallet::receipt_decided(round, true);
        }
        pass(WINDOW.max(AGAIN));
        assert_noop!(redeem(other, SURE, &beside), Error::<Test>::NotCounted);
        assert_ok!(dispute(in_batch(&made, last)));
        pass(1);
        assert_ok!(redeem(other, SURE, &beside));
    });
}
