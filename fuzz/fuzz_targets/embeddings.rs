//! Output blobs of the operation `Embed`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use surety_engine::Embeddings;

fuzz_target!(|blob: &[u8]| {
    if let Ok(embeddings) = Embeddings::decode(blob) {
        let written = embeddings.encode().expect("it was read from a blob");
        assert_eq!(Embeddings::decode(&written), Ok(embeddings));
    }
});
