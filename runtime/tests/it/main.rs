//! The runtime as a whole: real blocks with real extrinsics, through all pallets.

#![allow(clippy::unwrap_used)]

mod agendas;
mod anything;
mod chain;
mod clock;
mod committee;
mod consensus;
mod crowd;
mod disputes;
mod errors;
mod escrow;
mod fees;
mod governance;
mod inputs;
mod leaving;
mod lives;
mod locks;
mod market;
mod measured;
mod openings;
mod presets;
mod providers;
mod receipt_proof;
mod receipts;
mod referenda;
mod requiring;
mod retiring;
mod selling;
mod sharing;
mod shop;
mod stake;
mod tracks;
mod upgrades;
mod vesting;
mod views;
