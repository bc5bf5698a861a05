//! How closely a task is watched, and what is at risk.

use clap::{Args, ValueEnum};
use surety_types::task::{Security, SecurityLevel};

use crate::amount::Amount;

/// How a task is watched and secured.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Security")]
pub struct SecurityArgs {
    /// How closely each result is checked: basic (0.15 auditors in the mean), standard (1) or high (3); the
    /// chain raises it where the value at risk needs more
    #[arg(long, value_name = "LEVEL", value_enum, hide_possible_values = true, default_value_t = Level::Standard)]
    pub security: Level,
    /// What a wrong answer could be worth to somebody else, such as "100 SURE"; providers lock stake
    /// accordingly [default: 0]
    #[arg(long, value_name = "AMOUNT")]
    pub value_at_risk: Option<Amount>,
}

/// A level by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// About one result in seven
    Basic,
    /// One auditor
    Standard,
    /// Three auditors
    High,
}

impl SecurityArgs {
    /// As the chain takes it.
    pub fn security(&self) -> Security {
        let level = match self.security {
            Level::Basic => SecurityLevel::Basic,
            Level::Standard => SecurityLevel::Standard,
            Level::High => SecurityLevel::High,
        };
        Security {
            level,
            value_at_risk: self.value_at_risk.as_ref().map_or(0, |amount| amount.0),
        }
    }
}
