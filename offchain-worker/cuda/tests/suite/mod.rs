//! Every operation against `surety-exact`, and runs of the benchmark against a processor's, bit for bit, on
//! whatever machine.

mod attention;
mod copies;
mod faults;
pub mod pages;
mod products;
pub mod proofs;
mod rows;
mod sequences;
mod trace;

use std::ops::Range;

use surety_cuda::{Floats, GpuBackend, Kernels};
use surety_exact::{Precision, SplitMix64};

pub use attention::{
    attention_equals_the_definition, rotating_equals_the_definition, rounds_of_queries_do_not_show,
    spans_of_any_place_equal_the_definition,
};
pub use copies::{
    rows_attend_alone_as_among_others, what_is_kept_can_be_copied, what_is_staged_leaves_in_its_order,
};
pub use faults::each_fault_is_reported_once;
pub use products::{a_row_does_not_depend_on_its_neighbors, embedding_equals_the_definition};
pub use products::{
    products_equal_the_definition, products_of_the_largest_numbers_equal_the_definition,
    products_of_the_same_rows_equal_the_definition, rounds_of_rows_do_not_show,
};
pub use rows::{
    functions_equal_the_definition, gelus_are_quantized, norms_equal_the_definition,
    norms_quantize_what_they_give, pooling_equals_the_definition, the_likeliest_is_the_first_of_the_largest,
};
pub use sequences::sequences_attend_together_as_alone;
pub use trace::{rows_of_a_trace_have_the_digests_of_the_definition, rows_that_do_not_fit_are_refused};

/// Numbers like those of a model.
pub struct Random(SplitMix64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    fn next(&mut self) -> u64 {
        self.0.next()
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Between -1 and 1.
    fn unit(&mut self) -> f32 {
        self.0.real()
    }

    /// As activations are: most of them small, some zero, an outlier now and then.
    fn activations(&mut self, count: usize) -> Vec<f32> {
        let mut one = || match self.below(40) {
            0 => 0.0,
            1 => -0.0,
            2 => self.unit() * 50.0,
            3 => self.unit() * 1e-6,
            _ => self.unit(),
        };
        (0..count).map(|_| one()).collect()
    }

    /// Any finite bits: subnormals, and sizes of all magnitudes.
    fn finite(&mut self) -> f32 {
        loop {
            let value = f32::from_bits(self.next() as u32);
            if value.is_finite() {
                return value;
            }
        }
    }

    fn quanta(&mut self, precision: Precision, count: usize) -> Vec<i16> {
        let most = precision.max();
        let ends = 2 * usize::from(most.unsigned_abs()) + 1;
        (0..count).map(|_| self.below(ends) as i16 - most).collect()
    }

    fn scales(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.unit().abs() * 0.01).collect()
    }
}

/// Compares bits; all NaN are one.
#[track_caller]
fn assert_same(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let same = found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan());
        assert!(
            same,
            "{what}: value {i} is {found:e} ({:08x}), not {expected:e}",
            found.to_bits()
        );
    }
}

/// What an array on the machine holds.
fn values<M: GpuBackend>(kernels: &mut Kernels<M>, floats: &Floats<M>) -> Vec<f32> {
    kernels.download(floats).unwrap()
}

fn range(span: &Range<u32>, width: usize) -> Range<usize> {
    span.start as usize * width..span.end as usize * width
}
