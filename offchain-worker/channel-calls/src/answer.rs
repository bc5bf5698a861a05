//! What an answer to a request has to look like, and the hash of what was said of it so far.

use std::fmt;

use codec::{Decode, Encode, MaxEncodedLen};
use sp_core::H256;
use sp_crypto_hashing::blake2_256;
use surety_channels::{End, Request};
use surety_model_trace::embeddings_header;
use surety_proofs::{SEGMENT_BYTES, content_hash, leaf_hash, node_hash};
use surety_types::{
    ContentHash,
    input::{ITEM_WORDS, IdBounds, InputReader, SETTINGS_WORDS, WORD_BYTES},
    model::Operation,
};

/// Most bytes of a chunk, and so of all vectors of a request.
pub const CHUNK_BYTES_MAX: u32 = 256 * 1024;

/// Most bytes of an answer. A payer keeps it in memory while it is made.
pub const OUTPUT_BYTES_MAX: u32 = 4 * 1024 * 1024;

/// What both sides have to know of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// Its tokens and positions.
    pub bounds: IdBounds,
    /// Bytes of the vector of an item; 0 where it makes text.
    pub item_bytes: u32,
    /// Ids that end a generation.
    pub stop_ids: Vec<u32>,
}

/// Why there is no answer to a request and its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, MaxEncodedLen)]
pub enum Unfit {
    /// The input is not the one that the request names.
    OtherInput,
    /// It is no input of this operation and this model: a length or a setting is out of range.
    Malformed,
    /// An id that the model does not have.
    UnknownToken,
    /// Nothing is asked for.
    Empty,
    /// The answer may be larger than [`OUTPUT_BYTES_MAX`], or of vectors than [`CHUNK_BYTES_MAX`]: ask for
    /// less at once.
    TooLarge,
    /// All of it costs more than can be counted.
    TooDear,
    /// A chunk has no unit, or may be larger than [`CHUNK_BYTES_MAX`]: choose another number of units.
    Chunk,
    /// A dispute could not have prompt and answer shown: shorten the prompt, or ask for fewer tokens.
    TooLong,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherInput => "the input is not the one that the request names",
            Self::Malformed => "a length or a setting of the input is out of range",
            Self::UnknownToken => "the input has an id that the model does not have",
            Self::Empty => "nothing is asked for",
            Self::TooLarge => {
                "the answer may be larger than 4 MiB, or 256 KiB of vectors: ask for less at once"
            }
            Self::TooDear => "the answer may cost more than can be counted",
            Self::Chunk => "a chunk has no unit, or may be larger than 256 KiB: choose another size",
            Self::TooLong => {
                "prompt and answer may take more than the 32 KiB that can be shown in a dispute: shorten the \
                 prompt, or ask for fewer tokens"
            }
        })
    }
}

impl std::error::Error for Unfit {}

/// What an answer has to look like. Both sides find the same from the request and its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Form {
    operation: Operation,
    /// Units of the prompt: they are paid with the first that is said.
    prompt: u32,
    /// Units that are said if nothing ends it before.
    pub full: u32,
    /// Bytes of each.
    pub unit_bytes: u32,
    /// Units of a chunk. Vectors are one: what stands before them in an output says how many there are, so
    /// that a statement about some of them would be about other bytes.
    pub chunk: u32,
    /// Plancks of a unit.
    unit_price: u128,
}

impl Form {
    pub fn of(request: &Request, input: &[u8], model: &Model, chunk: u32) -> Result<Self, Unfit> {
        let is_it = u32::try_from(input.len()) == Ok(request.input_bytes);
        if !is_it || content_hash(input) != request.input {
            return Err(Unfit::OtherInput);
        }
        let work = request.work();
        let positions = model.bounds.positions;
        work.check_shape(Some(positions)).map_err(|_| Unfit::Malformed)?;
        let (ids_from, full, unit_bytes, chunk) = match request.operation {
            Operation::Embed => {
                let items = request.units_max;
                let table = items.checked_mul(ITEM_WORDS).ok_or(Unfit::TooLarge)?;
                (table, items, model.item_bytes, items)
            }
            Operation::Generate => {
                // Who serves a wrong answer could keep from a committee what it decides by.
                if !work.can_be_shown(positions) {
                    return Err(Unfit::TooLong);
                }
                let settings = InputReader::new(input, model.bounds).settings();
                settings.check().map_err(|_| Unfit::Malformed)?;
                let full = settings.new_tokens(work.room(positions));
                (SETTINGS_WORDS, full, WORD_BYTES, chunk)
            }
        };
        let (words, _) = input.as_chunks::<{ WORD_BYTES as usize }>();
        let mut ids = words
            .iter()
            .skip(ids_from as usize)
            .map(|word| u32::from_le_bytes(*word));
        if ids.any(|id| id >= model.bounds.vocabulary) {
            return Err(Unfit::UnknownToken);
        }
        if full == 0 || unit_bytes == 0 {
            return Err(Unfit::Empty);
        }
        let bytes_max = match request.operation {
            Operation::Embed => CHUNK_BYTES_MAX,
            Operation::Generate => OUTPUT_BYTES_MAX,
        };
        let bytes = full.checked_mul(unit_bytes);
        if bytes.is_none_or(|bytes| bytes > bytes_max) {
            return Err(Unfit::TooLarge);
        }
        let chunk_bytes = chunk.checked_mul(unit_bytes);
        if chunk == 0 || chunk_bytes.is_none_or(|bytes| bytes > CHUNK_BYTES_MAX) {
            return Err(Unfit::Chunk);
        }
        let prompt = work.prompt_tokens();
        let units = prompt.checked_add(full).ok_or(Unfit::TooLarge)?;
        request.price(units).ok_or(Unfit::TooDear)?;
        Ok(Self {
            operation: request.operation,
            prompt,
            full,
            unit_bytes,
            chunk,
            unit_price: request.unit_price,
        })
    }

