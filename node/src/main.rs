//! The Surety validator node.

// The error type is sc-cli's, and it is made once in the life of a process.
#![allow(clippy::result_large_err)]

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
