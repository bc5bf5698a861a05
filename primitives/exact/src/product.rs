//! One output of a quantised matrix product.

use crate::{quantise::groups, Fault, GROUP};

/// Dot product of int8 rows, modulo 2^32. Exact up to 131,071 values whatever they are (-128 included); the order of
/// the terms makes no difference.
#[inline(always)]
pub fn dot(a: &[i8], b: &[i8]) -> i32 {
    // Wrapping, so that a build with overflow checks computes the same and does not panic.
    a.iter().zip(b).fold(0i32, |sum, (a, b)| {
        sum.wrapping_add(i32::from(*a) * i32::from(*b))
    })
}

/// One output: `acc = ((0 + dot_0 * (s_0 * t_0)) + dot_1 * (s_1 * t_1)) + ...; acc + bias`.
///
/// `q` with one scale `s` per group is the activation row, `w` with `t` the weight row. A group's dot product is at
/// most 128 * 128 * 128 = 2^21, even for the -128 that [`crate::quantise_group`] never writes: `f32` holds it exactly.
/// Without a bias, pass 0.
///
/// # Errors
/// [`Fault::Shape`] unless the rows are of one length and have a scale per group, [`Fault::NotFinite`] when the
/// result is not.
#[inline(always)]
pub fn product_cell(q: &[i8], q_scales: &[f32], w: &[i8], w_scales: &[f32], bias: f32) -> Result<f32, Fault> {
    if q.len() != w.len() || [q_scales.len(), w_scales.len()] != [groups(q.len()); 2] {
        return Err(Fault::Shape);
    }
    let mut sum = 0.0;
    let pairs = q.chunks(GROUP).zip(w.chunks(GROUP));
    for ((q, w), (s, t)) in pairs.zip(q_scales.iter().zip(w_scales)) {
        sum += dot(q, w) as f32 * (s * t);
    }
    let out = sum + bias;
    match out.is_finite() {
        true => Ok(out),
        false => Err(Fault::NotFinite),
    }
}
