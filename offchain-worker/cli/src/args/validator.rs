//! `surety validator`, as typed.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::{amount::Amount, decimal};

/// `surety validator`.
#[derive(Debug, Subcommand)]
pub enum ValidatorCommand {
    /// Prepare this machine: make the operator's account and the node's key, say how to start the node, and
    /// have the running node make session keys; goes on where it was interrupted
    Init(ValidatorInitArgs),
    /// Be a candidate: set the session keys, put stake of its own into its pool, and have the operator
    /// elected, all in one extrinsic; adds to what is there already
    Join(JoinArgs),
    /// Have the node make new session keys, and set them; the node keeps the old ones, which sign for up to
    /// two sessions more
    Rotate,
    /// Be elected no more, wait until the node has nothing to sign, and take the operator's own stake out;
    /// goes on where it was interrupted
    Leave,
    /// Take another part of each reward before it is shared: less at once, more by 1 % a day
    Commission {
        /// The part, in percent, such as 5
        #[arg(value_name = "PERCENT", value_parser = millionths)]
        commission: u32,
    },
    /// Whether it is elected, what is behind it, what it has made, and what keeps it from work
    Status(OperatorArg),
}

/// Flags of `surety validator init`.
#[derive(Debug, Args)]
pub struct ValidatorInitArgs {
    /// Chain specification that the node is started with
    #[arg(long, value_name = "FILE", default_value = "/etc/surety/chain.json")]
    pub chain: PathBuf,
    /// Where the node keeps its database and session keys
    #[arg(long, value_name = "DIR", default_value = "/var/lib/surety/node")]
    pub base_path: PathBuf,
}

/// Flags of `surety validator join`.
#[derive(Debug, Args)]
pub struct JoinArgs {
    /// How much of its own the operator is to have in its pool
    #[arg(long, value_name = "AMOUNT", default_value = "10000 SURE")]
    pub bond: Amount,
    /// Part of each reward that the operator has before it is shared, in percent [default: 5; of a pool that
    /// is there, what it has]
    #[arg(long, value_name = "PERCENT", value_parser = millionths)]
    pub commission: Option<u32>,
}

/// An operator.
#[derive(Debug, Args)]
pub struct OperatorArg {
    /// The operator's account [default: that of the key in the key file]
    #[arg(value_name = "OPERATOR")]
    pub operator: Option<String>,
}

/// Millionths from percent, such as `5`, `2.5` or `2.5 %`.
fn millionths(text: &str) -> Result<u32, String> {
    let number = text.trim_end_matches('%').trim();
    match decimal::thousandths(number)? {
        part @ 0..=100_000 => Ok(part.saturating_mul(10)),
        _ => Err("must be between 0 and 100".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_are_taken_exactly_or_not_at_all() {
        for (text, parts) in [("5", 50_000), ("2.5 %", 25_000), ("0%", 0), ("100", 1_000_000)] {
            assert_eq!(millionths(text), Ok(parts), "{text}");
        }
        for text in ["", "%", "100.001", "-1", "5,5", "0.0001"] {
            assert!(millionths(text).is_err(), "{text}");
        }
    }
}
