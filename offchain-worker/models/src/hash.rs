//! The hash of a model's files: `blake2_256`, of bytes and of streams.
//!
//! Blobs of tasks are named otherwise, by [`surety_proofs::content_hash`].

use std::io::{self, Read};

use surety_types::ContentHash;

const CHUNK_BYTES: usize = 256 * 1024;

/// `blake2_256` of a file's bytes.
pub fn file_hash(bytes: &[u8]) -> ContentHash {
    ContentHash::from(sp_crypto_hashing::blake2_256(bytes))
}

/// [`file_hash`] of everything a reader gives, in constant memory.
pub fn file_hash_of(mut reader: impl Read) -> io::Result<ContentHash> {
    let mut state = Hasher::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match reader.read(&mut chunk) {
            Ok(0) => return Ok(state.finish()),
            Ok(read) => state.update(&chunk[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// `blake2_256` of bytes that come in pieces.
pub(crate) struct Hasher(blake2b_simd::State);

impl Hasher {
    pub(crate) fn new() -> Self {
        Self(blake2b_simd::Params::new().hash_length(32).to_state())
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(&self) -> ContentHash {
        ContentHash::from_slice(self.0.finalize().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn streaming_gives_the_hash_of_the_bytes() {
        for len in [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, 2 * CHUNK_BYTES + 7] {
            let bytes: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            assert_eq!(file_hash_of(&bytes[..]).unwrap(), file_hash(&bytes));
        }
    }
}
