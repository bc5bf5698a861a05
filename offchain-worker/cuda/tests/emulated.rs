//! The kernels as a C++ compiler understands them, and all that launches them: no device is needed.
#![allow(clippy::unwrap_used, missing_docs)]

mod emulator;
mod suite;

use emulator::{Emulator, Order};
use surety_cuda::{Capped, Error, GpuBackend, Kernels};

/// Where a barrier is missing, the order in which threads run shows.
fn both_orders(check: impl Fn(&mut Kernels<Emulator>)) {
    for order in [Order::Forwards, Order::Backwards] {
        check(&mut Kernels::new(Emulator::start(order)).unwrap());
    }
}

#[test]
fn products_equal_the_definition() {
    both_orders(suite::products_equal_the_definition);
}

#[test]
fn products_of_the_largest_numbers_equal_the_definition() {
    both_orders(suite::products_of_the_largest_numbers_equal_the_definition);
}

#[test]
fn products_of_the_same_rows_equal_the_definition() {
    both_orders(suite::products_of_the_same_rows_equal_the_definition);
}

#[test]
fn norms_quantize_what_they_give() {
    both_orders(suite::norms_quantize_what_they_give);
}

#[test]
fn a_row_does_not_depend_on_its_neighbors() {
    both_orders(suite::a_row_does_not_depend_on_its_neighbors);
}

#[test]
fn embedding_equals_the_definition() {
    both_orders(suite::embedding_equals_the_definition);
}

#[test]
fn functions_equal_the_definition() {
    both_orders(suite::functions_equal_the_definition);
}

#[test]
fn norms_equal_the_definition() {
    both_orders(suite::norms_equal_the_definition);
}

#[test]
fn pooling_equals_the_definition() {
    both_orders(suite::pooling_equals_the_definition);
}

#[test]
fn attention_equals_the_definition() {
    both_orders(suite::attention_equals_the_definition);
}

#[test]
fn rotating_equals_the_definition() {
    both_orders(suite::rotating_equals_the_definition);
}

#[test]
fn each_fault_is_reported_once() {
    both_orders(suite::each_fault_is_reported_once);
}

#[test]
fn rounds_of_rows_do_not_show() {
    both_orders(suite::rounds_of_rows_do_not_show);
}

#[test]
fn rounds_of_queries_do_not_show() {
    both_orders(suite::rounds_of_queries_do_not_show);
}

#[test]
fn what_is_kept_can_be_copied() {
    both_orders(suite::what_is_kept_can_be_copied);
}

#[test]
fn rows_attend_alone_as_among_others() {
    both_orders(suite::rows_attend_alone_as_among_others);
}

#[test]
fn sequences_attend_together_as_alone() {
    both_orders(suite::sequences_attend_together_as_alone);
}

#[test]
fn what_is_staged_leaves_in_its_order() {
    both_orders(suite::what_is_staged_leaves_in_its_order);
}

/// What is freed may be taken again, and what is computed is the same.
#[test]
fn no_more_memory_is_taken_than_the_cap_allows() {
    let mut machine = Capped::new(Emulator::start(Order::Forwards), 1000);
    let first = machine.allocate(600).unwrap();
    let refused = machine.allocate(401).unwrap_err();
    let expected = Error::MemoryCap {
        needed: 401,
        used: 600,
        max: 1000,
    };
    assert_eq!(refused, expected);
    let second = machine.allocate(400).unwrap();
    drop((first, second));
    machine.allocate(1000).unwrap();
    let emulator = Emulator::start(Order::Forwards);
    suite::rows_attend_alone_as_among_others(&mut Kernels::new(Capped::new(emulator, 1 << 24)).unwrap());
}
