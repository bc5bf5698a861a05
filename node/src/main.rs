//! The Surety validator node.

#[cfg(feature = "runtime-benchmarks")]
mod benchmark;
mod chain_spec;
mod cli;
mod command;
mod rpc;
mod service;

use std::{error::Error, process::ExitCode};

fn main() -> ExitCode {
    match command::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error}");
            let mut cause = error.source();
            while let Some(error) = cause {
                eprintln!("  caused by: {error}");
                cause = error.source();
            }
            ExitCode::FAILURE
        }
    }
}