    /// Whether a statement may be about a part of it.
    pub const fn has_parts(&self) -> bool {
        matches!(self.operation, Operation::Generate)
    }

    /// Units that are paid for once so many were said.
    pub const fn units(&self, said: u32) -> u32 {
        if said == 0 {
            0
        } else {
            self.prompt.saturating_add(said)
        }
    }

    /// What they cost.
    pub const fn price(&self, said: u32) -> u128 {
        self.unit_price.saturating_mul(self.units(said) as u128)
    }

    /// How many more units so many plancks pay for, where so many were said.
    pub fn affordable(&self, said: u32, plancks: u128) -> u32 {
        let units = plancks.checked_div(self.unit_price).unwrap_or(u128::MAX);
        let prompt = if said == 0 { self.prompt } else { 0 };
        let units = units.saturating_sub(prompt.into());
        u32::try_from(units).unwrap_or(u32::MAX)
    }

    /// Bytes of so many units.
    pub fn bytes_of(&self, units: u32) -> usize {
        usize::try_from(units.saturating_mul(self.unit_bytes)).unwrap_or(usize::MAX)
    }

    /// What is paid before more is said: a chunk ahead.
    pub fn paid_ahead(&self, said: u32) -> u128 {
        self.price(said.saturating_add(self.chunk).min(self.full))
    }

    /// How many units these bytes are; nothing where they are no whole number.
    pub fn units_in(&self, bytes: &[u8]) -> Option<u32> {
        let bytes = u32::try_from(bytes.len()).ok()?;
        let is_whole = bytes.checked_rem(self.unit_bytes) == Some(0);
        bytes.checked_div(self.unit_bytes).filter(|_| is_whole)
    }

    /// What an output has before its units, and nobody sends: the word that says how a generation ended, the
    /// header of vectors.
    fn head(&self) -> Vec<u8> {
        match self.operation {
            Operation::Generate => vec![0; WORD_BYTES as usize],
            // There is none only where there are no such vectors.
            Operation::Embed => {
                let width = self.unit_bytes.checked_div(WORD_BYTES).unwrap_or_default();
                embeddings_header(self.full, width).unwrap_or_default()
            }
        }
    }

    /// Adds to what was said.
    pub fn say(&self, said: &mut Said, bytes: &[u8]) {
        if said.bytes == 0 && !bytes.is_empty() {
            said.push(&self.head());
        }
        said.push(bytes);
    }

    /// Adds to all that was said, kept whole.
    pub fn keep(&self, output: &mut Vec<u8>, bytes: &[u8]) {
        if output.is_empty() && !bytes.is_empty() {
            output.extend(self.head());
        }
        output.extend_from_slice(bytes);
    }

    /// Whether an answer whose last bytes these are, after so many units in all, can end like this.
    pub fn can_end(&self, how: End, said: u32, last: &[u8], stop_ids: &[u32], is_cancelled: bool) -> bool {
        match how {
            End::Length => said == self.full,
            End::Stop => {
                let word = last.last_chunk().map(|word| u32::from_le_bytes(*word));
                self.operation == Operation::Generate && word.is_some_and(|id| stop_ids.contains(&id))
            }
            End::Cancelled => is_cancelled,
            End::Cut => true,
        }
    }
}

/// The content hash of something that grows, without keeping it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    bytes: u32,
    /// Roots of whole subtrees, left to right, with their heights: strictly falling between two pushes.
    subtrees: Vec<(u32, H256)>,
    /// The segment that is not full.
    tail: Vec<u8>,
}

impl Said {
    fn push(&mut self, mut bytes: &[u8]) {
        self.bytes = self
            .bytes
            .saturating_add(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        while !bytes.is_empty() {
            let room = (SEGMENT_BYTES as usize).saturating_sub(self.tail.len());
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.tail.extend_from_slice(now);
            bytes = later;
            if self.tail.len() == SEGMENT_BYTES as usize {
                let mut root = leaf_of(&self.tail);
                let mut height = 0u32;
                while let Some((_, left)) = self.subtrees.pop_if(|(tallest, _)| *tallest == height) {
                    root = node_hash(&left, &root);
                    height = height.saturating_add(1);
                }
                self.subtrees.push((height, root));
                self.tail.clear();
            }
        }
    }

    /// How many there are.
    pub const fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Their content hash.
    pub fn hash(&self) -> ContentHash {
        let tail = (!self.tail.is_empty()).then(|| leaf_of(&self.tail));
        let roots = self.subtrees.iter().map(|(_, root)| *root).chain(tail);
        roots
            .rev()
            .reduce(|right, left| node_hash(&left, &right))
            .unwrap_or_else(|| content_hash(&[]))
    }
}

fn leaf_of(segment: &[u8]) -> H256 {
    leaf_hash(&H256(blake2_256(segment)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};

    proptest! {
        #[test]
        fn what_grows_has_the_content_hash_of_all_of_it(pieces in vec(vec(any::<u8>(), 0..3000), 0..12)) {
            let (mut said, mut all) = (Said::default(), Vec::new());
            prop_assert_eq!(said.hash(), content_hash(&all));
            for piece in pieces {
                said.push(&piece);
                all.extend(piece);
                prop_assert_eq!(said.hash(), content_hash(&all));
                prop_assert_eq!(said.bytes() as usize, all.len());
            }
        }
    }
}
