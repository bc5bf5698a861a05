//! What the activations of a model are like, seen on a fixed text.

use surety_exact::ArithmeticError;

use crate::{
    error::ModelError,
    tokens::TextCodec,
    weights::{BertWeights, LlamaWeights},
};

/// The text. It is part of what a conversion means: another text makes another file.
const TEXT: &str = include_str!("calibration.txt");

/// How many times its number of tokens are made up.
const MADE_UP_TIMES: usize = 3;

/// What a model reads, in tokens.
pub struct Sequences {
    /// Lines of the calibration text.
    pub text: Vec<Vec<u32>>,
    /// Any tokens at all.
    pub made_up: Vec<Vec<u32>>,
}

/// Runs a model that was quantized without smoothing over the calibration text, in the exact arithmetic, and
/// says what its linear layers were given. An engine does this; the conversion's bytes rest on it, so that
/// every implementation has to give the same bits.
pub trait Calibrator: Sync {
    /// Runs sequences through an encoder, all tokens of the first kind of segment.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] for weights that do not fit together or sequences that the model does not
    /// take; the faults of the arithmetic.
    fn bert(&self, weights: &BertWeights, sequences: &Sequences) -> Result<Inputs, ArithmeticError>;

    /// Runs sequences through a decoder.
    ///
    /// # Errors
    /// Those of [`Self::bert`].
    fn llama(&self, weights: &LlamaWeights, sequences: &Sequences) -> Result<Inputs, ArithmeticError>;
}

/// Longest piece, in tokens.
const TOKENS_MAX: usize = 256;

/// The text in an encoder's tokens.
///
/// A few hundred sentences use a small part of what an encoder knows: beside them stand sequences of any
/// tokens.
pub(super) fn for_encoder(codec: &TextCodec) -> Result<Sequences, ModelError> {
    let text = lines(codec)?;
    let made_up = made_up(&text, codec.bounds().vocabulary as usize);
    Ok(Sequences { text, made_up })
}

/// The text in a decoder's tokens.
pub(super) fn for_decoder(codec: &TextCodec) -> Result<Sequences, ModelError> {
    let text = lines(codec)?;
    let made_up = Vec::new();
    Ok(Sequences { text, made_up })
}

/// Each of the lines so many times, with the tokens between the first and the last drawn from the vocabulary.
fn made_up(text: &[Vec<u32>], vocabulary: usize) -> Vec<Vec<u32>> {
    let mut state = 1u64;
    let mut draw = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        // The upper half, as a fraction of the vocabulary, which fits into 32 bits.
        ((state >> 32).wrapping_mul(vocabulary as u64) >> 32) as u32
    };
    let lines = std::iter::repeat_n(text, MADE_UP_TIMES).flatten();
    lines
        .map(|line| {
            let mut line = line.clone();
            let last = line.len().saturating_sub(1);
            line.iter_mut()
                .take(last)
                .skip(1)
                .for_each(|token| *token = draw());
            line
        })
        .collect()
}

/// Every line that has tokens, cut to what the model has positions for.
fn lines(codec: &TextCodec) -> Result<Vec<Vec<u32>>, ModelError> {
    let positions = codec.bounds().positions as usize;
    let rows: Result<Vec<_>, _> = TEXT.lines().map(|line| codec.encode(line)).collect();
    let mut rows = rows.map_err(|fault| ModelError::Tokenizer(fault.to_string()))?;
    rows.iter_mut()
        .for_each(|row| row.truncate(positions.min(TOKENS_MAX)));
    rows.retain(|row| !row.is_empty());
    if rows.is_empty() {
        Err(ModelError::Tokenizer(
            "it makes no tokens of the calibration text".into(),
        ))
    } else {
        Ok(rows)
    }
}

/// Of so many tokens one is kept as a sample.
const SAMPLE_EVERY: usize = 2;

/// What has been seen of one input of linear layers, before any `smoothing_scale`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Sum of squares of each channel, over all rows.
    pub squares: Vec<f64>,
    /// Rows in `squares`.
    pub rows: usize,
    /// Some of the rows, one after the other.
    pub sample: Vec<f32>,
    /// Some of those of tokens that are made up.
    pub made_up: Vec<f32>,
    /// How many of these there were.
    pub rows_made_up: usize,
}

