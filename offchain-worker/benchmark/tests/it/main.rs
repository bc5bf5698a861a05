//! A provider's part in rounds of the benchmark, against a chain in memory that checks what it is shown.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

mod device;
#[allow(dead_code)]
#[path = "../../../cuda/tests/emulator/mod.rs"]
mod emulator;
mod faults;
mod load;
mod rounds;
mod setup;
