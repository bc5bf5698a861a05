//! Matrix products.

use surety_exact::{groups, product_cell, Fault};

use crate::{Packed, Rows};

/// `out[m][outputs] = rows * weights`: each cell as [`product_cell`] gives it.
///
/// # Errors
/// [`Fault::Shape`] when the widths do not fit together, [`Fault::NotFinite`] when a result is not.
pub fn product(rows: &Rows, weights: &Packed, out: &mut [f32]) -> Result<(), Fault> {
    let linear = &weights.linear;
    if rows.width() != linear.inputs || out.len() != rows.count() * linear.outputs {
        return Err(Fault::Shape);
    }
    let count = groups(linear.inputs);
    for (row, out) in out.chunks_mut(linear.outputs.max(1)).enumerate() {
        let (q, scales) = rows.row(row);
        for (o, out) in out.iter_mut().enumerate() {
            let weights = &linear.q[o * linear.inputs..][..linear.inputs];
            let bias = linear.bias.as_ref().map_or(0.0, |bias| bias[o]);
            *out = product_cell(q, scales, weights, &linear.scales[o * count..][..count], bias)?;
        }
    }
    Ok(())
}
