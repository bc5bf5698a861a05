//! Why the ledger refuses.

use super::{
    KEYS_MAX,
    batches::{OPEN_MAX, OPEN_OF_KEY_MAX},
};

/// Why the ledger cannot be used, or refuses.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// Another program has it.
    #[error("another program has it open: stop that first, which loses nothing by it")]
    InUse,
    /// The database.
    #[error("the ledger's database failed: {0}")]
    Database(Box<redb::Error>),
    /// A row is not as it was written.
    #[error("a row of the ledger cannot be read ({0}): restore the file from a copy")]
    Corrupt(#[from] serde_json::Error),
    /// There is no such key, or it was revoked.
    #[error("this API key is not known here, or was revoked")]
    NoKey,
    /// There are too many.
    #[error("there are {KEYS_MAX} keys already")]
    TooMany,
    /// There is no such call.
    #[error("there is no such call")]
    NoCall,
    /// There is no such file.
    #[error("this key has no such file")]
    NoFile,
    /// There is no such batch.
    #[error("this key has no such batch")]
    NoBatch,
    /// There is no more room for something.
    #[error("{0}")]
    Full(String),
    /// A key has too many open batches.
    #[error(
        "this key has {OPEN_OF_KEY_MAX} open batches: begin the next one when one of them is over, or cancel one"
    )]
    OpenOfKey,
    /// All keys together have.
    #[error("{OPEN_MAX} batches are open already: try again when one is over")]
    Open,
    /// A batch is over.
    #[error("this batch is {0} already")]
    Over(&'static str),
    /// It would spend more than it may.
    #[error(
        "this may cost {asked}, and the key has {left} left below its cap: ask for less, or for a higher cap"
    )]
    OverCap {
        /// The most that it costs.
        asked: u128,
        /// What may still be spent.
        left: u128,
    },
    /// A sum that has no number.
    #[error("a sum of the ledger is too large")]
    Overflow,
    /// No randomness.
    #[error("the system gives no random numbers: {0}")]
    Random(String),
}

macro_rules! from_redb {
    ($($kind:ident),*) => {$(
        impl From<redb::$kind> for LedgerError {
            fn from(error: redb::$kind) -> Self {
                Self::Database(Box::new(error.into()))
            }
        }
    )*};
}
from_redb!(
    DatabaseError,
    TransactionError,
    TableError,
    StorageError,
    CommitError
);
