//! Chance that is the same in every run.

use sp_core::H256;
use surety_exact::SplitMix64;

/// What tests want of [`SplitMix64`].
#[derive(Clone, Debug)]
pub struct Dice(SplitMix64);

impl Dice {
    /// Of this state itself: neighboring seeds give sequences that overlap.
    pub const fn seeded(state: u64) -> Self {
        Self(SplitMix64::new(state))
    }

    /// Of a run's seed and whatever it is used for. Different purposes give unrelated numbers.
    pub fn new(seed: u64, purpose: u64) -> Self {
        let mut dice = Self::seeded(seed ^ purpose.wrapping_mul(0xd6e8_feb8_6659_fd93));
        // Neighboring seeds are not to give neighboring states.
        Self::seeded(dice.number() ^ purpose)
    }

    /// 64 bits.
    pub fn number(&mut self) -> u64 {
        self.0.next()
    }

    /// Below `bound`; 0 when that is 0. Off from even by less than `bound` / 2^64.
    pub fn below(&mut self, bound: u32) -> u32 {
        self.0.below(bound.into()) as u32
    }

    /// True with probability `share`.
    pub fn chance(&mut self, share: f64) -> bool {
        // The upper 53 bits are a number in [0, 1) without rounding.
        ((self.number() >> 11) as f64) < share * (1u64 << 53) as f64
    }

    /// What a VRF gives somebody: 32 bytes of which an audit's draw reads the first 16.
    pub fn vrf_output(&mut self) -> [u8; 32] {
        let mut output = [0; 32];
        output[..8].copy_from_slice(&self.number().to_le_bytes());
        output[8..16].copy_from_slice(&self.number().to_le_bytes());
        output
    }

    /// A hash that nobody has seen before.
    pub fn hash(&mut self) -> H256 {
        let mut bytes = [0; 32];
        for part in bytes.chunks_exact_mut(8) {
            part.copy_from_slice(&self.number().to_le_bytes());
        }
        H256(bytes)
    }
}
