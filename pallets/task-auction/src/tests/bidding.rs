use frame_support::{assert_noop, assert_ok};
use sp_core::H256;
use surety_pallet_test_kit::{MockEscrow, MockProviders, MockStake};
use surety_types::{stake::Role, traits::Escrow};

use crate::{BidCounts, BidRecord, Bids, Error, Event, mock::*};

#[test]
fn a_bid_is_kept_sealed_and_locks_its_deposit() {
    TestExt::new().providers(1).execute_with(|| {
        let task = post(1);
        events();
        assert_ok!(place(task, 0, 500));
        let seal = bid(0, 500).seal(task, &stash(0));
        let expected = BidRecord {
            seal,
            opened: None,
            deposit: DEPOSIT,
        };
        assert_eq!(Bids::<Test>::get(task, stash(0)), Some(expected));
        assert_eq!(BidCounts::<Test>::get(task).placed, 1);
        assert_eq!(MockStake::locked(stash(0)), DEPOSIT);
        assert_eq!(
            events(),
            [Event::BidPlaced {
                task,
                provider: stash(0)
            }]
        );
    });
}

#[test]
fn only_agents_of_available_providers_bid() {
    TestExt::new().providers(1).execute_with(|| {
        let task = post(1);
        let bid_as = |who| {
            let bid = TaskAuction::bid(signed(who), task, H256::zero());
            bid.map_err(|error| error.error)
        };
        // The stash is not its own agent unless it says so.
        assert_noop!(bid_as(stash(0)), Error::<Test>::NotAgent);
        MockStake::bond(200, 201, Role::Verifier, STAKE);
        assert_noop!(bid_as(201), Error::<Test>::NotAgent);
        MockStake::bond(300, 301, Role::Provider, STAKE);
        assert_noop!(bid_as(301), Error::<Test>::ProviderUnavailable);
        MockProviders::set_available(stash(0), false);
        assert_noop!(place(task, 0, 1), Error::<Test>::ProviderUnavailable);
    });
}

#[test]
fn a_provider_bids_once() {
    TestExt::new().providers(1).execute_with(|| {
        let task = post(1);
        assert_ok!(place(task, 0, 500));
        assert_noop!(place(task, 0, 400), Error::<Test>::AlreadyBid);
    });
}

#[test]
fn a_bid_needs_unlocked_stake_for_its_deposit() {
    TestExt::new().provider_with(0, LEAST).execute_with(|| {
        let task = post(1);
        BidDeposit::set(LEAST + 1);
        assert_noop!(place(task, 0, 500), MockStake::NOT_ENOUGH);
    });
}

#[test]
fn who_could_not_back_the_price_limit_has_no_place() {
    let lock = 2 * MockEscrow::price_limit(CAP, 1).unwrap();
    let ext = TestExt::new().provider_with(0, lock - 1).provider_with(1, lock);
    ext.execute_with(|| {
        let task = post(1);
        assert_noop!(place(task, 0, 1), Error::<Test>::NotBacked);
        assert_ok!(place(task, 1, 1));
        // What another task locks is not free.
        let next = post(1);
        assert_noop!(place(next, 1, 1), Error::<Test>::NotBacked);
    });
}

#[test]
fn bids_are_taken_up_to_the_deadline_although_nobody_sweeps() {
    TestExt::new().providers(2).execute_with(|| {
        let task = post(1);
        skip_to(1 + BID_WINDOW);
        assert_ok!(place(task, 0, 500));
        skip_to(1 + BID_WINDOW + 1);
        assert_noop!(place(task, 1, 500), Error::<Test>::WrongPhase);
        assert_noop!(place(task + 1, 1, 500), Error::<Test>::UnknownTask);
    });
}
