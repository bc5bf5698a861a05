//! The bytes of a task's input: ids of tokens, as little-endian words of 32 bits.
//!
//! | operation | words |
//! |---|---|
//! | `Embed` | for each item the word that it begins at and how many it has; the ids |
//! | `Generate` | most tokens to add, temperature, top k, top p, the seed's two halves; the prompt's ids |
//!
//! How many items there are says the task, how long a prompt is its input's length: [`check_shape`] is
//! asked when a task is posted. What is then in the words has **one reading, whatever they are**, so that
//! nobody who was given a task has to refuse it, or could: an id that the model does not have is its last
//! one, a word beyond the end 0, an item without tokens has one, one that is too long is cut, and as many
//! tokens are added as there is room for. An honest client sends nothing of the kind: encoding refuses it,
//! each with an error of its own.

use alloc::vec::Vec;
use core::fmt;

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;

use crate::{limits, model::Operation};

/// Words of an item in the table of `Embed`.
pub const ITEM_WORDS: u32 = 2;

/// Words of `Generate` before the prompt.
pub const SETTINGS_WORDS: u32 = 6;

/// Bytes of a word.
pub const WORD_BYTES: u32 = 4;

/// Most tokens that one task may ask to be added.
pub const NEW_TOKENS_MAX: u32 = 4096;

/// Most tokens that can be added to a prompt of so many, where a dispute about the answer has to be able to
/// have all of both shown. None where the prompt alone is too long for that.
pub const fn tokens_shown(prompt_tokens: u32) -> u32 {
    let input = SETTINGS_WORDS
        .saturating_add(prompt_tokens)
        .saturating_mul(WORD_BYTES);
    let parts = limits::SHOWN_PARTS_MAX.saturating_sub(input.div_ceil(limits::PART_BYTES));
    let words = parts.saturating_mul(limits::PART_BYTES / WORD_BYTES);
    // Of an answer the first one says how it ended.
    words.saturating_sub(1)
}

/// Highest temperature that is asked for, in thousandths.
pub const TEMPERATURE_MILLI_MAX: u32 = 10_000;

/// All of the probability, in thousandths.
pub const TOP_P_MILLI_MAX: u32 = 1000;

/// What of a task its input has to fit.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Work {
    /// What is asked for.
    pub operation: Operation,
    /// Bytes of the input.
    pub input_bytes: u32,
    /// Units that are paid for: with `Embed` the items that there are, with `Generate` the most tokens,
    /// those of the prompt included.
    pub units_max: u32,
}

/// Why no input of so many bytes is one of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeFault {
    /// It is no whole number of words.
    Ragged,
    /// It is too short for the settings and a token, or for the table and a token of each item.
    TooShort,
    /// Nothing could be added to its prompt: by what is paid for, or by the model's positions.
    PromptTooLong,
}

impl fmt::Display for ShapeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ragged => "the input is no whole number of words",
            Self::TooShort => "the input is too short for what it must hold",
            Self::PromptTooLong => {
                "nothing could be added to the prompt: it takes all that is paid for, or all positions"
            }
        })
    }
}

impl core::error::Error for ShapeFault {}

impl Work {
    /// The least that can be asked for: an item of a token, or a token after a prompt of one.
    pub const fn smallest(operation: Operation) -> Self {
        let (words, units_max) = match operation {
            Operation::Embed => (ITEM_WORDS + 1, 1),
            Operation::Generate => (SETTINGS_WORDS + 1, 2),
        };
        Self {
            operation,
            input_bytes: words.saturating_mul(WORD_BYTES),
            units_max,
        }
    }

    /// Tokens of the prompt of `Generate`; 0 for another operation.
    pub const fn prompt_tokens(&self) -> u32 {
        match self.operation {
            Operation::Embed => 0,
            Operation::Generate => (self.input_bytes / WORD_BYTES).saturating_sub(SETTINGS_WORDS),
        }
    }

    /// Most tokens that can be added to the prompt, by a model of so many positions.
    pub fn room(&self, positions: u32) -> u32 {
        self.units_max.min(positions).saturating_sub(self.prompt_tokens())
    }

    /// Whether a dispute can have prompt and longest answer shown, by a model of so many positions. Of items
    /// nothing has to be.
    pub fn can_be_shown(&self, positions: u32) -> bool {
        match self.operation {
            Operation::Embed => true,
            Operation::Generate => self.room(positions) <= tokens_shown(self.prompt_tokens()),
        }
    }

    /// Whether an input of this size can be one, for a model of so many positions where that is known.
    ///
    /// # Errors
    /// [`ShapeFault`], the first that is found.
    pub fn check_shape(&self, positions: Option<u32>) -> Result<(), ShapeFault> {
        if !self.input_bytes.is_multiple_of(WORD_BYTES) {
            return Err(ShapeFault::Ragged);
        }
        let words = self.input_bytes / WORD_BYTES;
        match self.operation {
            Operation::Embed if words.checked_div(ITEM_WORDS.saturating_add(1)) < Some(self.units_max) => {
                Err(ShapeFault::TooShort)
            }
            Operation::Embed => Ok(()),
            Operation::Generate if self.prompt_tokens() == 0 => Err(ShapeFault::TooShort),
            Operation::Generate if self.room(positions.unwrap_or(u32::MAX)) == 0 => {
                Err(ShapeFault::PromptTooLong)
            }
            Operation::Generate => Ok(()),
        }
    }
}

