#![doc = include_str!("../README.md")]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::unwrap_used
    )
)]

mod admission;
mod compute;
mod config;
mod defense;
mod desk;
mod due;
mod errands;
mod error;
mod float;
mod front;
pub mod line;
mod memory;
mod metrics;
mod models;
mod owed;
mod points;
mod read;
mod receipts;
mod shares;
mod sight;
mod silent;
mod terms;
mod trace;
mod unknown;
mod watch;

use std::{sync::Arc, time::Duration};

use surety_chain_client::{AccountId, Chain, ChainError, ChannelChain, ErrorClass, Signer, When};
use surety_channel_calls::{
    Millis, Payee, PayeeConfig, PayeeEffect, ReceiptSalts, Step,
    payee::{Offer, PayeeLimits},
};
use surety_channels::ChannelId;
use surety_journal::CallStore;
use surety_types::model::Operation;
use tokio::{
    sync::{mpsc, watch as signal},
    task::JoinSet,
    time::sleep,
};

pub use config::{CallsConfig, Fees};
pub use error::CallsError;
pub use line::{Line, Listen};
pub use metrics::Metrics;
pub use models::{Models, facts};
pub use owed::Owed;
pub use prometheus::Registry;

use desk::Desk;

/// What the salts of a new journal are derived for.
const SALTS: &[u8] = b"receipt salts";

/// Events that wait for the desk.
const EVENTS_MAX: usize = 256;

/// Between two attempts to ask the chain for the first time.
const RETRY: Duration = Duration::from_secs(5);

/// Everything that calls need. The rest of the worker has the same chain and signer: nonces are one series.
pub struct Parts {
    /// Takes what is submitted, and says what is final.
    pub chain: Arc<dyn Chain>,
    /// Knows channels.
    pub channels: Arc<dyn ChannelChain>,
    /// The agent's key.
    pub signer: Signer,
    /// The stash that it acts for.
    pub stash: AccountId,
    /// What is written before it is said.
    pub store: Arc<CallStore>,
    /// What is computed with.
    pub models: Models,
    /// How much at once, and when.
    pub config: CallsConfig,
    /// What an operator sees of it.
    pub metrics: Metrics,
    /// Whether new requests are taken. Without it what is owed is still batched, shown and redeemed.
    pub takes_new: bool,
    /// Whether something else has the machine now, for which an operation would have to wait, or which it
    /// would slow down: whoever asks for it is told to ask another provider.
    pub stands_aside: Arc<dyn Fn(Operation) -> bool + Send + Sync>,
    /// What of the money of stash and agent something else has to keep free for fees, in plancks; nothing is
    /// taken before that is known.
    pub kept_for_others: signal::Receiver<Option<u128>>,
    /// What has to stay free for fees of what is sold here, in plancks, as it is told from block to block.
    pub kept: signal::Sender<Option<u128>>,
    /// Where nothing new is taken: what is still open, once a finalised block has told that.
    pub owed: signal::Sender<Option<Owed>>,
}

/// Serves calls until `stop` becomes true.
///
/// # Errors
/// [`CallsError`]: where what was promised before cannot be read, or what is promised cannot be written.
pub async fn run(
    parts: Parts,
    listener: impl Listen + 'static,
    stop: signal::Receiver<bool>,
) -> Result<(), CallsError> {
    let parts = Arc::new(parts);
    let mut stopped = stop.clone();
    let opened = tokio::select! {
        opened = open(&parts) => opened?,
        // Whoever would stop it is gone, too.
        _ = stopped.wait_for(|stop| *stop) => return Ok(()),
    };
    let (payee, first) = opened;
    let (events, received) = mpsc::channel(EVENTS_MAX);
    // They end with this.
    let mut beside = JoinSet::new();
    let open_max = parts.config.open_max;
    let points = points::Points::new(parts.clone(), events.clone());
    beside.spawn(front::accept(
        Box::new(listener),
        (events.clone(), points),
        open_max,
    ));
    let (blocks, newest) = signal::channel(0);
    let (again, anew) = signal::channel(0);
    beside.spawn(sight::follow(parts.clone(), blocks, events.clone(), anew));
    let desk = Desk::new(parts.clone(), payee, (newest, again), events);
    let outcome = tokio::select! {
        outcome = desk.run(first, received, stop) => outcome,
        // No dead part in a living process.
        Some(ended) = beside.join_next() => Err(CallsError::Internal(match ended {
            Ok(()) => "no calls, or no blocks, can come any more".into(),
            Err(error) => error.to_string(),
        })),
    };
    beside.shutdown().await;
    drop(beside);
    // Engines end what they are at.
    if let Some(parts) = Arc::into_inner(parts) {
        tokio::task::spawn_blocking(move || drop(parts.models)).await.ok();
    }
    outcome
}

/// Takes up where the journal ends.
async fn open(parts: &Parts) -> Result<(Payee, Step<PayeeEffect>), CallsError> {
    let store = parts.store.clone();
    let rows = tokio::task::spawn_blocking(move || store.load())
        .await
        .map_err(|error| CallsError::Internal(error.to_string()))?
        .map_err(|error| CallsError::Journal(error.to_string()))?;
    let channels = channels(parts).await?;
    let config = PayeeConfig {
        genesis: parts.chain.info().genesis,
        stash: parts.stash.clone(),
        agent: parts.signer.account().clone(),
        sign: parts.signer.message_signer(),
        verify: surety_chain_client::message_verifier(),
        salts: ReceiptSalts::new(parts.signer.secret_for(SALTS)),
        // By what the chain says is offered.
        offers: Vec::<Offer>::new(),
        limits: PayeeLimits {
            open_max: parts.config.open_max,
            calls_max: parts.config.calls_max,
            kept_max: parts.config.kept_max,
            patience: millis(parts.config.patience),
            answer_max: millis(parts.config.answer_max),
            ..PayeeLimits::default()
        },
    };
    let read = read::rows_for_payee(parts.store.clone());
    Ok(Payee::open_over(config, read, rows, channels)?)
}

fn millis(time: Duration) -> Millis {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Channels of this stash below this one are there by the newest block.
async fn channels(parts: &Parts) -> Result<ChannelId, CallsError> {
    loop {
        match parts.channels.channels_of(When::Best, &parts.stash).await {
            Ok(channels) => {
                let last = channels.iter().map(|view| view.channel).max();
                return Ok(last.map_or(0, |last| last.saturating_add(1)));
            }
            Err(error) if error.class() == ErrorClass::Fatal => return Err(error.into()),
            Err(error @ ChainError::Outgrown { .. }) => {
                tracing::debug!(%error, "the chain has no channels yet");
                parts.owed.send_replace(Some(Owed::default()));
                sleep(RETRY.saturating_mul(12)).await;
            }
            Err(error) => {
                tracing::warn!(%error, "channels cannot be read, trying again");
                sleep(RETRY).await;
            }
        }
    }
}
