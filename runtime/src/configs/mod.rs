//! What the pallets are configured with.

#![warn(missing_docs)]

pub mod compute;
pub mod consensus;
pub mod courts;
pub mod governance;
pub mod system;
