//! `surety`: see `surety --help`.

use std::process::ExitCode;

use clap::Parser;
use surety_cli::{args::Cli, commands, output};

fn main() -> ExitCode {
    match commands::run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::print_error(&error);
            ExitCode::from(error.exit_code())
        }
    }
}
