//! What the tests of the kernels share.
#![allow(dead_code)] // Not every test uses all of it.

use surety_exact::{Precision, SplitMix64};
use surety_kernels::{Isa, available, weights::Quanta, with_isa};

pub const PRECISIONS: [Precision; 2] = [Precision::Int8, Precision::Int12];

/// These values, which fit.
pub fn quanta(precision: Precision, values: impl Iterator<Item = i16>) -> Quanta {
    match precision {
        Precision::Int8 => Quanta::Int8(values.map(|value| value as i8).collect()),
        Precision::Int12 => Quanta::Int12(values.collect()),
    }
}

/// Numbers like those of a model.
pub struct Random(SplitMix64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub fn next(&mut self) -> u64 {
        self.0.next()
    }

    /// -1 to 1, cubed: most are small, as activations are.
    pub fn float(&mut self) -> f32 {
        let x = self.0.real();
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
