//! Float weights to int8 rows.

use surety_exact::{groups, quantise_row, Fault};

use super::{source::Source, ConvertError};
use crate::exact::weights::{Linear, Norm, Table};

/// How far a channel's range may be moved between activations and weights.
const FACTOR_MAX: f64 = 1024.0;

/// How much the channels of an input are scaled before quantisation, so that one with large values does not take the
/// precision of its neighbours: half of its range, on a logarithmic scale, goes to the weights (SmoothQuant with
/// alpha 0.5, <https://arxiv.org/abs/2211.10438>).
///
/// `inputs` is the largest size seen of each channel, `weights` that of each column over all rows that take the input.
pub(super) fn smoothing(inputs: &[f32], weights: &[f32]) -> Vec<f32> {
    let factor = |(input, weight): (&f32, &f32)| {
        let factor = libm::sqrt(f64::from(*weight) / f64::from(*input));
        // A channel that is always 0, or whose weights are: nothing to be shared. NaN is not above 0 either.
        match *input > 0.0 && *weight > 0.0 {
            true => factor.clamp(1.0 / FACTOR_MAX, FACTOR_MAX) as f32,
            false => 1.0,
        }
    };
    inputs.iter().zip(weights).map(factor).collect()
}

/// What a linear layer is read from.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    /// Stem of the published names.
    pub(super) stem: &'a str,
    pub(super) outputs: usize,
    pub(super) inputs: usize,
    pub(super) bias: bool,
}

impl Site<'_> {
    /// Raises `largest` to the sizes of the columns.
    pub(super) fn columns(&self, source: &mut Source, largest: &mut [f32]) -> Result<(), ConvertError> {
        let name = format!("{}.weight", self.stem);
        source.rows(&name, &[self.outputs, self.inputs], |row| {
            for (largest, value) in largest.iter_mut().zip(row) {
                *largest = largest.max(value.abs());
            }
            Ok(())
        })
    }

    /// Quantises, for an input that is multiplied by `pre`.
    pub(super) fn linear(&self, source: &mut Source, pre: Option<&[f32]>) -> Result<Linear, ConvertError> {
        let Table {
            rows,
            width,
            q,
            scales,
        } = table(source, self.stem, self.outputs, self.inputs, pre)?;
        let bias = match self.bias {
            true => Some(source.vector(&format!("{}.bias", self.stem), self.outputs)?),
            false => None,
        };
        Ok(Linear {
            inputs: width,
            outputs: rows,
            q,
            scales,
            bias,
        })
    }
}

/// Quantises a matrix row by row. Its columns are divided by `pre` first.
pub(super) fn table(
    source: &mut Source,
    stem: &str,
    rows: usize,
    width: usize,
    pre: Option<&[f32]>,
) -> Result<Table, ConvertError> {
    // The file has been found to hold as many values: these do not ask for more than it has bytes.
    let mut table = Table {
        rows,
        width,
        q: Vec::new(),
        scales: Vec::new(),
    };
    let mut row_q = vec![0; width];
    let mut row_scales = vec![0.0; groups(width)];
    source.rows(&format!("{stem}.weight"), &[rows, width], |row| {
        if let Some(pre) = pre {
            for (value, pre) in row.iter_mut().zip(pre) {
                *value = (f64::from(*value) / f64::from(*pre)) as f32;
            }
        }
        quantise_row(row, &mut row_q, &mut row_scales).map_err(|fault| refused(stem, fault))?;
        if table.q.is_empty() {
            table.q.reserve_exact(rows * width);
            table.scales.reserve_exact(rows * groups(width));
        }
        table.q.extend_from_slice(&row_q);
        table.scales.extend_from_slice(&row_scales);
        Ok(())
    })?;
    Ok(table)
}

fn refused(stem: &str, fault: Fault) -> ConvertError {
    ConvertError::Arithmetic {
        stem: stem.into(),
        fault,
    }
}

/// A norm's parameters stay as they are.
pub(super) fn norm(
    source: &mut Source,
    stem: &str,
    width: usize,
    epsilon: f32,
    bias: bool,
) -> Result<Norm, ConvertError> {
    Ok(Norm {
        weight: source.vector(&format!("{stem}.weight"), width)?,
        bias: match bias {
            true => Some(source.vector(&format!("{stem}.bias"), width)?),
            false => None,
        },
        epsilon,
    })
}

/// Quantises the layers that share one input, with the smoothing that suits them all.
///
/// Without maxima there is nothing to go by, and no `pre`.
pub(super) fn sharing<const N: usize>(
    source: &mut Source,
    sites: [Site<'_>; N],
    maxima: Option<&[f32]>,
) -> Result<(Option<Vec<f32>>, [Linear; N]), ConvertError> {
    let pre = match maxima {
        Some(maxima) => {
            let mut columns = vec![0.0; maxima.len()];
            for site in &sites {
                site.columns(source, &mut columns)?;
            }
            Some(smoothing(maxima, &columns))
        }
        None => None,
    };
    let mut linears = [const { None }; N];
    for (linear, site) in linears.iter_mut().zip(&sites) {
        *linear = Some(site.linear(source, pre.as_deref())?);
    }
    // Each of them has just been made.
    Ok((pre, linears.map(Option::unwrap_or_default)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_gives_half_of_its_range_to_the_weights() {
        let pre = smoothing(&[16.0, 1.0, 0.0, 5.0, 1e30], &[1.0, 4.0, 1.0, 0.0, 1e-30]);
        assert_eq!(pre, [0.25, 2.0, 1.0, 1.0, 1.0 / 1024.0]);
    }
}
