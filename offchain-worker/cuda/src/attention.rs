//! Attention over cached keys and values.

use surety_exact::{ArithmeticError, rsqrt};

use crate::{
    Error,
    backend::{Argument, GpuBackend, Shape},
    kernels::{BLOCK, Floats, GRID_MAX, Kernels, Spans, fits, size},
};

/// Keys and values of one layer, for one sequence or several behind each other.
#[derive(Debug)]
pub struct Cache<M: GpuBackend> {
    /// `[kv_head][d][position]`.
    keys: Floats<M>,
    /// `[kv_head][position][d]`.
    values: Floats<M>,
    kv_heads: usize,
    head_dim: usize,
    capacity: usize,
    len: usize,
}

impl<M: GpuBackend> Cache<M> {
    /// Positions that hold keys and values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Forgets all positions.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Forgets the positions from `len` on.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
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
struct Sight<'a, M: GpuBackend> {
    spans: Option<&'a Spans<M>>,
    first: u32,
    step: u32,
    /// The most positions that a row sees.
    reach: usize,
}

impl<'a, M: GpuBackend> Mask<'a, M> {
    fn sight(&self, rows: usize, cached: usize) -> Result<Sight<'a, M>, ArithmeticError> {
        let (spans, first, step, reach, end) = match *self {
            Mask::Full => (None, size(cached)?, 0, cached, cached),
            Mask::Causal { first } => {
                let end = first.saturating_add(rows);
                (None, size(first.saturating_add(1))?, 1, end, end)
            }
            Mask::Spans(spans) => {
                fits(spans.len == rows)?;
                (Some(spans), 0, 0, spans.reach, spans.end)
            }
        };
        fits(reach > 0 && end <= cached)?;
        Ok(Sight {
            spans,
            first,
            step,
            reach,
        })
    }
}

impl<M: GpuBackend> Sight<'_, M> {
    fn arguments(&self) -> [Argument<'_, M::Memory>; 3] {
        let spans = self
            .spans
            .map_or(Argument::Null, |spans| Argument::Memory(&spans.memory));
        [spans, Argument::U32(self.first), Argument::U32(self.step)]
    }
}

impl<M: GpuBackend> Kernels<M> {
    /// An empty cache for `capacity` positions.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] for nothing to keep, or the machine's own.
    pub fn cache(&mut self, kv_heads: usize, head_dim: usize, capacity: usize) -> Result<Cache<M>, Error> {
        let width = kv_heads.checked_mul(head_dim).ok_or(ArithmeticError::Shape)?;
        let all = width.checked_mul(capacity).ok_or(ArithmeticError::Shape)?;
        fits(all > 0)?;
        size(capacity)?;
        let (keys, values) = (self.floats(all)?, self.floats(all)?);
        Ok(Cache {
            keys,
            values,
            kv_heads,
            head_dim,
            capacity,
            len: 0,
        })
    }

    /// Puts rows of keys and values (`[rows][kv_heads * head_dim]`) behind those of the cache.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] when the parts do not fit together or the cache is full, or the machine's
    /// own.
    pub fn append(
        &mut self,
        cache: &mut Cache<M>,
        keys: &Floats<M>,
        values: &Floats<M>,
    ) -> Result<(), Error> {
        let count = keys.rows(cache.kv_heads * cache.head_dim)?;
        fits(values.len == keys.len && count <= cache.capacity - cache.len)?;
        let arguments = [
            Argument::Memory(&keys.memory),
            Argument::Memory(&values.memory),
            Argument::Memory(&cache.keys.memory),
            Argument::Memory(&cache.values.memory),
            Argument::U32(size(cache.len)?),
            Argument::U32(size(count)?),
            Argument::U32(size(cache.kv_heads)?),
            Argument::U32(size(cache.head_dim)?),
            Argument::U32(size(cache.capacity)?),
        ];
        Self::each(&mut self.machine, "append", keys.len, &arguments)?;
        cache.len += count;
        Ok(())
    }

