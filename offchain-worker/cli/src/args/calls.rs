//! What a provider's stash says of what it sells over payment channels, as typed.

use clap::{Args, ValueEnum};
use surety_types::model::Operation;

use crate::amount::Amount;

/// Flags of `surety provider stand`.
#[derive(Debug, Args)]
pub struct StandArgs {
    /// What batches of receipts may cost together that can still be disputed: a day's sales or so
    #[arg(long, value_name = "AMOUNT")]
    pub cap: Amount,
    /// What is locked of the stake [default: as little as the cap needs]
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
