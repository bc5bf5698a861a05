#![doc = include_str!("../README.md")]
#![no_std]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::unwrap_used
    )
)]

// Its x87 registers keep more digits than f32 has: the bits would differ.
#[cfg(all(target_arch = "x86", not(target_feature = "sse2")))]
compile_error!("surety-exact needs IEEE single precision: build for x86 with SSE2");

mod attention;
mod functions;
mod lanes;
mod norm;
mod pooling;
mod product;
mod quantize;
mod rotary;
mod sampling;
mod split_mix;

pub use attention::{
    BLOCK, HEAD_MAX, HEAD_PRECISION, Head, Softmax, WEIGHT_MAX, attention_cell, attention_row, blocks,
    largest_score, merge_cell, quantize_heads, quantize_weights, score_cell, softmax_block,
};
pub use functions::{erf, exp, gelu, gelu_tanh, rsqrt, silu, sin_cos_turn, sqrt, tanh};
pub use lanes::{LANES, fold, sum, sum_of_squares};
pub use norm::{
    layer_norm_cell, layer_norm_row, layer_norm_stats, rms_norm_cell, rms_norm_row, rms_norm_scale,
};
pub use pooling::{l2_norm, l2_normalize, mean_cell, mean_pool};
pub use product::{dot, product_cell};
pub use quantize::{
    GROUP, Precision, Quantum, groups, quantize_group, quantize_row, round, scale_row, steps,
};
pub use rotary::{Turns, rotate_pair, rotate_row};
pub use sampling::{Sampling, greedy, sample};
pub use split_mix::SplitMix64;

/// Why a row has no canonical result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArithmeticError {
    /// Rows of lengths that do not fit together, or nothing at all.
    Shape,
    /// A NaN or an infinity came in or out.
    NotFinite,
    /// The zero vector has no direction.
    ZeroNorm,
}

#[inline(always)]
fn finite(row: &[f32]) -> Result<(), ArithmeticError> {
    // All of them, without leaving early: a loop that wide registers can take.
    let size = row
        .iter()
        .fold(0, |size, value| size.max(value.to_bits() & 0x7fff_ffff));
    if size < f32::INFINITY.to_bits() {
        Ok(())
    } else {
        Err(ArithmeticError::NotFinite)
    }
}
