//! Random numbers that are the same everywhere: integers, and sums of them.

/// SplitMix64. Good enough for initial weights and for shuffling; nothing secret is made of it.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator of its own for a purpose, so that drawing more for one changes nothing for another.
    pub(super) fn stream(seed: u64, purpose: u64) -> Self {
        let mut random = Self(seed);
        let start = random.next();
        Self(start ^ purpose.wrapping_mul(0xd134_2543_de82_ef95))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform below `bound`, 0 for 0. Biased by less than `bound / 2^64`.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        let wide = u128::from(self.next()) * bound as u128;
        (wide >> 64) as usize
    }

    /// Nearly normal, of mean 0 and variance 1: the sum of twelve uniform numbers. Sums of integers are the same on
    /// every machine, which the logarithms and cosines of an exactly normal number are not.
    pub(super) fn normal(&mut self) -> f32 {
        // Each draw holds three uniform numbers of 21 bits.
        let mut sum = 0i64;
        for _ in 0..4 {
            let bits = self.next();
            for shift in [0, 21, 42] {
                sum += ((bits >> shift) & 0x1f_ffff) as i64;
            }
        }
        const UNIT: f32 = 2_097_152.0;
        // At most 12 * 2^21, halves cancel: exact in f32 up to the last bit.
        (sum - 6 * 0x20_0000) as f32 / UNIT
    }

    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_numbers_have_mean_nought_and_variance_one() {
        let mut random = Random::new(7);
        let values: Vec<f64> = (0..100_000).map(|_| f64::from(random.normal())).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / values.len() as f64;
        assert!(mean.abs() < 0.02, "{mean}");
        assert!((variance - 1.0).abs() < 0.02, "{variance}");
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        Random::new(3).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn the_same_seed_gives_the_same_numbers_on_every_machine() {
        // The first outputs of the published SplitMix64 for the seed 1234567.
        let mut random = Random::new(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }
}
