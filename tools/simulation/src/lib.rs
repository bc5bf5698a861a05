#![doc = include_str!("../README.md")]

pub mod audits;
pub mod books;
pub mod break_even;
pub mod bytes;
pub mod channels;
pub mod committees;
pub mod game;
pub mod gpu_proofs;
pub mod life;
pub mod pay;
pub mod report;
pub mod rules;
pub mod run;
pub mod strategies;
pub mod troubles;
