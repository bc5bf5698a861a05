//! Keys and values of a sequence.

use surety_exact::{ArithmeticError, BLOCK, blocks};

use crate::{
    HeadRows,
    simd::{LANES, Line, Sixteen},
};

/// Lines of a block's values for each sixteen columns: one holds two positions.
const VALUE_LINES: usize = BLOCK / 2;

/// One layer's keys and values for one sequence.
///
/// They are laid out as [`Packed`](crate::Packed) weights of int12 are, pairs side by side: of keys a line
/// holds two elements of sixteen positions, of values two positions of sixteen elements.
#[derive(Clone, Debug)]
pub struct Cache {
    kv_heads: usize,
    head_dim: usize,
    capacity: usize,
    len: usize,
    /// `[positions / 16][kv_heads][pairs of elements]`
    keys: Vec<Line>,
    /// `[positions / 16][kv_heads]`
    key_scales: Vec<Sixteen>,
    /// `[positions / BLOCK][kv_heads][pairs of positions][columns]`
    values: Vec<Line>,
    /// `[positions / BLOCK][kv_heads][BLOCK]`
    value_scales: Vec<f32>,
}

impl Cache {
    /// Room for `capacity` positions of `kv_heads` heads. Memory is taken as positions come.
    pub fn new(kv_heads: usize, head_dim: usize, capacity: usize) -> Self {
        Self {
            kv_heads,
            head_dim,
            capacity,
            len: 0,
            keys: Vec::new(),
            key_scales: Vec::new(),
            values: Vec::new(),
            value_scales: Vec::new(),
        }
    }

    /// Positions in it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds positions: rows of `kv_heads` heads.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] for other heads, or more rows than there is room for. Nothing is added
    /// then.
    pub fn append(&mut self, keys: HeadRows<'_>, values: HeadRows<'_>) -> Result<(), ArithmeticError> {
        let shape = |heads: HeadRows<'_>| (heads.count(), heads.heads(), heads.head_dim());
        let rows = keys.count();
        let expected = (rows, self.kv_heads, self.head_dim);
        if [shape(keys), shape(values)] != [expected; 2] || rows > self.capacity - self.len {
            return Err(ArithmeticError::Shape);
        }
        self.grow(self.len + rows);
        for row in 0..rows {
            for kv_head in 0..self.kv_heads {
                let head = row * self.kv_heads + kv_head;
                self.put_key(kv_head, keys.q(head), keys.scale(head));
                self.put_value(kv_head, values.q(head), values.scale(head));
            }
            self.len += 1;
        }
        Ok(())
    }

    /// Takes memory for so many positions, in whole blocks.
    fn grow(&mut self, positions: usize) {
        fn at_least<T: Clone>(memory: &mut Vec<T>, len: usize, zero: T) {
            // Not twice as much as there was: many sequences share a machine, and count on what one takes. A
            // block is computed in far more time than it takes to move those before.
            memory.reserve_exact(len.saturating_sub(memory.len()));
            memory.resize(memory.len().max(len), zero);
        }
        let blocks = blocks(positions);
        let sixteens = blocks * (BLOCK / LANES);
        let keys = sixteens * self.kv_heads * self.pairs();
        at_least(&mut self.keys, keys, Line([0; 64]));
        at_least(
            &mut self.key_scales,
            sixteens * self.kv_heads,
            Sixteen([0.0; LANES]),
        );
        let values = blocks * self.kv_heads * VALUE_LINES * self.columns();
        at_least(&mut self.values, values, Line([0; 64]));
        at_least(&mut self.value_scales, blocks * self.kv_heads * BLOCK, 0.0);
    }

    /// Writes a head's key at the position after the last.
    fn put_key(&mut self, kv_head: usize, q: &[i16], scale: f32) {
        let (block, lane) = (self.len / LANES * self.kv_heads + kv_head, self.len % LANES);
        let lines = &mut self.keys[block * q.len() / 2..];
        for (line, pair) in lines.iter_mut().zip(q.as_chunks::<2>().0) {
            line.pairs_mut()[lane] = *pair;
        }
        self.key_scales[block].0[lane] = scale;
    }

