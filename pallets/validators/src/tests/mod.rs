//! The invariants are checked after every test.
#![allow(clippy::unwrap_used)]

mod calls;
mod election;
mod key_owners;
mod offences;
mod presence;
mod try_state;
