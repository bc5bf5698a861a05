//! Where a worker can be made to abort, so that it can be seen that it recovers.

use clap::ValueEnum;

/// Where a worker can be made to abort, to test that it recovers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CrashPoint {
    /// A result is in the journal, and its commitment is not yet on its way to the chain.
    AfterJournalCommit,
    /// The first token of a generation was made.
    MidGeneration,
    /// An audit is in the journal, and its seal is not yet on its way to the chain.
    AfterAudit,
    /// A move is in the journal, and not yet on its way to the chain.
    AfterMove,
}
