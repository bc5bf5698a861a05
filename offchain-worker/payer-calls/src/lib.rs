#![doc = include_str!("../README.md")]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::unwrap_used
    )
)]

mod about;
mod ask;
mod channel;
mod choose;
mod config;
mod confirm;
mod cover;
mod demands;
mod evidence;
mod funds;
mod journal;
mod keeper;
mod known;
mod market;
mod opening;
mod proof;
mod race;
mod read;
mod record;
mod run;
mod signed;
mod upstream;

use std::sync::Arc;

use surety_chain_client::ChainError;
use tokio::task::JoinHandle;

pub use config::{Config, Patience, Sold, Spending};
pub use signed::signed_for;
pub use sp_core::crypto::AccountId32 as AccountId;
pub use surety_channels::Region;

use market::Shared;

/// Providers, over channels that this payer opens to them.
///
/// What was begun goes on until this is dropped.
pub struct Providers {
    shared: Arc<Shared>,
    _keeper: Running,
}

impl Providers {
    /// Takes up where the journal ends: channels that the chain has, what was signed over them, and receipts
    /// that are in no final batch.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let (shared, keeper) = keeper::Keeper::start(config).await?;
        Ok(Self {
            shared,
            _keeper: Running::new(keeper),
        })
    }
}

/// Why nothing can be asked over channels.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The chain does not answer, or has no channels.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The journal of vouchers and receipts is no good.
    #[error("the journal of channels cannot be used: {0}")]
    Journal(String),
}

/// A task that stops when this is dropped.
pub(crate) struct Running(Option<JoinHandle<()>>);

impl Running {
    const fn new(task: JoinHandle<()>) -> Self {
        Self(Some(task))
    }

    /// Whether it has stopped by itself.
    fn is_finished(&self) -> bool {
        self.0.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Lets it come to its end by itself.
    fn detach(mut self) {
        self.0 = None;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}
