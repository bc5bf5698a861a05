//! How a record is laid out in bytes: a checksum of its key and of itself, then the record in SCALE.

use codec::{DecodeAll, Encode};
use sp_crypto_hashing::blake2_128;
use surety_types::TaskId;
use surety_worker_core::Record;

const CHECKSUM_BYTES: usize = 16;

/// Task, then a number that grows with every record.
pub(crate) type Key = (TaskId, u64);

fn checksum(key: Key, record: &[u8]) -> [u8; CHECKSUM_BYTES] {
    blake2_128(&(key, record).encode())
}

pub(crate) fn encode(key: Key, record: &Record) -> Vec<u8> {
    let record = record.encode();
    [checksum(key, &record).as_slice(), &record].concat()
}

/// The record, if the bytes are those that were written under this key.
pub(crate) fn decode(key: Key, bytes: &[u8]) -> Result<Record, String> {
    let (sum, mut record) = bytes
        .split_at_checked(CHECKSUM_BYTES)
        .ok_or("a record is cut off")?;
    if sum != checksum(key, record) {
        return Err(format!("a record of task {} fails its checksum", key.0));
    }
    let decoded = Record::decode_all(&mut record).map_err(|error| error.to_string())?;
    if decoded.task() != key.0 {
        return Err(format!(
            "a record of task {} is filed under {}",
            decoded.task(),
            key.0
        ));
    }
    Ok(decoded)
}
