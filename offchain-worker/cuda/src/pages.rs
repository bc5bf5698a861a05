//! Pages of keys and values: what a model's sequences take of a device's memory as they grow, and give back.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use surety_exact::{ArithmeticError, BLOCK, HEAD_MAX, blocks};

use crate::{
    Error,
    backend::{Argument, GpuBackend, TABLE},
    kernels::{Kernels, Numbers, fits, size},
};

/// Most pages of a slab: a page's number has the slab's above. The source's `SLAB_PAGES`.
const SLAB_PAGES: u32 = 1 << 24;
/// A slab is no smaller than this, and has no fewer pages, where the machine has as much.
const SLAB_BYTES_MIN: usize = 16 << 20;
const SLAB_PAGES_MIN: usize = 8;
/// A new slab is at least this part of what there is.
const SLAB_PART: usize = 8;
/// Most bytes of slabs of which nobody has a page, if those are several.
const IDLE_BYTES_MAX: usize = 64 << 20;
/// Numbers of pages that a table has room for at least.
const TABLE_MIN: usize = 64;

/// Elements of keys, or positions of values, that a tensor core takes at once. The source's `LANES`.
pub(crate) const STEP: usize = surety_exact::LANES;

/// How a page is laid out: a block of attention's positions of every layer. The source's `in_page` says how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageShape {
    pub(crate) layers: usize,
    pub(crate) kv_heads: usize,
    pub(crate) head_dim: usize,
    /// Steps of a tensor core's product that a key takes: of [`STEP`] elements.
    pub(crate) key_steps: usize,
    /// Words of 4 bytes that a layer has of a page.
    pub(crate) layer_words: usize,
    bytes: usize,
}

impl PageShape {
    fn new(layers: usize, kv_heads: usize, head_dim: usize) -> Result<Self, ArithmeticError> {
        fits(layers > 0 && kv_heads > 0 && (1..=HEAD_MAX).contains(&head_dim))?;
        let key_steps = head_dim.div_ceil(STEP);
        // Two scales for each position, keys with whole steps, and values: two elements are a word.
        let head_words = BLOCK * (2 + key_steps * STEP / 2) + BLOCK / 2 * head_dim;
        let layer_words = kv_heads.checked_mul(head_words).ok_or(ArithmeticError::Shape)?;
        // Kernels count within a layer in 32 bits.
        size(layer_words)?;
        let words = layer_words.checked_mul(layers);
        let bytes = words.and_then(|words| words.checked_mul(4));
        let bytes = bytes.ok_or(ArithmeticError::Shape)?;
        Ok(Self {
            layers,
            kv_heads,
            head_dim,
            key_steps,
            layer_words,
            bytes,
        })
    }

    /// Words of a page.
    pub(crate) fn words(&self) -> usize {
        self.layers * self.layer_words
    }
}

/// A piece of memory that pages are cut from.
#[derive(Debug)]
struct Slab<T> {
    memory: T,
    pages: usize,
    bytes: usize,
    /// Numbers of those that nobody has.
    free: Vec<u32>,
}

/// All of a model's slabs. Those of a number that was given back are missing.
#[derive(Debug)]
pub(crate) struct Slabs<T>(Vec<Option<Slab<T>>>);

impl<T> Slabs<T> {
    fn all(&self) -> impl Iterator<Item = &Slab<T>> {
        self.0.iter().flatten()
    }

    fn pages(&self) -> usize {
        self.all().map(|slab| slab.pages).sum()
    }

    fn free(&self) -> usize {
        self.all().map(|slab| slab.free.len()).sum()
    }

