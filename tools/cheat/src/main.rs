#![doc = include_str!("../README.md")]

mod altering;
mod args;
mod coarse;
mod crashing;
mod crowd;
mod deceiving;
mod lines;
mod plane;
mod quiet;
mod worker;

use std::{process::ExitCode, sync::Arc};

use clap::Parser;
use surety_cli::{commands, output};

use args::CheatCli;
use worker::BadWorker;

fn main() -> ExitCode {
    let args = CheatCli::parse();
    if let Err(error) = args.check() {
        error.exit();
    }
    let worker = BadWorker {
        cheat: args.cheat,
        crash_at: args.crash_at,
    };
    match commands::run(args.surety, Arc::new(worker)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::print_error(&error);
            ExitCode::from(error.exit_code())
        }
    }
}
