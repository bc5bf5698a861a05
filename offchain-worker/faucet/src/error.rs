//! Why a faucet does not start, and why a claim is not paid.

use std::path::PathBuf;

use surety_chain_client::{Balance, ChainError};

use crate::claims::TooSoon;

/// Why a faucet does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The chain cannot be asked.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The chain's money may be worth something.
    #[error(
        "this chain is no test network: its specification has no property isTestnet, and a faucet gives its money away"
    )]
    RealMoney,
    /// No account can hold what a claim is given.
    #[error("a claim is given less than the {least} plancks that an account has to hold")]
    TooLittle {
        /// The least balance of an account, in plancks.
        least: Balance,
    },
    /// The file of claims.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The file of claims cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct StoreError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

/// Why a claim is not paid.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// A limit is reached.
    #[error(transparent)]
    TooSoon(#[from] TooSoon),
    /// The purse has too little.
    #[error("this faucet is empty; its operator has to fill it")]
    Empty,
    /// The chain cannot be asked, or did not carry the transfer out.
    #[error("the transfer could not be made: {0}")]
    Chain(ChainError),
    /// The transfer may be carried out.
    #[error("the transfer was sent, but its fate is unknown ({0}); look at the account's balance")]
    Unknown(ChainError),
    /// The claim could not be written down.
    #[error("claims cannot be kept: {0}")]
    Store(#[from] StoreError),
    /// A defect.
    #[error("{0}")]
    Internal(String),
}

impl ClaimError {
    /// Whether it is certain that nothing was paid.
    pub(crate) fn is_unpaid(&self) -> bool {
        match self {
            Self::Empty | Self::Chain(_) => true,
            Self::TooSoon(_) | Self::Unknown(_) | Self::Store(_) | Self::Internal(_) => false,
        }
    }
}
