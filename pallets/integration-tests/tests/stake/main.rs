//! Stake behind validators and providers: backed, elected, paid, slashed and spared, with all pallets that
//! have a part in that.

#![allow(clippy::unwrap_used)]

mod chain;
mod lives;
mod offences;
mod pay;
mod presence;
mod roles;
