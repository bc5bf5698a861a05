//! The bytes of a generation's output.

use alloc::vec::Vec;
use core::fmt;

/// Words of a generation's output before its tokens: tokens of the prompt, tokens of the continuation, and
/// why it ended.
pub const GENERATION_WORDS: u32 = 3;

/// What an output says, sense or nonsense: three words and the tokens, each a little-endian `u32`; then the
/// text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedOutput<'a> {
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Why it ended: [`Self::LENGTH`] or [`Self::STOP`].
    pub finish_reason: u32,
    /// The continuation, the token that ended it included.
    pub tokens: Vec<u32>,
    /// The same as text: UTF-8, if somebody has checked it.
    pub text: &'a [u8],
}

/// An output ends within its words or its tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated {
    /// Bytes that the output has.
    pub bytes: usize,
    /// How many tokens it should have.
    pub tokens: u32,
}

impl fmt::Display for Truncated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, tokens } = self;
        write!(f, "{bytes} bytes are too few for a header and {tokens} tokens")
    }
}

impl core::error::Error for Truncated {}

impl<'a> ClaimedOutput<'a> {
    /// It has as many tokens as were asked for.
    pub const LENGTH: u32 = 0;

    /// Its last token ends it.
    pub const STOP: u32 = 1;

    /// Reads an output as one of so many tokens, or else of as many as it says.
    ///
    /// # Errors
    /// [`Truncated`]. Nothing else is checked.
    pub fn decode(output: &'a [u8], tokens: Option<u32>) -> Result<Self, Truncated> {
        let truncated = |tokens| Truncated {
            bytes: output.len(),
            tokens,
        };
        let (words, _) = output.as_chunks::<4>();
        let (header, rest) = words.split_first_chunk().ok_or(truncated(0))?;
        let header: [u32; GENERATION_WORDS as usize] = header.map(u32::from_le_bytes);
        let [prompt_tokens, stated, finish_reason] = header;
        let count = tokens.unwrap_or(stated);
        let tokens = rest.get(..count as usize).ok_or(truncated(count))?;
        let text = (header.len().saturating_add(tokens.len())).saturating_mul(4);
        Ok(Self {
            prompt_tokens,
            finish_reason,
            tokens: tokens.iter().copied().map(u32::from_le_bytes).collect(),
            text: output.get(text..).unwrap_or_default(),
        })
    }

    /// The output's bytes. Equal outputs have equal ones.
    pub fn encode(&self) -> Vec<u8> {
        // Nobody has 2^32 tokens in memory.
        let count = u32::try_from(self.tokens.len()).unwrap_or(u32::MAX);
        let header: [u32; GENERATION_WORDS as usize] = [self.prompt_tokens, count, self.finish_reason];
        let words = header
            .iter()
            .chain(&self.tokens)
            .flat_map(|word| word.to_le_bytes());
        words.chain(self.text.iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &[u8] = b"\x05\0\0\0\x02\0\0\0\x01\0\0\0\x07\0\0\0\xff\xff\xff\xfftext";

    fn output() -> ClaimedOutput<'static> {
        ClaimedOutput {
            prompt_tokens: 5,
            finish_reason: ClaimedOutput::STOP,
            tokens: [7, u32::MAX].into(),
            text: b"text",
        }
    }

    #[test]
    fn an_output_is_words_tokens_and_then_text() {
        assert_eq!(output().encode(), OUTPUT);
        assert_eq!(ClaimedOutput::decode(OUTPUT, None), Ok(output()));
    }

    #[test]
    fn another_number_of_tokens_is_another_reading() {
        let read = ClaimedOutput::decode(OUTPUT, Some(1));
        assert_eq!(
            read.map(|read| (read.tokens, read.text.len())),
            Ok(([7].into(), 8))
        );
        let truncated = |tokens| Err(Truncated { bytes: 24, tokens });
        assert_eq!(ClaimedOutput::decode(OUTPUT, Some(4)), truncated(4));
        assert_eq!(ClaimedOutput::decode(OUTPUT, Some(u32::MAX)), truncated(u32::MAX));
    }

    #[test]
    fn an_output_has_its_three_words() {
        let truncated = |bytes| Err(Truncated { bytes, tokens: 0 });
        assert_eq!(ClaimedOutput::decode(&OUTPUT[..11], Some(0)), truncated(11));
    }
}
