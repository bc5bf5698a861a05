//! Output blobs of the operation `Generate`: ids of tokens, and why they end.

use serde::Serialize;
use surety_model_trace::{ClaimedOutput, Ragged};

/// Why a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model said that it was done.
    Stop,
    /// It had as many tokens as were asked for.
    Length,
}

impl FinishReason {
    /// What stands for it in an output.
    pub(crate) fn word(self) -> u32 {
        match self {
            Self::Length => ClaimedOutput::LENGTH,
            Self::Stop => ClaimedOutput::STOP,
        }
    }
}

/// A continuation: the output of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Its tokens, the one that ended it included.
    pub tokens: Vec<u32>,
    /// Whether the model was done, or `max_tokens` were reached.
    pub finish_reason: FinishReason,
}

/// Why a blob is no generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GenerationError {
    /// It is not words.
    #[error(transparent)]
    Ragged(#[from] Ragged),
    /// It has no token.
    #[error("it has no token")]
    Empty,
    /// Neither of the two reasons.
    #[error("{0} is no reason to end")]
    UnknownReason(u32),
}

impl Generation {
    /// The output blob, as [`ClaimedOutput`] has it.
    pub fn encode(&self) -> Vec<u8> {
        ClaimedOutput {
            finish_reason: self.finish_reason.word(),
            tokens: self.tokens.clone(),
        }
        .encode()
    }

    /// Reads an output blob, and trusts nothing in it.
    ///
    /// # Errors
    /// [`GenerationError`] for whatever no right output is.
    pub fn decode(blob: &[u8]) -> Result<Self, GenerationError> {
        let ClaimedOutput {
            finish_reason,
            tokens,
        } = ClaimedOutput::decode(blob)?;
        if tokens.is_empty() {
            return Err(GenerationError::Empty);
        }
        Ok(Self {
            tokens,
            finish_reason: match finish_reason {
                ClaimedOutput::LENGTH => FinishReason::Length,
                ClaimedOutput::STOP => FinishReason::Stop,
                other => return Err(GenerationError::UnknownReason(other)),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn generation() -> Generation {
        Generation {
            tokens: vec![7, 0, u32::MAX],
            finish_reason: FinishReason::Stop,
        }
    }

    #[test]
    fn an_output_is_words() {
        let blob = generation().encode();
        let words: Vec<u32> = blob
            .as_chunks()
            .0
            .iter()
            .map(|word| u32::from_le_bytes(*word))
            .collect();
        assert_eq!(words, [1, 7, 0, u32::MAX]);
        assert_eq!(Generation::decode(&blob), Ok(generation()));
    }

    #[test]
    fn what_is_no_output_is_refused_with_a_reason() {
        let blob = generation().encode();
        for bytes in [0, 3, 5, 15] {
            let refused = Generation::decode(&blob[..bytes]);
            assert_eq!(refused, Err(GenerationError::Ragged(Ragged { bytes })));
        }
        assert_eq!(Generation::decode(&blob[..4]), Err(GenerationError::Empty));
        let mut other = blob.clone();
        other[0] = 2;
        assert_eq!(Generation::decode(&other), Err(GenerationError::UnknownReason(2)));
    }
}
