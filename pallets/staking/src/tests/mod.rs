//! One file per behaviour; the invariants are checked after every test.
#![allow(clippy::unwrap_used)]

mod agents;
mod bonding;
mod collateral;
mod locking;
mod properties;
mod slashing;
mod try_state;
mod unbonding;
