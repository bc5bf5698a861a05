//! Changes of what is stored. Each runs once, in the first block of a runtime that brings it.

mod causes;

pub use causes::{CauseOfSlashes, OldSlash};
