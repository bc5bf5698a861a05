//! One file per behaviour; the invariants are checked after every test.
#![allow(clippy::unwrap_used)]

mod auditors;
mod catalog;
mod registering;
mod retiring;
mod selling;
mod try_state;
