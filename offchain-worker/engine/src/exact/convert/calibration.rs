//! What the activations of a model are like, seen on a fixed text.

use surety_exact::Fault;

use crate::{
    bert::Tokens,
    exact::{
        config::{BertConfig, LlamaConfig},
        prompt::Prompts,
    },
    model_error::ModelError,
};

/// The text. It is part of what a conversion means: another text makes another file.
const TEXT: &str = include_str!("calibration.txt");

/// Longest piece, in tokens.
const TOKENS_MAX: usize = 256;

/// The text in an encoder's tokens, as its engine makes them.
pub(super) fn for_encoder(tokenizer: &[u8], config: &BertConfig) -> Result<Vec<Vec<u32>>, ModelError> {
    let tokens = Tokens::load(tokenizer, config.vocabulary, config.positions)?;
    lines(config.positions, |line| Ok(tokens.of(line)?.ids))
}

/// The text in a decoder's tokens, as its engine makes them.
pub(super) fn for_decoder(tokenizer: &[u8], config: &LlamaConfig) -> Result<Vec<Vec<u32>>, ModelError> {
    let prompts = Prompts::load(tokenizer, config.vocabulary)?;
    lines(config.context, |line| prompts.encode(line))
}

/// Every line that has tokens, cut to what the model has positions for.
fn lines(
    positions: usize,
    tokens: impl Fn(&str) -> Result<Vec<u32>, String>,
) -> Result<Vec<Vec<u32>>, ModelError> {
    let mut rows = TEXT
        .lines()
        .map(tokens)
        .collect::<Result<Vec<_>, _>>()
        .map_err(ModelError::Tokenizer)?;
    rows.iter_mut()
        .for_each(|row| row.truncate(positions.min(TOKENS_MAX)));
    rows.retain(|row| !row.is_empty());
    match rows.is_empty() {
        true => Err(ModelError::Tokenizer(
            "it makes no tokens of the calibration text".into(),
        )),
        false => Ok(rows),
    }
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
