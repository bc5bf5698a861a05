//! One output of a quantized matrix product.

use crate::{
    ArithmeticError, GROUP,
    quantize::{Quantum, groups},
};

/// Dot product of quantized rows, modulo 2^32, so that the order of the terms makes no difference. Exact up
/// to 131,071 values of int8 whatever they are (-128 included), and 512 of int12.
#[inline(always)]
pub fn dot<Q: Quantum>(a: &[Q], b: &[Q]) -> i32 {
    // Wrapping, so that a build with overflow checks computes the same and does not panic.
    a.iter().zip(b).fold(0i32, |sum, (a, b)| {
        let (a, b): (i32, i32) = ((*a).into(), (*b).into());
        sum.wrapping_add(a.wrapping_mul(b))
    })
}

/// One output: `acc = ((0 + dot_0 * (s_0 * t_0)) + dot_1 * (s_1 * t_1)) + ...; acc + bias`.
///
/// `q` with one scale `s` per group is the activation row, `w` with `t` the weight row. Of int8 a group's dot
/// product is at most 128 * 128 * 128 = 2^21, even for the -128 that [`crate::quantize_group`] never writes:
/// `f32` holds it exactly. Of int12 it is below 2^29 and becomes the nearest `f32`, ties to even. Without a
/// bias, pass 0.
///
/// # Errors
/// [`ArithmeticError::Shape`] unless the rows are of one length and have a scale per group,
/// [`ArithmeticError::NotFinite`] when the result is not.
#[inline(always)]
pub fn product_cell<Q: Quantum>(
    q: &[Q],
    q_scales: &[f32],
    w: &[Q],
    w_scales: &[f32],
    bias: f32,
) -> Result<f32, ArithmeticError> {
    if q.len() != w.len() || [q_scales.len(), w_scales.len()] != [groups(q.len()); 2] {
        return Err(ArithmeticError::Shape);
    }
    let mut sum = 0.0;
    let pairs = q.chunks(GROUP).zip(w.chunks(GROUP));
    for ((q, w), (s, t)) in pairs.zip(q_scales.iter().zip(w_scales)) {
        sum += dot(q, w) as f32 * (s * t);
    }
    let out = sum + bias;
    if out.is_finite() {
        Ok(out)
    } else {
        Err(ArithmeticError::NotFinite)
    }
}
