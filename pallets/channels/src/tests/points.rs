//! What verifiers of a batch can count on, and what they cannot get away with.

use sp_runtime::{DispatchResult, transaction_validity::InvalidTransaction};
use surety_channels::{End, Ending, NOT_COMPUTED, PointsFound, points_seal};
use surety_proofs::content_hash;
use surety_types::{
    stake::Role,
    trust::{FaultKind, ItemLeaves},
};

use super::*;
use crate::{ANNOUNCED_MAX, PointsAudits};

const SALT: H256 = H256::repeat_byte(11);
const TRACE: H256 = H256::repeat_byte(3);

fn request(operation: Operation) -> Request {
    Request {
        operation,
        ..generation(20, CAP / 20)
    }
}

/// A receipt of twenty units, which costs all that a batch may.
fn receipt(channel: ChannelId, operation: Operation) -> ChunkStatement<AccountId32> {
    let bytes = [7; 4 * 11];
    ChunkStatement {
        channel,
        payee: stash(),
        nonce: 0,
        request: request(operation).hash(),
        bytes: bytes.len() as u32,
        output: content_hash(&bytes),
        units: 20,
        price: CAP,
        end: Some(Ending {
            how: End::Length,
            trace_root: TRACE,
        }),
    }
}

/// A batch of this receipt alone, and its number: its seed is known.
fn committed(receipt: &ChunkStatement<AccountId32>) -> (BatchNumber, Batch) {
    let batch = batch_of(std::slice::from_ref(receipt));
    (commit_seeded(&batch), batch)
}

fn announce(number: BatchNumber, seal: H256) -> DispatchResult {
    let called = ChannelsPallet::announce_points(signed(verifier_agent()), stash(), number, PROOF, seal);
    called.map(|_| ()).map_err(|refused| refused.error)
}

/// Announces points, at each of which `root` was found.
fn seal_all(number: BatchNumber, root: H256) -> PointsFound {
    seal_found(number, vec![root; points(number).len()])
}

/// Announces points, at which this was found.
fn seal_found(number: BatchNumber, found: Vec<H256>) -> PointsFound {
    let found = PointsFound::truncate_from(found);
    let seal = points_seal(&stash(), number, &verifier(), &found, &SALT);
    assert_ok!(announce(number, seal));
    found
}

fn open_points(number: BatchNumber, found: &PointsFound) -> DispatchResult {
    let origin = frame_system::RawOrigin::Authorized.into();
    ChannelsPallet::open_points(origin, stash(), number, verifier(), found.clone(), SALT)
}

fn may_open(number: BatchNumber, found: &PointsFound) -> Option<InvalidTransaction> {
    let source = sp_runtime::transaction_validity::TransactionSource::External;
    let checked = ChannelsPallet::authorize_open_points(source, &stash(), &number, &verifier(), found, &SALT);
    match checked {
        Ok(_) => None,
        Err(sp_runtime::transaction_validity::TransactionValidityError::Invalid(invalid)) => Some(invalid),
        Err(other) => panic!("{other:?}"),
    }
}

fn end(number: BatchNumber) -> DispatchResult {
    ChannelsPallet::end_points(signed(reporter()), stash(), number, verifier())
}

fn refute(number: BatchNumber, batch: &Batch, operation: Operation, leaf: Option<H256>) -> DispatchResult {
    let statement = receipt(0, operation);
    let leaves = leaf.map(|leaf| ItemLeaves {
        leaves: vec![leaf].try_into().expect("one"),
        siblings: Default::default(),
    });
    let shown = (batched(batch, statement), request(operation), leaves);
    ChannelsPallet::refute_points(
        signed(reporter()),
        stash(),
        number,
        verifier(),
        0,
        Box::new(shown),
    )
}

#[test]
fn who_computed_its_points_gets_its_bond_back_and_is_paid_for_each() {
    run(|| {
        let channel = open(5 * SURE);
        let before = free(&verifier());
        let (number, _) = committed(&receipt(channel, Operation::Generate));
        let found = seal_all(number, TRACE);
        assert!(!found.is_empty());
        let bond = found.len() as u128 * PointBond::get();
        let all = 200 * SURE;
        // All of its stake but the bond is free.
        assert!(Staking::unbond(signed(verifier()), all - bond + 1).is_err());
        assert_eq!(may_open(number, &found), Some(InvalidTransaction::Future));
        pass(ANNOUNCE + 1);
        assert_eq!(may_open(number, &found), None);
        let other = PointsFound::truncate_from(vec![H256::zero(); found.len()]);
        assert_eq!(may_open(number, &other), Some(InvalidTransaction::BadProof));
        assert_noop!(open_points(number, &other), Error::<Test>::SealMismatch);
        assert_ok!(open_points(number, &found));
        assert_eq!(may_open(number, &found), Some(InvalidTransaction::Stale));
        assert_noop!(open_points(number, &found), Error::<Test>::AlreadyOpened);
        pass(WINDOW - ANNOUNCE + REFUTE - 1);
        assert_noop!(end(number), Error::<Test>::WrongTime);
        pass(1);
        assert_ok!(end(number));
        // 1.25 times a hundredth for each.
        assert_eq!(free(&verifier()) - before, found.len() as u128 * SURE / 80);
        assert_ok!(Staking::unbond(signed(verifier()), all));
        assert_noop!(end(number), Error::<Test>::NothingAnnounced);
    });
}

