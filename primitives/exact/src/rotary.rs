//! Rotary positions (RoPE), in integer angles.

use crate::{ArithmeticError, functions::sin_cos_turn};

/// How far one pair of a head turns from a position to the next: a fraction of a turn in units of 2^-64.
///
/// For a base `theta`, pair `i` of a head of width `d` has `theta^(-2 i / d) / (2 pi)` turns; a converter
/// rounds that once, and the table is part of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns(pub u64);

impl Turns {
    /// Sine and cosine of the angle at a position.
    #[inline(always)]
    pub fn at(self, position: u32) -> (f32, f32) {
        sin_cos_turn((self.0.wrapping_mul(u64::from(position)) >> 32) as u32)
    }
}

/// `(a cos - b sin, b cos + a sin)`, each product rounded first.
#[inline(always)]
pub fn rotate_pair(a: f32, b: f32, (sin, cos): (f32, f32)) -> (f32, f32) {
    (a * cos - b * sin, b * cos + a * sin)
}

/// Rotates one head in place: pair `i` is the elements `i` and `i + d / 2`, as Llama in its published form
/// has it.
///
/// A product that overflows becomes an infinity here, which [`crate::attention_row`] refuses.
///
/// # Errors
/// [`ArithmeticError::Shape`] unless there are half as many turns as elements.
#[inline(always)]
pub fn rotate_row(head: &mut [f32], turns: &[Turns], position: u32) -> Result<(), ArithmeticError> {
    let (low, high) = head.split_at_mut(head.len() / 2);
    if [low.len(), high.len()] != [turns.len(); 2] {
        return Err(ArithmeticError::Shape);
    }
    for ((a, b), turns) in low.iter_mut().zip(high).zip(turns) {
        (*a, *b) = rotate_pair(*a, *b, turns.at(position));
    }
    Ok(())
}
