//! What ends a worker.

use std::{io, net::SocketAddr};

use surety_journal::JournalError;
use surety_network::PlaneError;

/// Why the host ends, or cannot start. What goes wrong with a single effect is no reason: core is told, and
/// decides.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Nothing may be promised without a journal.
    #[error("the journal cannot be used: {0}")]
    Journal(#[from] JournalError),
    /// The data plane has stopped.
    #[error(transparent)]
    Data(#[from] PlaneError),
    /// The address for health and metrics is taken, or is not this machine's.
    #[error("cannot serve metrics on {address}: {source}")]
    Metrics {
        /// Where they were to be served.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// A part of a worker died again and again.
    #[error(
        "{part} died {deaths} times within an hour, the last time because: {reason}; the worker ends rather than only look alive"
    )]
    PartDied {
        /// Which.
        part: &'static str,
        /// How often.
        deaths: usize,
        /// Why it did the last time.
        reason: String,
    },
    /// A defect.
    #[error("internal error: {0}")]
    Internal(String),
}

/// What the host returns.
pub type Result<T> = std::result::Result<T, HostError>;
