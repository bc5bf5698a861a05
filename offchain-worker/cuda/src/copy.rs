//! What leaves the machine, and what is moved on it.

use std::{mem, ops::Range};

use surety_exact::ArithmeticError;

use crate::{
    Error,
    attention::{Cache, Heads},
    backend::{Argument, GpuBackend},
    kernels::{Floats, Kernels, fits},
    ring::{Departed, Slot},
};

/// Bytes that a stage takes at a time, at least: what a pass of a small model shows.
const BLOCK_BYTES: usize = 1 << 20;

/// Results that are gathered on the machine and leave it together: one wait for a whole pass. Reuse one: it
/// keeps its memory.
#[derive(Debug)]
pub struct Stage<M: GpuBackend> {
    blocks: Vec<Block<M>>,
    /// What is still copied from the machine, perhaps: to be written over only once another copy was begun.
    leaving: Vec<Block<M>>,
}

/// Memory, with the bytes that it has room for, and that were put into it.
type Block<M> = (<M as GpuBackend>::Memory, usize, usize);

impl<M: GpuBackend> Default for Stage<M> {
    fn default() -> Self {
        Self {
            blocks: Vec::new(),
            leaving: Vec::new(),
        }
    }
}

impl<M: GpuBackend> Stage<M> {
    /// Forgets what was put into it.
    pub fn clear(&mut self) {
        self.blocks.iter_mut().for_each(|(_, _, used)| *used = 0);
    }

    fn used(&self) -> usize {
        self.blocks.iter().map(|(_, _, used)| used).sum()
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

/// Rows of pairs of bytes, on either side of a copy.
struct Copied {
    from_stride: usize,
    width: usize,
    rows: usize,
    into_at: usize,
    into_stride: usize,
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
        let has_room = |(_, room, used): &Block<M>| room - used >= bytes;
        // Only the last one that has something goes on being filled: places stay in their order.
        let filled = stage.blocks.iter().rposition(|(_, _, used)| *used > 0);
        let from_block = filled.unwrap_or(0);
        let found = stage.blocks.iter().skip(from_block).position(has_room);
        let at = match found {
            Some(offset) => from_block + offset,
            None => {
                let room = bytes.max(BLOCK_BYTES);
                stage.blocks.push((self.machine.allocate(room)?, room, 0));
                stage.blocks.len() - 1
            }
        };
        let before: usize = stage.blocks.iter().take(at).map(|(_, _, used)| used).sum();
        let (memory, _, used) = stage.blocks.get_mut(at).ok_or(ArithmeticError::Shape)?;
        let copied = Copied {
            from_stride: bytes / 2,
            width: bytes / 2,
            rows: 1,
            into_at: *used / 2,
            into_stride: bytes / 2,
        };
        Self::copy(&mut self.machine, from, memory, &copied)?;
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
        let mut bytes = vec![0; stage.used()];
        let mut rest = &mut bytes[..];
        for (memory, _, used) in &stage.blocks {
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
        self.check()?;
        let len = stage.used();
        let Some(landing) = slot.room_for(&mut self.machine, len)? else {
            let bytes = self.read_stage(stage)?;
            return Ok(Departed::read(slot, bytes));
        };
        let filled = stage.blocks.iter().filter(|(_, _, used)| *used > 0);
        let pieces: Vec<_> = filled.map(|(memory, _, used)| (memory, *used)).collect();
        self.machine.begin_read(&pieces, landing)?;
        drop(pieces);
        mem::swap(&mut stage.blocks, &mut stage.leaving);
        stage.clear();
        Ok(Departed::copied(slot, len))
    }

    /// A cache that has the same positions, and room for so many, at least those.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] for too little room, or the machine's own.
    pub fn copy_cache(&mut self, cache: &Cache<M>, capacity: usize) -> Result<Cache<M>, Error> {
        fits(capacity >= cache.len)?;
        let mut copy = self.cache(cache.kv_heads, cache.head_dim, capacity)?;
        copy.len = cache.len;
        if cache.len == 0 {
            return Ok(copy);
        }
        let pairs = cache.kv_heads * cache.head_dim.div_ceil(2);
        let of = |rows: usize, each: usize| Copied {
            from_stride: cache.capacity * each,
            width: cache.len * each,
            rows,
            into_at: 0,
            into_stride: capacity * each,
        };
        let scales = of(cache.kv_heads, 2);
        let machine = &mut self.machine;
        Self::copy(machine, &cache.keys, &copy.keys, &of(pairs, 2))?;
        Self::copy(
            machine,
            &cache.values,
            &copy.values,
            &of(cache.kv_heads, cache.head_dim),
        )?;
        Self::copy(
            machine,
            &cache.key_scales.memory,
            &copy.key_scales.memory,
            &scales,
        )?;
        Self::copy(
            machine,
            &cache.value_scales.memory,
            &copy.value_scales.memory,
            &scales,
        )?;
        Ok(copy)
    }

    /// Waits, and copies the keys and values of so many first positions from the machine.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] for more than there are, those of [`Kernels::check`].
    pub fn kept(&mut self, cache: &Cache<M>, positions: usize) -> Result<[Kept; 2], Error> {
        fits(positions <= cache.len)?;
        self.check()?;
        let (heads, head_dim) = (cache.kv_heads, cache.head_dim);
        let cells = heads * cache.capacity;
        let words = |bytes: &[u8]| -> Vec<i16> {
            let (words, _) = bytes.as_chunks::<2>();
            words.iter().map(|word| i16::from_le_bytes(*word)).collect()
        };
        let mut read = |memory: &M::Memory, bytes: usize| {
            let mut all = vec![0; bytes];
            self.machine.read(memory, &mut all).map(|()| all)
        };
        let keys = words(&read(&cache.keys, cells * head_dim.div_ceil(2) * 4)?);
        let values = words(&read(&cache.values, cells * head_dim * 2)?);
        let key_scales = words_f32(&read(&cache.key_scales.memory, cells * 4)?);
        let value_scales = words_f32(&read(&cache.value_scales.memory, cells * 4)?);
        let pairs = head_dim.div_ceil(2);
        let mut found = [Kept::default(), Kept::default()];
        let [kept_keys, kept_values] = &mut found;
        for position in 0..positions {
            for head in 0..heads {
                for d in 0..head_dim {
                    let pair = (head * pairs + d / 2) * cache.capacity + position;
                    kept_keys.q.extend(keys.get(2 * pair + d % 2));
                }
                let cell = head * cache.capacity + position;
                kept_values.q.extend(
                    values
                        .get(cell * head_dim..(cell + 1) * head_dim)
                        .unwrap_or_default(),
                );
                kept_keys.scales.extend(key_scales.get(cell));
                kept_values.scales.extend(value_scales.get(cell));
            }
        }
        Ok(found)
    }

    fn copy(machine: &mut M, from: &M::Memory, into: &M::Memory, copied: &Copied) -> Result<(), Error> {
        let arguments = [
            Argument::Memory(from),
            Argument::U64(copied.from_stride as u64),
            Argument::U64(copied.width as u64),
            Argument::U64(copied.rows as u64),
            Argument::Memory(into),
            Argument::U64(copied.into_at as u64),
            Argument::U64(copied.into_stride as u64),
        ];
        Self::each(machine, "copy", copied.rows * copied.width, &arguments)
    }
}

fn words_f32(bytes: &[u8]) -> Vec<f32> {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|word| f32::from_le_bytes(*word)).collect()
}
