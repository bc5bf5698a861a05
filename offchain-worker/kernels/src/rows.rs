//! What works on one row at a time.

use surety_exact::{self as exact, groups, Fault, Turns};

use crate::weights::Norm;

/// Quantised activations. Reuse one: it keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    count: usize,
    width: usize,
    scaled: Vec<f32>,
    q: Vec<i8>,
    scales: Vec<f32>,
}

impl Rows {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Quantises rows of `width` values, each multiplied by `pre` first.
    ///
    /// # Errors
    /// [`Fault::Shape`] for another number of values, [`Fault::NotFinite`] for a NaN or an infinity.
    pub fn quantise(&mut self, rows: &[f32], width: usize, pre: Option<&[f32]>) -> Result<(), Fault> {
        if width == 0 || !rows.len().is_multiple_of(width) {
            return Err(Fault::Shape);
        }
        self.count = rows.len() / width;
        self.width = width;
        self.q.resize(rows.len(), 0);
        self.scales.resize(self.count * groups(width), 0.0);
        self.scaled.resize(width, 0.0);
        let into = self
            .q
            .chunks_mut(width)
            .zip(self.scales.chunks_mut(groups(width)));
        for (row, (q, scales)) in rows.chunks(width).zip(into) {
            match pre {
                Some(pre) => {
                    exact::scale_row(row, pre, &mut self.scaled)?;
                    exact::quantise_row(&self.scaled, q, scales)?;
                }
                None => exact::quantise_row(row, q, scales)?,
            }
        }
        Ok(())
    }

    /// How many rows there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Values in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The values and scales of one row. Panics when there is none.
    pub fn row(&self, row: usize) -> (&[i8], &[f32]) {
        let count = groups(self.width);
        (
            &self.q[row * self.width..][..self.width],
            &self.scales[row * count..][..count],
        )
    }
}

/// `gelu` of each value.
pub fn gelu(values: &mut [f32]) {
    values.iter_mut().for_each(|value| *value = exact::gelu(*value));
}

/// `gelu_tanh` of each value.
pub fn gelu_tanh(values: &mut [f32]) {
    values
        .iter_mut()
        .for_each(|value| *value = exact::gelu_tanh(*value));
}

/// `gate = silu(gate) * up`.
///
/// # Errors
/// [`Fault::Shape`] unless both are of one length.
pub fn swiglu(gate: &mut [f32], up: &[f32]) -> Result<(), Fault> {
    if gate.len() != up.len() {
        return Err(Fault::Shape);
    }
    for (gate, up) in gate.iter_mut().zip(up) {
        *gate = exact::silu(*gate) * up;
    }
    Ok(())
}

/// `into += other`.
///
/// # Errors
/// [`Fault::Shape`] unless both are of one length.
pub fn add(into: &mut [f32], other: &[f32]) -> Result<(), Fault> {
    if into.len() != other.len() {
        return Err(Fault::Shape);
    }
    for (into, other) in into.iter_mut().zip(other) {
        *into += other;
    }
    Ok(())
}

fn norm(
    rows: &[f32],
    norm: &Norm,
    out: &mut [f32],
    one: impl Fn(&[f32], &mut [f32]) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let width = norm.weight.len();
    if width == 0 || rows.len() != out.len() || !rows.len().is_multiple_of(width) {
        return Err(Fault::Shape);
    }
    for (row, out) in rows.chunks(width).zip(out.chunks_mut(width)) {
        one(row, out)?;
    }
    Ok(())
}

/// Layer norm of each row.
///
/// # Errors
/// [`Fault::Shape`] for a norm without a bias or of another width, [`Fault::NotFinite`] when a result is not.
pub fn layer_norm(rows: &[f32], by: &Norm, out: &mut [f32]) -> Result<(), Fault> {
    let bias = by.bias.as_ref().ok_or(Fault::Shape)?;
    norm(rows, by, out, |row, out| {
        exact::layer_norm_row(row, &by.weight, bias, by.epsilon, out)
    })
}

/// RMS norm of each row.
///
/// # Errors
/// [`Fault::Shape`] for a norm of another width, [`Fault::NotFinite`] when a result is not.
pub fn rms_norm(rows: &[f32], by: &Norm, out: &mut [f32]) -> Result<(), Fault> {
    norm(rows, by, out, |row, out| {
        exact::rms_norm_row(row, &by.weight, by.epsilon, out)
    })
}

/// Rotates every head of every row, in place. Rows are `[heads][2 * turns.len()]`, one position after the other.
///
/// # Errors
/// [`Fault::Shape`] for rows of another width, or positions beyond `u32`.
pub fn rotate(rows: &mut [f32], heads: usize, turns: &[Turns], first_position: u32) -> Result<(), Fault> {
    let head = 2 * turns.len();
    if head * heads == 0 || !rows.len().is_multiple_of(head * heads) {
        return Err(Fault::Shape);
    }
    for (row, position) in rows.chunks_mut(head * heads).zip(first_position..) {
        for head in row.chunks_mut(head) {
            exact::rotate_row(head, turns, position)?;
        }
    }
    Ok(())
}
