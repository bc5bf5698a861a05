//! One file per behaviour; the invariants are checked after every test.
#![allow(clippy::unwrap_used)]

mod cap;
mod lives;
mod providers;
mod try_state;
mod validators;
