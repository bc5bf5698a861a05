//! Verifiers and disputes.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{InitArgs, WorkArgs};

/// `surety verifier`.
#[derive(Debug, Subcommand)]
pub enum VerifierCommand {
    /// Audit what the chain's draw says, and play the disputes that come of it, until stopped
    Up(Box<WorkArgs>),
    /// Prepare this machine: make keys, bond stake, name the agent, fetch a model; goes on where it was
    /// interrupted
    Init(InitArgs),
}

/// `surety dispute`.
#[derive(Debug, Subcommand)]
pub enum DisputeCommand {
    /// Disputes that are open
    List,
    /// Explain a dispute in words, step by step, from what is on the chain
    Show(DisputeShowArgs),
    /// Have a provider slashed that signed another result than it has on the chain, or two
    Report(DisputeReportArgs),
}

/// Flags of `surety dispute report`.
#[derive(Debug, Args)]
pub struct DisputeReportArgs {
    /// File with what the provider signed, as kept in HOME/tasks
    #[arg(value_name = "FILE")]
    pub statement: PathBuf,
    /// File with what else it signed [default: it is held against the chain]
    #[arg(long, value_name = "FILE")]
    pub other: Option<PathBuf>,
}

/// Flags of `surety dispute show`.
#[derive(Debug, Args)]
pub struct DisputeShowArgs {
    /// Number of the dispute
    #[arg(value_name = "ID")]
    pub dispute: u32,
    /// Most blocks to look back for what has happened [default: as far as the node can]
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub blocks: u32,
}
