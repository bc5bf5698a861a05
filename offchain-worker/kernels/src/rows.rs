//! Quantised activations.

use rayon::prelude::*;
use surety_exact::{self as exact, groups, Fault, GROUP};

use crate::{
    isa::{current, per_isa, Isa},
    machine::Line,
    packed::PAD,
};

/// Rows are padded to a multiple of it: a tile's height.
const ROWS_PAD: usize = 16;
/// Values that are worth a task of their own.
const TASK: usize = 1 << 15;

/// Quantised activations. Reuse one: it keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    count: usize,
    width: usize,
    /// `[rows][stride / 64]`, the values' end padded with zeros, as rows at the end are.
    lines: Vec<Line>,
    /// `[count][groups]`
    scales: Vec<f32>,
    /// `[count][groups]`: 128 times the sum of the values.
    offsets: Vec<i32>,
    /// All of `lines` in 16 bits, if the machine that quantised them multiplies those.
    wide: Vec<i16>,
}

/// A row's width in memory: whole lines.
fn stride(width: usize) -> usize {
    width.next_multiple_of(PAD).next_multiple_of(64)
}

#[allow(unsafe_code)]
fn bytes(lines: &[Line]) -> &[i8] {
    // SAFETY: a line is 64 bytes without padding; the lifetime is that of the lines.
    unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), lines.len() * 64) }
}

#[allow(unsafe_code)]
fn bytes_mut(lines: &mut [Line]) -> &mut [i8] {
    // SAFETY: as above.
    unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), lines.len() * 64) }
}

/// One task's rows, and where they go.
struct Part<'a> {
    rows: &'a [f32],
    width: usize,
    pre: Option<&'a [f32]>,
    q: &'a mut [i8],
    scales: &'a mut [f32],
    offsets: &'a mut [i32],
}

per_isa! {
    fn quantise_part(part: Part<'_>) -> Result<(), Fault> {
        let count = groups(part.width);
        let into = part.scales.chunks_exact_mut(count).zip(part.offsets.chunks_exact_mut(count));
        let rows = part.rows.chunks_exact(part.width).zip(part.q.chunks_exact_mut(stride(part.width)));
        let mut scaled = [0.0; GROUP];
        for ((row, q), (scales, offsets)) in rows.zip(into) {
            let (q, padding) = q.split_at_mut(part.width);
            padding.fill(0);
            let into = q.chunks_mut(GROUP).zip(scales).zip(offsets);
            for (group, (values, ((q, scale), offset))) in row.chunks(GROUP).zip(into).enumerate() {
                let values = match part.pre.and_then(|pre| pre.get(group * GROUP..)) {
                    Some(pre) => {
                        let scaled = &mut scaled[..values.len()];
                        exact::scale_row(values, &pre[..values.len()], scaled)?;
                        &*scaled
                    }
                    None => values,
                };
                *scale = exact::quantise_group(values, q)?;
                *offset = 128 * q.iter().map(|q| i32::from(*q)).sum::<i32>();
            }
        }
        Ok(())
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
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Quantises rows of `width` values, each multiplied by `pre` first.
    ///
    /// # Errors
    /// [`Fault::Shape`] for another number of values or factors, [`Fault::NotFinite`] for a NaN or an infinity.
    pub fn quantise(&mut self, rows: &[f32], width: usize, pre: Option<&[f32]>) -> Result<(), Fault> {
        if width == 0 || !rows.len().is_multiple_of(width) || pre.is_some_and(|pre| pre.len() != width) {
            return Err(Fault::Shape);
        }
        let (stride, groups) = (stride(width), groups(width));
        self.count = rows.len() / width;
        self.width = width;
        let lines = self.count.next_multiple_of(ROWS_PAD) * stride / 64;
        self.lines.resize(lines, Line([0; 64]));
        self.scales.resize(self.count * groups, 0.0);
        self.offsets.resize(self.count * groups, 0);
        let isa = current();
        self.wide.clear();
        self.quantise_on(isa, rows, pre)?;
        if isa == Isa::Avx2 {
            widen(isa, bytes(&self.lines), &mut self.wide);
        }
        Ok(())
    }

    /// Quantises into buffers that are large enough.
    fn quantise_on(&mut self, isa: Isa, rows: &[f32], pre: Option<&[f32]>) -> Result<(), Fault> {
        let width = self.width;
        let (stride, groups) = (stride(width), groups(width));
        let run = |((rows, lines), (scales, offsets)): ((_, _), (_, _))| {
            let q = bytes_mut(lines);
            quantise_part(
                isa,
                Part {
                    rows,
                    width,
                    pre,
                    q,
                    scales,
                    offsets,
                },
            )
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

    /// How many rows there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Values in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The values and scales of one row; nothing when there is no such row.
    pub fn row(&self, row: usize) -> Option<(&[i8], &[f32])> {
        let count = groups(self.width);
        let q = bytes(&self.lines).get(row * self.stride()..)?.get(..self.width)?;
        Some((q, self.scales.get(row * count..)?.get(..count)?))
    }

    /// Bytes from a row to the next.
    pub(crate) fn stride(&self) -> usize {
        stride(self.width)
    }

    /// All rows, [`Rows::stride`] apart, and at least 16 for a tile from any multiple of 16 on.
    pub(crate) fn bytes(&self) -> &[i8] {
        bytes(&self.lines)
    }

    /// [`Rows::bytes`] in 16 bits, or nothing.
    pub(crate) fn wide(&self) -> &[i16] {
        &self.wide
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
/// [`Fault::Shape`] unless both are of one length.
pub fn swiglu(gate: &mut [f32], up: &[f32]) -> Result<(), Fault> {
    if gate.len() != up.len() {
        return Err(Fault::Shape);
    }
    stretches(gate, |isa, from, gate| swiglu_part(isa, gate, &up[from..]));
    Ok(())
}

/// `into += other`.
///
/// # Errors
/// [`Fault::Shape`] unless both are of one length.
pub fn add(into: &mut [f32], other: &[f32]) -> Result<(), Fault> {
    if into.len() != other.len() {
        return Err(Fault::Shape);
    }
    stretches(into, |isa, from, into| add_part(isa, into, &other[from..]));
    Ok(())
}