#[test]
fn a_point_that_was_not_computed_is_unpaid_unpunished_and_costs_no_other_its_pay() {
    run(|| {
        let channel = open(5 * SURE);
        let before = free(&verifier());
        let (number, batch) = committed(&receipt(channel, Operation::Generate));
        let mut found = vec![TRACE; points(number).len()];
        found[0] = NOT_COMPUTED;
        let found = seal_found(number, found);
        assert!(found.len() > 1, "another one was computed");
        pass(ANNOUNCE + 1);
        assert_ok!(open_points(number, &found));
        pass(WINDOW - ANNOUNCE);
        // The first one.
        assert_noop!(
            refute(number, &batch, Operation::Generate, None),
            Error::<Test>::NothingRefuted
        );
        pass(REFUTE);
        assert_ok!(end(number));
        assert_eq!(free(&verifier()) - before, (found.len() as u128 - 1) * SURE / 80);
        // Its bond for all of them is free.
        assert_ok!(Staking::unbond(signed(verifier()), 200 * SURE));
        assert!(Convicted::get().is_empty());
    });
}

/// A verifier's audit is over, and a planck of its pay is missing in the pot. Returns the batch and the pay.
fn underpaid() -> (BatchNumber, u128) {
    let channel = open(5 * SURE);
    let (number, _) = committed(&receipt(channel, Operation::Generate));
    let found = seal_all(number, TRACE);
    pass(ANNOUNCE + 1);
    assert_ok!(open_points(number, &found));
    pass(WINDOW + REFUTE);
    let pay = found.len() as u128 * SURE / 80;
    let more = free(&Pot::get()) - ExistentialDeposit::get() - pay + 1;
    assert_ok!(Balances::transfer_allow_death(
        signed(Pot::get()),
        reporter(),
        more
    ));
    (number, pay)
}

#[test]
fn who_ends_an_audit_while_levies_are_few_takes_nothing_from_its_verifier() {
    run(|| {
        let (number, pay) = underpaid();
        let before = free(&verifier());
        assert_noop!(end(number), Error::<Test>::PotLacksPay);
        assert_ok!(Balances::transfer_allow_death(signed(reporter()), Pot::get(), 1));
        assert_ok!(end(number));
        assert_eq!(free(&verifier()) - before, pay);
    });
}

#[test]
fn who_is_to_be_paid_waits_for_levies_for_a_closing_period_at_most() {
    run(|| {
        let (number, pay) = underpaid();
        let before = free(&verifier());
        let record = Batches::<Test>::get(stash(), number).expect("committed");
        pass(record.window.until + REFUTE + CLOSING - ChannelsPallet::time());
        assert_noop!(end(number), Error::<Test>::PotLacksPay);
        pass(1);
        assert_ok!(end(number));
        assert_eq!(free(&verifier()) - before, pay - 1);
        assert_ok!(Staking::unbond(signed(verifier()), 200 * SURE));
        // Nor does its provider.
        assert_eq!(Standings::<Test>::get(stash()).map(|of| of.audits), Some(0));
    });
}

#[test]
fn an_audit_that_nobody_ends_is_paid_what_there_is_when_its_batch_goes() {
    run(|| {
        let (_, pay) = underpaid();
        let before = free(&verifier());
        pass(REDEEM_BY - 2 * WINDOW);
        assert_eq!(free(&verifier()), before);
        pass(WINDOW + 6);
        assert_eq!(free(&verifier()) - before, pay - 1);
        assert_ok!(Staking::unbond(signed(verifier()), 200 * SURE));
        assert_eq!(Batches::<Test>::iter().count(), 0);
    });
}

