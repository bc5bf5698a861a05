//! What the activations of a model are like, seen on a fixed text.

use std::panic::{catch_unwind, AssertUnwindSafe};

use surety_exact::Fault;
use tokenizers::Tokenizer;

use super::ConvertError;
use crate::model_error::ModelError;

/// The text. It is part of what a conversion means: another text makes another file.
const TEXT: &str = include_str!("calibration.txt");

/// Longest piece, in tokens.
const TOKENS_MAX: usize = 256;

/// The calibration text in tokens of this model, each line cut to what it has positions for.
pub(super) fn tokens(
    tokenizer: &[u8],
    vocabulary: usize,
    positions: usize,
) -> Result<Vec<Vec<u32>>, ConvertError> {
    // The library is not written for hostile files.
    let encoded = catch_unwind(AssertUnwindSafe(|| {
        let mut tokenizer = Tokenizer::from_bytes(tokenizer)?;
        tokenizer.with_truncation(None)?.with_padding(None);
        TEXT.lines()
            .map(|line| Ok(tokenizer.encode(line, true)?.get_ids().to_vec()))
            .collect::<Result<Vec<_>, tokenizers::Error>>()
    }));
    let mut rows = match encoded {
        Ok(Ok(rows)) => rows,
        Ok(Err(error)) => return Err(ModelError::Tokenizer(error.to_string()).into()),
        Err(_) => return Err(ModelError::Tokenizer("the tokenizer library panicked".into()).into()),
    };
    for row in &mut rows {
        row.truncate(positions.min(TOKENS_MAX));
        if let Some(token) = row.iter().find(|token| **token as usize >= vocabulary) {
            return Err(ModelError::Vocabulary {
                token: *token,
                vocabulary,
            }
            .into());
        }
    }
    rows.retain(|row| !row.is_empty());
    Ok(rows)
}

/// The largest size of each channel of the inputs of a layer's linear layers, before any `pre`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LayerMaxima {
    /// Of query, key and value.
    pub attention: Vec<f32>,
    /// Of attention's output layer.
    pub output: Vec<f32>,
    /// Of `up`, and of a decoder's `gate`.
    pub up: Vec<f32>,
    /// Of `down`.
    pub down: Vec<f32>,
}

/// Those of every layer, first to last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Maxima {
    /// First to last.
    pub layers: Vec<LayerMaxima>,
}

/// Raises `maxima` to the sizes in `rows`, which have `width` columns. A NaN raises nothing: quantisation refuses it.
///
/// # Errors
/// [`Fault::Shape`] when earlier rows were of another width.
pub fn observe(maxima: &mut Vec<f32>, rows: &[f32], width: usize) -> Result<(), Fault> {
    if maxima.is_empty() {
        maxima.resize(width, 0.0);
    }
    if width == 0 || maxima.len() != width {
        return Err(Fault::Shape);
    }
    for row in rows.chunks(width) {
        for (largest, value) in maxima.iter_mut().zip(row) {
            *largest = largest.max(value.abs());
        }
    }
    Ok(())
}
