//! What a pool lets in of openings of bids, which nobody signs and nobody pays for; and that strangers who
//! send others damage none.

use frame_support::{
    assert_noop, assert_ok,
    pallet_prelude::{InvalidTransaction, TransactionValidityError},
};
use proptest::{collection::vec, prelude::*};
use sp_runtime::DispatchError;
use surety_pallet_test_kit::MockStake;
use surety_types::opening::PRIORITY;

use crate::{Bids, Call, mock::*};

const FIRST: BlockNumber = 1 + BID_WINDOW + 1;
const LAST: BlockNumber = 1 + BID_WINDOW + REVEAL_WINDOW;

fn refused(call: &Call<Test>) -> InvalidTransaction {
    match validity_of(call) {
        Err(TransactionValidityError::Invalid(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_pool_takes_an_opening_while_the_call_would_succeed() {
    TestExt::new().providers(1).execute_with(|| {
        let task = post(1);
        let call = opening(task, stash(0), bid(0, 500));
        assert_ok!(place(task, 0, 500));
        assert_eq!(refused(&call), InvalidTransaction::Future);
        for block in FIRST..=LAST {
            skip_to(block);
            let valid = validity_of(&call).unwrap();
            assert_eq!(valid.longevity, u64::MAX);
            assert_eq!(valid.priority, PRIORITY);
            assert!(valid.propagate && valid.requires.is_empty());
        }
        skip_to(LAST + 1);
        assert_eq!(refused(&call), InvalidTransaction::Stale);
    });
}

#[test]
fn a_pool_says_why_it_takes_no_other_opening() {
    TestExt::new().providers(3).execute_with(|| {
        let task = post(1);
        assert_ok!(place(task, 0, 500));
        assert_ok!(place(task, 1, 500));
        run_to(FIRST);
        for (call, why) in [
            (opening(task, stash(0), bid(0, 501)), InvalidTransaction::BadProof),
            (opening(task, stash(0), bid(1, 500)), InvalidTransaction::BadProof),
            (opening(task, stash(2), bid(2, 500)), InvalidTransaction::Call),
            (opening(task + 1, stash(0), bid(0, 500)), InvalidTransaction::Call),
        ] {
            assert_eq!(refused(&call), why, "{call:?}");
        }
        let provides = |index| {
            let call = opening(task, stash(index), bid(index, 500));
            validity_of(&call).unwrap().provides
        };
        assert_ne!(provides(0), provides(1));
        assert_ok!(open(task, 0, 500));
        let again = opening(task, stash(0), bid(0, 500));
        assert_eq!(refused(&again), InvalidTransaction::Stale);
    });
}

#[test]
fn a_signed_opening_is_none() {
    TestExt::new().providers(1).execute_with(|| {
        let task = post(1);
        assert_ok!(place(task, 0, 500));
        run_to(FIRST);
        for origin in [signed(agent_of(stash(0))), signed(ANYBODY), RuntimeOrigin::none()] {
            let refused = TaskAuction::reveal_bid(origin, task, stash(0), bid(0, 500));
            assert_noop!(refused, DispatchError::BadOrigin);
        }
    });
}

#[test]
fn a_bidder_without_an_agent_has_its_bid_opened_all_the_same() {
    TestExt::new().providers(1).execute_with(|| {
        let task = post(1);
        assert_ok!(place(task, 0, 500));
        MockStake::dismiss_agent(stash(0));
        run_to(FIRST);
        assert_ok!(open(task, 0, 500));
    });
}

#[derive(Clone, Debug)]
enum Step {
    /// Somebody says this in a bidder's name, with the salt that somebody has.
    Sent(u64, Balance, u64),
    Pass,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0u64..4, 500u128..502, 0u64..4).prop_map(|(who, price, salt)| Step::Sent(who, price, salt)),
        1 => Just(Step::Pass),
    ]
}

proptest! {
    #[test]
    fn junk_in_somebodys_name_neither_opens_nor_keeps_from_opening(steps in vec(any_step(), 0..60)) {
        TestExt::new().providers(4).execute_with(|| {
            let task = post(3);
            for index in 0..3 {
                assert_ok!(place(task, index, 500));
            }
            run_to(FIRST);
            let mut opened = [false; 4];
            for step in steps {
                match step {
                    Step::Sent(who, price, salt) => {
                        let right = who < 3 && price == 500 && salt == who;
                        let before = Bids::<Test>::get(task, stash(who));
                        let done = send_opening(opening(task, stash(who), bid(salt, price))).is_ok();
                        assert_eq!(done, right && !opened[who as usize], "{who} {price} {salt}");
                        assert!(done || Bids::<Test>::get(task, stash(who)) == before);
                        opened[who as usize] |= done;
                    }
                    Step::Pass if System::block_number() < LAST => {
                        run_to(System::block_number() + 1);
                    }
                    Step::Pass => {}
                }
            }
            for index in (0..3).filter(|index| !opened[*index as usize]) {
                assert_ok!(open(task, index, 500));
            }
            for index in 0..3 {
                assert_eq!(MockStake::locked(stash(index)), 0);
            }
        });
    }
}
