//! Attention over the keys and values of a sequence.

use surety_exact::{attention_row, rsqrt, Fault};

/// One layer's keys and values for one sequence.
#[derive(Clone, Debug)]
pub struct Cache {
    heads: usize,
    head_dim: usize,
    capacity: usize,
    keys: Vec<f32>,
    values: Vec<f32>,
}

/// Which positions a row sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// All of them.
    Full,
    /// Row `i` sees `0 ..= first + i`.
    Causal {
        /// Position of the first row.
        first: usize,
    },
}

impl Cache {
    /// Room for `capacity` positions of `kv_heads` heads.
    pub fn new(kv_heads: usize, head_dim: usize, capacity: usize) -> Self {
        Self {
            heads: kv_heads,
            head_dim,
            capacity,
            keys: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Positions in it.
    pub fn len(&self) -> usize {
        self.keys.len() / (self.heads * self.head_dim).max(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds positions: rows of `kv_heads * head_dim` values.
    ///
    /// # Errors
    /// [`Fault::Shape`] for rows of another width or more than there is room for, [`Fault::NotFinite`] for a NaN or an
    /// infinity.
    pub fn append(&mut self, keys: &[f32], values: &[f32]) -> Result<(), Fault> {
        let width = self.heads * self.head_dim;
        if width == 0 || keys.len() != values.len() || !keys.len().is_multiple_of(width) {
            return Err(Fault::Shape);
        }
        if keys.len() / width > self.capacity - self.len() {
            return Err(Fault::Shape);
        }
        if !keys.iter().chain(values).all(|value| value.is_finite()) {
            return Err(Fault::NotFinite);
        }
        self.keys.extend_from_slice(keys);
        self.values.extend_from_slice(values);
        Ok(())
    }

    /// Element `d` of the key at a position. Panics outside of what is there.
    pub fn key(&self, position: usize, kv_head: usize, d: usize) -> f32 {
        self.keys[(position * self.heads + kv_head) * self.head_dim + d]
    }

    /// Element `d` of the value at a position. Panics outside of what is there.
    pub fn value(&self, position: usize, kv_head: usize, d: usize) -> f32 {
        self.values[(position * self.heads + kv_head) * self.head_dim + d]
    }

    /// Forgets all positions, keeps the memory.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.values.clear();
    }
}

/// Attention of rows of `heads * head_dim` values over a cache; several heads share one of the cache when it has
/// fewer. Scores are scaled by `1 / sqrt(head_dim)`.
///
/// # Errors
/// [`Fault::Shape`] when the widths do not fit together or a row sees positions that are not there,
/// [`Fault::NotFinite`] when a result is not.
pub fn attention(
    queries: &[f32],
    cache: &Cache,
    heads: usize,
    mask: Mask,
    out: &mut [f32],
) -> Result<(), Fault> {
    let (d, kv) = (cache.head_dim, cache.heads);
    let width = heads * d;
    let fits = width > 0 && kv > 0 && heads.is_multiple_of(kv);
    if !fits || queries.len() != out.len() || !queries.len().is_multiple_of(width) {
        return Err(Fault::Shape);
    }
    let scale = rsqrt(d as f32);
    let mut scores = vec![0.0; cache.len()];
    for (i, (row, out)) in queries.chunks(width).zip(out.chunks_mut(width)).enumerate() {
        let seen = match mask {
            Mask::Full => cache.len(),
            Mask::Causal { first } => first + i + 1,
        };
        let scores = scores.get_mut(..seen).ok_or(Fault::Shape)?;
        for (head, (query, out)) in row.chunks(d).zip(out.chunks_mut(d)).enumerate() {
            let kv_head = head / (heads / kv);
            let key = |j: usize, d: usize| cache.key(j, kv_head, d);
            let value = |j: usize, d: usize| cache.value(j, kv_head, d);
            attention_row(query, key, value, scale, scores, out)?;
        }
    }
    Ok(())
}
