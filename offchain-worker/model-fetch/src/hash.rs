//! What a file's bytes are compared with: the hash that a known model has, or the one that the hub says.

use std::{
    fmt,
    io::{self, BufReader, Read},
};

use sha1::Sha1;
use sha2::{Digest, Sha256};
use surety_models::file_hash_of;
use surety_types::ContentHash;

const BUFFER_BYTES: usize = 256 * 1024;

/// A file's hash, by what it is taken with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FileHash {
    /// blake2b of 256 bits: that of a known model's file.
    Blake2(ContentHash),
    /// By the hub, of a file that it keeps in its large storage.
    Sha256([u8; 32]),
    /// By the hub, of a small file: what git calls it.
    GitBlob([u8; 20]),
}

impl FileHash {
    /// The hub's hash of a large file.
    pub fn sha256(bytes: &[u8]) -> Self {
        Self::Sha256(Sha256::digest(bytes).into())
    }

    /// The hub's hash of a small file.
    pub fn git_blob(bytes: &[u8]) -> Self {
        Self::GitBlob(
            git_state(bytes.len() as u64)
                .chain_update(bytes)
                .finalize()
                .into(),
        )
    }

    /// What the hub's `ETag` says; nothing for one that is no hash.
    pub(super) fn from_etag(etag: &str) -> Option<Self> {
        let etag = etag.strip_prefix("W/").unwrap_or(etag).trim_matches('"');
        let (mut sha256, mut git) = ([0; 32], [0; 20]);
        if hex::decode_to_slice(etag, &mut sha256).is_ok() {
            Some(Self::Sha256(sha256))
        } else {
            hex::decode_to_slice(etag, &mut git)
                .ok()
                .map(|()| Self::GitBlob(git))
        }
    }

    /// The hash, of this kind, of `bytes` bytes.
    pub(super) fn of(self, from: impl Read, bytes: u64) -> io::Result<Self> {
        let mut from = BufReader::with_capacity(BUFFER_BYTES, from);
        Ok(match self {
            Self::Blake2(_) => Self::Blake2(file_hash_of(from)?),
            Self::Sha256(_) => {
                let mut state = Sha256::new();
                io::copy(&mut from, &mut state)?;
                Self::Sha256(state.finalize().into())
            }
            Self::GitBlob(_) => {
                let mut state = git_state(bytes);
                io::copy(&mut from, &mut state)?;
                Self::GitBlob(state.finalize().into())
            }
        })
    }
}

/// Git hashes a file's length before its bytes.
fn git_state(bytes: u64) -> Sha1 {
    Sha1::new_with_prefix(format!("blob {bytes}\0"))
}

impl fmt::Display for FileHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blake2(hash) => write!(f, "{hash:?}"),
            Self::Sha256(hash) => write!(f, "sha256:{}", hex::encode(hash)),
            Self::GitBlob(hash) => write!(f, "git:{}", hex::encode(hash)),
        }
    }
}

impl fmt::Debug for FileHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn hashes_are_those_of_git_and_of_sha256() {
        // `printf hello | git hash-object --stdin`, `printf hello | sha256sum`.
        for etag in [
            "\"b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0\"",
            "W/\"b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0\"",
            "\"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\"",
        ] {
            let said = FileHash::from_etag(etag).unwrap();
            assert_eq!(said.of(&b"hello"[..], 5).unwrap(), said);
            assert_ne!(said.of(&b"hellx"[..], 5).unwrap(), said);
            assert!([FileHash::sha256(b"hello"), FileHash::git_blob(b"hello")].contains(&said));
        }
        for etag in [
            "",
            "\"abc\"",
            "\"b6fc4c620b67d95f953a5c1c1230aaab5db5a1b\"",
            "\"zz\"",
        ] {
            assert_eq!(FileHash::from_etag(etag), None, "{etag}");
        }
    }
}
