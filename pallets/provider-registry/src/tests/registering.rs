//! Entering the list.

use codec::{Decode, Encode};
use frame_support::{assert_noop, assert_ok};
use sp_runtime::DispatchError;
use surety_pallet_test_kit::MockStake;
use surety_types::{
    multiaddr::Endpoints, provider::DeviceKind, region::Region, speed::Requirements, stake::Role,
    traits::ProviderDirectory,
};

use crate::{Call, Error, Event, Providers, mock::*};

#[test]
fn an_agent_registers_its_stash() {
    TestExt::new().bond(1, 11).execute_with(|| {
        assert_ok!(ProviderRegistry::register(
            signed(11),
            device("cpu"),
            endpoints(&[ENDPOINT])
        ));
        System::assert_last_event(Event::Registered { provider: 1 }.into());
        let entry = Providers::<Test>::get(1).unwrap();
        assert_eq!(
            (entry.device, entry.endpoints),
            (device("cpu"), endpoints(&[ENDPOINT]))
        );
        assert_eq!(entry.last_heartbeat, 1);
        assert!(!Providers::<Test>::contains_key(11));
    });
}

#[test]
fn registering_again_updates_and_counts_as_a_heartbeat() {
    TestExt::new().bond(1, 11).register(11).execute_with(|| {
        System::set_block_number(9);
        let other = "/dns/provider.example/tcp/4001/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp";
        let both = endpoints(&[ENDPOINT, other]);
        assert_ok!(ProviderRegistry::register(
            signed(11),
            device("gpu"),
            both.clone()
        ));
        System::assert_last_event(Event::Updated { provider: 1 }.into());
        let entry = Providers::<Test>::get(1).unwrap();
        assert_eq!(
            (entry.device, entry.endpoints, entry.last_heartbeat),
            (device("gpu"), both, 9)
        );
    });
}

#[test]
fn only_a_providers_agent_registers() {
    TestExt::new().bond(1, 11).execute_with(|| {
        MockStake::bond(2, 12, Role::Verifier, 100);
        // A stranger, the stash itself, and the agent of a verifier.
        for who in [3, 1, 12] {
            assert_noop!(
                ProviderRegistry::register(signed(who), device("cpu"), endpoints(&[ENDPOINT])),
                Error::<Test>::NotAgent
            );
        }
        assert_noop!(
            ProviderRegistry::register(RuntimeOrigin::none(), device("cpu"), endpoints(&[ENDPOINT])),
            DispatchError::BadOrigin
        );
    });
}

#[test]
fn a_provider_without_endpoint_is_refused() {
    TestExt::new().bond(1, 11).execute_with(|| {
        assert_noop!(
            ProviderRegistry::register(signed(11), device("cpu"), Endpoints::new()),
            Error::<Test>::NoEndpoints
        );
    });
}

#[test]
fn each_fault_of_an_endpoint_has_its_error() {
    let peer = "12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp";
    let syntax = format!("ip4/127.0.0.1/tcp/1/p2p/{peer}");
    let host = format!("/ip4/300.0.0.1/tcp/1/p2p/{peer}");
    let transport = format!("/ip4/127.0.0.1/sctp/1/p2p/{peer}");
    let cases = [
        (syntax.as_str(), Error::<Test>::MultiaddrSyntax),
        (host.as_str(), Error::<Test>::MultiaddrHost),
        (transport.as_str(), Error::<Test>::MultiaddrTransport),
        ("/ip4/127.0.0.1/tcp/1", Error::<Test>::MultiaddrPeerId),
    ];
    TestExt::new().bond(1, 11).execute_with(|| {
        for (text, error) in cases {
            // Every endpoint is checked, not only the first.
            let list = endpoints(&[ENDPOINT, text]);
            assert_noop!(ProviderRegistry::register(signed(11), device("cpu"), list), error);
        }
    });
}

#[test]
fn a_call_that_names_a_device_by_what_is_no_text_is_none() {
    let call = |name: &[u8]| {
        let endpoints = endpoints(&[ENDPOINT]);
        let rest = (DeviceKind::Cpu, 8_u16, 16_384_u32, None::<Region>, endpoints);
        let bytes = (0_u8, name, rest).encode();
        Call::<Test>::decode(&mut bytes.as_slice())
    };
    let (device, endpoints) = (device("cpu"), endpoints(&[ENDPOINT]));
    assert_eq!(call(b"cpu"), Ok(Call::register { device, endpoints }));
    assert!(call(&[0xff, 0xfe]).is_err());
}

#[test]
fn a_call_that_names_a_region_by_what_are_no_two_capital_letters_is_none() {
    let call = |region: &[u8; 2]| {
        let rest = (
            DeviceKind::Cpu,
            8_u16,
            16_384_u32,
            Some(*region),
            endpoints(&[ENDPOINT]),
        );
        let bytes = (0_u8, "cpu", rest).encode();
        Call::<Test>::decode(&mut bytes.as_slice())
    };
    let (mut device, endpoints) = (device("cpu"), endpoints(&[ENDPOINT]));
    device.region = "DE".parse().ok();
    assert_eq!(call(b"DE"), Ok(Call::register { device, endpoints }));
    for other in [b"de", b"D1", &[0xff, 0xfe]] {
        assert!(call(other).is_err(), "{other:?}");
    }
}

#[test]
fn the_region_that_is_asked_for_is_the_one_that_was_registered_last() {
    TestExt::new().bond(1, 11).register(11).execute_with(|| {
        let region = |letters: &str| letters.parse::<Region>().ok();
        let asked = Requirements {
            region: region("DE"),
            ..Default::default()
        };
        let meets = || ProviderRegistry::meets(&1, &asked);
        assert!(!meets(), "it has declared none");
        for (declared, is_met) in [(region("DE"), true), (region("FR"), false), (None, false)] {
            let mut device = device("cpu");
            device.region = declared;
            assert_ok!(ProviderRegistry::register(
                signed(11),
                device,
                endpoints(&[ENDPOINT])
            ));
            assert_eq!(meets(), is_met, "{declared:?}");
            let shown = ProviderRegistry::provider(1).unwrap();
            assert_eq!(shown.entry.device.region, declared);
        }
        assert!(!ProviderRegistry::meets(&2, &asked), "it is not on the list");
        assert!(ProviderRegistry::meets(&2, &Requirements::default()));
    });
}