/// What ids are checked against before they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdBounds {
    /// Tokens that the model has.
    pub vocabulary: u32,
    /// Positions that it has.
    pub positions: u32,
}

/// Why something is no input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputFault {
    /// There is no item, or the prompt has no token.
    Empty,
    /// An item without a token.
    EmptyItem {
        /// Its index, from 0.
        item: u32,
    },
    /// More tokens than the model has positions for.
    ItemTooLong {
        /// Its index, from 0.
        item: u32,
        /// Tokens that it has.
        tokens: u32,
        /// Positions that the model has.
        positions: u32,
    },
    /// An id that the model does not have.
    UnknownToken {
        /// The id.
        id: u32,
        /// Tokens that the model has.
        vocabulary: u32,
    },
    /// The prompt and what is to be added do not fit into the model's positions.
    ContextExceeded {
        /// Tokens of the prompt.
        prompt: u32,
        /// Tokens asked for.
        max_tokens: u32,
        /// Positions that the model has.
        positions: u32,
    },
    /// A setting outside its range.
    OutOfRange {
        /// Its name.
        setting: &'static str,
        /// What it is.
        value: u32,
        /// The least and the most that it may be.
        range: (u32, u32),
    },
    /// More than [`limits::INPUT_BYTES_MAX`].
    TooLarge,
}

impl fmt::Display for InputFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("there is no token in it"),
            Self::EmptyItem { item } => write!(f, "item {item} has no token"),
            Self::ItemTooLong {
                item,
                tokens,
                positions,
            } => write!(
                f,
                "item {item} has {tokens} tokens, but the model takes {positions}"
            ),
            Self::UnknownToken { id, vocabulary } => {
                write!(f, "there is no token {id} in a vocabulary of {vocabulary}")
            }
            Self::ContextExceeded {
                prompt,
                max_tokens,
                positions,
            } => write!(
                f,
                "the prompt has {prompt} tokens; with {max_tokens} more it is over the model's {positions}"
            ),
            Self::OutOfRange {
                setting,
                value,
                range: (least, most),
            } => write!(f, "{setting} is {value}, but must be between {least} and {most}"),
            Self::TooLarge => write!(
                f,
                "it takes more than the {} KiB that a task may have: cut it into several",
                limits::INPUT_BYTES_MAX / 1024
            ),
        }
    }
}

impl core::error::Error for InputFault {}

/// How a prompt is continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Most tokens to add.
    pub max_tokens: u32,
    /// Temperature in thousandths; 0 always takes the best token.
    pub temperature_milli: u32,
    /// Choose among so many of the best tokens; 0 for all.
    pub top_k: u32,
    /// Choose among the best tokens that together have so much of the probability, in thousandths.
    pub top_p_milli: u32,
    /// Another seed draws other tokens; the same input always draws the same.
    pub seed: u64,
}

impl Settings {
    /// Reads the first words of an input.
    pub const fn read(words: [u32; SETTINGS_WORDS as usize]) -> Self {
        let [max_tokens, temperature_milli, top_k, top_p_milli, low, high] = words;
        Self {
            max_tokens,
            temperature_milli,
            top_k,
            top_p_milli,
            seed: (high as u64) << 32 | low as u64,
        }
    }

    const fn words(&self) -> [u32; SETTINGS_WORDS as usize] {
        [
            self.max_tokens,
            self.temperature_milli,
            self.top_k,
            self.top_p_milli,
            self.seed as u32,
            (self.seed >> 32) as u32,
        ]
    }

    /// Tokens that are added unless one of them ends the continuation, where there is room for so many.
    pub fn new_tokens(&self, room: u32) -> u32 {
        self.max_tokens.min(room).max(1)
    }

    /// Whether each is in its range.
    ///
    /// # Errors
    /// [`InputFault::OutOfRange`].
    pub fn check(&self) -> Result<(), InputFault> {
        let settings = [
            ("max_tokens", self.max_tokens, (1, NEW_TOKENS_MAX)),
            (
                "temperature_milli",
                self.temperature_milli,
                (0, TEMPERATURE_MILLI_MAX),
            ),
            ("top_k", self.top_k, (0, limits::VOCABULARY_MAX)),
            ("top_p_milli", self.top_p_milli, (1, TOP_P_MILLI_MAX)),
        ];
        let outside = settings
            .into_iter()
            .find(|(_, value, (least, most))| value < least || value > most);
        match outside {
            Some((setting, value, range)) => Err(InputFault::OutOfRange {
                setting,
                value,
                range,
            }),
            None => Ok(()),
        }
    }
}

