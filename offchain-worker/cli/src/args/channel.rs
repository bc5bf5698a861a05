//! `surety channel`, as typed.

use clap::{Args, Subcommand};

use crate::amount::Amount;

/// `surety channel`.
#[derive(Debug, Subcommand)]
pub enum ChannelCommand {
    /// Channels that the key in the key file pays for, and what is left in each
    List,
    /// Open a channel to a provider
    Open(OpenArgs),
    /// Deposit more in a channel
    TopUp {
        /// Number of the channel, as listed
        #[arg(value_name = "CHANNEL")]
        channel: u64,
        /// How much more
        #[arg(long, value_name = "AMOUNT")]
        amount: Amount,
    },
    /// Have what is left of a channel back: its provider has some time first for what it has earned, and then
    /// the same command ends it
    Close {
        /// Number of the channel, as listed
        #[arg(value_name = "CHANNEL")]
        channel: u64,
    },
}

/// Flags of `surety channel open`.
#[derive(Debug, Args)]
pub struct OpenArgs {
    /// The provider's account
    #[arg(value_name = "ADDRESS")]
    pub provider: String,
    /// What is deposited
    #[arg(long, value_name = "AMOUNT")]
    pub deposit: Amount,
}
