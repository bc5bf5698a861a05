//! Who makes no blocks.

use frame_support::{assert_noop, assert_ok};
use surety_pallet_trust_lock::Records;
use surety_types::traits::{Jail, PoolLedger, Reliability};

use crate::chain::*;

/// Sessions until one of the four has missed thirty blocks: ten are made in each.
const ABSENCE: u32 = 12;

fn pass_until_chilled(operator: AccountId) {
    let mut left = u64::from(2 * ABSENCE) * SESSION;
    while can_be_elected(operator) {
        assert!(left > 0, "{operator} is not chilled");
        left -= 1;
        pass(1);
    }
}

#[test]
fn an_absent_operator_is_suspended_for_longer_each_time_and_its_pool_loses_nothing() {
    on_chain(|| {
        assert_ok!(Delegation::delegate(signed(11), 2, 4_000 * SURE));
        for time in 1..=3u32 {
            Absent::set([2].into());
            pass_sessions(ABSENCE);
            pass_until_chilled(2);
            assert_eq!(TrustLock::missed(&2), time);
            let until = Records::<Test>::get(2).suspended_until.unwrap();
            assert_eq!(until - System::block_number(), SUSPENSION << (time - 1));
            assert_noop!(Validators::validate(signed(2)), ValidatorsError::Jailed);
            // What it has missed is remembered beyond that.
            pass(until - System::block_number() + 50);
            Absent::take();
            assert!(!TrustLock::is_jailed(&2));
            assert_ok!(Validators::validate(signed(2)));
        }
        assert_eq!(backing(2), OWN + 4_000 * SURE);
        assert_ok!(Delegation::undelegate(signed(11), 2, 4_000 * SURE));
        pass(UNBONDING);
        assert_ok!(Delegation::withdraw(signed(11)));
        assert!(Balances::free_balance(11) >= MONEY);
    });
}

#[test]
fn who_takes_all_stake_out_of_a_pool_leaves_nothing_behind() {
    on_chain(|| {
        Absent::set([2].into());
        pass_until_chilled(2);
        assert_ok!(Delegation::undelegate(signed(2), 2, OWN));
        // The pool is gone; that its operator is suspended is remembered until it is not.
        assert!(!surety_pallet_validators::Candidates::<Test>::contains_key(2));
        assert!(TrustLock::is_suspended(&2));
        pass(SUSPENSION + 10);
        assert!(!Records::<Test>::contains_key(2));
    });
}

#[test]
fn each_day_on_which_an_operator_made_its_blocks_makes_good_for_one_time_that_it_was_absent() {
    on_chain(|| {
        for time in 1..=2 {
            Absent::set([2].into());
            pass_until_chilled(2);
            assert_eq!(TrustLock::missed(&2), time);
            pass(4 * SUSPENSION);
            Absent::take();
            assert_ok!(Validators::validate(signed(2)));
        }
        // The first day is one of which it was not there for all.
        for (left, sessions) in [(1, 2 * DAY + 2), (0, DAY)] {
            let before = Session::current_index();
            while TrustLock::missed(&2) > left {
                pass(1);
                assert!(Session::current_index() - before <= sessions);
            }
        }
        // The next suspension is as short as the first.
        Absent::set([2].into());
        pass_until_chilled(2);
        let until = Records::<Test>::get(2).suspended_until.unwrap();
        assert_eq!(until - System::block_number(), SUSPENSION);
    });
}

#[test]
fn what_is_lost_in_rounding_after_a_slash_costs_nobody_its_place() {
    on_chain(|| {
        equivocate(2);
        pass(DEFERRAL + JAIL + 10);
        let lacks = SELF_BOND - Delegation::own(&2);
        assert!(lacks > OWN / 4);
        assert_ok!(Delegation::delegate(signed(2), 2, lacks + 3));
        assert_ok!(Validators::validate(signed(2)));
        // Strangers come and go until it has less than it needs to join.
        for amount in 1..50u128 {
            assert_ok!(Delegation::delegate(signed(11), 2, 10 * SURE + amount));
            if Delegation::own(&2) < SELF_BOND {
                break;
            }
        }
        assert!(Delegation::own(&2) < SELF_BOND);
        assert!(SELF_BOND - Delegation::own(&2) < 100);
        pass_sessions(4);
        assert_eq!(Session::validators(), [1, 2, 3, 4]);
    });
}
