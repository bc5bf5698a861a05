//! What is computed: a function of the seed, any cell of which can be computed from four rows.

use codec::Encode;
use sp_core::H256;
use sp_crypto_hashing::blake2_256;
use surety_exact::{SplitMix64, dot};

use crate::{BATCHES, PARENTS, Plan, ROW, opening::ShownRow};

/// Cells of a row.
pub type Row = [i8; ROW];

/// Bits of a sum that are dropped. A sum's lowest 18 bits look like chance, and all of them go into the eight
/// that are kept: through carries, so that no cheaper sum has them.
pub(crate) const SHIFT: u32 = 10;

/// Bytes of a number, and numbers of a row.
const WORD: usize = 8;
const WORDS: u64 = (ROW / WORD) as u64;

/// A row of a layer. Layer 0 is generated, the others are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Layer.
    pub layer: u32,
    /// Row in the state.
    pub row: u32,
}

/// The seed of a provider's run: nobody else's result is of any use to it.
pub fn seed(entropy: &H256, round: u32, provider: &impl Encode) -> H256 {
    H256(blake2_256(
        &(b"gpu proof seed", round, entropy, provider).encode(),
    ))
}

/// A run that is asked for.
#[derive(Clone, Debug)]
pub struct Job {
    pub(crate) plan: Plan,
    /// Keys of what layer 0, the weights, the choice of parents and the masks are drawn with.
    states: u64,
    weights: u64,
    parents: u64,
    masks: u64,
}

impl Job {
    /// The run of this size from a provider's [`seed`]. What is computed in a layer does not depend on how
    /// many there are.
    pub fn new(plan: Plan, seed: &H256) -> Self {
        let key = |label: &[u8; 7]| {
            let hash = blake2_256(&(label, seed).encode());
            let [a, b, c, d, e, f, g, h, ..] = hash;
            u64::from_le_bytes([a, b, c, d, e, f, g, h])
        };
        Self {
            plan,
            states: key(b"states "),
            weights: key(b"weights"),
            parents: key(b"parents"),
            masks: key(b"masks  "),
        }
    }

    /// Its size.
    pub const fn plan(&self) -> Plan {
        self.plan
    }

    /// The key that layer 0 is drawn with: for devices. Word n of [`Self::initial_row`] `r`, little-endian,
    /// is `SplitMix64::mix(key + (128 r + n) 0x9e3779b97f4a7c15)`, modulo 2^64.
    pub const fn states_key(&self) -> u64 {
        self.states
    }

    /// The key that weights are drawn with, in the same way.
    pub const fn weights_key(&self) -> u64 {
        self.weights
    }

    /// The key that parents are drawn with: see [`Self::parents`].
    pub const fn parents_key(&self) -> u64 {
        self.parents
    }

    /// The key that masks are drawn with: see [`Self::gather`].
    pub const fn masks_key(&self) -> u64 {
        self.masks
    }

    /// A row of layer 0.
    pub fn initial_row(&self, row: u32) -> Row {
        stream(self.states, u64::from(row).wrapping_mul(WORDS))
    }

    /// What the cells of a gathered row are multiplied with for one cell of the new one.
    pub fn weights(&self, column: u32) -> Row {
        stream(self.weights, u64::from(column).wrapping_mul(WORDS))
    }

    /// Where the four parts of what a row is computed from come from: the state as it is before the batch of
    /// that row. Parent n of row `r` of layer `l` is row `w rows / 2^64` (rounded down), where
    /// `w = mix(key + (4 (l rows + r) + n) 0x9e3779b97f4a7c15)`, modulo 2^64.
    pub fn parents(&self, place: Place) -> [Place; PARENTS] {
        let rows = self.plan.rows;
        let mut counter = self.number_of(place).wrapping_mul(PARENTS as u64);
        [(); PARENTS].map(|()| {
            let row = scaled(SplitMix64::nth(self.parents, counter), rows);
            counter = counter.wrapping_add(1);
            let is_new = self.batch_of(row) < self.batch_of(place.row);
            let layer = if is_new {
                place.layer
            } else {
                place.layer.saturating_sub(1)
            };
            Place { layer, row }
        })
    }

    /// What a row is computed from: a mask and its parents, each turned, all XORed. Word n of the mask,
    /// little-endian, is `mix(k + n 0x9e3779b97f4a7c15)`, and word n of a turned parent is word
    /// `(n + b) % 128` of the parent, where `b` is byte 0 of `k`, little-endian, for parent 0, and so on.
    /// `k` is at first `mix(key + (l rows + r) 0x9e3779b97f4a7c15)` for row `r` of layer `l`, and then
    /// `mix(k ^ t)` for the [`tag`] `t` of each parent in their order.
    ///
    /// The place is in it so that no row follows cheaply from its parents, whatever they are, nor any two
    /// rows from the same sums. The tags are, so that nobody makes a row up that leaves nothing to compute in
    /// what depends on it. Parents are turned so that none is XORed to others before all are there, and
    /// forgotten.
    pub fn gather(&self, place: Place, parents: [(&Row, u64); PARENTS]) -> Row {
        let key = SplitMix64::nth(self.masks, self.number_of(place));
        let key = parents
            .iter()
            .fold(key, |key, (_, tag)| SplitMix64::mix(key ^ tag));
        let mut gathered = stream(key, 0);
        for ((parent, _), turn) in parents.into_iter().zip(key.to_le_bytes()) {
            let first = usize::from(turn % 128).saturating_mul(WORD);
            let (last, from) = parent.split_at(first);
            for (cell, other) in gathered.iter_mut().zip(from.iter().chain(last)) {
                *cell ^= other;
            }
        }
        gathered
    }

    /// A place's number, counted from layer 0.
    fn number_of(&self, place: Place) -> u64 {
        let before = u64::from(place.layer).wrapping_mul(self.plan.rows.into());
        before.wrapping_add(place.row.into())
    }

    /// Which of its layer's batches a row is in.
    pub(crate) fn batch_of(&self, row: u32) -> u32 {
        let batch = row.checked_div(self.plan.batch_rows());
        batch.unwrap_or_default().min(BATCHES.saturating_sub(1))
    }

    /// One cell of a new row.
    pub fn cell(&self, gathered: &Row, column: u32) -> i8 {
        (dot(gathered, &self.weights(column)) >> SHIFT) as i8
    }
}

/// What of a row is in the masks of rows that are computed from it: the first eight bytes of its digest,
/// `blake2_256`, little-endian.
pub fn tag(row: &Row) -> u64 {
    tag_of(&ShownRow::digest(&row.map(|cell| cell as u8)))
}

pub(crate) fn tag_of(digest: &H256) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = digest.0;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

#[allow(clippy::arithmetic_side_effects, reason = "a product of 96 bits is in 128")]
fn scaled(word: u64, bound: u32) -> u32 {
    ((u128::from(word) * u128::from(bound)) >> 64) as u32
}

/// 1,024 bytes that look like chance, from this number of the generator on.
fn stream(key: u64, mut counter: u64) -> Row {
    let mut row = [0; ROW];
    for part in row.chunks_exact_mut(WORD) {
        let bytes = SplitMix64::nth(key, counter).to_le_bytes();
        part.copy_from_slice(&bytes.map(|byte| byte as i8));
        counter = counter.wrapping_add(1);
    }
    row
}
