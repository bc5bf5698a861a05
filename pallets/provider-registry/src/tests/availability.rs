//! Who may be given work.

use frame_support::{assert_noop, assert_ok};
use sp_runtime::DispatchError;
use surety_pallet_test_kit::MockStake;
use surety_types::traits::ProviderDirectory;

use crate::{Error, Event, mock::*};

#[test]
fn a_provider_is_available_for_one_window_after_its_last_sign_of_life() {
    TestExt::new().bond(1, 11).register(11).execute_with(|| {
        assert!(ProviderRegistry::is_available(&1));
        System::set_block_number(1 + WINDOW);
        assert!(ProviderRegistry::is_available(&1));
        System::set_block_number(2 + WINDOW);
        assert!(!ProviderRegistry::is_available(&1));
    });
}

#[test]
fn a_heartbeat_brings_a_silent_provider_back() {
    TestExt::new().bond(1, 11).register(11).execute_with(|| {
        System::set_block_number(2 + WINDOW);
        assert_ok!(ProviderRegistry::heartbeat(signed(11)));
        System::assert_last_event(Event::HeartbeatReceived { provider: 1 }.into());
        assert!(ProviderRegistry::is_available(&1));
    });
}

#[test]
fn a_provider_that_lost_its_agent_falls_silent() {
    TestExt::new().bond(1, 11).register(11).execute_with(|| {
        MockStake::dismiss_agent(1);
        assert_noop!(ProviderRegistry::heartbeat(signed(11)), Error::<Test>::NotAgent);
        System::set_block_number(2 + WINDOW);
        assert!(!ProviderRegistry::is_available(&1));
    });
}

#[test]
fn only_registered_providers_send_heartbeats() {
    TestExt::new().bond(1, 11).execute_with(|| {
        assert_noop!(
            ProviderRegistry::heartbeat(signed(11)),
            Error::<Test>::NotRegistered
        );
        assert_noop!(
            ProviderRegistry::heartbeat(RuntimeOrigin::none()),
            DispatchError::BadOrigin
        );
        assert!(!ProviderRegistry::is_available(&1));
    });
}

#[test]
fn no_provider_weighs_more_than_another() {
    TestExt::new().bond(1, 11).register(11).execute_with(|| {
        assert_eq!(ProviderRegistry::weight(&1), 1_000);
        assert_eq!(ProviderRegistry::weight(&2), 1_000);
    });
}

#[test]
fn a_jailed_provider_is_not_available_however_alive_it_is() {
    TestExt::new().bond(1, 11).register(11).execute_with(|| {
        JailedStashes::set(vec![1]);
        assert_ok!(ProviderRegistry::heartbeat(signed(11)));
        assert!(!ProviderRegistry::is_available(&1));
        JailedStashes::set(Vec::new());
        assert!(ProviderRegistry::is_available(&1));
    });
}

#[test]
fn who_is_not_admitted_neither_registers_nor_is_given_work_but_can_leave() {
    TestExt::new().bond(1, 11).register(11).execute_with(|| {
        Refused::set(vec![1]);
        assert_noop!(
            ProviderRegistry::register(signed(11), device("cpu"), endpoints(&[ENDPOINT])),
            Error::<Test>::NotAdmitted
        );
        assert!(!ProviderRegistry::is_available(&1));
        Refused::set(Vec::new());
        assert!(ProviderRegistry::is_available(&1));
        Refused::set(vec![1]);
        assert_ok!(ProviderRegistry::deregister(signed(11)));
    });
}