    /// Takes a slab of at least so many pages from the machine. Once it refuses more than those, it is left
    /// all that it has: others need it, too.
    fn grow<M: GpuBackend<Memory = T>>(
        &mut self,
        machine: &mut M,
        missing: usize,
        page_bytes: usize,
    ) -> Result<(), Error> {
        let needed = missing.checked_mul(page_bytes).ok_or(ArithmeticError::Shape)?;
        if missing > SLAB_PAGES as usize {
            return Err(Error::OutOfMemory(needed));
        }
        let left = TABLE - self.all().count();
        if left == 0 {
            return Err(Error::Scattered(needed));
        }
        // The fewer slabs are left, the larger they are.
        let part = self.pages() / left.min(SLAB_PART);
        let least = SLAB_PAGES_MIN.max(SLAB_BYTES_MIN / page_bytes);
        let mut pages = missing.max(part).max(least).min(SLAB_PAGES as usize);
        let mut bytes = pages.saturating_mul(page_bytes);
        let memory = match machine.allocate(bytes) {
            Err(error) if error.is_memory() && pages > missing => {
                (pages, bytes) = (missing, needed);
                machine.allocate(bytes)?
            }
            taken => taken?,
        };
        let place = self.0.iter().position(Option::is_none).unwrap_or(self.0.len());
        if place == self.0.len() {
            self.0.push(None);
        }
        let first = size(place)? * SLAB_PAGES;
        // The first one is taken first.
        let free = (first..first + size(pages)?).rev().collect();
        let slab = Slab {
            memory,
            pages,
            bytes,
            free,
        };
        *self.0.get_mut(place).ok_or(ArithmeticError::Shape)? = Some(slab);
        Ok(())
    }

    /// Takes pages that nobody has, from the first slabs that have some.
    fn take(&mut self, count: usize) -> Vec<u32> {
        let mut taken = Vec::with_capacity(count);
        for slab in self.0.iter_mut().flatten() {
            let from = slab.free.len().saturating_sub(count - taken.len());
            taken.extend(slab.free.drain(from..).rev());
        }
        taken
    }

    /// Takes back pages. Some slabs of which nobody has any are kept, so that the next sequence finds them,
    /// and launches name them, as before: one, or as many as have [`IDLE_BYTES_MAX`]. The others, the larger
    /// ones first, are the answer: to be dropped once nobody waits for the lock.
    #[must_use]
    fn give(&mut self, pages: &[u32]) -> Vec<T> {
        for page in pages {
            let place = (page / SLAB_PAGES) as usize;
            if let Some(Some(slab)) = self.0.get_mut(place) {
                slab.free.push(*page);
            }
        }
        self.trim(1, IDLE_BYTES_MAX)
    }

    /// Removes slabs of which nobody has a page, the larger ones first, while there are more than so many and
    /// they have more than so many bytes.
    #[must_use]
    fn trim(&mut self, kept: usize, kept_bytes: usize) -> Vec<T> {
        let mut removed = Vec::new();
        loop {
            let idle: Vec<usize> = self.0.iter().filter_map(Self::idle).collect();
            if idle.len() <= kept || idle.iter().sum::<usize>() <= kept_bytes {
                break;
            }
            let largest = self.0.iter_mut().max_by_key(|slab| Self::idle(slab));
            removed.extend(largest.and_then(Option::take).map(|slab| slab.memory));
        }
        while matches!(self.0.last(), Some(None)) {
            self.0.pop();
        }
        removed
    }

    /// How many bytes a slab has, if nobody has any of its pages.
    fn idle(slab: &Option<Slab<T>>) -> Option<usize> {
        let slab = slab.as_ref()?;
        (slab.free.len() == slab.pages).then_some(slab.bytes)
    }

    /// The slabs as a kernel takes them.
    pub(crate) fn table(&self) -> Argument<'_, T> {
        let any = self.all().next();
        // Nobody has a page of one that is missing: another one stands in its place.
        let pieces = self.0.iter().filter_map(|slab| slab.as_ref().or(any));
        Argument::Table(pieces.map(|slab| &slab.memory).collect())
    }
}

