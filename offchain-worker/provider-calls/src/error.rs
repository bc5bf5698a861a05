//! Why calls are not served any more.

use surety_chain_client::ChainError;
use surety_channel_calls::LoadError;

/// Why calls are not served any more.
#[derive(Debug, thiserror::Error)]
pub enum CallsError {
    /// What was promised before cannot be gone on with.
    #[error("the journal of calls: {0}")]
    Load(#[from] LoadError),
    /// It cannot be read or written.
    #[error("the journal of calls: {0}")]
    Journal(String),
    /// The chain is not one that this program can use.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// An engine does not start.
    #[error("an engine for calls does not start: {0}")]
    Engine(#[from] surety_engine::EngineError),
    /// A figure is there twice.
    #[error("figures of calls: {0}")]
    Metrics(#[from] prometheus::Error),
    /// By a defect.
    #[error("an internal error: {0}")]
    Internal(String),
}
