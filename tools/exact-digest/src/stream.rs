//! Arguments in, bits out.

use surety_exact::{ArithmeticError, SplitMix64};

/// Pseudo-random arguments ([`SplitMix64`]), and the digest of everything seen so far.
pub struct Stream {
    arguments: SplitMix64,
    digest: u64,
}

impl Stream {
    pub fn new(seed: u64) -> Self {
        Self {
            arguments: SplitMix64::new(SplitMix64::mix(seed)),
            digest: 0,
        }
    }

    pub fn number(&mut self) -> u64 {
        self.arguments.next()
    }

    /// A number from 1 to a bound.
    pub fn upto(&mut self, bound: u64) -> usize {
        (1 + self.number() % bound) as usize
    }

    pub fn integer(&mut self) -> i8 {
        self.number() as i8
    }

    /// Mostly of 12 bits; sometimes any of 16.
    pub fn wide_integer(&mut self) -> i16 {
        let number = self.number();
        match number % 64 {
            0 => (number >> 32) as i16,
            _ => (number >> 32) as i16 >> 4,
        }
    }

    /// Mostly what rows of a model hold; sometimes zeros of both signs, subnormals, huge values and any bits
    /// at all, NaN and infinities among them.
    pub fn float(&mut self) -> f32 {
        let number = self.number();
        let usual = (number >> 40) as f32 * (1.0 / 2_097_152.0) - 4.0;
        match number % 1024 {
            0 => 0.0,
            1 => -0.0,
            2 => usual * 1e-39,
            3 => usual * 1e30,
            4 => f32::from_bits((number >> 32) as u32),
            5..=40 => usual * 60.0,
            41..=80 => usual * 1e-4,
            _ => usual,
        }
    }

    /// What is usual alone: rows that have a value.
    pub fn plain(&mut self) -> f32 {
        (self.number() >> 40) as f32 * (1.0 / 2_097_152.0) - 4.0
    }

    pub fn put(&mut self, number: u64) {
        self.digest = SplitMix64::mix(self.digest.rotate_left(5) ^ number);
    }

    pub fn put_float(&mut self, value: f32) {
        // Which NaN it is differs between machines, and never counts.
        self.put(if value.is_nan() {
            1 << 32
        } else {
            u64::from(value.to_bits())
        });
    }

    pub fn put_floats(&mut self, row: &[f32]) {
        for value in row {
            self.put_float(*value);
        }
    }

    pub fn put_fault(&mut self, fault: ArithmeticError) {
        self.put(match fault {
            ArithmeticError::Shape => 2 << 32,
            ArithmeticError::NotFinite => 3 << 32,
            ArithmeticError::ZeroNorm => 4 << 32,
        });
    }

    pub fn digest(&self) -> u64 {
        self.digest
    }
}
