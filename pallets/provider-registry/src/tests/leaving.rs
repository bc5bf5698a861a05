//! Leaving the list.

use frame_support::{assert_noop, assert_ok};
use sp_runtime::DispatchError;
use surety_pallet_test_kit::MockStake;
use surety_types::traits::{ProviderDirectory, StashClosed};

use crate::{Error, Event, Providers, mock::*};

#[test]
fn an_agent_takes_its_stash_off_the_list() {
    TestExt::new().bond(1, 11).register(11).execute_with(|| {
        assert_ok!(ProviderRegistry::deregister(signed(11)));
        System::assert_last_event(Event::Deregistered { provider: 1 }.into());
        assert!(!ProviderRegistry::is_available(&1));
        assert!(!Providers::<Test>::contains_key(1));
    });
}

#[test]
fn a_stash_leaves_even_after_its_stake_is_gone() {
    TestExt::new().bond(1, 11).register(11).execute_with(|| {
        MockStake::remove(1);
        assert_noop!(ProviderRegistry::deregister(signed(11)), Error::<Test>::NotAgent);
        assert_ok!(ProviderRegistry::deregister(signed(1)));
    });
}

#[test]
fn a_stash_that_is_an_agent_elsewhere_takes_its_own_entry_off_first() {
    TestExt::new()
        .bond(1, 11)
        .bond(2, 1)
        .register(11)
        .register(1)
        .execute_with(|| {
            assert_ok!(ProviderRegistry::deregister(signed(1)));
            assert!(!Providers::<Test>::contains_key(1));
            assert!(Providers::<Test>::contains_key(2));
            assert_ok!(ProviderRegistry::deregister(signed(1)));
            assert!(!Providers::<Test>::contains_key(2));
        });
}

#[test]
fn an_entry_goes_with_the_stake_behind_it() {
    TestExt::new().bond(1, 11).register(11).execute_with(|| {
        MockStake::remove(1);
        ProviderRegistry::closed(&1);
        System::assert_last_event(Event::Deregistered { provider: 1 }.into());
        assert!(!Providers::<Test>::contains_key(1));
        let events = System::event_count();
        ProviderRegistry::closed(&1);
        assert_eq!(
            System::event_count(),
            events,
            "nothing is told of a stash that is not listed"
        );
    });
}

#[test]
fn nobody_leaves_who_is_not_there() {
    TestExt::new().bond(1, 11).execute_with(|| {
        assert_noop!(
            ProviderRegistry::deregister(signed(11)),
            Error::<Test>::NotRegistered
        );
        assert_noop!(ProviderRegistry::deregister(signed(1)), Error::<Test>::NotAgent);
        assert_noop!(
            ProviderRegistry::deregister(RuntimeOrigin::none()),
            DispatchError::BadOrigin
        );
    });
}
