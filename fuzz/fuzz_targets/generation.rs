//! Blobs of the operation `Generate`, in and out.
#![no_main]

use libfuzzer_sys::fuzz_target;
use surety_engine::generation::Generation;
use surety_types::input::{IdBounds, InputReader, encode_prompt};

fuzz_target!(|blob: &[u8]| {
    let bounds = IdBounds {
        vocabulary: 1 << 16,
        positions: 1 << 20,
    };
    let reader = InputReader::new(blob, bounds);
    let (prompt, settings) = (reader.prompt(), reader.settings());
    assert!(prompt.iter().all(|id| *id < bounds.vocabulary));
    if let Ok(encoded) = encode_prompt(&prompt, &settings, &bounds) {
        let again = InputReader::new(&encoded, bounds);
        assert_eq!((again.prompt(), again.settings()), (prompt, settings));
    }
    if let Ok(generation) = Generation::decode(blob) {
        assert_eq!(generation.encode(), blob);
    }
});
