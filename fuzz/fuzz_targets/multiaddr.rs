//! Endpoints, as the chain and the worker read them, and addresses to listen on.
#![no_main]

use codec::{Decode, Encode};
use libfuzzer_sys::fuzz_target;
use surety_network::{check_listen, parse_endpoint};
use surety_types::multiaddr::{Endpoint, check};

fuzz_target!(|bytes: &[u8]| {
    let decoded = Endpoint::decode(&mut bytes.encode().as_slice());
    match std::str::from_utf8(bytes) {
        Ok(text) => {
            let accepted = decoded.is_ok_and(|endpoint| check(&endpoint).is_ok());
            assert_eq!(parse_endpoint(text).is_ok(), accepted, "chain and worker disagree");
            // From the own settings; whatever stands there, it must not panic.
            check_listen(text).ok();
        }
        Err(_) => assert!(decoded.is_err(), "endpoints are text"),
    }
});
