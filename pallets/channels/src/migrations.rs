//! Changes of what is stored. Each runs once, in the first block of a runtime that brings it.

mod into_pot;

pub use into_pot::{DepositsIntoPot, OldChannel, OldDemand, OldPurse, OldWanted};
