//! What the forward passes of all families are made of.

use std::{mem, ops::Range};

use surety_exact::{ArithmeticError, GROUP, groups};
use surety_kernels::{self as kernels, Heads, Packed, Rows};
use surety_model_trace::{Op, Step};
use surety_models::weights::{Linear, Norm, Quanta, Table};

use super::probe::Probe;

/// One layer's pass: its quantized input, and who looks on.
pub(super) struct Pass<'a, P> {
    pub(super) layer: usize,
    pub(super) rows: &'a mut Rows,
    pub(super) probe: &'a mut P,
}

impl<P: Probe> Pass<'_, P> {
    /// Shows what an elementwise step, or attention, gave.
    pub(super) fn real(&mut self, op: Op, rows: &[f32], width: usize) {
        self.probe.real(step(self.layer, op), rows, width);
    }

    /// Quantizes the input of the products that follow.
    pub(super) fn quantize(
        &mut self,
        op: Op,
        input: &[f32],
        width: usize,
        smoothing_scale: Option<&[f32]>,
    ) -> Result<(), ArithmeticError> {
        self.rows.quantize(input, width, smoothing_scale)?;
        self.probe
            .quantized(step(self.layer, op), input, width, self.rows);
        Ok(())
    }

    /// Norms every head of some rows of so many numbers. What `spare` holds does not matter before, and is of
    /// no use afterwards.
    pub(super) fn norm_heads(
        &mut self,
        op: Op,
        rows: &mut Vec<f32>,
        (by, width): (&Norm, usize),
        spare: &mut Vec<f32>,
    ) -> Result<(), ArithmeticError> {
        kernels::rms_norm(rows, by, sized(spare, rows.len()))?;
        mem::swap(rows, spare);
        self.real(op, rows, width);
        Ok(())
    }

    /// Quantizes queries, keys or values.
    pub(super) fn heads(
        &mut self,
        op: Op,
        input: &[f32],
        (heads, head_dim): (usize, usize),
        into: &mut Heads,
    ) -> Result<(), ArithmeticError> {
        into.quantize(input, heads, head_dim)?;
        self.probe.heads(step(self.layer, op), into);
        Ok(())
    }

    /// A product of what was quantized last.
    pub(super) fn product(&mut self, op: Op, by: &Packed, out: &mut Vec<f32>) -> Result<(), ArithmeticError> {
        let out = sized(out, self.rows.count() * by.outputs());
        kernels::product(self.rows, by, out)?;
        self.real(op, out, by.outputs());
        Ok(())
    }
}

pub(super) fn step(layer: usize, op: Op) -> Step {
    // No model has 2^32 layers.
    let layer = u32::try_from(layer).unwrap_or(u32::MAX);
    Step { layer, op }
}

/// A buffer of this length, whatever was in it.
pub(super) fn sized(buffer: &mut Vec<f32>, len: usize) -> &mut [f32] {
    buffer.resize(len, 0.0);
    buffer
}

/// A slice that is there, or a fault.
pub(super) fn part<'a>(rows: &'a [f32], range: &Range<usize>) -> Result<&'a [f32], ArithmeticError> {
    rows.get(range.clone()).ok_or(ArithmeticError::Shape)
}

/// Combines a table's row with `into`, element by element.
pub(super) fn look_up(
    table: &Table,
    row: u32,
    into: &mut [f32],
    combine: impl Fn(f32, f32) -> f32,
) -> Result<(), ArithmeticError> {
    let row = row as usize;
    let (width, count) = (table.width, groups(table.width));
    let values = row * width..(row + 1) * width;
    let scales = table
        .scales
        .get(row * count..(row + 1) * count)
        .ok_or(ArithmeticError::Shape)?;
    match &table.q {
        Quanta::Int8(q) => combined(q.get(values), scales, into, combine),
        Quanta::Int12(q) => combined(q.get(values), scales, into, combine),
    }
}

fn combined<Q: Copy + Into<f32>>(
    q: Option<&[Q]>,
    scales: &[f32],
    into: &mut [f32],
    combine: impl Fn(f32, f32) -> f32,
) -> Result<(), ArithmeticError> {
    let q = q.ok_or(ArithmeticError::Shape)?;
    for ((q, scale), into) in q.chunks(GROUP).zip(scales).zip(into.chunks_mut(GROUP)) {
        for (q, into) in q.iter().zip(into) {
            *into = combine(*into, (*q).into() * scale);
        }
    }
    Ok(())
}

/// Whether a table has this width and the lengths that it says.
pub(super) fn check_table(table: &Table, width: usize) -> Result<(), ArithmeticError> {
    let lengths = [table.q.len(), table.scales.len()];
    if table.rows > 0 && table.width == width && lengths == [table.rows * width, table.rows * groups(width)] {
        Ok(())
    } else {
        Err(ArithmeticError::Shape)
    }
}

/// Lays out a linear layer of this shape; `smoothing_scale` scales its input.
pub(super) fn pack(
    linear: &Linear,
    inputs: usize,
    outputs: usize,
    smoothing_scale: Option<&Vec<f32>>,
) -> Result<Packed, ArithmeticError> {
    let fits = linear.inputs == inputs && linear.outputs == outputs && inputs > 0 && outputs > 0;
    let vectors = smoothing_scale.is_none_or(|scale| scale.len() == inputs)
        && linear.bias.as_ref().is_none_or(|bias| bias.len() == outputs);
    if fits && vectors {
        Packed::new(linear)
    } else {
        Err(ArithmeticError::Shape)
    }
}
