//! One file per behaviour; the invariants are checked after every test.
#![allow(clippy::unwrap_used)]

mod availability;
mod leaving;
mod registering;
mod try_state;
