//! What the activations of a model are like, seen on a fixed text.

use surety_exact::Fault;

/// The text. It is part of what a conversion means: another text makes another file.
const TEXT: &str = include_str!("calibration.txt");

/// Longest piece, in tokens.
const TOKENS_MAX: usize = 256;

/// The lines of the calibration text.
pub fn lines() -> impl Iterator<Item = &'static str> {
    TEXT.lines()
}

/// Tokens of a line that are looked at, for a model with so many positions.
pub fn tokens_max(positions: usize) -> usize {
    positions.min(TOKENS_MAX)
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
