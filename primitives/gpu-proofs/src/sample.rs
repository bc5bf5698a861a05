//! What is drawn of a run.

use codec::Encode;
use sp_core::H256;
use sp_crypto_hashing::blake2_256;
use surety_exact::SplitMix64;

use crate::{CELLS, Plan, ROW, SAMPLES, job::Place};

/// A row of a run, and cells of it that are computed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The row.
    pub place: Place,
    /// Columns of the cells.
    pub columns: [u32; CELLS],
}

/// Draws rows of a provider's run, each as likely as any other, by entropy that nobody knew when the run was
/// committed to. The commitment is no part of it: nobody can try several.
pub fn draw(plan: Plan, entropy: &H256, round: u32, provider: &impl Encode) -> [Sample; SAMPLES] {
    let hash = blake2_256(&(b"gpu proof samples", round, entropy, provider).encode());
    let [a, b, c, d, e, f, g, h, ..] = hash;
    let mut random = SplitMix64::new(u64::from_le_bytes([a, b, c, d, e, f, g, h]));
    // Whatever is drawn is below a bound of 32 bits.
    let mut below = |bound: u32| random.below(bound.into()) as u32;
    [(); SAMPLES].map(|()| Sample {
        place: Place {
            layer: below(plan.layers).saturating_add(1),
            row: below(plan.rows),
        },
        columns: [(); CELLS].map(|()| below(ROW as u32)),
    })
}
