//! The faucet of a test network.

use std::net::{IpAddr, SocketAddr};

use clap::{Args, Subcommand};

use crate::amount::Amount;

/// `surety faucet`.
#[derive(Debug, Subcommand)]
pub enum FaucetCommand {
    /// Pay whoever asks, from the key in the key file, until stopped
    Up(FaucetArgs),
}

/// Flags of `surety faucet up`.
#[derive(Debug, Args)]
pub struct FaucetArgs {
    /// Where it is asked
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8788", value_parser = super::socket)]
    pub http: SocketAddr,
    /// What each claim is given: a provider's stake, and some for fees
    #[arg(long, value_name = "AMOUNT", default_value = "1010 SURE")]
    pub amount: Amount,
    /// Most claims a day from one address; of IPv6 each /64 is one
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub per_client: u32,
    /// Most claims an hour from all together
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub per_hour: u32,
    /// Address of a proxy whose X-Forwarded-For is believed; repeatable [default: nobody's is]
    #[arg(long, value_name = "IP")]
    pub trusted_proxy: Vec<IpAddr>,
}
