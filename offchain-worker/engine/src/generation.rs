//! Input and output blobs of the operation `Generate`.
//!
//! Inputs are JSON. An output is binary, so that the place of every token in it is known: what a token should
//! be can be computed on chain, and the word that says what it is can be shown.
//!
//! The limits are part of the operation's definition and no setting: whether an input is fit for use must not
//! depend on who looks at it. Numbers are integers, so that no parser's rounding is part of an answer.

use serde::{Deserialize, Serialize};
use surety_exact::Sampling;
use surety_model_trace::{ClaimedOutput, Truncated};

/// Longest input, in bytes.
pub const REQUEST_BYTES_MAX: usize = 256 * 1024;

/// Most tokens that one task may ask for.
pub const NEW_TOKENS_MAX: u32 = 4096;

/// Highest temperature, in thousandths.
pub const TEMPERATURE_MILLI_MAX: u32 = 10_000;

/// A generation that a client asks for: the input of a task, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The text to go on from.
    pub prompt: String,
    /// Most tokens to add.
    pub max_tokens: u32,
    /// Temperature in thousandths; 0 always takes the best token.
    #[serde(default)]
    pub temperature_milli: u32,
    /// Choose among so many of the best tokens; 0 for all.
    #[serde(default)]
    pub top_k: u32,
    /// Choose among the best tokens that together have so much of the probability, in thousandths.
    #[serde(default = "all")]
    pub top_p_milli: u32,
    /// Another seed draws other tokens; the same input always draws the same.
    #[serde(default)]
    pub seed: u64,
}

fn all() -> u32 {
    1000
}

/// Why a blob is no request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// Over [`REQUEST_BYTES_MAX`].
    #[error("{bytes} bytes, but at most {REQUEST_BYTES_MAX} are taken")]
    TooLarge {
        /// Bytes that the input has.
        bytes: usize,
    },
    /// Not the JSON that is expected.
    #[error("not a generation request: {0}")]
    Malformed(String),
    /// A field outside its range.
    #[error("{field} is {value}, but must be between {min} and {max}")]
    OutOfRange {
        /// Name of the field.
        field: &'static str,
        /// The number that it has.
        value: u32,
        /// Least allowed.
        min: u32,
        /// Most allowed.
        max: u32,
    },
    /// The prompt and what is to be added do not fit into the model's context.
    #[error("the prompt has {prompt} tokens; with {max_tokens} more it is over the model's {context}")]
    ContextExceeded {
        /// Tokens of the prompt.
        prompt: u32,
        /// Tokens asked for.
        max_tokens: u32,
        /// Positions that the model has.
        context: u32,
    },
    /// More tokens than the client pays for.
    #[error(
        "the prompt has {prompt} tokens; with {max_tokens} more it is over the {units_max} that are paid for"
    )]
    Unpaid {
        /// Tokens of the prompt.
        prompt: u32,
        /// Tokens asked for.
        max_tokens: u32,
        /// Units paid for.
        units_max: u32,
    },
    /// The tokenizer makes nothing of the prompt.
    #[error("the prompt holds no token")]
    NoTokens,
}

impl Request {
    /// Reads an input blob, and trusts nothing in it.
    pub fn decode(blob: &[u8]) -> Result<Self, RequestError> {
        if blob.len() > REQUEST_BYTES_MAX {
            return Err(RequestError::TooLarge { bytes: blob.len() });
        }
        let request: Self =
            serde_json::from_slice(blob).map_err(|error| RequestError::Malformed(error.to_string()))?;
        request.check()?;
        Ok(request)
    }

    /// Whether every field is in its range.
    pub fn check(&self) -> Result<(), RequestError> {
        let ranges = [
            ("max_tokens", self.max_tokens, 1, NEW_TOKENS_MAX),
            (
                "temperature_milli",
                self.temperature_milli,
                0,
                TEMPERATURE_MILLI_MAX,
            ),
            ("top_p_milli", self.top_p_milli, 1, 1000),
        ];
        match ranges
            .into_iter()
            .find(|(_, value, min, max)| !(min..=max).contains(&value))
        {
            Some((field, value, min, max)) => Err(RequestError::OutOfRange {
                field,
                value,
                min,
                max,
            }),
            None => Ok(()),
        }
    }

