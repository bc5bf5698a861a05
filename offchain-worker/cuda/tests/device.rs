//! The kernels on a device: `cargo test --release -p surety-cuda --features cuda -- --ignored`.
#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used, missing_docs)]

mod suite;

use std::{sync::Arc, time::Instant};

use sp_core::H256;
use surety_cuda::{Device, DeviceMemory, Kernels, open_device_memory};
use surety_gpu_proofs::run;

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
    suite::gelus_are_quantized(&mut kernels);
    suite::norms_equal_the_definition(&mut kernels);
    suite::pooling_equals_the_definition(&mut kernels);
    suite::the_likeliest_is_the_first_of_the_largest(&mut kernels);
    suite::attention_equals_the_definition(&mut kernels);
    suite::rotating_equals_the_definition(&mut kernels);
    suite::each_fault_is_reported_once(&mut kernels);
    suite::rounds_of_rows_do_not_show(&mut kernels);
    suite::spans_of_any_place_equal_the_definition(&mut kernels);
    suite::rounds_of_queries_do_not_show(&mut kernels);
    suite::what_is_kept_can_be_copied(&mut kernels);
    suite::rows_attend_alone_as_among_others(&mut kernels);
    suite::sequences_attend_together_as_alone(&mut kernels);
    suite::pages::pages_that_were_given_back_are_taken_again(&mut kernels);
    suite::pages::slabs_go_back_to_the_machine(&mut kernels);
    suite::pages::a_slab_has_several_pages_of_any_size(&mut kernels);
    suite::what_is_staged_leaves_in_its_order(&mut kernels);
    suite::rows_of_a_trace_have_the_digests_of_the_definition(&mut kernels);
    suite::rows_that_do_not_fit_are_refused(&mut kernels);
}

/// The largest batches are a tree of three launches.
#[test]
#[ignore = "needs an NVIDIA device"]
fn a_devices_runs_equal_a_processors() {
    let mut memory = DeviceMemory::new(Device::open(0).unwrap(), u64::MAX, Arc::default());
    suite::proofs::batches_equal_a_processors(&mut memory, &[1, 17, 150, 20_000]);
    suite::proofs::runs_equal_a_processors(memory);
}

/// Says how fast it is; a processor would take long to say whether it is right.
#[test]
#[ignore = "needs an NVIDIA device"]
fn a_device_makes_the_same_run_twice() {
    const GIB: u64 = 1 << 30;
    let mut opened = open_device_memory(0, 3 * GIB, Arc::default()).unwrap();
    assert!(opened.rows_max > 1 << 20, "a GiB is free: {}", opened.rows_max);
    let seed = H256::repeat_byte(1);
    let mut root = || {
        let begun = Instant::now();
        let made = run(&mut opened.memory, opened.rows_max, &seed, |layers| layers < 16).unwrap();
        let plan = made.job().plan();
        let ms = begun.elapsed().as_millis() as u64;
        println!("{} * 10^9 operations a second", plan.giga_operations(ms));
        *made.root()
    };
    assert_eq!(root(), root());
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
