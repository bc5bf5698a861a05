//! Attention over cached keys and values.

use std::ops::Range;

use surety_exact::{ArithmeticError, HEAD_MAX, HEAD_PRECISION, blocks, rsqrt};

use crate::{
    Error,
    backend::{Argument, GpuBackend, Shape},
    kernels::{BLOCK, Floats, GRID_MAX, Kernels, Numbers, Spans, fits, size, warps},
    pages::{Cache, Paged, Slabs},
};

/// Rows of queries, keys or values, quantized head by head; a buffer to be used again.
#[derive(Debug)]
pub struct Heads<M: GpuBackend> {
    /// `[rows][heads][head_dim]`: int16, with the bytes there is room for.
    q: Option<(M::Memory, usize)>,
    /// `[rows][heads]`.
    scales: Option<Floats<M>>,
    pub(crate) rows: usize,
    pub(crate) heads: usize,
    pub(crate) head_dim: usize,
}

impl<M: GpuBackend> Default for Heads<M> {
    fn default() -> Self {
        Self {
            q: None,
            scales: None,
            rows: 0,
            heads: 0,
            head_dim: 0,
        }
    }
}

impl<M: GpuBackend> Heads<M> {
    /// Values and scales, if there are any.
    pub(crate) fn memory(&self) -> Result<(&M::Memory, &M::Memory), ArithmeticError> {
        let (q, scales) = self
            .q
            .as_ref()
            .zip(self.scales.as_ref())
            .ok_or(ArithmeticError::Shape)?;
        Ok((&q.0, &scales.memory))
    }
}

/// Which positions a query row sees.
#[derive(Debug)]
pub enum Mask<'a, M: GpuBackend> {
    /// All.
    Full,
    /// Row `i` sees the positions `0 ..= first + i`.
    Causal {
        /// The position of the first row.
        first: usize,
    },
    /// Row `i` sees the span `i`: several sequences at once.
    Spans(&'a Spans<M>),
}

/// A mask as the kernels take it.
pub(crate) struct Sight<'a, M: GpuBackend> {
    pub(crate) spans: Option<&'a Spans<M>>,
    /// For each row where the pages of its sequence begin among those of all; at the first where there are
    /// none.
    pub(crate) places: Option<&'a Numbers<M>>,
    pub(crate) first: u32,
    pub(crate) step: u32,
    /// The most positions that a row sees.
    pub(crate) reach: usize,
}

impl<'a, M: GpuBackend> Mask<'a, M> {
    /// Of these rows of all.
    fn sight(&self, rows: &Range<usize>, cached: usize) -> Result<Sight<'a, M>, ArithmeticError> {
        let (spans, first, step, reach, end) = match *self {
            Mask::Full => (None, size(cached)?, 0, cached, cached),
            Mask::Causal { first } => {
                let end = first.saturating_add(rows.len());
                // Kernels count rows from the first of all, modulo 2^32.
                let first = size(first.saturating_add(1))?.wrapping_sub(size(rows.start)?);
                (None, first, 1, end, end)
            }
            Mask::Spans(spans) => {
                fits(spans.len >= rows.end)?;
                (Some(spans), 0, 0, spans.reach, spans.end)
            }
        };
        fits(reach > 0 && end <= cached)?;
        Ok(Sight {
            spans,
            places: None,
            first,
            step,
            reach,
        })
    }
}

impl<M: GpuBackend> Sight<'_, M> {
    pub(crate) fn arguments(&self) -> [Argument<'_, M::Memory>; 4] {
        let spans = self
            .spans
            .map_or(Argument::Null, |spans| Argument::Memory(&spans.memory));
        let places = self
            .places
            .map_or(Argument::Null, |places| Argument::Memory(&places.memory));
        [spans, places, Argument::U32(self.first), Argument::U32(self.step)]
    }

    /// What kernels take that look at keys or values: their pages, and which positions a row sees.
    pub(crate) fn within<'b>(
        &'b self,
        paged: &Paged<'b, M>,
        slabs: &'b Slabs<M::Memory>,
    ) -> [Argument<'b, M::Memory>; 8] {
        let [table, pages, page_words, layer_at] = paged.arguments(slabs);
        let [spans, places, first, step] = self.arguments();
        [table, pages, page_words, layer_at, spans, places, first, step]
    }
}

/// Numbers that `softmax` says of a block.
const STATS: usize = 3;

/// Query rows of which all scores are kept at a time.
pub(crate) struct Round {
    pub(crate) base: usize,
    pub(crate) count: usize,
    pub(crate) heads: usize,
}

