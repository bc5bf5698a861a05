//! Blobs of the operation `Generate`, in and out.
#![no_main]

use libfuzzer_sys::fuzz_target;
use surety_engine::generation::{Generation, Request};

fuzz_target!(|blob: &[u8]| {
    if let Ok(request) = Request::decode(blob) {
        assert_eq!(Request::decode(&request.encode()), Ok(request));
    }
    if let Ok(generation) = Generation::decode(blob) {
        assert_eq!(generation.encode(), blob);
    }
});
