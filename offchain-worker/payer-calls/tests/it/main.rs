//! Calls over channels from the gateway's side to the money, with the real other end: a payee behind real
//! streams, a journal on disk, and a chain in memory.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, missing_docs)]

mod answers;
mod choice;
mod compared;
mod cover;
mod drawn_out;
mod engine;
mod faults;
mod gateway;
mod kept;
mod money;
mod proofs;
mod provider;
mod race;
mod receipts;
mod showing;
mod untaken;
mod world;