    /// Writes a head's value at the position after the last.
    fn put_value(&mut self, kv_head: usize, q: &[i16], scale: f32) {
        let (block, place) = (self.len / BLOCK * self.kv_heads + kv_head, self.len % BLOCK);
        let first = (block * VALUE_LINES + place / 2) * self.columns();
        for (line, q) in self.values[first..].iter_mut().zip(q.chunks(LANES)) {
            for (pair, value) in line.pairs_mut().iter_mut().zip(q) {
                // Whole pairs: the second position is written after the first.
                *pair = match place % 2 {
                    0 => [*value, 0],
                    _ => [pair[0], *value],
                };
            }
        }
        self.value_scales[block * BLOCK + place] = scale;
    }

    /// The key of a head at a position, and its scale; nothing where there is none.
    pub fn key(&self, position: usize, kv_head: usize) -> Option<(Vec<i16>, f32)> {
        self.inside(position, kv_head)?;
        let (block, lane) = (position / LANES * self.kv_heads + kv_head, position % LANES);
        let lines = self.keys.get(block * self.pairs()..)?;
        let q = (0..self.head_dim).map(|d| lines.get(d / 2).map(|line| line.pairs()[lane][d % 2]));
        Some((q.collect::<Option<_>>()?, self.key_scales.get(block)?.0[lane]))
    }

    /// The value of a head at a position, and its scale; nothing where there is none.
    pub fn value(&self, position: usize, kv_head: usize) -> Option<(Vec<i16>, f32)> {
        self.inside(position, kv_head)?;
        let (block, place) = (position / BLOCK * self.kv_heads + kv_head, position % BLOCK);
        let lines = self
            .values
            .get((block * VALUE_LINES + place / 2) * self.columns()..)?;
        let element = |d: usize| {
            lines
                .get(d / LANES)
                .map(|line| line.pairs()[d % LANES][place % 2])
        };
        let q: Option<_> = (0..self.head_dim).map(element).collect();
        Some((q?, *self.value_scales.get(block * BLOCK + place)?))
    }

    /// Forgets all positions, keeps the memory.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Heads of keys and values.
    pub fn kv_heads(&self) -> usize {
        self.kv_heads
    }

    /// Width of a head.
    pub fn head_dim(&self) -> usize {
        self.head_dim
    }

    fn inside(&self, position: usize, kv_head: usize) -> Option<()> {
        (position < self.len && kv_head < self.kv_heads).then_some(())
    }

    /// Lines of a key.
    pub(crate) fn pairs(&self) -> usize {
        self.head_dim.div_ceil(2)
    }

    /// Lines of two values.
    pub(crate) fn columns(&self) -> usize {
        self.head_dim.div_ceil(LANES)
    }

    /// The keys of a head at sixteen positions: `pairs` lines.
    pub(crate) fn key_block(&self, sixteen: usize, kv_head: usize) -> *const Line {
        self.keys[(sixteen * self.kv_heads + kv_head) * self.pairs()..].as_ptr()
    }

    /// Their scales.
    pub(crate) fn key_scales(&self, sixteen: usize, kv_head: usize) -> &Sixteen {
        &self.key_scales[sixteen * self.kv_heads + kv_head]
    }

    /// The values of a head in a block: `BLOCK / 2 * columns` lines.
    pub(crate) fn value_block(&self, block: usize, kv_head: usize) -> *const Line {
        self.values[(block * self.kv_heads + kv_head) * VALUE_LINES * self.columns()..].as_ptr()
    }

    /// Their scales.
    pub(crate) fn value_scales(&self, block: usize, kv_head: usize) -> &[f32; BLOCK] {
        let (scales, _) = self.value_scales.as_chunks::<BLOCK>();
        &scales[block * self.kv_heads + kv_head]
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Heads;

    #[test]
    fn a_sequence_takes_the_memory_of_its_blocks_and_no_more() {
        const HEADS: usize = 3;
        const HEAD_DIM: usize = 32;
        let mut heads = Heads::default();
        heads.quantize(&[1.0; HEADS * HEAD_DIM], HEADS, HEAD_DIM).unwrap();
        let mut cache = Cache::new(HEADS, HEAD_DIM, 4 * BLOCK);
        for position in 0..4 * BLOCK {
            cache.append(heads.all(), heads.all()).unwrap();
            let lines = size_of::<Line>() * (cache.keys.capacity() + cache.values.capacity());
            let scales = size_of::<Sixteen>() * cache.key_scales.capacity()
                + size_of::<f32>() * cache.value_scales.capacity();
            // Of each key and value int12 and a scale.
            let of_position = 2 * HEADS * (2 * HEAD_DIM + 4);
            assert_eq!(lines + scales, blocks(position + 1) * BLOCK * of_position);
        }
    }
}
