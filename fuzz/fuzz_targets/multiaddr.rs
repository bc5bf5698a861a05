//! Endpoints, as the chain and the worker read them, and addresses to listen on.
#![no_main]

use libfuzzer_sys::fuzz_target;
use surety_network::{check_listen, parse_endpoint};
use surety_types::{limits::MULTIADDR_BYTES_MAX, multiaddr::check};

fuzz_target!(|bytes: &[u8]| {
    let accepted = check(bytes).is_ok() && bytes.len() <= MULTIADDR_BYTES_MAX as usize;
    match std::str::from_utf8(bytes) {
        Ok(text) => {
            assert_eq!(parse_endpoint(text).is_ok(), accepted, "chain and worker disagree");
            // From the own settings; whatever stands there, it must not panic.
            check_listen(text).ok();
        }
        Err(_) => assert!(!accepted, "endpoints are text"),
    }
});
