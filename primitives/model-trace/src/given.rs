//! What is given to a computation, and what it delivers: the bytes of leaf 0 and of outputs.

use alloc::{format, vec::Vec};

use surety_exact::ArithmeticError;
use surety_types::model::Operation;

use crate::{
    Rows,
    compute::{Halt, Stop},
    inputs::{Inputs, Source},
    layout::{Layout, Part},
    output::GENERATION_WORDS,
};
use surety_dispute_game::bisection::{CellValue, Length, Shape};

/// Words of a generation's leaf 0 before the prompt's tokens.
pub const PROMPT_WORDS: u32 = 8;

/// What goes into a generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt<'a> {
    /// The prompt as tokens, from the first position on.
    pub tokens: &'a [u32],
    /// Bytes of the output.
    pub output_bytes: u32,
    /// As [`surety_exact::Sampling`] has it.
    pub temperature_milli: u32,
    /// Likewise.
    pub top_k: u32,
    /// Likewise.
    pub top_p_milli: u32,
    /// What the random numbers come from, beside the input's hash.
    pub seed: u64,
}

/// Leaf 0 of a generation of so many units: one row of `8 + units` words, the last of them zeros.
pub fn prompt_tokens(prompt: &Prompt<'_>, units: u32) -> Rows {
    let (low, high) = (prompt.seed as u32, (prompt.seed >> 32) as u32);
    let count = u32::try_from(prompt.tokens.len()).unwrap_or(u32::MAX);
    let words = [
        count,
        prompt.output_bytes,
        prompt.temperature_milli,
        prompt.top_k,
        prompt.top_p_milli,
        low,
        high,
        0,
    ];
    let words: Vec<u32> = words.iter().chain(prompt.tokens).copied().collect();
    padded(core::iter::once(&words[..]), units.saturating_add(PROMPT_WORDS))
}

/// Leaf 0 of an encoder with so many positions: for each item a row of its number of tokens, the tokens, and
/// zeros.
pub fn encoder_tokens<'a>(items: impl Iterator<Item = &'a [u32]>, positions: u32) -> Rows {
    let rows: Vec<Vec<u32>> = items
        .map(|tokens| {
            let count = u32::try_from(tokens.len()).unwrap_or(u32::MAX);
            core::iter::once(count).chain(tokens.iter().copied()).collect()
        })
        .collect();
    padded(rows.iter().map(|row| &row[..]), positions.saturating_add(1))
}

fn padded<'a>(rows: impl Iterator<Item = &'a [u32]>, words: u32) -> Rows {
    let row = |row: &'a [u32]| {
        let zeros = core::iter::repeat(&0);
        row.iter().chain(zeros).take(words as usize)
    };
    Rows::Bytes {
        row_bytes: words.saturating_mul(4),
        bytes: rows.flat_map(row).flat_map(|word| word.to_le_bytes()).collect(),
    }
}

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
    },
    /// Text, and whether a token ends a continuation, are no arithmetic.
    NotComputable,
}

impl OutputWord {
    /// Word `cell` of an output, of a generation from so many tokens.
    pub(super) fn new(layout: &Layout, cell: u32, prompt: u32) -> Option<Self> {
        match layout.facts.operation {
            Operation::Embed => Self::embedding(layout, cell),
            Operation::Generate => Self::generation(layout, cell, prompt),
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

    fn generation(layout: &Layout, cell: u32, prompt: u32) -> Option<Self> {
        let count = layout.facts.units.saturating_sub(prompt);
        let Some(index) = cell.checked_sub(GENERATION_WORDS) else {
            return Some(match cell {
                0 => Self::Known(prompt.to_le_bytes()),
                1 => Self::Known(count.to_le_bytes()),
                _ => Self::NotComputable,
            });
        };
        if index >= count {
            return Some(Self::NotComputable);
        }
        // A token is chosen after the position before it.
        let position = prompt.checked_add(index)?.saturating_sub(1);
        let chunk = position.checked_div(layout.cut.chunk)?;
        Some(Self::Token {
            leaf: layout.leaf_of(Part::SampledTokens { chunk })?,
            row: position.checked_rem(layout.cut.chunk)?,
        })
    }
}

/// Word `cell` of an output.
pub(super) fn output_word<'a, I: Inputs<'a>>(
    layout: &Layout,
    cell: u32,
    inputs: &mut I,
) -> Result<CellValue, Halt<I::Error>> {
    let asked = |error| Halt::Stop(Stop::Input(error));
    let prompt = match layout.facts.operation {
        Operation::Embed => 0,
        Operation::Generate => {
            let words = inputs.integers(Source::Leaf(0), 0, 0..1).map_err(asked)?;
            *words.first().ok_or(ArithmeticError::Shape)?
        }
    };
    let word = match OutputWord::new(layout, cell, prompt).ok_or(ArithmeticError::Shape)? {
        OutputWord::NotComputable => return Err(Halt::Stop(Stop::NotComputable)),
        OutputWord::Known(word) => word,
        OutputWord::Number { leaf, word } => {
            let words = word..word.saturating_add(1);
            let found = inputs.numbers(Source::Leaf(leaf), 0, words).map_err(asked)?;
            found.first().ok_or(ArithmeticError::Shape)?.to_le_bytes()
        }
        OutputWord::Token { leaf, row } => {
            let found = inputs.integers(Source::Leaf(leaf), row, 0..1).map_err(asked)?;
            found.first().ok_or(ArithmeticError::Shape)?.to_le_bytes()
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
