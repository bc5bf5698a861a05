//! Calls from the first voucher to the money, between honest people, liars, and processes that die.

#![allow(clippy::unwrap_used)]

mod calls;
mod cancels;
mod counted;
mod kept;
mod kills;
mod lies;
mod lives;
mod mends;
mod messages;
mod missed;
mod refusals;
mod support;
mod vouchers;
mod world;
