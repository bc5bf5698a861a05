//! What the tests of the kernels share.
#![allow(dead_code)] // Not every test uses all of it.

use surety_exact::Precision;
use surety_kernels::{available, weights::Quanta, with_isa, Isa};

pub const PRECISIONS: [Precision; 2] = [Precision::Int8, Precision::Int12];

/// These values, which fit.
pub fn quanta(precision: Precision, values: impl Iterator<Item = i16>) -> Quanta {
    match precision {
        Precision::Int8 => Quanta::Int8(values.map(|value| value as i8).collect()),
        Precision::Int12 => Quanta::Int12(values.collect()),
    }
}

/// splitmix64: numbers from a seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// -1 to 1, cubed: most are small, as activations are.
    pub fn float(&mut self) -> f32 {
        let x = (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0;
        x * x * x
    }

    pub fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.float()).collect()
    }

    /// As a converter writes them.
    pub fn quanta(&mut self, precision: Precision, count: usize) -> Quanta {
        let most = precision.max();
        let one = |_| (self.next() % (2 * most as u64 + 1)) as i16 - most;
        let all = (0..count).map(one);
        quanta(precision, all)
    }
}

pub fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

pub fn each_isa(mut check: impl FnMut(Isa)) {
    for isa in available() {
        with_isa(*isa, || check(*isa));
    }
}

pub fn threads(count: usize, work: impl FnOnce() + Send) {
    rayon::ThreadPoolBuilder::new()
        .num_threads(count)
        .build()
        .unwrap()
        .install(work);
}
