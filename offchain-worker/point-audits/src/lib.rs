#![doc = include_str!("../README.md")]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::unwrap_used
    )
)]

pub mod book;
pub mod compute;
mod desk;
mod errands;
pub mod games;
pub mod shown;
mod sight;
mod work;

use std::{collections::BTreeMap, sync::Arc};

use surety_chain_client::{AccountId, Chain, ChannelChain, Signer};
use surety_channel_calls::{LoadError, Table};
use surety_engine::{Engine, EnginePool};
use surety_journal::CallStore;
use surety_network::DataPlane;
use surety_types::ModelId;
use tokio::{sync::watch, task::JoinSet};

use book::{Book, Limits, Verifier};
use desk::Desk;

/// What salts of seals are derived for. It stays: what was announced is opened with the same salts.
const SALTS: &[u8] = b"points salts";

/// Everything that audits need. The rest of the worker has the same chain and signer: nonces are one series.
pub struct Parts {
    /// Takes what is submitted, and says what is final.
    pub chain: Arc<dyn Chain>,
    /// Knows batches.
    pub channels: Arc<dyn ChannelChain>,
    /// The agent's key.
    pub signer: Signer,
    /// The stash that it acts for.
    pub stash: AccountId,
    /// How providers are asked.
    pub plane: Arc<dyn DataPlane>,
    /// What is found is there before it is announced. Of no other worker.
    pub store: Arc<CallStore>,
    /// Models that are audited.
    pub engines: BTreeMap<ModelId, Arc<dyn Engine>>,
    /// What runs them.
    pub pool: EnginePool,
    /// How much at once, and when.
    pub limits: Limits,
}

/// Why batches are not audited any more.
#[derive(Debug, thiserror::Error)]
pub enum AuditsError {
    /// What was promised before cannot be gone on with.
    #[error("the journal of points: {0}; without the file `points.redb` everything in it is computed again")]
    Load(#[from] LoadError),
    /// It cannot be read.
    #[error("the journal of points: {0}; without the file `points.redb` everything in it is computed again")]
    Journal(String),
    /// By a defect.
    #[error("an internal error: {0}")]
    Internal(String),
}

/// Audits batches until `stop` becomes true.
///
/// # Errors
/// [`AuditsError`]: where what was promised before cannot be read.
pub async fn run(parts: Parts, stop: watch::Receiver<bool>) -> Result<(), AuditsError> {
    let store = parts.store.clone();
    let rows = tokio::task::spawn_blocking(move || store.read(Table::Points, &[]))
        .await
        .map_err(|error| AuditsError::Internal(error.to_string()))?
        .map_err(|error| AuditsError::Journal(error.to_string()))?;
    let verifier = Verifier {
        stash: parts.stash.clone(),
        genesis: parts.chain.info().genesis,
        secret: parts.signer.secret_for(SALTS),
        limits: parts.limits,
    };
    let book = Book::new(verifier, &rows)?;
    let parts = Arc::new(parts);
    let (blocks, newest) = watch::channel(None);
    // It ends with this.
    let mut beside = JoinSet::new();
    beside.spawn(sight::follow(parts.clone(), blocks));
    let outcome = Desk::new(parts.clone(), book).run(newest, stop).await;
    beside.shutdown().await;
    // Engines end what they are at.
    tokio::task::spawn_blocking(move || drop(parts)).await.ok();
    outcome
}
