#![allow(clippy::unwrap_used)]

mod conservation;
mod dust;
mod limit;
mod open;
mod refund;
mod settle;
mod try_state;
