//! What peers of the data plane send: requests, answers, pages of streams.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|message: &[u8]| {
    assert!(surety_network::reads_back(message), "a message with two forms");
});