impl Round {
    /// A block of threads for each block of positions, head and row.
    pub(crate) fn shape(&self, reach: usize) -> Result<Shape, ArithmeticError> {
        Ok(Shape {
            grid: [size(blocks(reach))?, size(self.heads)?, size(self.count)?],
            block: BLOCK,
        })
    }
}

impl<M: GpuBackend> Kernels<M> {
    /// `exact::quantize_heads` of every row of `heads * head_dim` values.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] when there are no whole rows or a head is too wide, or the machine's own.
    /// Checked later: [`ArithmeticError::NotFinite`].
    pub fn quantize_heads(
        &mut self,
        rows: &Floats<M>,
        heads: usize,
        head_dim: usize,
        into: &mut Heads<M>,
    ) -> Result<(), Error> {
        let count = rows.rows(heads.saturating_mul(head_dim))?;
        fits(head_dim <= HEAD_MAX)?;
        let (cells, bytes) = (count * heads, rows.len * HEAD_PRECISION.bytes());
        if into.q.as_ref().is_none_or(|(_, room)| *room < bytes) {
            into.q = None;
            into.q = Some((self.machine.allocate(bytes)?, bytes));
        }
        Self::ensure(&mut self.machine, &mut into.scales, cells)?;
        (into.rows, into.heads, into.head_dim) = (count, heads, head_dim);
        let (q, scales) = into.memory()?;
        let arguments = [
            Argument::Memory(&rows.memory),
            Argument::U32(size(cells)?),
            Argument::U32(size(head_dim)?),
            Argument::Memory(q),
            Argument::Memory(scales),
            Argument::Memory(&self.faults),
        ];
        self.machine.launch("quantize_heads", warps(cells)?, &arguments)
    }

    /// Puts rows of keys and values behind those that a layer of the cache holds, on pages that it has or
    /// takes.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] when the parts do not fit together, those of [`Kernels::reserve`].
    pub fn append(
        &mut self,
        cache: &mut Cache<M>,
        layer: usize,
        keys: &Heads<M>,
        values: &Heads<M>,
    ) -> Result<(), Error> {
        self.append_rows(cache, layer, keys, values, 0..keys.rows)
    }

    /// [`Kernels::append`] of some rows.
    ///
    /// # Errors
    /// Those of [`Kernels::append`].
    pub fn append_rows(
        &mut self,
        cache: &mut Cache<M>,
        layer: usize,
        keys: &Heads<M>,
        values: &Heads<M>,
        rows: Range<usize>,
    ) -> Result<(), Error> {
        fits(!rows.is_empty() && rows.end <= keys.rows)?;
        let len = cache.lens.get(layer).copied().ok_or(ArithmeticError::Shape)?;
        let end = len.checked_add(rows.len()).ok_or(ArithmeticError::Shape)?;
        self.reserve(cache, end)?;
        self.tell(cache)?;
        let sight = Mask::Causal { first: len }.sight(&rows, end)?;
        self.keep(&cache.paged(layer)?, keys, values, rows, &sight)?;
        if let Some(len) = cache.lens.get_mut(layer) {
            *len = end;
        }
        Ok(())
    }

    /// Puts rows at the last positions that they see.
    pub(crate) fn keep(
        &mut self,
        paged: &Paged<'_, M>,
        keys: &Heads<M>,
        values: &Heads<M>,
        rows: Range<usize>,
        sight: &Sight<'_, M>,
    ) -> Result<(), Error> {
        let kept = paged.pages.shape();
        let shape = |heads: &Heads<M>| (heads.rows, heads.heads, heads.head_dim);
        let expected = (keys.rows, kept.kv_heads, kept.head_dim);
        fits([shape(keys), shape(values)] == [expected; 2])?;
        let ((key_q, key_scales), (value_q, value_scales)) = (keys.memory()?, values.memory()?);
        let slabs = paged.pages.lock();
        let [table, pages, page_words, layer_at] = paged.arguments(&slabs);
        let [spans, places, first, _] = sight.arguments();
        let arguments = [
            Argument::Memory(key_q),
            Argument::Memory(key_scales),
            Argument::Memory(value_q),
            Argument::Memory(value_scales),
            table,
            pages,
            page_words,
            layer_at,
            spans,
            places,
            first,
            Argument::U32(size(rows.start)?),
            Argument::U32(size(rows.len())?),
            Argument::U32(size(kept.kv_heads)?),
            Argument::U32(size(kept.head_dim)?),
        ];
        let threads = rows.len() * kept.kv_heads * kept.head_dim;
        Self::each(&mut self.machine, "append", threads, &arguments)
    }

