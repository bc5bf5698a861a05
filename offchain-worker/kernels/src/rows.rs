//! Quantized activations.

use rayon::prelude::*;
use surety_exact::{self as exact, ArithmeticError, GROUP, Precision, Quantum, groups};

use crate::{
    isa::{Isa, current, per_isa},
    packed::padded_bytes,
    simd::Line,
};

/// Rows are padded to a multiple of it: a tile's height.
const ROWS_PAD: usize = 16;
/// Values that are worth a task of their own.
const TASK: usize = 1 << 15;

/// Quantized activations. Reuse one: it keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    precision: Precision,
    count: usize,
    width: usize,
    /// `[rows][stride / 64]`, the values' end padded with zeros, as rows at the end are.
    lines: Vec<Line>,
    /// `[count][groups]`
    scales: Vec<f32>,
    /// `[count][groups]`: 128 times the sum of the values. Of int8 alone.
    offsets: Vec<i32>,
    /// All of `lines` in 16 bits, if they are int8 and the machine that quantized them multiplies those.
    wide: Vec<i16>,
}

/// A row's bytes in memory: whole lines.
fn stride(precision: Precision, width: usize) -> usize {
    padded_bytes(precision, width).next_multiple_of(64)
}

/// What lines are made of: any bits are a value, and lines hold a whole number of them.
pub(crate) trait InLines {}
impl InLines for i8 {}
impl InLines for i16 {}

#[allow(unsafe_code)]
fn values<Q: InLines>(lines: &[Line]) -> &[Q] {
    // SAFETY: a line is 64 bytes without padding, aligned to as many; the lifetime is that of the lines.
    unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), size_of_val(lines) / size_of::<Q>()) }
}

#[allow(unsafe_code)]
pub(crate) fn values_mut<Q: InLines>(lines: &mut [Line]) -> &mut [Q] {
    // SAFETY: as above.
    unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), size_of_val(lines) / size_of::<Q>()) }
}

/// One task's rows, and where they go.
struct Part<'a> {
    rows: &'a [f32],
    width: usize,
    precision: Precision,
    smoothing_scale: Option<&'a [f32]>,
    lines: &'a mut [Line],
    scales: &'a mut [f32],
    offsets: &'a mut [i32],
}

/// Quantizes rows that lie `stride` bytes apart, and notes `offset` of each group.
#[inline(always)]
fn quantize_rows<Q: InLines + Quantum>(
    part: Part<'_>,
    offset: impl Fn(&[Q]) -> i32,
) -> Result<(), ArithmeticError> {
    let Part {
        rows,
        width,
        precision,
        smoothing_scale,
        lines,
        scales,
        offsets,
    } = part;
    let count = groups(width);
    let into = scales
        .chunks_exact_mut(count)
        .zip(offsets.chunks_exact_mut(count));
    let q = values_mut(lines).chunks_exact_mut(stride(precision, width) / size_of::<Q>());
    let mut scaled = [0.0; GROUP];
    for ((row, q), (scales, offsets)) in rows.chunks_exact(width).zip(q).zip(into) {
        let (q, padding) = q.split_at_mut(width);
        padding.fill(Q::of(0));
        let into = q.chunks_mut(GROUP).zip(scales).zip(offsets);
        for (group, (values, ((q, scale), into))) in row.chunks(GROUP).zip(into).enumerate() {
            let values = match smoothing_scale.and_then(|scale| scale.get(group * GROUP..)) {
                Some(smoothing_scale) => {
                    let scaled = &mut scaled[..values.len()];
                    exact::scale_row(values, &smoothing_scale[..values.len()], scaled)?;
                    &*scaled
                }
                None => values,
            };
            *scale = exact::quantize_group(values, precision, q)?;
            *into = offset(q);
        }
    }
    Ok(())
}