impl Seen {
    /// Looks at rows of `width` values. What is not finite is refused by quantization, not here.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] when earlier rows were of another width.
    pub fn observe(&mut self, rows: &[f32], width: usize, made_up: bool) -> Result<(), ArithmeticError> {
        if self.squares.is_empty() {
            self.squares.resize(width, 0.0);
        }
        if width == 0 || self.squares.len() != width {
            return Err(ArithmeticError::Shape);
        }
        if made_up {
            for row in rows.chunks_exact(width) {
                if self.rows_made_up.is_multiple_of(SAMPLE_EVERY) {
                    self.made_up.extend_from_slice(row);
                }
                self.rows_made_up += 1;
            }
            return Ok(());
        }
        for row in rows.chunks_exact(width) {
            if self.rows.is_multiple_of(SAMPLE_EVERY) {
                self.sample.extend_from_slice(row);
            }
            self.rows += 1;
            for (sum, value) in self.squares.iter_mut().zip(row) {
                *sum += f64::from(*value) * f64::from(*value);
            }
        }
        Ok(())
    }

    /// The mean square of each channel.
    pub fn mean_squares(&self) -> Vec<f64> {
        let rows = self.rows.max(1) as f64;
        self.squares.iter().map(|sum| sum / rows).collect()
    }
}

/// What has been seen of the inputs of a layer's linear layers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LayerInputs {
    /// Of query, key and value.
    pub attention: Seen,
    /// Of attention's output layer.
    pub output: Seen,
    /// Of `up`, and of a decoder's `gate`.
    pub up: Seen,
    /// Of `down`.
    pub down: Seen,
}

/// Those of every layer, first to last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inputs {
    /// First to last.
    pub layers: Vec<LayerInputs>,
    /// Whether the tokens that are read are made up.
    pub made_up: bool,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn made_up_lines_keep_their_ends() {
        let made = made_up(&[vec![2, 7, 8, 3], vec![2, 3], vec![5]], 30);
        assert_eq!(made.len(), 3 * MADE_UP_TIMES);
        for (line, made) in [4, 2, 1].iter().cycle().zip(&made) {
            assert_eq!(made.len(), *line);
            assert!(made.iter().all(|token| *token < 30));
        }
        assert!(made.iter().step_by(3).all(|line| line[0] == 2 && line[3] == 3));
        assert_ne!(made[0], made[3]);
        assert_eq!((&made[1], &made[2]), (&vec![2, 3], &vec![5]));
    }

    #[test]
    fn what_is_seen_does_not_depend_on_how_rows_are_cut() {
        let rows: Vec<f32> = (0..51).map(|i| (i as f32 - 20.0) / 3.0).collect();
        let mut whole = Seen::default();
        whole.observe(&rows, 3, false).unwrap();
        let mut pieces = Seen::default();
        for piece in rows.chunks(12) {
            pieces.observe(piece, 3, false).unwrap();
        }
        assert_eq!(whole, pieces);
        assert_eq!(whole.rows, 17);
        let sample: Vec<f32> = rows.chunks(3).step_by(2).flatten().copied().collect();
        assert_eq!(whole.sample, sample);
        let squares = rows.iter().step_by(3).map(|x| f64::from(*x) * f64::from(*x));
        assert_eq!(whole.mean_squares()[0], squares.sum::<f64>() / 17.0);
        // Those of made-up tokens are kept apart.
        let known = whole.clone();
        whole.observe(&rows, 3, true).unwrap();
        assert_eq!((&whole.made_up, whole.rows_made_up), (&sample, 17));
        assert_eq!((&whole.squares, &whole.sample), (&known.squares, &known.sample));
        assert_eq!(whole.observe(&rows, 17, false), Err(ArithmeticError::Shape));
        assert_eq!(
            Seen::default().observe(&rows, 0, true),
            Err(ArithmeticError::Shape)
        );
    }
}
