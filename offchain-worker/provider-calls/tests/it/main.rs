//! A provider's calls from the first frame to the money: real engines, a real journal, a chain in memory.

#![allow(clippy::unwrap_used)]

#[path = "../../../engine/tests/common/generating.rs"]
#[allow(dead_code)]
mod generating;
#[path = "../../../engine/tests/common/synthetic.rs"]
#[allow(dead_code)]
mod synthetic;

mod client;
mod defense;
mod device;
mod held_back;
mod holds;
mod kept;
mod lives;
mod money;
mod pauses;
mod places;
mod shown;
mod silent;
mod world;
