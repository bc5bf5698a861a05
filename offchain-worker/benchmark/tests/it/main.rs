//! A provider's part in rounds of the benchmark, against a chain in memory that checks what it is shown.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

mod faults;
mod rounds;
mod setup;
