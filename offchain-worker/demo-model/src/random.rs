//! Random numbers that are the same everywhere: integers, and sums of them.

use surety_exact::SplitMix64;

/// What initial weights and shuffling are drawn from; nothing secret is made of it.
#[derive(Clone, Debug)]
pub(super) struct Random(SplitMix64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// A generator of its own for a purpose, so that drawing more for one changes nothing for another.
    pub(super) fn stream(seed: u64, purpose: u64) -> Self {
        let mut random = Self::new(seed);
        let start = random.next();
        Self::new(start ^ purpose.wrapping_mul(0xd134_2543_de82_ef95))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0.next()
    }

    /// Uniform below `bound`, 0 for 0. Biased by less than `bound / 2^64`.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound as u64) as usize
    }

    /// Nearly normal, of mean 0 and variance 1: the sum of twelve uniform numbers. Sums of integers are the
    /// same on every machine, which the logarithms and cosines of an exactly normal number are not.
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
        // Under 2^24 either way: the conversion is exact.
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
}