/// Where the sequences of one model keep keys and values: pages of [`BLOCK`] positions, cut from slabs of a
/// device's memory, which are taken when all pages are, and given back when nobody has any of theirs, but for
/// some: [`Kernels::trim`].
///
/// Memory is the machine's to refuse: what sequences have then stays theirs.
#[derive(Debug)]
pub struct Pages<M: GpuBackend> {
    shape: PageShape,
    slabs: Arc<Mutex<Slabs<M::Memory>>>,
}

/// Nothing panics within it but a machine, before anything is changed.
fn locked<T>(slabs: &Mutex<Slabs<T>>) -> MutexGuard<'_, Slabs<T>> {
    slabs.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<M: GpuBackend> Clone for Pages<M> {
    /// The same pages.
    fn clone(&self) -> Self {
        Self {
            shape: self.shape,
            slabs: self.slabs.clone(),
        }
    }
}

impl<M: GpuBackend> Pages<M> {
    /// For sequences with so many layers of so many heads. No memory is taken yet.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] for nothing to keep, or a page that is too large.
    pub fn new(layers: usize, kv_heads: usize, head_dim: usize) -> Result<Self, ArithmeticError> {
        Ok(Self {
            shape: PageShape::new(layers, kv_heads, head_dim)?,
            slabs: Arc::new(Mutex::new(Slabs(Vec::new()))),
        })
    }

    /// An empty sequence's keys and values.
    pub fn cache(&self) -> Cache<M> {
        Cache {
            pages: self.clone(),
            own: Vec::new(),
            lens: vec![0; self.shape.layers],
            table: None,
            told: 0,
        }
    }

    /// Bytes of a page: [`BLOCK`] positions of all layers.
    pub fn page_bytes(&self) -> usize {
        self.shape.bytes
    }

    /// Pages that sequences have.
    pub fn taken(&self) -> usize {
        let slabs = self.lock();
        slabs.pages() - slabs.free()
    }

    /// Bytes of the machine's memory that all slabs have: those of pages that nobody has, too.
    pub fn bytes(&self) -> usize {
        self.lock().pages() * self.shape.bytes
    }

    pub(crate) fn shape(&self) -> &PageShape {
        &self.shape
    }

    /// Whether both are the same, and not only alike.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.slabs, &other.slabs)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Slabs<M::Memory>> {
        locked(&self.slabs)
    }

    /// Pages that nobody has, all or none.
    fn take(&self, machine: &mut M, count: usize) -> Result<Vec<u32>, Error> {
        let mut slabs = self.lock();
        let missing = count.saturating_sub(slabs.free());
        if missing > 0 {
            slabs.grow(machine, missing, self.shape.bytes)?;
        }
        Ok(slabs.take(count))
    }
}

/// Keys and values of one sequence, or of several behind each other, in all layers of a model.
#[derive(Debug)]
pub struct Cache<M: GpuBackend> {
    pub(crate) pages: Pages<M>,
    /// Numbers of its pages, in the order of positions.
    pub(crate) own: Vec<u32>,
    /// Positions that each layer holds.
    pub(crate) lens: Vec<usize>,
    /// For launches of this sequence alone: its pages, as far as the machine was told.
    table: Option<Numbers<M>>,
    told: usize,
}

impl<M: GpuBackend> Cache<M> {
    /// Positions that all layers hold keys and values of.
    pub fn len(&self) -> usize {
        self.lens.iter().copied().min().unwrap_or(0)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Positions that it has pages for.
    pub fn capacity(&self) -> usize {
        self.own.len() * BLOCK
    }

    /// Forgets all positions of a layer. The pages stay the sequence's.
    pub fn clear(&mut self, layer: usize) {
        if let Some(len) = self.lens.get_mut(layer) {
            *len = 0;
        }
    }

    /// Forgets the positions from `len` on, and gives back the pages that hold no others.
    pub fn truncate(&mut self, len: usize) {
        for own in &mut self.lens {
            *own = len.min(*own);
        }
        let kept = blocks(len).min(self.own.len());
        // Others do not wait while memory is freed.
        let removed = self.pages.lock().give(self.own.get(kept..).unwrap_or_default());
        drop(removed);
        self.own.truncate(kept);
        self.told = self.told.min(kept);
    }

    /// Where launches of this sequence alone find a layer of it: what [`Kernels::tell`] has said.
    pub(crate) fn paged(&self, layer: usize) -> Result<Paged<'_, M>, ArithmeticError> {
        fits(layer < self.lens.len())?;
        Ok(Paged {
            pages: &self.pages,
            table: self.table.as_ref().ok_or(ArithmeticError::Shape)?,
            layer,
        })
    }
}