    /// How its tokens are chosen.
    pub fn sampling(&self) -> Sampling {
        Sampling {
            temperature_milli: self.temperature_milli,
            top_k: self.top_k,
            top_p_milli: self.top_p_milli,
        }
    }

    /// The input blob: JSON that [`Self::decode`] reads back.
    pub fn encode(&self) -> Vec<u8> {
        // Strings and integers alone: nothing that could fail to serialise.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

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
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Generation {
    /// The continuation, without the prompt.
    pub text: String,
    /// Its tokens, the one that ended it included.
    pub tokens: Vec<u32>,
    /// How many tokens the prompt had.
    pub prompt_tokens: u32,
    /// Whether the model was done, or `max_tokens` were reached.
    pub finish_reason: FinishReason,
}

/// Why a blob is no generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GenerationError {
    /// It ends within the header or the tokens.
    #[error(transparent)]
    Truncated(#[from] Truncated),
    /// Neither of the two reasons.
    #[error("{0} is no reason to end")]
    UnknownReason(u32),
    /// What follows the tokens is no text.
    #[error("the text is not UTF-8 from byte {at} of it on")]
    NotUtf8 {
        /// Where the valid part ends.
        at: usize,
    },
}

impl Generation {
    /// The output blob, as [`ClaimedOutput`] has it.
    pub fn encode(&self) -> Vec<u8> {
        ClaimedOutput {
            prompt_tokens: self.prompt_tokens,
            finish_reason: self.finish_reason.word(),
            tokens: self.tokens.clone(),
            text: self.text.as_bytes(),
        }
        .encode()
    }

    /// Reads an output blob, and trusts nothing in it.
    ///
    /// # Errors
    /// [`GenerationError`] for whatever [`Self::encode`] does not write.
    pub fn decode(blob: &[u8]) -> Result<Self, GenerationError> {
        let ClaimedOutput {
            prompt_tokens,
            finish_reason,
            tokens,
            text,
        } = ClaimedOutput::decode(blob, None)?;
        let text = std::str::from_utf8(text).map_err(|error| GenerationError::NotUtf8 {
            at: error.valid_up_to(),
        })?;
        Ok(Self {
            text: text.into(),
            tokens,
            prompt_tokens,
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
            text: "so it góes".into(),
            tokens: vec![7, 0, u32::MAX],
            prompt_tokens: 5,
            finish_reason: FinishReason::Stop,
        }
    }

    #[test]
    fn an_output_is_words_and_then_text() {
        let blob = generation().encode();
        let words: Vec<u32> = blob
            .as_chunks()
            .0
            .iter()
            .map(|word| u32::from_le_bytes(*word))
            .collect();
        assert_eq!(words[..6], [5, 3, 1, 7, 0, u32::MAX]);
        assert_eq!(&blob[24..], "so it góes".as_bytes());
        assert_eq!(Generation::decode(&blob), Ok(generation()));
        let empty = Generation {
            text: String::new(),
            tokens: Vec::new(),
            prompt_tokens: 0,
            finish_reason: FinishReason::Length,
        };
        assert_eq!(empty.encode(), [0; 12]);
        assert_eq!(Generation::decode(&[0; 12]), Ok(empty));
    }

    #[test]
    fn what_is_no_output_is_refused_with_a_reason() {
        let blob = generation().encode();
        for bytes in 0..24 {
            let refused = Generation::decode(&blob[..bytes]);
            assert!(matches!(refused, Err(GenerationError::Truncated(_))), "{bytes}");
        }
        let with = |at: usize, byte: u8| {
            let mut blob = blob.clone();
            blob[at] = byte;
            Generation::decode(&blob)
        };
        assert_eq!(with(8, 2), Err(GenerationError::UnknownReason(2)));
        assert_eq!(with(25, 0xff), Err(GenerationError::NotUtf8 { at: 1 }));
        assert!(matches!(
            with(7, 0xff),
            Err(GenerationError::Truncated(Truncated {
                tokens: 0xff00_0003,
                ..
            }))
        ));
    }
}
