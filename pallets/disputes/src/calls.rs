//! What accounts do.

mod challenges;
mod committee;
