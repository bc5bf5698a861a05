//! What leaves the machine, and what is moved on it.

use std::{mem, ops::Range};

use surety_exact::{ArithmeticError, BLOCK, blocks};

use crate::{
    Error,
    attention::Heads,
    backend::{Argument, GpuBackend},
    kernels::{Floats, Kernels, fits, size},
    pages::{Cache, PageShape, Paged, STEP},
    ring::{Departed, Slot},
};

/// Bytes that a stage takes at a time, at least: what a pass of a small model shows.
const BLOCK_BYTES: usize = 1 << 20;

/// Results that are gathered on the machine and leave it together: one wait for a whole pass. Reuse one: it
/// keeps its memory.
///
/// It has two sets of memory by turns, one of which may still be copied while the other is filled. Each takes
/// no more than what the largest pass showed that was gathered in it, and a MiB; twice that while a larger
/// one is gathered for the first time.
#[derive(Debug)]
pub struct Stage<M: GpuBackend> {
    gathered: Gathered<M>,
    /// What is still copied from the machine, perhaps: to be written over, or dropped, only once another copy
    /// was begun.
    leaving: Gathered<M>,
}

/// One of a stage's two sets.
#[derive(Debug)]
struct Gathered<M: GpuBackend> {
    blocks: Vec<Block<M>>,
    /// What the next block has room for, at least.
    room_min: usize,
}

/// Memory, with the bytes that it has room for, and that were put into it.
type Block<M> = (<M as GpuBackend>::Memory, usize, usize);

impl<M: GpuBackend> Default for Stage<M> {
    fn default() -> Self {
        Self {
            gathered: Gathered::default(),
            leaving: Gathered::default(),
        }
    }
}

impl<M: GpuBackend> Default for Gathered<M> {
    fn default() -> Self {
        Self {
            blocks: Vec::new(),
            room_min: BLOCK_BYTES,
        }
    }
}

impl<M: GpuBackend> Stage<M> {
    /// Forgets what was put into it.
    pub fn clear(&mut self) {
        self.gathered.clear();
    }
}

impl<M: GpuBackend> Gathered<M> {
    fn clear(&mut self) {
        if self.blocks.iter().filter(|(_, _, used)| *used > 0).count() > 1 {
            // The next pass finds one block in which all of this would have had room.
            self.room_min = self.used().next_multiple_of(BLOCK_BYTES);
            self.blocks.clear();
        }
        self.blocks.iter_mut().for_each(|(_, _, used)| *used = 0);
    }

    fn used(&self) -> usize {
        self.blocks.iter().map(|(_, _, used)| used).sum()
    }

    /// The block behind all that is there which has room for so many bytes.
    fn block(&mut self, machine: &mut M, bytes: usize) -> Result<usize, Error> {
        // Only the last one that has something goes on being filled: places stay in their order.
        let filled = self.blocks.iter().rposition(|(_, _, used)| *used > 0);
        let from_block = filled.unwrap_or(0);
        let mut behind = self.blocks.iter().skip(from_block);
        if let Some(offset) = behind.position(|(_, room, used)| room - used >= bytes) {
            return Ok(from_block + offset);
        }
        // Those without a use first: both may not fit.
        self.blocks.retain(|(_, _, used)| *used > 0);
        let room = bytes.max(self.room_min);
        self.blocks.push((machine.allocate(room)?, room, 0));
        self.room_min = BLOCK_BYTES;
        Ok(self.blocks.len() - 1)
    }
}

/// Keys or values of a cache's first positions, as they were appended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// `[position][kv_head][head_dim]`
    pub q: Vec<i16>,
    /// `[position][kv_head]`
    pub scales: Vec<f32>,
}

impl<M: GpuBackend> Kernels<M> {
    /// Puts an array behind what the stage has. The answer is where, in what [`Kernels::staged`] gives then.
    ///
    /// # Errors
    /// The machine's own.
    pub fn stage(&mut self, floats: &Floats<M>, stage: &mut Stage<M>) -> Result<Range<usize>, Error> {
        self.put(&floats.memory, floats.len * 4, stage)
    }