#[test]
fn nobody_announces_what_it_has_not_drawn_or_too_late_or_with_stake_that_is_too_new() {
    run(|| {
        let channel = open(5 * SURE);
        let (number, _) = committed(&receipt(channel, Operation::Generate));
        let by = |who, proof| {
            let called = ChannelsPallet::announce_points(signed(who), stash(), number, proof, SALT);
            called.map(|_| ()).map_err(|refused| refused.error)
        };
        let bad = surety_types::trust::AuditProof {
            proof: [2; 64],
            ..PROOF
        };
        assert_noop!(by(verifier_agent(), bad), Error::<Test>::NotDrawn);
        assert_noop!(by(agent(), PROOF), Error::<Test>::NotVerifierAgent);
        assert_ok!(Staking::bond(signed(verifier()), Role::Verifier, SURE));
        assert_noop!(by(verifier_agent(), PROOF), Error::<Test>::Unsettled);
        // Another one, for which it is old enough.
        (0..20).for_each(|_| block());
        pass(WINDOW + 1);
        let (number, _) = committed(&receipt(channel, Operation::Generate));
        pass(ANNOUNCE + 1);
        assert_noop!(announce(number, SALT), Error::<Test>::WrongTime);
        assert_eq!(PointsAudits::<Test>::iter().count(), 0);
    });
}

#[test]
fn nothing_is_announced_before_the_seed_and_all_draw_with_the_same() {
    run(|| {
        let channel = open(5 * SURE);
        let made = batch(channel, 0, &[CAP]);
        let number = commit(&made);
        assert_noop!(announce(number, SALT), Error::<Test>::WrongTime);
        Drawn::set(Some((H256::repeat_byte(6), System::block_number() + 1)));
        assert_ok!(announce(number, SALT));
        let record = || Batches::<Test>::get(stash(), number).expect("committed");
        let seed = record().draw.seed;
        assert!(seed.is_some());
        // What the chain has forgotten since changes nothing.
        Drawn::set(None);
        (0..200).for_each(|_| block());
        assert_eq!(ChannelsPallet::seed_of(&stash(), number, &record()), seed);
        assert_noop!(announce(number, SALT), Error::<Test>::AlreadyAnnounced);
    });
}

#[test]
fn no_more_verifiers_audit_a_batch_than_can_be_kept() {
    run(|| {
        let channel = open(5 * SURE);
        let (number, _) = committed(&receipt(channel, Operation::Generate));
        let announced = |count| {
            ChannelsPallet::change_batch(&stash(), number, |record| record.announced = count);
        };
        announced(ANNOUNCED_MAX);
        assert_noop!(announce(number, SALT), Error::<Test>::TooManyAnnounced);
        announced(0);
        assert_ok!(announce(number, SALT));
    });
}

#[test]
fn nobody_chooses_among_later_blocks_once_the_one_that_counts_is_forgotten() {
    run(|| {
        let channel = open(5 * SURE);
        let (number, _) = committed(&receipt(channel, Operation::Generate));
        let seed = || {
            let record = Batches::<Test>::get(stash(), number).expect("committed");
            ChannelsPallet::seed_of(&stash(), number, &record)
        };
        let first = seed();
        (0..198).for_each(|_| block());
        assert_eq!(seed(), first);
        (0..60).for_each(|_| block());
        let later = seed();
        assert!(later.is_some() && later != first);
        // What is kept then is of other blocks: it changes nothing.
        Drawn::set(Some((H256::repeat_byte(66), System::block_number())));
        assert_eq!(seed(), later);
    });
}

#[test]
fn a_chain_without_entropy_is_audited_all_the_same() {
    run(|| {
        let channel = open(5 * SURE);
        let number = commit(&batch(channel, 0, &[CAP]));
        assert_noop!(announce(number, SALT), Error::<Test>::WrongTime);
        (0..=surety_types::traits::ENTROPY_PATIENCE_BLOCKS).for_each(|_| block());
        assert_ok!(announce(number, SALT));
    });
}

#[test]
fn who_does_not_open_what_it_sealed_loses_its_bond() {
    run(|| {
        let channel = open(5 * SURE);
        let (number, _) = committed(&receipt(channel, Operation::Generate));
        let found = seal_all(number, TRACE);
        let stake = whole(&verifier());
        pass(ANNOUNCE + SUPPLY + 1);
        assert_eq!(may_open(number, &found), Some(InvalidTransaction::Stale));
        pass(REFUTE - 1);
        assert_noop!(end(number), Error::<Test>::WrongTime);
        pass(1);
        assert_ok!(end(number));
        let bond = found.len() as u128 * PointBond::get();
        assert_eq!(whole(&verifier()), stake - bond);
        assert_eq!(Convicted::get(), [FaultKind::AuditNoShow]);
    });
}