per_isa! {
    fn quantize_part(part: Part<'_>) -> Result<(), ArithmeticError> {
        match part.precision {
            Precision::Int8 => {
                quantize_rows(part, |q: &[i8]| 128 * q.iter().map(|q| i32::from(*q)).sum::<i32>())
            }
            Precision::Int12 => quantize_rows(part, |_: &[i16]| 0),
        }
    }
}

per_isa! {
    fn widen_part(values: &[i8], into: &mut [i16]) {
        for (into, value) in into.iter_mut().zip(values) {
            *into = i16::from(*value);
        }
    }
}

/// Values in 16 bits.
pub(crate) fn widen(isa: Isa, values: &[i8], into: &mut Vec<i16>) {
    into.resize(values.len(), 0);
    if values.len() < 8 * TASK || rayon::current_num_threads() == 1 {
        return widen_part(isa, values, into);
    }
    let parts = values.par_chunks(2 * TASK).zip(into.par_chunks_mut(2 * TASK));
    parts.for_each(|(values, into)| widen_part(isa, values, into));
}

impl Rows {
    /// An empty buffer for rows of a precision; those of [`Rows::default`] are int8.
    pub fn new(precision: Precision) -> Self {
        Self {
            precision,
            ..Self::default()
        }
    }

    /// What rows are quantized to from now on. Forgets those of another precision.
    pub fn set_precision(&mut self, precision: Precision) {
        if self.precision != precision {
            self.count = 0;
            self.precision = precision;
        }
    }

    /// Quantizes rows of `width` values, each multiplied by `smoothing_scale` first.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] for another number of values or factors, [`ArithmeticError::NotFinite`] for
    /// a NaN or an infinity.
    pub fn quantize(
        &mut self,
        rows: &[f32],
        width: usize,
        smoothing_scale: Option<&[f32]>,
    ) -> Result<(), ArithmeticError> {
        if width == 0
            || !rows.len().is_multiple_of(width)
            || smoothing_scale.is_some_and(|scale| scale.len() != width)
        {
            return Err(ArithmeticError::Shape);
        }
        self.count = rows.len() / width;
        self.width = width;
        let (stride, groups) = (self.stride(), groups(width));
        let lines = self.count.next_multiple_of(ROWS_PAD) * stride / 64;
        self.lines.resize(lines, Line([0; 64]));
        self.scales.resize(self.count * groups, 0.0);
        self.offsets.resize(self.count * groups, 0);
        let isa = current();
        self.wide.clear();
        self.quantize_on(isa, rows, smoothing_scale)?;
        if isa == Isa::Avx2 && self.precision == Precision::Int8 {
            widen(isa, values(&self.lines), &mut self.wide);
        }
        Ok(())
    }

    /// Quantizes into buffers that are large enough.
    fn quantize_on(
        &mut self,
        isa: Isa,
        rows: &[f32],
        smoothing_scale: Option<&[f32]>,
    ) -> Result<(), ArithmeticError> {
        let (width, precision) = (self.width, self.precision);
        let (stride, groups) = (self.stride(), groups(width));
        let run = |((rows, lines), (scales, offsets)): ((_, _), (_, _))| {
            let part = Part {
                rows,
                width,
                precision,
                smoothing_scale,
                lines,
                scales,
                offsets,
            };
            quantize_part(isa, part)
        };
        let lines = &mut self.lines[..self.count * stride / 64];
        if rows.len() < 2 * TASK || rayon::current_num_threads() == 1 {
            return run(((rows, lines), (&mut self.scales, &mut self.offsets)));
        }
        let each = (TASK / width).max(1);
        let into = self
            .scales
            .par_chunks_mut(each * groups)
            .zip(self.offsets.par_chunks_mut(each * groups));
        let from = rows
            .par_chunks(each * width)
            .zip(lines.par_chunks_mut(each * stride / 64));
        from.zip(into).try_for_each(run)
    }

