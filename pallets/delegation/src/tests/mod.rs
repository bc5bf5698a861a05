//! One file per behaviour; the invariants are checked after every test.
#![allow(clippy::unwrap_used)]

mod delegating;
mod fund;
mod leaving;
mod model;
mod properties;
mod redelegating;
mod rewards;
mod slashing;
mod try_state;
