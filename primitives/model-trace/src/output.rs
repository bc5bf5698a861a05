//! The bytes of a generation's output: why it ended and the tokens, as little-endian words of 32 bits.

use alloc::vec::Vec;
use core::fmt;

/// Words of a generation's output before its tokens: why it ended.
pub const GENERATION_WORDS: u32 = 1;

/// What an output says, sense or nonsense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedOutput {
    /// Why it ended: [`Self::LENGTH`] or [`Self::STOP`].
    pub finish_reason: u32,
    /// The continuation, the token that ended it included.
    pub tokens: Vec<u32>,
}

/// An output is not whole words, or has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ragged {
    /// Bytes that the output has.
    pub bytes: usize,
}

impl fmt::Display for Ragged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes are not the words of a generation", self.bytes)
    }
}

impl core::error::Error for Ragged {}

impl ClaimedOutput {
    /// It has as many tokens as were asked for.
    pub const LENGTH: u32 = 0;

    /// Its last token ends it.
    pub const STOP: u32 = 1;

    /// Reads an output.
    ///
    /// # Errors
    /// [`Ragged`]. Nothing else is checked.
    pub fn decode(output: &[u8]) -> Result<Self, Ragged> {
        let ragged = Ragged { bytes: output.len() };
        let (words, rest) = output.as_chunks::<4>();
        let (reason, tokens) = words.split_first().ok_or(ragged)?;
        if !rest.is_empty() {
            return Err(ragged);
        }
        Ok(Self {
            finish_reason: u32::from_le_bytes(*reason),
            tokens: tokens.iter().copied().map(u32::from_le_bytes).collect(),
        })
    }

    /// The output's bytes. Equal outputs have equal ones.
    pub fn encode(&self) -> Vec<u8> {
        let words = core::iter::once(&self.finish_reason).chain(&self.tokens);
        words.flat_map(|word| word.to_le_bytes()).collect()
    }
}

/// Why a continuation of `count` tokens ends with `last`, where `most` are added unless one of `stop` ends it
/// before; nothing where it cannot end there.
pub fn finish_reason(last: u32, count: u32, most: u32, stop: &[u32]) -> Option<u32> {
    match count.cmp(&most) {
        core::cmp::Ordering::Greater => None,
        _ if stop.contains(&last) => Some(ClaimedOutput::STOP),
        core::cmp::Ordering::Equal => Some(ClaimedOutput::LENGTH),
        core::cmp::Ordering::Less => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &[u8] = b"\x01\0\0\0\x07\0\0\0\xff\xff\xff\xff";

    #[test]
    fn an_output_is_a_reason_and_tokens() {
        let output = ClaimedOutput {
            finish_reason: ClaimedOutput::STOP,
            tokens: [7, u32::MAX].into(),
        };
        assert_eq!(output.encode(), OUTPUT);
        assert_eq!(ClaimedOutput::decode(OUTPUT), Ok(output));
        for bytes in [0, 3, 5, 11] {
            let ragged = ClaimedOutput::decode(OUTPUT.get(..bytes).unwrap_or_default());
            assert_eq!(ragged, Err(Ragged { bytes }));
        }
    }

    #[test]
    fn a_continuation_ends_at_a_stop_or_when_it_is_full() {
        let reason = |last, count| finish_reason(last, count, 3, &[9]);
        assert_eq!((reason(9, 2), reason(9, 3)), (Some(1), Some(1)));
        assert_eq!((reason(8, 2), reason(8, 3)), (None, Some(0)));
        assert_eq!((reason(9, 4), reason(8, 4)), (None, None));
    }
}
