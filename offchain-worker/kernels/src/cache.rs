//! Keys and values of a sequence.

use surety_exact::ArithmeticError;

use crate::simd::{LANES, Sixteen};

/// One layer's keys and values for one sequence.
///
/// Sixteen positions are a block. In it each head has its keys by element, sixteen positions in each line,
/// and then its values by position, padded with zeros to whole lines.
#[derive(Clone, Debug)]
pub struct Cache {
    kv_heads: usize,
    head_dim: usize,
    capacity: usize,
    len: usize,
    /// `[blocks][kv_heads][head_dim]`, lanes are positions.
    keys: Vec<Sixteen>,
    /// `[blocks][kv_heads][16][columns]`, lanes are elements.
    values: Vec<Sixteen>,
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
            values: Vec::new(),
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

    /// Adds positions: rows of `kv_heads * head_dim` values.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] for rows of another width or more than there is room for,
    /// [`ArithmeticError::NotFinite`] for a NaN or an infinity. Nothing is added then.
    pub fn append(&mut self, keys: &[f32], values: &[f32]) -> Result<(), ArithmeticError> {
        let width = self
            .kv_heads
            .checked_mul(self.head_dim)
            .ok_or(ArithmeticError::Shape)?;
        if width == 0 || keys.len() != values.len() || !keys.len().is_multiple_of(width) {
            return Err(ArithmeticError::Shape);
        }
        let rows = keys.len() / width;
        if rows > self.capacity - self.len {
            return Err(ArithmeticError::Shape);
        }
        let size = |size: u32, value: &f32| size.max(value.to_bits() & 0x7fff_ffff);
        if values.iter().fold(keys.iter().fold(0, size), size) >= f32::INFINITY.to_bits() {
            return Err(ArithmeticError::NotFinite);
        }
        let blocks = (self.len + rows).div_ceil(LANES);
        let zeros = Sixteen([0.0; LANES]);
        self.keys.resize(self.keys.len().max(blocks * width), zeros);
        let across = self.columns();
        let lines = blocks * self.kv_heads * LANES * across;
        self.values.resize(self.values.len().max(lines), zeros);
        for (key, value) in keys.chunks_exact(width).zip(values.chunks_exact(width)) {
            let (block, lane) = (self.len / LANES, self.len % LANES);
            for (line, key) in self.keys[block * width..].iter_mut().zip(key) {
                line.0[lane] = *key;
            }
            for (kv_head, value) in value.chunks_exact(self.head_dim).enumerate() {
                let line = ((block * self.kv_heads + kv_head) * LANES + lane) * across;
                for (line, value) in self.values[line..].iter_mut().zip(value.chunks(LANES)) {
                    line.0[..value.len()].copy_from_slice(value);
                }
            }
            self.len += 1;
        }
        Ok(())
    }

    /// Element `d` of the key at a position; 0 outside of what is there.
    pub fn key(&self, position: usize, kv_head: usize, d: usize) -> f32 {
        let line = (position / LANES * self.kv_heads + kv_head) * self.head_dim + d;
        self.inside(position, kv_head, d)
            .and_then(|()| self.keys.get(line))
            .map_or(0.0, |line| line.0[position % LANES])
    }

    /// Element `d` of the value at a position; 0 outside of what is there.
    pub fn value(&self, position: usize, kv_head: usize, d: usize) -> f32 {
        let block = position / LANES * self.kv_heads + kv_head;
        let line = (block * LANES + position % LANES) * self.columns() + d / LANES;
        self.inside(position, kv_head, d)
            .and_then(|()| self.values.get(line))
            .map_or(0.0, |line| line.0[d % LANES])
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

    fn inside(&self, position: usize, kv_head: usize, d: usize) -> Option<()> {
        (position < self.len && kv_head < self.kv_heads && d < self.head_dim).then_some(())
    }

    /// Lines of a value.
    pub(crate) fn columns(&self) -> usize {
        self.head_dim.div_ceil(LANES)
    }

    /// The keys of a head in a block: `head_dim` lines.
    pub(crate) fn key_block(&self, block: usize, kv_head: usize) -> *const Sixteen {
        self.keys[(block * self.kv_heads + kv_head) * self.head_dim..].as_ptr()
    }

    /// The values of a head in a block: `16 * columns` lines.
    pub(crate) fn value_block(&self, block: usize, kv_head: usize) -> *const Sixteen {
        self.values[(block * self.kv_heads + kv_head) * LANES * self.columns()..].as_ptr()
    }
}