    /// `exact::attention_row` of every head of every query row, scaled by `1 / sqrt(head_dim)`.
    ///
    /// `queries` and `out` are `[rows][heads * head_dim]`. Query head `h` reads the keys and values of head
    /// `h / (heads / kv_heads)`.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] when the parts do not fit together, or the machine's own. Checked later:
    /// [`ArithmeticError::NotFinite`].
    pub fn attention(
        &mut self,
        queries: &Floats<M>,
        cache: &Cache<M>,
        heads: usize,
        mask: Mask<'_, M>,
        out: &mut Floats<M>,
    ) -> Result<(), Error> {
        fits(heads > 0 && heads.is_multiple_of(cache.kv_heads) && heads <= GRID_MAX)?;
        let width = heads.saturating_mul(cache.head_dim);
        let rows = queries.rows(width)?;
        fits(out.len == queries.len)?;
        let sight = mask.sight(rows, cache.len)?;
        let cells = heads.checked_mul(sight.reach).ok_or(ArithmeticError::Shape)?;
        let most = (self.room / cells).clamp(1, GRID_MAX);
        Self::ensure(&mut self.machine, &mut self.scratch, most.min(rows) * cells)?;
        Self::ensure(&mut self.machine, &mut self.totals, most.min(rows) * heads)?;
        for base in (0..rows).step_by(most) {
            let count = most.min(rows - base);
            self.score(queries, cache, heads, &sight, base, count)?;
            self.softmax(heads, &sight, base, count)?;
            self.mix(cache, heads, &sight, base, count, out)?;
        }
        Ok(())
    }

    fn score(
        &mut self,
        queries: &Floats<M>,
        cache: &Cache<M>,
        heads: usize,
        sight: &Sight<'_, M>,
        base: usize,
        count: usize,
    ) -> Result<(), Error> {
        let scores = self.scratch.as_ref().ok_or(ArithmeticError::Shape)?;
        let blocks = sight.reach.div_ceil(BLOCK as usize);
        let shape = Shape {
            grid: [size(blocks)?, size(heads)?, size(count)?],
            block: BLOCK,
        };
        let [spans, first, step] = sight.arguments();
        let arguments = [
            Argument::Memory(&queries.memory),
            Argument::Memory(&cache.keys.memory),
            spans,
            first,
            step,
            Argument::U32(size(base)?),
            Argument::U32(size(heads)?),
            Argument::U32(size(cache.kv_heads)?),
            Argument::U32(size(cache.head_dim)?),
            Argument::U32(size(cache.capacity)?),
            Argument::U32(size(sight.reach)?),
            Argument::F32(rsqrt(cache.head_dim as f32)),
            Argument::Memory(&scores.memory),
        ];
        self.machine.launch("score", shape, &arguments)
    }

    fn softmax(
        &mut self,
        heads: usize,
        sight: &Sight<'_, M>,
        base: usize,
        count: usize,
    ) -> Result<(), Error> {
        let scores = self.scratch.as_ref().ok_or(ArithmeticError::Shape)?;
        let totals = self.totals.as_ref().ok_or(ArithmeticError::Shape)?;
        let shape = Shape {
            grid: [size(count * heads)?, 1, 1],
            block: BLOCK,
        };
        let [spans, first, step] = sight.arguments();
        let arguments = [
            Argument::Memory(&scores.memory),
            spans,
            first,
            step,
            Argument::U32(size(base)?),
            Argument::U32(size(heads)?),
            Argument::U32(size(sight.reach)?),
            Argument::Memory(&totals.memory),
            Argument::Memory(&self.faults),
        ];
        self.machine.launch("softmax", shape, &arguments)
    }

    fn mix(
        &mut self,
        cache: &Cache<M>,
        heads: usize,
        sight: &Sight<'_, M>,
        base: usize,
        count: usize,
        out: &mut Floats<M>,
    ) -> Result<(), Error> {
        let scores = self.scratch.as_ref().ok_or(ArithmeticError::Shape)?;
        let totals = self.totals.as_ref().ok_or(ArithmeticError::Shape)?;
        let [spans, first, step] = sight.arguments();
        let arguments = [
            Argument::Memory(&scores.memory),
            Argument::Memory(&totals.memory),
            Argument::Memory(&cache.values.memory),
            spans,
            first,
            step,
            Argument::U32(size(base)?),
            Argument::U32(size(count)?),
            Argument::U32(size(heads)?),
            Argument::U32(size(cache.kv_heads)?),
            Argument::U32(size(cache.head_dim)?),
            Argument::U32(size(cache.capacity)?),
            Argument::U32(size(sight.reach)?),
            Argument::Memory(&out.memory),
            Argument::Memory(&self.faults),
        ];
        Self::each(
            &mut self.machine,
            "mix",
            count * heads * cache.head_dim,
            &arguments,
        )
    }
}