impl<M: GpuBackend> Drop for Cache<M> {
    fn drop(&mut self) {
        let removed = self.pages.lock().give(&self.own);
        drop(removed);
    }
}

/// Where a launch finds a layer's keys and values.
pub(crate) struct Paged<'a, M: GpuBackend> {
    pub(crate) pages: &'a Pages<M>,
    /// Numbers of pages: those of several sequences behind each other.
    pub(crate) table: &'a Numbers<M>,
    pub(crate) layer: usize,
}

impl<'a, M: GpuBackend> Paged<'a, M> {
    /// As all kernels take it.
    pub(crate) fn arguments<'b>(&self, slabs: &'b Slabs<M::Memory>) -> [Argument<'b, M::Memory>; 4]
    where
        'a: 'b,
    {
        let shape = self.pages.shape();
        [
            slabs.table(),
            Argument::Memory(&self.table.memory),
            Argument::U64(shape.words() as u64),
            Argument::U64((self.layer * shape.layer_words) as u64),
        ]
    }
}

impl<M: GpuBackend> Kernels<M> {
    /// Takes pages for so many positions in all, as far as the sequence has none. Nothing is moved.
    ///
    /// # Errors
    /// [`Error::Scattered`], or the machine's own, above all [`Error::OutOfMemory`] and [`Error::MemoryCap`]:
    /// the sequence is what it was.
    pub fn reserve(&mut self, cache: &mut Cache<M>, positions: usize) -> Result<(), Error> {
        size(positions)?;
        let missing = blocks(positions).saturating_sub(cache.own.len());
        if missing > 0 {
            self.remember(&cache.pages);
            let more = cache.pages.take(&mut self.machine, missing)?;
            cache.own.extend(more);
        }
        Ok(())
    }

    /// For [`Self::trim`].
    fn remember(&mut self, pages: &Pages<M>) {
        let slabs = Arc::downgrade(&pages.slabs);
        if !self.pools.iter().any(|pool| pool.ptr_eq(&slabs)) {
            self.pools.retain(|pool| pool.strong_count() > 0);
            self.pools.push(slabs);
        }
    }

    /// Gives back to the machine the memory of all [`Pages`] of which no sequence has any: what was kept for
    /// sequences that come next. Whether there was some: then who found no memory may find it now.
    pub fn trim(&mut self) -> bool {
        let pools = self.pools.iter().filter_map(Weak::upgrade);
        let removed: Vec<_> = pools.flat_map(|pool| locked(&pool).trim(0, 0)).collect();
        !removed.is_empty()
    }

    /// Tells the machine which pages the sequence has, for launches of it alone.
    pub(crate) fn tell(&mut self, cache: &mut Cache<M>) -> Result<(), Error> {
        if cache.table.is_none() || cache.told < cache.own.len() {
            cache.told = 0;
            self.page_table_in(&mut cache.table, cache.own.clone())?;
            cache.told = cache.own.len();
        }
        Ok(())
    }

    /// Copies numbers of pages to the machine. There is room for some more, so that they stay at one address
    /// while sequences grow.
    pub(crate) fn page_table_in(
        &mut self,
        space: &mut Option<Numbers<M>>,
        mut pages: Vec<u32>,
    ) -> Result<(), Error> {
        let room = pages.len().next_power_of_two().max(TABLE_MIN);
        pages.resize(room, 0);
        self.numbers_in(space, &pages)
    }
}