    /// Number of rows.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Values in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// int8 or int12.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// The values and scales of one row; nothing when there is no such row.
    pub fn row(&self, row: usize) -> Option<(Vec<i16>, &[f32])> {
        if row >= self.count {
            return None;
        }
        let count = groups(self.width);
        let lines = self.lines.get(row * self.stride() / 64..)?;
        let q = match self.precision {
            Precision::Int8 => {
                let row = values::<i8>(lines).get(..self.width)?;
                row.iter().map(|q| i16::from(*q)).collect()
            }
            Precision::Int12 => values(lines).get(..self.width)?.to_vec(),
        };
        Some((q, self.scales.get(row * count..)?.get(..count)?))
    }

    /// Bytes from a row to the next.
    pub(crate) fn stride(&self) -> usize {
        stride(self.precision, self.width)
    }

    /// All rows, [`Rows::stride`] apart, and at least 16 for a tile from any multiple of 16 on.
    pub(crate) fn bytes(&self) -> &[i8] {
        values(&self.lines)
    }

    /// The values in 16 bits, as many in a row as a stride has of int8 or int12 values; nothing where they
    /// are int8 and were not widened.
    pub(crate) fn wide(&self) -> &[i16] {
        match self.precision {
            Precision::Int8 => &self.wide,
            Precision::Int12 => values(&self.lines),
        }
    }

    /// `[count][groups]`
    pub(crate) fn scales(&self) -> &[f32] {
        &self.scales
    }

    /// `[count][groups]`
    pub(crate) fn offsets(&self) -> &[i32] {
        &self.offsets
    }
}

/// Runs `one` over stretches of a long slice, on all threads when there is work for them.
fn stretches(values: &mut [f32], one: impl Fn(Isa, usize, &mut [f32]) + Sync) {
    let isa = current();
    if values.len() < 2 * TASK || rayon::current_num_threads() == 1 {
        return one(isa, 0, values);
    }
    let stretches = values.par_chunks_mut(TASK / 4).enumerate();
    stretches.for_each(|(i, values)| one(isa, i * (TASK / 4), values));
}

per_isa! {
    fn gelu_part(values: &mut [f32]) {
        for value in values {
            *value = exact::gelu(*value);
        }
    }
}

per_isa! {
    fn gelu_tanh_part(values: &mut [f32]) {
        for value in values {
            *value = exact::gelu_tanh(*value);
        }
    }
}

per_isa! {
    fn swiglu_part(gate: &mut [f32], up: &[f32]) {
        for (gate, up) in gate.iter_mut().zip(up) {
            *gate = exact::silu(*gate) * up;
        }
    }
}

per_isa! {
    fn add_part(into: &mut [f32], other: &[f32]) {
        for (into, other) in into.iter_mut().zip(other) {
            *into += other;
        }
    }
}

/// [`gelu`](exact::gelu) of each value.
pub fn gelu(values: &mut [f32]) {
    stretches(values, |isa, _, values| gelu_part(isa, values));
}

/// [`gelu_tanh`](exact::gelu_tanh) of each value.
pub fn gelu_tanh(values: &mut [f32]) {
    stretches(values, |isa, _, values| gelu_tanh_part(isa, values));
}

/// `gate = silu(gate) * up`.
///
/// # Errors
/// [`ArithmeticError::Shape`] unless both are of one length.
pub fn swiglu(gate: &mut [f32], up: &[f32]) -> Result<(), ArithmeticError> {
    if gate.len() != up.len() {
        return Err(ArithmeticError::Shape);
    }
    stretches(gate, |isa, from, gate| swiglu_part(isa, gate, &up[from..]));
    Ok(())
}

/// `into += other`.
///
/// # Errors
/// [`ArithmeticError::Shape`] unless both are of one length.
pub fn add(into: &mut [f32], other: &[f32]) -> Result<(), ArithmeticError> {
    if into.len() != other.len() {
        return Err(ArithmeticError::Shape);
    }
    stretches(into, |isa, from, into| add_part(isa, into, &other[from..]));
    Ok(())
}
