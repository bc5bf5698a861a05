//! Why there are kernels of our own: the test of theirs that a row does not depend on its neighbors, applied
//! to stock ones. One row takes a way of its own through their library, on every instruction set: a
//! register's lanes along the inner dimension, added up at the end, where a product of many rows goes along
//! it one by one.
#![allow(clippy::unwrap_used)]

use candle_core::{Device, Tensor};

const WIDTH: usize = 384;
const OUTPUTS: usize = 1536;

/// Numbers that need all digits, from -1 to 1.
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let next = |state: &mut u64| {
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        Some((*state >> 40) as f32 / (1 << 23) as f32 - 1.0)
    };
    std::iter::repeat_n((), count)
        .scan(seed, |state, ()| next(state))
        .collect()
}

/// The bits of the first row of a product of `rows` rows.
fn first_row(rows: usize) -> Vec<u32> {
    let input = numbers(65 * WIDTH, 1)[..rows * WIDTH].to_vec();
    let input = Tensor::from_vec(input, (rows, WIDTH), &Device::Cpu).unwrap();
    // As a linear layer has it: a row per output.
    let weights = Tensor::from_vec(numbers(OUTPUTS * WIDTH, 2), (OUTPUTS, WIDTH), &Device::Cpu).unwrap();
    let product = input.matmul(&weights.t().unwrap()).unwrap();
    let row: Vec<f32> = product.get(0).unwrap().to_vec1().unwrap();
    row.into_iter().map(f32::to_bits).collect()
}

/// The same numbers of rows that our own kernels are tested with.
#[test]
fn rows_of_a_stock_f32_product_depend_on_their_neighbors() {
    let alone = first_row(1);
    assert_eq!(alone, first_row(1), "the same product twice, at least");
    let different = |among: usize| {
        let among = first_row(among);
        alone.iter().zip(&among).filter(|(a, b)| a != b).count()
    };
    let counts = [2, 7, 32, 65].map(|rows| (rows, different(rows)));
    println!("outputs of {OUTPUTS} that differ, by the number of rows: {counts:?}");
    assert!(counts.iter().any(|(_, different)| *different > 0), "{counts:?}");
}
