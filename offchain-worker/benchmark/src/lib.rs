#![doc = include_str!("../README.md")]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::unwrap_used
    )
)]

mod blocks;
mod desk;
mod journal;
mod machine;
mod metrics;
mod runs;

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    path::PathBuf,
    sync::Arc,
};

use surety_chain_client::{AccountId, Balance, Chain, GpuProofsChain, Signer};
use tokio::{sync::watch, task::JoinSet};

pub use machine::{Failed, Hold, Machine, Pause, RunMemory, in_words};
pub use metrics::Metrics;

use desk::Desk;
use journal::Journal;

/// Everything that taking part needs. The rest of the worker has the same chain and signer: nonces are one
/// series.
pub struct Parts {
    /// Takes what is submitted, and says what is final.
    pub chain: Arc<dyn Chain>,
    /// Knows rounds.
    pub rounds: Arc<dyn GpuProofsChain>,
    /// The agent's key.
    pub signer: Signer,
    /// The stash that it acts for.
    pub stash: AccountId,
    /// What is measured.
    pub machine: Arc<dyn Machine>,
    /// Where it is written what was committed to. The file is there, or its folder.
    pub journal: PathBuf,
    /// Where it is counted.
    pub metrics: Metrics,
    /// What the author of a block gets for each call on top of the fee, in plancks: all commit in the same
    /// last blocks, and openings are large.
    pub tip: Balance,
    /// Whether it takes part in rounds to come. What was committed to is shown all the same.
    pub takes_part: bool,
}

/// Takes part in rounds until `stop` becomes true.
pub async fn run(parts: Parts, stop: watch::Receiver<bool>) {
    let parts = Arc::new(parts);
    let of = parts.clone();
    let opened =
        tokio::task::spawn_blocking(move || Journal::open(&of.journal, of.chain.info().genesis, &of.stash));
    let journal = match opened.await {
        Ok(journal) => journal,
        Err(error) => return tracing::error!(%error, "the benchmark is not taken part in"),
    };
    let (blocks, newest) = watch::channel(None);
    // It ends with this.
    let mut beside = JoinSet::new();
    beside.spawn(blocks::follow(parts.clone(), blocks));
    Desk::new(parts, journal).run(newest, stop).await;
    beside.shutdown().await;
}

/// A number that nobody else knows: which rows are looked at, and when what is drawn is shown.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
