//! What a provider's stash says of what it sells over payment channels, as typed.

use clap::{Args, ValueEnum};
use surety_chain_client::Region;
use surety_types::model::Operation;

use crate::amount::Amount;

/// Flags of `surety provider stand`.
#[derive(Debug, Args)]
pub struct StandArgs {
    /// What batches of receipts may cost together that can still be disputed: a day's sales or so [default:
    /// the present one, by the chain's present terms]
    #[arg(long, value_name = "AMOUNT")]
    pub cap: Option<Amount>,
    /// What is locked of the stake [default: as little as the cap needs; without --cap no less than now]
    #[arg(long, value_name = "AMOUNT")]
    pub lock: Option<Amount>,
}

/// Flags of `surety provider offer`.
#[derive(Debug, Args)]
pub struct OfferArgs {
    /// What is offered.
    #[command(flatten)]
    pub offered: OfferedArgs,
    /// What a unit costs at least: a token, those of the prompt included, or an item
    #[arg(long, value_name = "AMOUNT")]
    pub price: Amount,
    /// Requests that are answered at once; with 0 nothing new is taken
    #[arg(long, value_name = "NUMBER")]
    pub places: u32,
    /// Where the machine is, by the two capital letters of a country, such as DE: nobody checks it, and
    /// gateways may prefer who is near [default: provider.region of the configuration, or nowhere]
    #[arg(long, value_name = "REGION")]
    pub region: Option<Region>,
}

/// What of a model is meant.
#[derive(Debug, Args)]
pub struct OfferedArgs {
    /// Name or id of the model
    #[arg(long, value_name = "MODEL")]
    pub model: String,
    /// What it does [default: the only thing that it can do]
    #[arg(long, value_name = "OPERATION")]
    pub operation: Option<OperationArg>,
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OperationArg {
    /// Text that continues a prompt.
    Generate,
    /// A vector for each item.
    Embed,
}

impl From<OperationArg> for Operation {
    fn from(arg: OperationArg) -> Self {
        match arg {
            OperationArg::Generate => Self::Generate,
            OperationArg::Embed => Self::Embed,
        }
    }
}
