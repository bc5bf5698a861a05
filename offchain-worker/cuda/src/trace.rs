//! Rows of a trace: put together on the machine and hashed there, so that only their digests leave it.

use surety_exact::ArithmeticError;

use crate::{
    Error,
    attention::Heads,
    backend::{Argument, GpuBackend, Shape},
    kernels::{BLOCK, Floats, Kernels, fits, size},
};

/// Bytes of a row under one leaf of its tree. The source's `SEGMENT`.
const SEGMENT: usize = 1024;
/// Segments that a block of `digest_rows` hashes: most of a row. The source's `SEGMENTS`.
const SEGMENTS: usize = BLOCK as usize;
/// What a row has room for a whole number of: a block of the hash.
const ALIGNED: usize = 128;
/// Bytes of a digest.
const DIGEST: usize = 32;
/// Bytes of what `record_quads` copies at a time, and of what `record` does.
const QUAD: usize = 16;
const PAIR: usize = 2;

/// Whether rows of so many bytes can be hashed here: larger ones are no model's.
pub const fn hashes_rows_of(bytes: usize) -> bool {
    bytes > 0 && bytes <= SEGMENT * SEGMENTS
}

/// Where a layer's parts are in a row, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowPlaces {
    /// The quantized key, and the value behind it.
    pub heads: usize,
    /// What came out of it: of the last layer of a row alone.
    pub state: usize,
    /// The scales of the key, and those of the value behind them.
    pub scales: usize,
}

/// What a layer adds to rows.
#[derive(Debug)]
pub struct Parts<'a, M: GpuBackend> {
    /// Keys and values, of the same shape.
    pub heads: Option<[&'a Heads<M>; 2]>,
    /// What came out of it.
    pub state: Option<&'a Floats<M>>,
}

/// Rows that are put together, of several groups of rows of one length each. Reuse one: it keeps its memory.
#[derive(Debug)]
pub struct TraceRows<M: GpuBackend> {
    memory: Option<Floats<M>>,
    digests: Option<Floats<M>>,
    /// Rows of each group, and their bytes.
    groups: Vec<(usize, usize)>,
}

impl<M: GpuBackend> Default for TraceRows<M> {
    fn default() -> Self {
        Self {
            memory: None,
            digests: None,
            groups: Vec::new(),
        }
    }
}

impl<M: GpuBackend> TraceRows<M> {
    /// Bytes before a group, as many groups as there are before it.
    fn before(&self, group: usize) -> usize {
        let before = self.groups.iter().take(group);
        before.map(|(rows, bytes)| rows * pitch(*bytes)).sum()
    }
}

/// From a row to the next.
fn pitch(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNED)
}

fn part<M>(memory: Option<&M>) -> Argument<'_, M> {
    memory.map_or(Argument::Null, Argument::Memory)
}

impl<M: GpuBackend> Kernels<M> {
    /// Begins rows: of each group so many, of so many bytes. What was put together before is forgotten.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] for rows that are not hashed here, or the machine's own.
    pub fn begin_rows(
        &mut self,
        groups: impl IntoIterator<Item = (usize, usize)>,
        into: &mut TraceRows<M>,
    ) -> Result<(), Error> {
        into.groups.clear();
        into.groups.extend(groups);
        fits(into.groups.iter().all(|(_, bytes)| hashes_rows_of(*bytes)))?;
        let rows: usize = into.groups.iter().map(|(rows, _)| rows).sum();
        let bytes = into.before(into.groups.len());
        self.sized(&mut into.memory, bytes / 4)?;
        self.sized(&mut into.digests, rows * DIGEST / 4)?;
        Ok(())
    }

