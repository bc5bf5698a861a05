//! Stake behind open tasks.

use frame_support::{assert_noop, assert_ok};
use surety_types::traits::StakeLedger;

use crate::{Error, Event, mock::*};

#[test]
fn locking_takes_from_what_is_unlocked() {
    TestExt::new().provider(1, 500).execute_with(|| {
        assert_ok!(Staking::lock(&1, 200));
        System::assert_last_event(
            Event::Locked {
                stash: 1,
                amount: 200,
            }
            .into(),
        );
        assert_ok!(Staking::lock(&1, 100));
        assert_eq!((ledger(1).locked, Staking::unlocked_stake(&1)), (300, 200));
        assert_eq!(held(1), 500);
    });
}

#[test]
fn no_more_is_locked_than_is_bonded() {
    TestExt::new().provider(1, 500).execute_with(|| {
        assert_ok!(Staking::lock(&1, 200));
        assert_noop!(Staking::lock(&1, 301), Error::<Test>::NotEnoughUnlocked);
        assert_ok!(Staking::lock(&1, 300));
        assert_noop!(Staking::lock(&1, 1), Error::<Test>::NotEnoughUnlocked);
        assert_noop!(Staking::lock(&2, 1), Error::<Test>::NotBonded);
    });
}

#[test]
fn stake_on_its_way_out_backs_no_new_task() {
    TestExt::new().provider(1, 500).execute_with(|| {
        assert_ok!(Staking::unbond(signed(1), 400));
        assert_eq!(Staking::unlocked_stake(&1), 100);
        assert_noop!(Staking::lock(&1, 101), Error::<Test>::NotEnoughUnlocked);
    });
}

#[test]
fn unlocking_ignores_excess_and_strangers() {
    TestExt::new().provider(1, 500).execute_with(|| {
        assert_ok!(Staking::lock(&1, 200));
        Staking::unlock(&1, 50);
        System::assert_last_event(Event::Unlocked { stash: 1, amount: 50 }.into());
        assert_eq!(ledger(1).locked, 150);
        Staking::unlock(&1, 1_000);
        System::assert_last_event(
            Event::Unlocked {
                stash: 1,
                amount: 150,
            }
            .into(),
        );
        assert_eq!(Staking::unlocked_stake(&1), 500);

        let events = System::event_count();
        Staking::unlock(&1, 1);
        Staking::unlock(&2, 1);
        assert_eq!(System::event_count(), events);
    });
}

#[test]
fn a_stranger_has_no_unlocked_stake() {
    TestExt::new().execute_with(|| assert_eq!(Staking::unlocked_stake(&1), 0));
}
