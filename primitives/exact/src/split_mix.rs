//! Numbers that look like chance and are the same everywhere.

/// SplitMix64 (Steele, Lea and Flood, 2014): what a computation draws from that has to come out alike on
/// every machine, and tests. Worthless for secrets.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

/// What its state grows by with each number.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl SplitMix64 {
    /// Of this state. Those of neighboring seeds are unrelated, but for seeds that are whole steps apart.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    #[allow(clippy::should_implement_trait)] // It never ends.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        Self::mix(self.0)
    }

    /// The n-th number of this seed at once, counted from one; of `n` = 0 it is the seed itself that is
    /// mixed.
    pub const fn nth(seed: u64, n: u64) -> u64 {
        Self::mix(seed.wrapping_add(n.wrapping_mul(STEP)))
    }

    /// Below `bound`; 0 when that is 0. Off from even by less than `bound` / 2^64.
    #[allow(clippy::arithmetic_side_effects, reason = "a product of 64 bits is in 128")]
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next() as u128 * bound as u128) >> 64) as u64
    }

    /// From -1 up to 1, of 24 bits.
    pub const fn real(&mut self) -> f32 {
        (self.next() >> 40) as f32 / 8_388_608.0 - 1.0
    }

    /// The generator's finish: spreads every bit over all.
    pub const fn mix(z: u64) -> u64 {
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_are_the_published_ones() {
        let mut random = SplitMix64::new(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn any_number_is_there_at_once_as_it_comes_in_its_turn() {
        for seed in [0, 1_234_567, u64::MAX] {
            let mut random = SplitMix64::new(seed);
            for n in 1..100 {
                assert_eq!(SplitMix64::nth(seed, n), random.next(), "{n} of {seed}");
            }
            assert_eq!(SplitMix64::nth(seed, 0), SplitMix64::mix(seed));
        }
    }

    #[test]
    fn numbers_stay_below_their_bounds() {
        let mut random = SplitMix64::new(0);
        for bound in [1, 2, 3, 1000, u64::MAX] {
            assert!((0..1000).all(|_| random.below(bound) < bound), "{bound}");
        }
        assert_eq!(random.below(0), 0);
        assert!((0..1000).all(|_| (-1.0..1.0).contains(&random.real())));
    }
}
