//! One output of a quantised matrix product.

use crate::{quantise::groups, Fault, GROUP};

/// Exact dot product of int8 rows. Fits i32 up to 133,144 values.
#[inline(always)]
pub fn dot(a: &[i8], b: &[i8]) -> i32 {
    a.iter()
        .zip(b)
        .fold(0, |sum, (a, b)| sum + i32::from(*a) * i32::from(*b))
}

/// One output: `acc = ((0 + dot_0 * (s_0 * t_0)) + dot_1 * (s_1 * t_1)) + ...; acc + bias`.
///
/// `q` with one scale `s` per group is the activation row, `w` with `t` the weight row. A group's dot product is
/// at most 2,064,512, which `f32` holds exactly. Without a bias, pass 0.
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
