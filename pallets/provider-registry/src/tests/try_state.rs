//! The checker notices each kind of damage.

use frame_support::{assert_err, assert_ok};

use crate::{ProviderOf, Providers, mock::*};

/// Does `damage` to the entry of a sound state, and expects the checker to say `complaint`.
#[track_caller]
fn damaged(damage: impl FnOnce(&mut ProviderOf<Test>), complaint: &'static str) {
    TestExt::new().bond(1, 11).register(11).build().execute_with(|| {
        assert_ok!(ProviderRegistry::do_try_state());
        Providers::<Test>::mutate(1, |entry| damage(entry.as_mut().unwrap()));
        assert_err!(ProviderRegistry::do_try_state(), complaint);
    });
}

#[test]
fn prov_1_notices_missing_and_malformed_endpoints() {
    damaged(
        |entry| entry.endpoints = endpoints(&[]),
        "PROV-1: a provider has no endpoint",
    );
    damaged(
        |entry| entry.endpoints = endpoints(&["/ip4/127.0.0.1"]),
        "PROV-1: an endpoint is not well-formed",
    );
}

#[test]
fn prov_2_notices_a_heartbeat_from_the_future() {
    damaged(
        |entry| entry.last_heartbeat = 2,
        "PROV-2: a heartbeat lies in the future",
    );
}
