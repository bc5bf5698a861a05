//! A verifier's audits of batches: its book by properties, and whole lives with real engines, a real journal
//! and a chain in memory.

#![allow(clippy::unwrap_used)]

#[path = "../../../provider-calls/tests/it/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "../../../engine/tests/common/generating.rs"]
#[allow(dead_code)]
mod generating;
#[path = "../../../engine/tests/common/synthetic.rs"]
#[allow(dead_code)]
mod synthetic;
#[path = "../../../provider-calls/tests/it/world.rs"]
#[allow(dead_code)]
mod world;

mod book;
mod cheats;
mod games;
mod lives;
mod poison;
mod setup;
mod unhurried;
