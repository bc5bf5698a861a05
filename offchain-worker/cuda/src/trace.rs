//! Rows of a trace: put together on the machine and hashed there, so that only their digests leave it.

use surety_exact::ArithmeticError;

use crate::{
    Error,
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
/// Units in which a row's parts are addressed: pairs of bytes, and words.
const PAIR: usize = 2;
const WORD: usize = 4;

/// Whether rows of so many bytes can be hashed here: larger ones are no model's.
pub const fn hashes_rows_of(bytes: usize) -> bool {
    bytes > 0 && bytes <= SEGMENT * SEGMENTS
}

/// Where a layer's keys and values are in rows of a group.
#[derive(Debug)]
pub struct HeadsInRows<'a, M: GpuBackend> {
    /// The rows: [`Kernels::begin_rows`].
    pub rows: &'a TraceRows<M>,
    /// Which group of them.
    pub group: usize,
    /// The quantized key, and the value behind it: the first byte.
    pub heads: usize,
    /// The scales of the key, and those of the value behind them.
    pub scales: usize,
}

/// Where a state is in rows of a group.
#[derive(Debug)]
pub struct StateInRows<'a, M: GpuBackend> {
    /// The rows: [`Kernels::begin_rows`].
    pub rows: &'a TraceRows<M>,
    /// Which group of them.
    pub group: usize,
    /// Its first byte.
    pub at: usize,
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

    /// What a kernel takes that writes parts of a group of so many rows, each part from a byte on and so many
    /// bytes long: the memory, where the first row's parts begin, and from a row to the next, in units.
    fn parts<const N: usize>(
        &self,
        (group, rows): (usize, usize),
        parts: [(usize, usize); N],
        unit: usize,
    ) -> Result<(&M::Memory, [u64; N], u32), ArithmeticError> {
        let (count, bytes) = self.groups.get(group).copied().ok_or(ArithmeticError::Shape)?;
        let memory = self.memory.as_ref().ok_or(ArithmeticError::Shape)?;
        fits(count == rows)?;
        fits(
            parts
                .iter()
                .all(|(at, len)| at + len <= bytes && at.is_multiple_of(unit)),
        )?;
        let before = self.before(group);
        let begin = parts.map(|(at, _)| ((before + at) / unit) as u64);
        Ok((&memory.memory, begin, size(pitch(bytes) / unit)?))
    }
}

/// From a row to the next.
fn pitch(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNED)
}

impl<M: GpuBackend> HeadsInRows<'_, M> {
    /// What `quantize_heads` takes of so many rows of so many heads.
    pub(crate) fn arguments(
        &self,
        rows: usize,
        (heads, head_dim): (usize, usize),
    ) -> Result<[Argument<'_, M::Memory>; 4], ArithmeticError> {
        let parts = [
            (self.heads, 2 * heads * head_dim * PAIR),
            (self.scales, 2 * heads * WORD),
        ];
        fits(self.scales.is_multiple_of(WORD))?;
        let (memory, [heads, scales], pitch) = self.rows.parts((self.group, rows), parts, PAIR)?;
        Ok([
            Argument::Memory(memory),
            Argument::U64(heads),
            Argument::U64(scales),
            Argument::U32(pitch),
        ])
    }

    /// The same without rows.
    pub(crate) const fn nowhere<'a>() -> [Argument<'a, M::Memory>; 4] {
        [
            Argument::Null,
            Argument::U64(0),
            Argument::U64(0),
            Argument::U32(0),
        ]
    }
}

impl<M: GpuBackend> StateInRows<'_, M> {
    /// What `normalize_quantize` and `record` take of so many rows of a width.
    pub(crate) fn arguments(
        &self,
        rows: usize,
        width: usize,
    ) -> Result<[Argument<'_, M::Memory>; 3], ArithmeticError> {
        let (memory, [at], pitch) = self
            .rows
            .parts((self.group, rows), [(self.at, width * WORD)], WORD)?;
        Ok([Argument::Memory(memory), Argument::U64(at), Argument::U32(pitch)])
    }

    /// The same without rows.
    pub(crate) const fn nowhere<'a>() -> [Argument<'a, M::Memory>; 3] {
        [Argument::Null, Argument::U64(0), Argument::U32(0)]
    }
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

    /// Copies states to their place in all rows of a group.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] for states that do not fit, or the machine's own.
    pub fn record(
        &mut self,
        state: &Floats<M>,
        width: usize,
        into: &StateInRows<'_, M>,
    ) -> Result<(), Error> {
        let rows = state.rows(width)?;
        let [memory, at, pitch] = into.arguments(rows, width)?;
        let arguments = [
            Argument::Memory(&state.memory),
            Argument::U32(size(rows)?),
            Argument::U32(size(width)?),
            memory,
            at,
            pitch,
        ];
        Self::each(&mut self.machine, "record", state.len, &arguments)
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
