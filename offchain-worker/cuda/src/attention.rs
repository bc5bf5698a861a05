//! Attention over cached keys and values.

use std::ops::Range;

use surety_exact::{ArithmeticError, HEAD_MAX, HEAD_PRECISION, blocks, rsqrt};

use crate::{
    Error,
    backend::{Argument, GpuBackend, Shape},
    kernels::{BLOCK, Floats, GRID_MAX, Kernels, Numbers, Spans, fits, optional, size},
    mixing::{Round, STATS},
    pages::{Cache, Paged, Slabs},
    product::Rows,
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
    /// Has room for heads, and says that they are there.
    pub(crate) fn make_room(
        &mut self,
        kernels: &mut Kernels<M>,
        rows: &Floats<M>,
        (heads, head_dim): (usize, usize),
    ) -> Result<(), Error> {
        let count = rows.rows(heads.saturating_mul(head_dim))?;
        fits(head_dim <= HEAD_MAX)?;
        let bytes = rows.len * HEAD_PRECISION.bytes();
        if self.q.as_ref().is_none_or(|(_, room)| *room < bytes) {
            self.q = None;
            self.q = Some((kernels.machine.allocate(bytes)?, bytes));
        }
        Kernels::ensure(&mut kernels.machine, &mut self.scales, count * heads)?;
        (self.rows, self.heads, self.head_dim) = (count, heads, head_dim);
        Ok(())
    }

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
    /// How many rows behind each other are of one sequence, about.
    pub(crate) run: usize,
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
            run: rows.len(),
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

/// How rows that come out are quantized, and where to: [`Kernels::quantize`].
pub type Quantized<'a, M> = (Option<&'a Floats<M>>, &'a mut Rows<M>);

/// Query heads that a block of threads takes at once, and columns of values. The source's.
const TILE_CELLS: usize = 16;
const COLUMNS: usize = BLOCK as usize;

impl<M: GpuBackend> Kernels<M> {
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
        let width = kept.head_dim.max(kept.key_steps * 4);
        let threads = rows.len() * kept.kv_heads * width;
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
        self.attend(queries, rows, &cache.paged(layer)?, &sight, out, None)
    }

    /// Rows of one sequence, or of several.
    pub(crate) fn attend(
        &mut self,
        queries: &Heads<M>,
        rows: Range<usize>,
        paged: &Paged<'_, M>,
        sight: &Sight<'_, M>,
        out: &mut Floats<M>,
        quantized: Option<Quantized<'_, M>>,
    ) -> Result<(), Error> {
        let (heads, kept) = (queries.heads, paged.pages.shape());
        fits(heads > 0 && heads.is_multiple_of(kept.kv_heads))?;
        fits(queries.head_dim == kept.head_dim && out.len == queries.rows * heads * kept.head_dim)?;
        let group = heads / kept.kv_heads;
        let tile_rows = (TILE_CELLS / group.min(TILE_CELLS)).min(sight.run.max(1));
        let parts = kept.kv_heads * group.div_ceil(TILE_CELLS) * kept.head_dim.div_ceil(COLUMNS);
        let blocks = blocks(sight.reach);
        fits(parts <= GRID_MAX && blocks <= GRID_MAX)?;
        let tiles = rows.len().div_ceil(tile_rows);
        let by_blocks = self.mixes_blocks(blocks, tiles.saturating_mul(parts));
        let most = if by_blocks {
            let row = heads.checked_mul(blocks * kept.head_dim);
            (self.room / row.ok_or(ArithmeticError::Shape)?).clamp(1, rows.len())
        } else {
            rows.len()
        };
        if by_blocks {
            let cells = most * heads * blocks;
            Self::ensure(&mut self.machine, &mut self.stats, cells * STATS)?;
            Self::ensure(&mut self.machine, &mut self.partials, cells * kept.head_dim)?;
        }
        // What is merged at once can be quantized at once.
        let (with, behind) = match quantized {
            Some(quantized) if by_blocks && most == rows.len() => (Some(quantized), None),
            other => (None, other),
        };
        let mut with = with;
        for base in rows.clone().step_by(most) {
            let round = Round {
                base,
                count: most.min(rows.end - base),
                tile_rows,
                parts,
                blocks,
                by_blocks,
            };
            self.attend_round(queries, paged, sight, &round, out)?;
            if by_blocks {
                self.merge(queries, sight, &round, out, with.take())?;
            }
        }
        match behind {
            Some((smoothing, into)) => self.quantize(out, heads * kept.head_dim, smoothing, into),
            None => Ok(()),
        }
    }

    fn attend_round(
        &mut self,
        queries: &Heads<M>,
        paged: &Paged<'_, M>,
        sight: &Sight<'_, M>,
        round: &Round,
        out: &mut Floats<M>,
    ) -> Result<(), Error> {
        let (q, scales) = queries.memory()?;
        let (kept, slabs) = (paged.pages.shape(), paged.pages.lock());
        let [stats, partials] = if round.by_blocks {
            [&self.stats, &self.partials].map(|floats| optional(floats.as_ref()))
        } else {
            [Argument::Null, Argument::Null]
        };
        let mut arguments = vec![Argument::Memory(q), Argument::Memory(scales)];
        arguments.extend(sight.within(paged, &slabs));
        arguments.extend([
            Argument::U32(size(round.base)?),
            Argument::U32(size(round.count)?),
            Argument::U32(size(round.tile_rows)?),
            Argument::U32(size(queries.heads)?),
            Argument::U32(size(kept.kv_heads)?),
            Argument::U32(size(kept.head_dim)?),
            Argument::F32(rsqrt(kept.head_dim as f32)),
            Argument::U32(size(round.blocks)?),
            stats,
            partials,
            Argument::Memory(&out.memory),
            Argument::Memory(&self.faults),
        ]);
        let tiles = round.count.div_ceil(round.tile_rows);
        let blocks = if round.by_blocks { round.blocks } else { 1 };
        let shape = Shape {
            grid: [size(tiles)?, size(round.parts)?, size(blocks)?],
            block: BLOCK,
        };
        self.machine.launch("attend", shape, &arguments)
    }
}
