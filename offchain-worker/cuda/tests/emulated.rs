//! The kernels as a C++ compiler understands them, and all that launches them: no device is needed.
#![allow(clippy::unwrap_used, missing_docs)]

mod emulator;
mod suite;

use emulator::{Emulator, Order};
use surety_cuda::Kernels;

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
