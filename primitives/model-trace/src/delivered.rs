//! What a computation delivers: the bytes of outputs, and what each word of them is.

use alloc::{format, vec::Vec};

use surety_exact::ArithmeticError;
use surety_types::model::Operation;

use crate::{
    compute::{Halt, Stop},
    inputs::{Inputs, Source},
    layout::{Layout, Part},
    output::{GENERATION_WORDS, finish_reason},
};
use surety_dispute_game::bisection::{CellValue, Length, Shape};

/// What comes before the numbers of the output of so many items: the header of a safetensors file with one
/// tensor. Nothing when the numbers would be more than there can be.
pub fn embeddings_header(items: u32, width: u32) -> Option<Vec<u8>> {
    let bytes = items.checked_mul(width)?.checked_mul(4)?;
    let mut json =
        format!(r#"{{"embeddings":{{"dtype":"F32","shape":[{items},{width}],"data_offsets":[0,{bytes}]}}}}"#)
            .into_bytes();
    // Readers want it to be whole words of 8 bytes.
    json.resize(json.len().next_multiple_of(8), b' ');
    let mut header = (json.len() as u64).to_le_bytes().to_vec();
    header.append(&mut json);
    Some(header)
}

/// Bytes of the output of so many items.
pub(super) fn embeddings_bytes(items: u32, width: u32) -> Option<u32> {
    let header = u32::try_from(embeddings_header(items, width)?.len()).ok()?;
    items.checked_mul(width)?.checked_mul(4)?.checked_add(header)
}

/// What a word of an output is.
pub(super) enum OutputWord {
    /// It follows from the layout.
    Known([u8; 4]),
    /// A copy of a number of the one row of a leaf.
    Number {
        /// The leaf.
        leaf: u32,
        /// The number.
        word: u32,
    },
    /// A copy of the one word of a row of a leaf.
    Token {
        /// The leaf.
        leaf: u32,
        /// The row.
        row: u32,
        /// The word of the output with the token before it, which must not have ended the continuation.
        before: Option<u32>,
    },
    /// Why the continuation ended.
    FinishReason,
}

impl OutputWord {
    /// Word `cell` of an output.
    pub(super) fn new(layout: &Layout, cell: u32) -> Option<Self> {
        match layout.facts.operation {
            Operation::Embed => Self::embedding(layout, cell),
            Operation::Generate => Self::generation(layout, cell),
        }
    }

    fn embedding(layout: &Layout, cell: u32) -> Option<Self> {
        let (units, width) = (layout.facts.units, layout.dims.width);
        let header = embeddings_header(units, width)?;
        let (words, _) = header.as_chunks::<4>();
        let Some(number) = cell.checked_sub(words.len() as u32) else {
            return words.get(cell as usize).copied().map(Self::Known);
        };
        let vector = Part::Rows {
            sequence: number.checked_div(width)?,
            chunk: 0,
            stride: layout.cut.strides().checked_sub(1)?,
        };
        Some(Self::Number {
            leaf: layout.leaf_of(vector)?,
            word: number.checked_rem(width)?,
        })
    }

    fn generation(layout: &Layout, cell: u32) -> Option<Self> {
        let Some(index) = cell.checked_sub(GENERATION_WORDS) else {
            return Some(Self::FinishReason);
        };
        if index >= layout.new_tokens() {
            return None;
        }
        // A token is chosen after the position before it.
        let position = layout.prompt().checked_add(index)?.saturating_sub(1);
        let chunk = position.checked_div(layout.cut.chunk)?;
        Some(Self::Token {
            leaf: layout.leaf_of(Part::SampledTokens { chunk })?,
            row: position.checked_rem(layout.cut.chunk)?,
            before: cell.checked_sub(1).filter(|word| *word >= GENERATION_WORDS),
        })
    }
}

/// Word `cell` of an output. A token after one that ends the continuation, and the end of one that goes on,
/// have no value.
pub(super) fn output_word<'a, I: Inputs<'a>>(
    layout: &Layout,
    cell: u32,
    inputs: &mut I,
) -> Result<CellValue, Halt<I::Error>> {
    let asked = |error| Halt::Stop(Stop::Input(error));
    let mut integer = |from, row, word: u32| {
        let found = inputs
            .integers(from, row, word..word.saturating_add(1))
            .map_err(asked)?;
        found.first().copied().ok_or(Halt::Arithmetic)
    };
    let word = match OutputWord::new(layout, cell).ok_or(ArithmeticError::Shape)? {
        OutputWord::Known(word) => word,
        OutputWord::Number { leaf, word } => {
            let words = word..word.saturating_add(1);
            let found = inputs.numbers(Source::Leaf(leaf), 0, words).map_err(asked)?;
            found.first().ok_or(ArithmeticError::Shape)?.to_le_bytes()
        }
        OutputWord::Token { leaf, row, before } => {
            let before = before.map(|word| integer(Source::Output, 0, word)).transpose()?;
            if before.is_some_and(|token| layout.facts.stop.contains(&token)) {
                return Err(Halt::Arithmetic);
            }
            integer(Source::Leaf(leaf), row, 0)?.to_le_bytes()
        }
        OutputWord::FinishReason => {
            let count = layout.new_tokens();
            let max_tokens = integer(Source::Input, 0, 0)?;
            let last = integer(Source::Output, 0, count)?;
            let most = max_tokens.min(layout.room()).max(1);
            let reason = finish_reason(last, count, most, &layout.facts.stop);
            reason.ok_or(ArithmeticError::Shape)?.to_le_bytes()
        }
    };
    Ok(CellValue::Word(word))
}

/// The length of a leaf that a cell of the output, or of a leaf of the same sequence and of length `own`,
/// reads.
pub(super) fn length_of(layout: &Layout, leaf: u32, own: Option<u32>) -> Option<u32> {
    match (layout.leaf(leaf)?.length, own) {
        (Length::Known(length), _) => Some(length),
        (Length::Word { .. }, Some(own)) => Some(own),
        // One vector, however long the item was.
        (Length::Word { .. }, None) => Some(1),
    }
}
