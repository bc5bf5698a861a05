//! `surety`: see `surety --help`.

use std::{process::ExitCode, sync::Arc};

use clap::Parser;
use surety_cli::{args::Cli, assembly::AsIs, commands, output};

fn main() -> ExitCode {
    match commands::run(Cli::parse(), Arc::new(AsIs)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::print_error(&error);
            ExitCode::from(error.exit_code())
        }
    }
}
