//! What a provider does about its tasks, as a pure value: no clock, no randomness, no input or output.
//!
//! The host feeds [`Provider::step`] with events and gets back records and effects:
//!
//! 1. write the records to the journal and wait until they are durable;
//! 2. only then carry out the effects, and report how they went as further events.
//!
//! Whatever is lost between the two is made up for by the next start: [`Provider::new`] replays the journal, and the
//! next finalised state says what the chain has heard of it.
//!
//! # A task's life on a provider
//! ```text
//!  chain shows            we                                            record
//!  Bidding, no bid        make a bid, send its seal                     BidMade
//!  Revealing, our seal    open the bid
//!  Running, Working       fetch the input, compute, send a commitment   ResultMade, CommitSubmitted
//!  Committed, Revealing   open the commitment                           RevealSubmitted
//!  finished, or not ours  forget it                                     Finished
//! ```
//!
//! # What holds whatever happens
//! - Decisions come from finalised state only, and a state older than one seen before changes nothing.
//! - At most one bid and one result exist for a task, once and for all: a second result is ignored, a restart sends
//!   the very commitment that the journal holds, and a task that is done is never taken up again.
//! - A commitment on the chain that is not in the journal (the journal was lost) is opened only if computing again
//!   gives exactly that commitment.
//! - Tasks, effects under way, and retries are bounded.

mod config;
mod effort;
mod life;
mod messages;
mod provider;

pub use config::{Config, Offer, Policy, PriceList, Purpose, Rate, SaltSource, SecretSalts};
pub use messages::{BidSeen, Effect, EffectKind, Event, Record, Step, TaskSnapshot};
pub use provider::{Progress, Provider, ReplayError, FINISHED_MAX};
pub use sp_core::{crypto::AccountId32 as AccountId, H256 as Hash};

/// Plancks of SURE.
pub type Balance = u128;
/// Height of a block.
pub type BlockNumber = u32;
/// A task with the chain's types.
pub type TaskRecord = surety_types::task::Task<AccountId, Balance, BlockNumber>;
/// A round with the chain's types.
pub type RoundRecord = surety_types::task::Round<AccountId, Balance, BlockNumber>;
