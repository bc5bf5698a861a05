//! The kernels on a device: `cargo test --release -p surety-cuda --features cuda -- --ignored`.
#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used, missing_docs)]

mod suite;

use surety_cuda::{Device, Kernels};

#[test]
#[ignore = "needs an NVIDIA device"]
fn a_device_equals_the_definition() {
    let device = Device::open(0).unwrap();
    println!(
        "{}, product library: {}",
        device.name().unwrap(),
        device.has_library()
    );
    let mut kernels = Kernels::new(device).unwrap();
    suite::products_equal_the_definition(&mut kernels);
    suite::products_of_the_largest_numbers_equal_the_definition(&mut kernels);
    suite::products_of_the_same_rows_equal_the_definition(&mut kernels);
    suite::norms_quantize_what_they_give(&mut kernels);
    suite::a_row_does_not_depend_on_its_neighbors(&mut kernels);
    suite::embedding_equals_the_definition(&mut kernels);
    suite::functions_equal_the_definition(&mut kernels);
    suite::norms_equal_the_definition(&mut kernels);
    suite::pooling_equals_the_definition(&mut kernels);
    suite::attention_equals_the_definition(&mut kernels);
    suite::rotating_equals_the_definition(&mut kernels);
    suite::each_fault_is_reported_once(&mut kernels);
    suite::rounds_of_rows_do_not_show(&mut kernels);
    suite::rounds_of_queries_do_not_show(&mut kernels);
    suite::what_is_kept_can_be_copied(&mut kernels);
    suite::rows_attend_alone_as_among_others(&mut kernels);
    suite::sequences_attend_together_as_alone(&mut kernels);
    suite::what_is_staged_leaves_in_its_order(&mut kernels);
}

/// On a machine without a device the reason is named; with one, a number that is too high is.
#[test]
fn what_is_missing_is_named() {
    let error = Device::open(usize::MAX).unwrap_err();
    assert!(
        matches!(
            error,
            surety_cuda::Error::NoDriver | surety_cuda::Error::NoDevice(_)
        ),
        "{error}"
    );
}
