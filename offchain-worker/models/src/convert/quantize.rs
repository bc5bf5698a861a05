//! Float weights to quantized rows.

use rayon::prelude::*;
use surety_exact::{ArithmeticError, Precision, groups, quantize_row};

use super::{
    ConvertError,
    calibration::Seen,
    rounding::Rounding,
    smooth::{Choice, Columns},
    source::Source,
};
use crate::weights::{Linear, Norm, Quanta, Table};

/// What was chosen for an input.
#[derive(Clone, Copy)]
pub(super) struct Chosen<'a> {
    precision: Precision,
    /// What the input is multiplied by.
    smoothing_scale: Option<&'a [f32]>,
    /// Of int8 alone.
    rounding: Option<&'a Rounding>,
}

impl Chosen<'_> {
    /// The input is taken as it is, and rounding is plain.
    pub(super) fn plain(precision: Precision) -> Self {
        Self {
            precision,
            smoothing_scale: None,
            rounding: None,
        }
    }
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
    /// Looks at every row.
    fn each_row(&self, source: &mut Source, mut look: impl FnMut(&[f32])) -> Result<(), ConvertError> {
        let name = format!("{}.weight", self.stem);
        source.rows(&name, &[self.outputs, self.inputs], |row| {
            look(row);
            Ok(())
        })
    }

    /// Quantizes, as suits the input.
    pub(super) fn linear(&self, source: &mut Source, chosen: Chosen<'_>) -> Result<Linear, ConvertError> {
        let Table {
            rows,
            width,
            q,
            scales,
        } = table(source, self.stem, self.outputs, self.inputs, chosen)?;
        let bias = if self.bias {
            Some(source.vector(&format!("{}.bias", self.stem), self.outputs)?)
        } else {
            None
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

/// Rows that are quantized at once, by all threads.
const BATCH: usize = 256;

/// Quantizes a matrix, a batch of rows after the other. Its columns are divided by `smoothing_scale` first.
pub(super) fn table(
    source: &mut Source,
    stem: &str,
    rows: usize,
    width: usize,
    chosen: Chosen<'_>,
) -> Result<Table, ConvertError> {
    // The file has been found to hold as many values: these do not ask for more than it has bytes.
    let mut table = Table {
        rows,
        width,
        q: Quanta::new(chosen.precision),
        scales: Vec::new(),
    };
    let mut batch = Vec::new();
    let mut left = rows;
    source.rows(&format!("{stem}.weight"), &[rows, width], |row| {
        if let Some(smoothing_scale) = chosen.smoothing_scale {
            for (value, smoothing_scale) in row.iter_mut().zip(smoothing_scale) {
                *value = (f64::from(*value) / f64::from(*smoothing_scale)) as f32;
            }
        }
        if table.q.is_empty() {
            match &mut table.q {
                Quanta::Int8(q) => q.reserve_exact(rows * width),
                Quanta::Int12(q) => q.reserve_exact(rows * width),
            }
            table.scales.reserve_exact(rows * groups(width));
        }
        batch.extend_from_slice(row);
        left -= 1;
        if left.is_multiple_of(BATCH) {
            quantize_rows(&batch, &mut table, chosen.rounding).map_err(|fault| refused(stem, fault))?;
            batch.clear();
        }
        Ok(())
    })?;
    Ok(table)
}

/// Adds rows to a table. Each is quantized by itself: threads change nothing.
fn quantize_rows(rows: &[f32], into: &mut Table, rounding: Option<&Rounding>) -> Result<(), ArithmeticError> {
    let Table { width, q, scales, .. } = into;
    match q {
        Quanta::Int8(q) => add_rows(rows, *width, q, scales, |row, q, scales| match rounding {
            Some(rounding) => rounding.row(row, q, scales),
            None => quantize_row(row, Precision::Int8, q, scales),
        }),
        Quanta::Int12(q) => add_rows(rows, *width, q, scales, |row, q, scales| {
            quantize_row(row, Precision::Int12, q, scales)
        }),
    }
}

fn add_rows<Q: Clone + Default + Send>(
    rows: &[f32],
    width: usize,
    q: &mut Vec<Q>,
    scales: &mut Vec<f32>,
    one: impl Fn(&[f32], &mut [Q], &mut [f32]) -> Result<(), ArithmeticError> + Sync,
) -> Result<(), ArithmeticError> {
    let count = groups(width);
    let (done, done_scales) = (q.len(), scales.len());
    q.resize(done + rows.len(), Q::default());
    scales.resize(done_scales + rows.len() / width * count, 0.0);
    let (_, q) = q.split_at_mut(done);
    let (_, scales) = scales.split_at_mut(done_scales);
    let parts = rows
        .par_chunks(width)
        .zip(q.par_chunks_mut(width))
        .zip(scales.par_chunks_mut(count));
    parts.try_for_each(|((row, q), scales)| one(row, q, scales))
}

fn refused(stem: &str, fault: ArithmeticError) -> ConvertError {
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
        bias: if bias {
            Some(source.vector(&format!("{stem}.bias"), width)?)
        } else {
            None
        },
        epsilon,
    })
}

/// Quantizes the layers that share one input, with the smoothing and the rounding that suit them all.
///
/// Where nothing has been seen there is nothing to go by: no `smoothing_scale`, and plain rounding.
pub(super) fn sharing<const N: usize>(
    source: &mut Source,
    precision: Precision,
    sites: [Site<'_>; N],
    seen: Option<&Seen>,
) -> Result<(Option<Vec<f32>>, [Linear; N]), ConvertError> {
    let smoothing_scale = match seen {
        Some(seen) => {
            let mut columns = Columns::new(seen.squares.len());
            for site in &sites {
                site.each_row(source, |row| columns.add(row))?;
            }
            let mut choice = Choice::new(seen, &columns);
            for site in &sites {
                site.each_row(source, |row| choice.add(row))?;
            }
            choice.made()
        }
        None => None,
    };
    let rounding = seen.map(|seen| Rounding::new(seen, smoothing_scale.as_deref()));
    let chosen = Chosen {
        precision,
        smoothing_scale: smoothing_scale.as_deref(),
        rounding: rounding.as_ref(),
    };
    let mut linears = [const { None }; N];
    for (linear, site) in linears.iter_mut().zip(&sites) {
        *linear = Some(site.linear(source, chosen)?);
    }
    // Each of them has just been made.
    Ok((smoothing_scale, linears.map(Option::unwrap_or_default)))
}
