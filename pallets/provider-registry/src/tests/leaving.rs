//! Leaving the list.

use frame_support::{assert_noop, assert_ok};
use sp_runtime::DispatchError;
use surety_pallet_test_kit::MockStake;
use surety_types::traits::ProviderDirectory;

use crate::{mock::*, Error, Event, Providers};

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
