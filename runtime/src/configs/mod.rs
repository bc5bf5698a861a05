//! What the pallets are configured with.

#![warn(missing_docs)]

pub mod agendas;
pub mod channels;
pub mod compute;
pub mod consensus;
pub mod fees;
pub mod governance;
pub mod gpu_proofs;
mod history;
pub mod origins;
pub mod providers;
pub mod referenda;
pub mod stake;
pub mod system;
pub mod tracks;
pub mod treasury;
pub mod trust;
pub mod vesting;
pub mod whitelist;
