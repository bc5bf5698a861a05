//! What a provider does about its tasks, and a verifier about those of others, as pure values: no clock, no
//! randomness, no input or output.
//!
//! The host feeds a [`Worker`], a [`Provider`] or a [`Verifier`], with events and gets back records and
//! effects:
//!
//! 1. write the records to the journal and wait until they are durable;
//! 2. only then carry out the effects, and report how they went as further events.
//!
//! Whatever is lost between the two is made up for by the next start: [`Worker::new`] replays the journal,
//! and the next finalised state says what the chain has heard of it.
//!
//! # A task's life on a provider
//! ```text
//!  chain shows            we                                            record
//!  Bidding, no bid        make a bid, send its seal                     BidMade
//!  Revealing, our seal    open the bid
//!  Running, Working       fetch the input, compute, send a commitment   InputFetched, ResultMade,
//!                                                                       CommitSubmitted
//!  half the time is over  demand a piece of an input not to be had      InputMissed, InputDemandMade
//!  Committed, Revealing   open the commitment                           RevealSubmitted
//!  confirmed by items     hold them against our trace, refute a guess   ConfirmationChecked
//!  verdict, ours sealed   open the commitment late: unpaid, no fault
//!  finished, or not ours  forget it                                     Finished
//! ```
//!
//! # An audit's life on a verifier
//! ```text
//!  chain shows            we                                            record
//!  Auditing, a seed       draw ourselves, or not
//!  drawn                  fetch what the provider signs that it serves  AuditServed
//!  half the time is over  demand it, and fetch it from the chain
//!                         compute again, send our result's seal         AuditMade or ItemsAudited,
//!                                                                       AuditAnnounced
//!  it has said two things report it until the chain knows, and open no seal before that
//!  provider has revealed  compare items, open the seal                  AuditCompared, AuditRevealed
//!  Challengeable          see whether the output is served, or demand it
//!  a dispute of ours      find a move, send it                          MoveMade, MoveSubmitted
//!  a committee            draw ourselves, compute the number again,
//!                         send our answer's seal, open it               VoteMade
//! ```
//! A provider plays in its disputes the same way, and shows what is demanded of it.
//!
//! # What holds whatever happens
//! - Promises (bids, commitments, seals, moves, demands) rest on finalised state only, and a state older than
//!   one seen before changes nothing. What was promised is opened and shown as soon as the best block asks
//!   for it: that can be repeated without harm. A call that the best block has heard of is not repeated,
//!   however long finality takes.
//! - A call to the chain is sent until its deadline, whatever it met: after a refusal within two blocks,
//!   after what cost a fee with growing pauses, and with every block when the deadline is near.
//! - Deadlines are on the chain's running clock, pauses between attempts in blocks. A clock that stands still
//!   ends nothing.
//! - A state without a task ends no promise: that takes several of them, and many where something of ours is
//!   sealed still. One in which it cannot be read says that it is there.
//! - At most one bid and one result exist for a task, once and for all: a second result is ignored, a restart
//!   sends the very commitment that the journal holds, and a task that is done is never taken up again.
//! - At most one audit exists for a result, one move for a state of a dispute, and one answer for a ballot of
//!   a committee, in the same way.
//! - A commitment on the chain that is not in the journal (the journal was lost) is opened only if computing
//!   again gives exactly that commitment.
//! - Tasks and effects under way are bounded, by kind; what can no longer matter is stopped. Moves and
//!   openings wait for neither fetching nor computing, and no client has more than half of the places for
//!   fetching.
//! - Of all moves and votes about one claim one is looked for at a time, the most urgent first: they come out
//!   of one trace, so that many disputes at once take one place and one computation.
//! - While the journal has no room but its reserve ([`Event::Room`]) nothing is bid, sealed or joined; what
//!   was promised is opened, and moves are made.
//! - A provider that drains ([`Config::is_draining`]) bids for nothing either, and does all the rest.
//! - No more audits of items are begun than could be computed in whole in the time for openings.
//! - Bids are made while the promised work fits into the time to commit, by measured speed. Waiting for a
//!   window is no work. A bid that lost its place is dropped with its task.
//! - Bids are made while there is free money for the fees of showing what the largest demand names of each
//!   task that is open or bid for ([`demand_reserve`]): who cannot pay them is convicted.

mod absence;
mod attempts;
mod config;
mod duel;
mod inputs;
mod messages;
mod places;
mod provider;
mod provider_task;
mod schedule;
mod seat;
mod speed;
mod verifier;
mod worker;

pub use config::{
    Config, FETCH_BYTES_PER_SECOND, NoBids, Offer, Policy, PriceList, Purpose, Rate, SaltSource, SecretSalts,
};
pub use messages::{
    BidSeen, Confirmation, Drawn, Due, Effect, EffectKind, Event, Failure, Found, KeptView, Record, Step,
    TaskSnapshot, key_of,
};
pub use places::TraceKey;
pub use provider::{
    LARGEST_DEMAND, Progress, Provider, ProviderRole, ReplayError, SUPPLY_FEE, demand_cost, demand_reserve,
};
pub use verifier::{AuditProgress, Verifier, VerifierRole};
pub use worker::{Role, Worker};

pub use sp_core::{H256 as Hash, crypto::AccountId32 as AccountId};

/// Plancks of SURE.
pub type Balance = u128;
/// Height of a block.
pub type BlockNumber = u32;
/// A task with the chain's types.
pub type TaskRecord = surety_types::task::Task<AccountId, Balance, BlockNumber>;
/// A round with the chain's types.
pub type RoundRecord = surety_types::task::Round<AccountId, Balance, BlockNumber>;
/// A dispute with the chain's types.
pub type DisputeRecord = surety_dispute_game::dispute::Dispute<AccountId, Balance, BlockNumber>;
/// A dispute's committee with the chain's types.
pub type CommitteeRecord = surety_dispute_game::committee::DisputeCommittee<AccountId, Balance, BlockNumber>;
/// A demand with the chain's types.
pub type DemandRecord = surety_types::trust::Demand<AccountId, Balance, BlockNumber>;