    /// The same of quantized heads: their values, then their scales.
    ///
    /// # Errors
    /// The machine's own.
    pub fn stage_heads(
        &mut self,
        heads: &Heads<M>,
        stage: &mut Stage<M>,
    ) -> Result<[Range<usize>; 2], Error> {
        let (q, scales) = heads.memory()?;
        let cells = heads.rows * heads.heads;
        let q = self.put(q, cells * heads.head_dim * 2, stage)?;
        Ok([q, self.put(scales, cells * 4, stage)?])
    }

    fn put(&mut self, from: &M::Memory, bytes: usize, stage: &mut Stage<M>) -> Result<Range<usize>, Error> {
        let gathered = &mut stage.gathered;
        let at = gathered.block(&mut self.machine, bytes)?;
        let before: usize = gathered.blocks.iter().take(at).map(|(_, _, used)| used).sum();
        let (memory, _, used) = gathered.blocks.get_mut(at).ok_or(ArithmeticError::Shape)?;
        let arguments = [
            Argument::Memory(from),
            Argument::U64((bytes / 2) as u64),
            Argument::Memory(memory),
            Argument::U64((*used / 2) as u64),
        ];
        Self::each(&mut self.machine, "copy", bytes / 2, &arguments)?;
        let start = before + *used;
        *used += bytes;
        Ok(start..start + bytes)
    }

    /// Waits, and copies all that the stage has from the machine.
    ///
    /// # Errors
    /// Those of [`Kernels::check`].
    pub fn staged(&mut self, stage: &Stage<M>) -> Result<Vec<u8>, Error> {
        self.check()?;
        self.read_stage(stage)
    }

    fn read_stage(&mut self, stage: &Stage<M>) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; stage.gathered.used()];
        let mut rest = &mut bytes[..];
        for (memory, _, used) in &stage.gathered.blocks {
            let (now, later) = rest.split_at_mut_checked(*used).ok_or(ArithmeticError::Shape)?;
            if !now.is_empty() {
                self.machine.read(memory, now)?;
            }
            rest = later;
        }
        Ok(bytes)
    }

    /// Waits for the work given so far, then begins to copy all that the stage has from the machine, into the
    /// slot. What is put into the stage next is put elsewhere. Where it finds no room there it copies all of
    /// it now. The stage may not be dropped before all has left: before [`Departed`] is.
    ///
    /// # Errors
    /// Those of [`Kernels::check`].
    pub fn leave(
        &mut self,
        stage: &mut Stage<M>,
        mut slot: Slot<M::Landing>,
    ) -> Result<Departed<M::Landing>, Error> {
        let len = stage.gathered.used();
        // Memory is not asked for while work is under way that may not end.
        if !slot.has_room(len) {
            self.check()?;
        }
        let Some(landing) = slot.room_for(&mut self.machine, len)? else {
            self.check()?;
            let bytes = self.read_stage(stage)?;
            return Ok(Departed::read(slot, bytes));
        };
        let filled = stage.gathered.blocks.iter().filter(|(_, _, used)| *used > 0);
        let pieces: Vec<_> = filled.map(|(memory, _, used)| (memory, *used)).collect();
        self.machine.begin_read(&pieces, landing)?;
        drop(pieces);
        mem::swap(&mut stage.gathered, &mut stage.leaving);
        stage.clear();
        // While it is copied: where something was at fault, nobody is given it.
        let departed = Departed::copied(slot, len);
        self.check()?;
        Ok(departed)
    }

    /// A sequence with the same keys and values again, on pages of its own.
    ///
    /// # Errors
    /// Those of [`Kernels::reserve`].
    pub fn copy_cache(&mut self, cache: &Cache<M>) -> Result<Cache<M>, Error> {
        let mut copy = cache.pages.cache();
        let positions = cache.lens.iter().copied().max().unwrap_or(0);
        self.reserve(&mut copy, positions)?;
        let count = blocks(positions);
        if count > 0 {
            let from = cache.own.get(..count).ok_or(ArithmeticError::Shape)?;
            let table = self.numbers(&[from, &copy.own[..]].concat())?;
            let words = cache.pages.shape().words();
            let slabs = cache.pages.lock();
            let arguments = [
                slabs.table(),
                Argument::Memory(&table.memory),
                Argument::U32(size(count)?),
                Argument::U64(words as u64),
            ];
            Self::each(&mut self.machine, "copy_pages", count * words, &arguments)?;
        }
        copy.lens.clone_from(&cache.lens);
        Ok(copy)
    }

    /// Waits, and copies the keys and values of so many first positions of a layer from the machine.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] for more than there are, those of [`Kernels::check`].
    pub fn kept(&mut self, cache: &Cache<M>, layer: usize, positions: usize) -> Result<[Kept; 2], Error> {
        let len = cache.lens.get(layer).copied().ok_or(ArithmeticError::Shape)?;
        fits(positions <= len)?;
        self.check()?;
        let shape = cache.pages.shape();
        let own = cache.own.get(..blocks(positions));
        let own = own.ok_or(ArithmeticError::Shape)?;
        let (mut found, mut table) = ([Kept::default(), Kept::default()], None);
        let mut rest = positions;
        for pages in own.chunks((self.room / shape.layer_words).max(1)) {
            self.numbers_in(&mut table, pages)?;
            let there = table.as_ref().ok_or(ArithmeticError::Shape)?;
            let paged = Paged {
                pages: &cache.pages,
                table: there,
                layer,
            };
            let bytes = self.read_pages(&paged)?;
            let now = rest.min(pages.len() * BLOCK);
            add_kept(&mut found, shape, &bytes, now).ok_or(ArithmeticError::Shape)?;
            rest -= now;
        }
        Ok(found)
    }

    /// Waits, and copies a layer's part of the pages in a table from the machine.
    fn read_pages(&mut self, paged: &Paged<'_, M>) -> Result<Vec<u8>, Error> {
        let (count, layer_words) = (paged.table.len, paged.pages.shape().layer_words);
        let words = count * layer_words;
        Self::ensure(&mut self.machine, &mut self.scratch, words)?;
        let out = self.scratch.as_ref().ok_or(ArithmeticError::Shape)?;
        {
            let slabs = paged.pages.lock();
            let [table, pages, page_words, layer_at] = paged.arguments(&slabs);
            let arguments = [
                table,
                pages,
                Argument::U32(size(count)?),
                page_words,
                layer_at,
                Argument::U64(layer_words as u64),
                Argument::Memory(&out.memory),
            ];
            Self::each(&mut self.machine, "gather_pages", words, &arguments)?;
        }
        let mut bytes = vec![0; words * 4];
        self.machine.read(&out.memory, &mut bytes)?;
        Ok(bytes)
    }
}