#[test]
fn who_opens_late_is_in_time_and_can_be_refuted_for_as_long_as_others() {
    run(|| {
        let channel = open(5 * SURE);
        let (number, batch) = committed(&receipt(channel, Operation::Generate));
        let found = seal_all(number, H256::repeat_byte(99));
        pass(ANNOUNCE + SUPPLY);
        assert_eq!(may_open(number, &found), None);
        assert_ok!(open_points(number, &found));
        pass(REFUTE);
        assert_noop!(end(number), Error::<Test>::WrongTime);
        assert_ok!(refute(number, &batch, Operation::Generate, None));
        assert_eq!(Convicted::get(), [FaultKind::ConfirmedWrong]);
    });
}

#[test]
fn what_was_sealed_without_computing_is_refuted_by_the_receipt() {
    run(|| {
        let channel = open(5 * SURE);
        let (number, batch) = committed(&receipt(channel, Operation::Generate));
        let found = seal_all(number, H256::repeat_byte(99));
        pass(ANNOUNCE + 1);
        assert_ok!(open_points(number, &found));
        let before = free(&reporter());
        // Until its window is over the verifier may still show that the receipt is wrong.
        assert_noop!(
            refute(number, &batch, Operation::Generate, None),
            Error::<Test>::WrongTime
        );
        pass(WINDOW - ANNOUNCE);
        assert_ok!(refute(number, &batch, Operation::Generate, None));
        assert_eq!(Convicted::get(), [FaultKind::ConfirmedWrong]);
        assert_eq!(
            free(&reporter()) - before,
            found.len() as u128 * PointBond::get() / 5
        );
        pass(REFUTE);
        assert_noop!(end(number), Error::<Test>::NothingAnnounced);
    });
}

#[test]
fn nobody_is_refuted_who_found_what_the_receipt_says() {
    run(|| {
        let channel = open(5 * SURE);
        let (number, batch) = committed(&receipt(channel, Operation::Generate));
        let found = seal_all(number, TRACE);
        pass(ANNOUNCE + 1);
        assert_ok!(open_points(number, &found));
        pass(WINDOW - ANNOUNCE);
        assert_noop!(
            refute(number, &batch, Operation::Generate, None),
            Error::<Test>::NothingRefuted
        );
        // Another receipt than the batch has shows nothing.
        assert_noop!(
            refute(number, &batch, Operation::Embed, Some(H256::zero())),
            Error::<Test>::BadOpening
        );
    });
}

#[test]
fn of_an_embedding_the_item_that_a_point_is_in_is_compared() {
    run(|| {
        let channel = open(5 * SURE);
        let (number, batch) = committed(&receipt(channel, Operation::Embed));
        let root = H256::repeat_byte(12);
        let found = seal_all(number, root);
        pass(ANNOUNCE + 1);
        assert_ok!(open_points(number, &found));
        pass(WINDOW - ANNOUNCE);
        let refute = |leaf| refute(number, &batch, Operation::Embed, leaf);
        assert_noop!(refute(None), Error::<Test>::NothingRefuted);
        assert_noop!(refute(Some(root)), Error::<Test>::NothingRefuted);
        assert_ok!(refute(Some(H256::zero())));
    });
}

#[test]
fn who_was_right_about_a_batch_that_is_void_is_not_refuted_and_is_paid() {
    run(|| {
        let channel = open(5 * SURE);
        let (number, batch) = committed(&receipt(channel, Operation::Generate));
        let found = seal_all(number, H256::repeat_byte(99));
        pass(ANNOUNCE + 1);
        assert_ok!(open_points(number, &found));
        Batches::<Test>::mutate(stash(), number, |record| {
            record.as_mut().expect("committed").window.void();
        });
        pass(WINDOW - ANNOUNCE);
        assert_noop!(
            refute(number, &batch, Operation::Generate, None),
            Error::<Test>::NothingRefuted
        );
        pass(REFUTE);
        assert_ok!(end(number));
        assert!(Convicted::get().is_empty());
    });
}

#[test]
fn an_old_batch_goes_away_though_nobody_ends_its_audits() {
    run(|| {
        let channel = open(5 * SURE);
        let (number, _) = committed(&receipt(channel, Operation::Generate));
        seal_all(number, TRACE);
        pass(WINDOW + REDEEM_BY + 1);
        for next in 1..4 {
            commit(&batch(channel, next, &[1]));
        }
        assert!(Batches::<Test>::get(stash(), number).is_none());
        assert_eq!(Convicted::get(), [FaultKind::AuditNoShow]);
    });
}
