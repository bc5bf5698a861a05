//! `surety gateway`, as typed.

use std::net::{IpAddr, SocketAddr};

use clap::{Args, Subcommand, value_parser};
use surety_payer_calls::Region;

use super::{SecurityArgs, task::redundancy};
use crate::amount::Amount;

/// `surety gateway`.
#[derive(Debug, Subcommand)]
pub enum GatewayCommand {
    /// Answer OpenAI's clients: at once from providers over payment channels, and batches as tasks; all of it
    /// is paid from the key in the key file, until stopped
    Up(Box<GatewayArgs>),
    /// API keys: who may ask it, and for how much
    #[command(subcommand)]
    Keys(KeysCommand),
}

/// Flags of `surety gateway up`.
#[derive(Debug, Args)]
pub struct GatewayArgs {
    /// Where clients reach it
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = super::socket)]
    pub http: SocketAddr,
    /// Most HTTP connections from one address, each of which is one request: IPv4, or a /64 of IPv6. This
    /// machine's own addresses have all
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = value_parser!(u32).range(1..=256))]
    pub connections_per_address: u32,
    /// Address of a proxy that is not on this machine: it has the connections of many, and limits of its own;
    /// repeatable
    #[arg(long, value_name = "IP")]
    pub trusted_proxy: Vec<IpAddr>,
    /// Answer requests without a key, too, which may spend so much in all; on this machine's own addresses
    /// alone [default: every request needs a key]
    #[arg(long, value_name = "AMOUNT")]
    pub without_key: Option<Amount>,
    /// A model to offer, by name or id; repeatable [default: those on the chain whose tokenizer is here]
    #[arg(long, value_name = "MODEL")]
    pub model: Vec<String>,
    /// Most that may be in payment channels, or was signed for over those that have ended; 0 for no answers
    /// at once
    #[arg(long, value_name = "AMOUNT", default_value = "50 SURE")]
    pub budget: Amount,
    /// Deposit of a channel, and what it is topped up by; more where one request may cost more
    #[arg(long, value_name = "AMOUNT", default_value = "5 SURE")]
    pub deposit: Amount,
    /// Most channels at once
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = value_parser!(u16).range(1..=128))]
    pub channels: u16,
    /// Most that is paid for a token, or an item to embed, of an answer at once [default: what the cheapest
    /// provider asks, and a quarter more]
    #[arg(long, value_name = "AMOUNT")]
    pub unit_price_max: Option<Amount>,
    /// Have a receipt shown that no final batch has after so many blocks, or before its channel ends: by its
    /// provider, and where that does not by the chain [default: 3600, two hours]
    #[arg(long, value_name = "BLOCKS", value_parser = value_parser!(u32).range(1..))]
    pub demand_after: Option<u32>,
    /// Ask so many providers the same at once: the first words decide who answers, the others are paid for
    /// what was on its way; of items to embed each of the others computes an eighth again. API keys pay for
    /// it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u8).range(1..=8))]
    pub race: u8,
    /// Prefer providers that say that they are in this country, by its two letters, such as DE: all others
    /// count as twice as dear. Nobody checks what they say [default: anywhere]
    #[arg(long, value_name = "COUNTRY")]
    pub region: Option<Region>,
    /// How many independent providers compute each task
    #[arg(long, value_name = "K", default_value_t = 3, value_parser = redundancy())]
    pub redundancy: u32,
    /// Most tasks on the chain at once
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = value_parser!(u16).range(1..=256))]
    pub tasks: u16,
    /// Where providers fetch inputs; repeatable [default: 0.0.0.0:4101]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Vec<String>,
    /// An address at which others reach it; repeatable [default: where it listens]
    #[arg(long, value_name = "ADDRESS")]
    pub external: Vec<String>,
    /// How closely tasks are watched. Last: its heading would stand above all that follow.
    #[command(flatten)]
    pub security: SecurityArgs,
}

/// `surety gateway keys`.
#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Make a key, and print it: it is shown this once, and only its hash is kept
    Create(KeyArgs),
    /// Keys, with what they may spend and have spent
    List,
    /// End a key; batches that it has begun go on
    Revoke {
        /// Id of the key, as listed
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// Flags of `surety gateway keys create`.
#[derive(Debug, Args)]
pub struct KeyArgs {
    /// Most that it may spend, ever, such as "5 SURE"
    #[arg(long, value_name = "AMOUNT")]
    pub cap: Amount,
    /// For people: whose it is, or what for
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub label: String,
    /// Most requests a minute
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub requests_per_minute: u32,
    /// Most tokens a minute, asked and answered; those of batches do not count
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    pub tokens_per_minute: u32,
}