    /// Puts a layer's parts into their places in all rows of a group.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] for parts that do not fit, or the machine's own.
    pub fn record(
        &mut self,
        parts: &Parts<'_, M>,
        (group, at): (usize, &RowPlaces),
        into: &TraceRows<M>,
    ) -> Result<(), Error> {
        let (rows, row_bytes) = into.groups.get(group).copied().ok_or(ArithmeticError::Shape)?;
        let memory = into.memory.as_ref().ok_or(ArithmeticError::Shape)?;
        let heads = match parts.heads {
            Some([key, value]) => {
                let shape = (key.rows, key.heads, key.head_dim);
                fits(shape == (value.rows, value.heads, value.head_dim) && key.rows == rows)?;
                Some((key.memory()?, value.memory()?, shape))
            }
            None => None,
        };
        let (heads_bytes, scales_bytes) = heads.map_or((0, 0), |(_, _, (_, heads, head_dim))| {
            (heads * head_dim * PAIR, heads * 4)
        });
        let width_bytes = match parts.state {
            Some(state) => state.len() / rows.max(1) * 4,
            None => 0,
        };
        let ends = [
            (at.heads, 2 * heads_bytes),
            (at.state, width_bytes),
            (at.scales, 2 * scales_bytes),
        ];
        fits(
            parts
                .state
                .is_none_or(|state| state.len() * 4 == rows * width_bytes),
        )?;
        fits(ends.iter().all(|(start, len)| start + len <= row_bytes))?;
        let sizes = [
            heads_bytes,
            width_bytes,
            scales_bytes,
            at.heads,
            at.state,
            at.scales,
        ];
        let (kernel, unit) = if sizes.iter().all(|size| size.is_multiple_of(QUAD)) {
            ("record_quads", QUAD)
        } else {
            ("record", PAIR)
        };
        let units = |bytes: usize| size(bytes / unit).map(Argument::U32);
        let arguments = [
            part(heads.map(|(key, ..)| key.0)),
            part(heads.map(|(_, value, _)| value.0)),
            part(parts.state.map(|state| &state.memory)),
            part(heads.map(|(key, ..)| key.1)),
            part(heads.map(|(_, value, _)| value.1)),
            Argument::U32(size(rows)?),
            units(heads_bytes)?,
            units(width_bytes)?,
            units(scales_bytes)?,
            Argument::Memory(&memory.memory),
            Argument::U64((into.before(group) / unit) as u64),
            units(pitch(row_bytes))?,
            units(at.heads)?,
            units(at.state)?,
            units(at.scales)?,
        ];
        let each = (2 * heads_bytes + width_bytes + 2 * scales_bytes) / unit;
        if rows * each == 0 {
            return Ok(());
        }
        Self::each(&mut self.machine, kernel, rows * each, &arguments)
    }

    /// Hashes all rows: a digest of 32 bytes for each, one group after the other.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] where there are none, or the machine's own.
    pub fn digest_rows<'a>(&mut self, of: &'a TraceRows<M>) -> Result<&'a Floats<M>, Error> {
        let (memory, digests) = of
            .memory
            .as_ref()
            .zip(of.digests.as_ref())
            .ok_or(ArithmeticError::Shape)?;
        let (mut at, mut digests_at) = (0, 0);
        // Rows of one length lie behind each other, whatever group they are of.
        for same in of.groups.chunk_by(|(_, one), (_, other)| one == other) {
            let count: usize = same.iter().map(|(rows, _)| rows).sum();
            let bytes = same.first().map_or(0, |(_, bytes)| *bytes);
            let each = SEGMENTS / bytes.div_ceil(SEGMENT).max(1);
            let arguments = [
                Argument::Memory(&memory.memory),
                Argument::U64(at / 8),
                Argument::U32(size(count)?),
                Argument::U32(size(bytes)?),
                Argument::U32(size(pitch(bytes) / 8)?),
                Argument::Memory(&digests.memory),
                Argument::U64(digests_at / 8),
            ];
            let shape = Shape {
                grid: [size(count.div_ceil(each))?, 1, 1],
                block: BLOCK,
            };
            if count > 0 {
                self.machine.launch("digest_rows", shape, &arguments)?;
            }
            at += (count * pitch(bytes)) as u64;
            digests_at += (count * DIGEST) as u64;
        }
        Ok(digests)
    }
}