    /// `exact::attention_row` of every head of every query row, scaled by `1 / sqrt(head_dim)`, over what a
    /// layer of the cache holds.
    ///
    /// `out` is `[rows][heads * head_dim]`. Query head `h` reads the keys and values of head
    /// `h / (heads / kv_heads)`.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] when the parts do not fit together, or the machine's own. Checked later:
    /// [`ArithmeticError::NotFinite`].
    pub fn attention(
        &mut self,
        queries: &Heads<M>,
        cache: &mut Cache<M>,
        layer: usize,
        mask: Mask<'_, M>,
        out: &mut Floats<M>,
    ) -> Result<(), Error> {
        self.attend_rows((queries, 0..queries.rows), cache, layer, mask, out)
    }

    /// [`Kernels::attention`] of some rows: `out` has room for all, and the others stay as they are. With
    /// [`Mask::Causal`] `first` is the position of the first of these, and spans are those of all rows.
    ///
    /// # Errors
    /// Those of [`Kernels::attention`].
    pub fn attend_rows(
        &mut self,
        (queries, rows): (&Heads<M>, Range<usize>),
        cache: &mut Cache<M>,
        layer: usize,
        mask: Mask<'_, M>,
        out: &mut Floats<M>,
    ) -> Result<(), Error> {
        fits(!rows.is_empty() && rows.end <= queries.rows)?;
        let len = cache.lens.get(layer).copied().ok_or(ArithmeticError::Shape)?;
        let sight = mask.sight(&rows, len)?;
        self.tell(cache)?;
        self.attend(queries, rows, &cache.paged(layer)?, &sight, out)
    }

    /// Rows of one sequence, or of several.
    pub(crate) fn attend(
        &mut self,
        queries: &Heads<M>,
        rows: Range<usize>,
        paged: &Paged<'_, M>,
        sight: &Sight<'_, M>,
        out: &mut Floats<M>,
    ) -> Result<(), Error> {
        let (heads, kept) = (queries.heads, paged.pages.shape());
        fits(heads > 0 && heads.is_multiple_of(kept.kv_heads) && heads <= GRID_MAX)?;
        fits(queries.head_dim == kept.head_dim && out.len == queries.rows * heads * kept.head_dim)?;
        let cells = heads.checked_mul(sight.reach).ok_or(ArithmeticError::Shape)?;
        let most = (self.room / cells).clamp(1, GRID_MAX);
        Self::ensure(&mut self.machine, &mut self.scratch, most.min(rows.len()) * cells)?;
        let stats = most.min(rows.len()) * heads * blocks(sight.reach) * STATS;
        Self::ensure(&mut self.machine, &mut self.stats, stats)?;
        for base in rows.clone().step_by(most) {
            let round = Round {
                base,
                count: most.min(rows.end - base),
                heads,
            };
            self.score(queries, paged, sight, &round)?;
            self.softmax(paged, sight, &round)?;
            self.mix(paged, sight, &round, out)?;
        }
        Ok(())
    }

    fn score(
        &mut self,
        queries: &Heads<M>,
        paged: &Paged<'_, M>,
        sight: &Sight<'_, M>,
        round: &Round,
    ) -> Result<(), Error> {
        let scores = self.scratch.as_ref().ok_or(ArithmeticError::Shape)?;
        let (q, scales) = queries.memory()?;
        let (kept, slabs) = (paged.pages.shape(), paged.pages.lock());
        let mut arguments = vec![Argument::Memory(q), Argument::Memory(scales)];
        arguments.extend(sight.within(paged, &slabs));
        arguments.extend([
            Argument::U32(size(round.base)?),
            Argument::U32(size(round.heads)?),
            Argument::U32(size(kept.kv_heads)?),
            Argument::U32(size(kept.head_dim)?),
            Argument::U32(size(sight.reach)?),
            Argument::F32(rsqrt(kept.head_dim as f32)),
            Argument::Memory(&scores.memory),
        ]);
        self.machine
            .launch("score", round.shape(sight.reach)?, &arguments)
    }

    fn softmax(&mut self, paged: &Paged<'_, M>, sight: &Sight<'_, M>, round: &Round) -> Result<(), Error> {
        let scores = self.scratch.as_ref().ok_or(ArithmeticError::Shape)?;
        let stats = self.stats.as_ref().ok_or(ArithmeticError::Shape)?;
        let (kept, slabs) = (paged.pages.shape(), paged.pages.lock());
        let mut arguments = vec![Argument::Memory(&scores.memory)];
        arguments.extend(sight.within(paged, &slabs));
        arguments.extend([
            Argument::U32(size(round.base)?),
            Argument::U32(size(round.heads)?),
            Argument::U32(size(kept.kv_heads)?),
            Argument::U32(size(sight.reach)?),
            Argument::Memory(&stats.memory),
            Argument::Memory(&self.faults),
        ]);
        self.machine
            .launch("softmax", round.shape(sight.reach)?, &arguments)
    }
}