/// Adds the keys and values of a layer's part of pages, as `in_page` of the source has them.
fn add_kept(found: &mut [Kept; 2], shape: &PageShape, bytes: &[u8], positions: usize) -> Option<()> {
    let (heads, head_dim, steps) = (shape.kv_heads, shape.head_dim, shape.key_steps);
    let [keys, values] = found;
    for position in 0..positions {
        let page = bytes.chunks(shape.layer_words * 4).nth(position / BLOCK)?;
        let at = position % BLOCK;
        let real = |word: usize| {
            let real = page.get(4 * word..)?.first_chunk();
            real.copied().map(f32::from_le_bytes)
        };
        // Number `of` of the eight in 16 bytes, the first of all 16 counted from `word`.
        let int16 = |word: usize, quad: usize, of: usize| {
            let first = 4 * word + 16 * quad + of;
            let high = i16::from(page.get(first)?.cast_signed());
            let low = i16::from(*page.get(first + 8)?);
            Some(high * 64 + low)
        };
        for head in 0..heads {
            keys.scales.push(real(head * BLOCK + at)?);
            values.scales.push(real((heads + head) * BLOCK + at)?);
            for d in 0..head_dim {
                let key = 2 * heads * BLOCK + ((head * steps + d / STEP) * BLOCK + at) * STEP / 2;
                keys.q.push(int16(key, d % STEP / 8, d % 8)?);
                let of_values = heads * (2 + steps * STEP / 2) * BLOCK;
                let value = of_values + ((head * head_dim + d) * (BLOCK / STEP) + at / STEP) * STEP / 2;
                values
                    .q
                    .push(int16(value, at % 8 / 2, at % STEP / 8 * 2 + at % 2)?);
            }
        }
    }
    Some(())
}
