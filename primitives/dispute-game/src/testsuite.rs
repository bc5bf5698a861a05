//! What tests of several crates share, behind the feature `testsuite`: chance that is the same in every run,
//! and a computation that is small enough to be disputed a million times.

pub mod dice;
pub mod generation;
pub mod toy;
