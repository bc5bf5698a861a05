//! What the tests of the kernels share.
#![allow(dead_code)] // Not every test uses all of it.

use surety_kernels::{available, with_isa, Isa};

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

    /// -127 to 127.
    pub fn quanta(&mut self, count: usize) -> Vec<i8> {
        (0..count)
            .map(|_| ((self.next() % 255) as i16 - 127) as i8)
            .collect()
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
