//! What is shipped beside the program, made from its own command line.

use std::{fs, path::Path};

use clap::CommandFactory;
use clap_complete::Shell;

use crate::{
    args::Cli,
    error::{CliError, Result},
    output::print_all,
};

/// Prints completions for a shell.
pub fn completions(shell: Shell) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "surety", &mut text);
    print_all(&text)
}

/// Writes a man page for each command.
pub fn pages(folder: &Path) -> Result<()> {
    let made = fs::create_dir_all(folder);
    let written = made.and_then(|()| clap_mangen::generate_to(Cli::command(), folder));
    written.map_err(|source| CliError::File {
        path: folder.into(),
        source,
    })
}
