//! `surety channel`, as typed.

use clap::{Args, Subcommand};

use crate::amount::Amount;

/// `surety channel`.
#[derive(Debug, Subcommand)]
pub enum ChannelCommand {
    /// What providers offer over channels: for how much, where they say that they are, and what the chain
    /// remembers of them
    Offers(OffersArgs),
    /// Channels that the key in the key file pays for, and what is left in each
    List {
        /// Those instead that pay the provider whose stash, or agent, the key is
        #[arg(long)]
        incoming: bool,
    },
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
        /// As its provider, with the key of the stash or of the agent: give the payer at once all that was
        /// not redeemed, once all that is counted was. What was earned and is not counted yet is given up;
        /// what was signed is answered for as long as if the payer had closed the channel
        #[arg(long)]
        agreed: bool,
    },
}

/// Flags of `surety channel offers`.
#[derive(Debug, Args)]
pub struct OffersArgs {
    /// Of this model alone, by name or id
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
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
