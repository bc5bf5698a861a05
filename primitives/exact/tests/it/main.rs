//! The canonical numbers against what they stand for: `f64`, the definitions in words, and a second
//! implementation.

#![allow(clippy::unwrap_used)]

mod attention;
mod functions;
mod product;
mod rows;
mod sampling;
mod vectors;

use proptest::prelude::*;

/// A row of a model's states: values of usual sizes, some of them zero, now and then a giant.
fn row(lengths: core::ops::Range<usize>) -> impl Strategy<Value = Vec<f32>> {
    let value = prop_oneof![
        8 => -4.0f32..4.0,
        1 => Just(0.0),
        1 => -300.0f32..300.0,
        1 => -1e-6f32..1e-6,
    ];
    proptest::collection::vec(value, lengths)
}

fn wide(row: &[f32]) -> Vec<f64> {
    row.iter().copied().map(f64::from).collect()
}

fn bits(row: &[f32]) -> Vec<u32> {
    row.iter().map(|value| value.to_bits()).collect()
}