/// The input of `Embed`: these items, in their order.
///
/// # Errors
/// [`InputFault`], the first that is found.
pub fn encode_items(items: &[Vec<u32>], bounds: &IdBounds) -> Result<Vec<u8>, InputFault> {
    if items.is_empty() {
        return Err(InputFault::Empty);
    }
    let table = narrow(items.len())?
        .checked_mul(ITEM_WORDS)
        .ok_or(InputFault::TooLarge)?;
    let mut words = Vec::new();
    let mut start = table;
    for (item, ids) in (0u32..).zip(items) {
        let tokens = narrow(ids.len())?;
        if tokens == 0 {
            return Err(InputFault::EmptyItem { item });
        }
        if tokens > bounds.positions {
            let positions = bounds.positions;
            return Err(InputFault::ItemTooLong {
                item,
                tokens,
                positions,
            });
        }
        bounds.check(ids)?;
        words.extend([start, tokens]);
        start = start.checked_add(tokens).ok_or(InputFault::TooLarge)?;
    }
    if start > limits::INPUT_BYTES_MAX / WORD_BYTES {
        return Err(InputFault::TooLarge);
    }
    Ok(bytes_of(words.iter().chain(items.iter().flatten())))
}

/// The input of `Generate`: a prompt, and how it is continued.
///
/// # Errors
/// [`InputFault`], the first that is found.
pub fn encode_prompt(prompt: &[u32], settings: &Settings, bounds: &IdBounds) -> Result<Vec<u8>, InputFault> {
    settings.check()?;
    let tokens = narrow(prompt.len())?;
    if tokens == 0 {
        return Err(InputFault::Empty);
    }
    if tokens.saturating_add(settings.max_tokens) > bounds.positions {
        return Err(InputFault::ContextExceeded {
            prompt: tokens,
            max_tokens: settings.max_tokens,
            positions: bounds.positions,
        });
    }
    bounds.check(prompt)?;
    Ok(bytes_of(settings.words().iter().chain(prompt)))
}

impl IdBounds {
    /// Whether the model has all of these ids.
    ///
    /// # Errors
    /// [`InputFault::UnknownToken`], the first.
    pub fn check(&self, ids: &[u32]) -> Result<(), InputFault> {
        let vocabulary = self.vocabulary;
        match ids.iter().find(|id| **id >= vocabulary) {
            Some(id) => Err(InputFault::UnknownToken { id: *id, vocabulary }),
            None => Ok(()),
        }
    }
}

/// An id as it is read by a model of so many tokens.
pub const fn known_id(id: u32, vocabulary: u32) -> u32 {
    let last = vocabulary.saturating_sub(1);
    if id < last { id } else { last }
}

/// An input, read.
#[derive(Clone, Copy, Debug)]
pub struct InputReader<'a> {
    words: &'a [[u8; WORD_BYTES as usize]],
    bounds: IdBounds,
}

impl<'a> InputReader<'a> {
    /// Of an input's bytes, for a model of these bounds.
    pub fn new(input: &'a [u8], bounds: IdBounds) -> Self {
        let (words, _) = input.as_chunks();
        Self { words, bounds }
    }

    fn word(&self, place: u32) -> u32 {
        let word = self.words.get(place as usize);
        word.map_or(0, |word| u32::from_le_bytes(*word))
    }

    /// The ids of an item of `Embed`.
    pub fn item(&self, item: u32) -> Vec<u32> {
        let start = self.word(item.saturating_mul(ITEM_WORDS));
        let id = |at: u32| known_id(self.word(start.saturating_add(at)), self.bounds.vocabulary);
        (0..self.item_tokens(item)).map(id).collect()
    }

    /// How many ids an item of `Embed` has.
    fn item_tokens(&self, item: u32) -> u32 {
        let tokens = self.word(item.saturating_mul(ITEM_WORDS).saturating_add(1));
        tokens.min(self.bounds.positions).max(1)
    }

    /// How many ids so many items of `Embed` have together. Items may have them in common, so that it is not
    /// bounded by the size of the input.
    pub fn tokens(&self, items: u32) -> u64 {
        let tokens = (0..items).map(|item| u64::from(self.item_tokens(item)));
        tokens.fold(0, u64::saturating_add)
    }

    /// How the prompt of `Generate` is continued.
    pub fn settings(&self) -> Settings {
        let mut words = [0; SETTINGS_WORDS as usize];
        for (place, word) in (0..).zip(&mut words) {
            *word = self.word(place);
        }
        Settings::read(words)
    }

    /// The prompt's ids.
    pub fn prompt(&self) -> Vec<u32> {
        let words = u32::try_from(self.words.len()).unwrap_or(u32::MAX);
        let id = |place| known_id(self.word(place), self.bounds.vocabulary);
        (SETTINGS_WORDS.min(words)..words).map(id).collect()
    }
}

fn narrow(count: usize) -> Result<u32, InputFault> {
    u32::try_from(count).map_err(|_| InputFault::TooLarge)
}

fn bytes_of<'a>(words: impl Iterator<Item = &'a u32>) -> Vec<u8> {
    words.flat_map(|word| word.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests;
