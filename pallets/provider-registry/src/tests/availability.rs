//! Who may be given work.

use frame_support::{assert_noop, assert_ok};
use sp_runtime::DispatchError;
use surety_pallet_test_kit::MockStake;
use surety_types::{speed::Tier, traits::ProviderDirectory};

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
fn who_was_measured_to_be_faster_weighs_more_and_nobody_more_than_a_quarter() {
    TestExt::new().bond(1, 11).register(11).execute_with(|| {
        assert_eq!(ProviderRegistry::weight(&1), 1_000, "never measured");
        for (giga_operations, weight) in [
            (0, 1_000),
            (4_999, 1_000),
            (5_000, 1_100),
            (19_999, 1_100),
            (20_000, 1_250),
            (u32::MAX, 1_250),
        ] {
            Speeds::mutate(|speeds| speeds.insert(1, giga_operations));
            assert_eq!(ProviderRegistry::weight(&1), weight, "{giga_operations}");
        }
        // What was measured counts no more.
        Speeds::take();
        assert_eq!(ProviderRegistry::weight(&1), 1_000);
    });
}

#[test]
fn what_a_provider_declares_changes_neither_its_weight_nor_what_is_shown_as_measured() {
    TestExt::new()
        .bond(1, 11)
        .bond(2, 12)
        .register(11)
        .execute_with(|| {
            let mut fast = device("128 of the fastest there are");
            fast.memory_mib = u32::MAX;
            assert_ok!(ProviderRegistry::register(
                signed(12),
                fast.clone(),
                endpoints(&[ENDPOINT])
            ));
            assert_eq!(ProviderRegistry::weight(&2), ProviderRegistry::weight(&1));
            let view = ProviderRegistry::provider(2).unwrap();
            assert_eq!((view.entry.device, view.measured), (fast, None));
            Speeds::mutate(|speeds| speeds.insert(1, 7_000));
            let measured = ProviderRegistry::provider(1).unwrap().measured.unwrap();
            assert_eq!((measured.tier, measured.giga_operations), (Tier::B, 7_000));
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
