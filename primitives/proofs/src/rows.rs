//! The digest of rows of bytes, under which any kilobyte of any row can be shown. Why it is cut like this:
//! `docs/adr/0008-trace.md`.

use alloc::vec::Vec;

use sp_core::H256;
use sp_crypto_hashing::blake2_256;

use crate::merkle_root;

/// Bytes of a row under one leaf of its tree: what has to be shown for one cell.
pub const SEGMENT_BYTES: u32 = 1024;

/// How many segments a row of so many bytes has. The last may be short.
pub const fn segments(row_bytes: u32) -> u32 {
    row_bytes.div_ceil(SEGMENT_BYTES)
}

/// `blake2_256` of each segment of a row: the leaves of its [`row_digest`].
pub fn segment_hashes(row: &[u8]) -> Vec<H256> {
    hashes(row).collect()
}

/// The digest of one row: [`merkle_root`] over `blake2_256` of its segments.
pub fn row_digest(row: &[u8]) -> H256 {
    merkle_root(hashes(row))
}

fn hashes(row: &[u8]) -> impl Iterator<Item = H256> + '_ {
    row.chunks(SEGMENT_BYTES as usize)
        .map(|segment| H256(blake2_256(segment)))
}

/// The digest of several rows of one width, a leaf of the trace or an operation's output: [`merkle_root`]
/// over their [`row_digest`]s.
pub fn rows_digest<'a>(rows: impl Iterator<Item = &'a [u8]>) -> H256 {
    merkle_root(rows.map(row_digest))
}
