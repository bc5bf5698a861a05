//! Input and output blobs of the operation `Generate`: JSON.
//!
//! The limits are part of the operation's definition and no setting: whether an input is fit for use must not depend
//! on who looks at it. Numbers are integers, so that no parser's rounding is part of an answer.

use serde::{Deserialize, Serialize};
use surety_exact::Sampling;

/// Longest input, in bytes.
pub const REQUEST_BYTES_MAX: usize = 256 * 1024;

/// Most tokens that one task may ask for.
pub const NEW_TOKENS_MAX: u32 = 4096;

/// Highest temperature, in thousandths.
pub const TEMPERATURE_MILLI_MAX: u32 = 10_000;

/// What is asked for.
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
        /// Its size.
        bytes: usize,
    },
    /// Not the JSON that is expected.
    #[error("not a generation request: {0}")]
    Malformed(String),
    /// A field outside its range.
    #[error("{field} is {value}, but must be between {min} and {max}")]
    OutOfRange {
        /// Which one.
        field: &'static str,
        /// Its value.
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

    /// The input blob.
    pub fn encode(&self) -> Vec<u8> {
        // Strings and integers alone: nothing that could fail to serialise.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// Why a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model said that it was done.
    Stop,
    /// It had as many tokens as were asked for.
    Length,
}

/// What was generated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generation {
    /// The continuation, without the prompt.
    pub text: String,
    /// Its tokens, the one that ended it included.
    pub tokens: Vec<u32>,
    /// How many tokens the prompt had.
    pub prompt_tokens: u32,
    /// Why it ended.
    pub finish_reason: FinishReason,
}

impl Generation {
    /// The output blob. Equal generations give equal bytes.
    pub fn encode(&self) -> Vec<u8> {
        // Strings and integers alone: nothing that could fail to serialise.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads an output blob, and trusts nothing in it.
    pub fn decode(blob: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(blob)
    }
}
