//! Quantized values as the bytes of a row.

use alloc::vec::Vec;

use surety_exact::Precision;

/// Bytes of so many values.
pub(super) fn bytes_of(precision: Precision, values: u32) -> u32 {
    values.saturating_mul(precision.bytes() as u32)
}

/// The values that these bytes are.
pub(super) fn read(precision: Precision, bytes: &[u8]) -> Vec<i16> {
    match precision {
        Precision::Int8 => bytes.iter().map(|byte| i16::from(byte.cast_signed())).collect(),
        Precision::Int12 => {
            let (pairs, _) = bytes.as_chunks::<2>();
            pairs.iter().map(|pair| i16::from_le_bytes(*pair)).collect()
        }
    }
}

/// The bytes of these values, which are of that precision.
pub fn quantized_bytes(precision: Precision, q: &[i16]) -> Vec<u8> {
    let bytes = |value: &i16| value.to_le_bytes().into_iter().take(precision.bytes());
    q.iter().flat_map(bytes).collect()
}
