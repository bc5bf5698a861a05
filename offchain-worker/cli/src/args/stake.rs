//! `surety stake`, as typed.

use clap::{Args, Subcommand};

use crate::amount::Amount;

/// `surety stake`.
#[derive(Debug, Subcommand)]
pub enum StakeCommand {
    /// Operators that can be backed, those with most stake first
    Operators,
    /// What somebody has behind operators, what it is worth and has earned, and what is on its way out
    Show {
        /// Another account than that of the key file
        #[arg(value_name = "ADDRESS")]
        address: Option<String>,
    },
    /// Put stake behind an operator: it shares what the operator earns, and what it loses
    Delegate {
        /// The operator's account
        #[arg(long, value_name = "ADDRESS")]
        operator: String,
        /// How much, such as "100 SURE"
        #[arg(long, value_name = "AMOUNT")]
        amount: Amount,
    },
    /// Start taking stake out
    Undelegate {
        /// The operator's account
        #[arg(long, value_name = "ADDRESS")]
        operator: String,
        /// How much [default: all of it]
        #[arg(long, value_name = "AMOUNT")]
        amount: Option<Amount>,
    },
    /// Put stake that is on its way out behind an operator: another one when a whole day has passed, the same
    /// one at any time
    Redelegate(RedelegateArgs),
    /// Take out stake that has waited long enough
    Withdraw,
    /// Be paid what stake has earned
    Claim {
        /// The operator's account [default: every operator that owes something]
        #[arg(long, value_name = "ADDRESS")]
        operator: Option<String>,
    },
    /// Burn what somebody has lost by a slash and still has on hold; costs nothing where that is enough to
    /// count
    Settle {
        /// The operator that was slashed
        #[arg(long, value_name = "ADDRESS")]
        operator: String,
        /// Whose stake [default: that of the key in the key file]
        #[arg(long, value_name = "ADDRESS")]
        delegator: Option<String>,
    },
}

/// Flags of `surety stake redelegate`.
#[derive(Debug, Args)]
pub struct RedelegateArgs {
    /// The operator that the stake has left
    #[arg(long, value_name = "ADDRESS")]
    pub from: String,
    /// The day it left on, as surety stake show has it
    #[arg(long, value_name = "DAY")]
    pub day: u32,
    /// The operator that it is to back
    #[arg(long, value_name = "ADDRESS")]
    pub to: String,
    /// How much [default: all of it]
    #[arg(long, value_name = "AMOUNT")]
    pub amount: Option<Amount>,
}
