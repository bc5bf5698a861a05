//! The data plane as the rest of the worker sees it.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use libp2p::bytes::Bytes;
use sp_core::crypto::AccountId32;
use surety_proofs::SignedStatement;
use surety_types::{ContentHash, TaskId, multiaddr::Endpoint};

use crate::{
    access::{AccessGate, Readers, Ticket},
    address::AddressError,
    call::{CallError, CallListener, CallStream},
    counters::Counters,
    identity::IdentityError,
    store::StoreError,
    stream::{StreamPage, StreamWriter},
};

/// A provider's signed word on what its output is.
pub type Statement = SignedStatement<AccountId32>;

/// What is told of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// Content hash of the output blob.
    pub hash: ContentHash,
    /// What binds it to the task.
    pub statement: Option<Statement>,
    /// Content hash of the blob of its trace's leaves, if that was published. Announcing lets nobody read it.
    pub leaves: Option<ContentHash>,
}

impl Announcement {
    /// A blob, and nothing else.
    pub fn new(hash: ContentHash) -> Self {
        Self {
            hash,
            statement: None,
            leaves: None,
        }
    }

    /// With the provider's word on it.
    #[must_use]
    pub fn signed(mut self, statement: Statement) -> Self {
        self.statement = Some(statement);
        self
    }

    /// With the leaves of its trace, where they are published.
    #[must_use]
    pub fn traced(mut self, leaves: Option<ContentHash>) -> Self {
        self.leaves = leaves;
        self
    }
}

/// What a provider says its output is. Nothing of it is checked here: whoever asked checks the statement, and
/// in the end the chain's verdict counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputLocation {
    /// Content hash of the output blob.
    pub hash: ContentHash,
    /// Its size, in bytes.
    pub bytes: u64,
    /// The provider's word on it, if it gives any.
    pub statement: Option<Statement>,
    /// Content hash of the blob of its trace's leaves, 32 bytes each, if the provider has one. That is read
    /// once the result is revealed.
    pub leaves: Option<ContentHash>,
}

/// How a blob is fetched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchOptions {
    /// Its size in bytes, where that is known. A peer that offers another is not asked on.
    pub bytes: Option<u64>,
    /// The most that it may have, where that is known and its size is not; never more than
    /// [`crate::Limits::blob_bytes_max`]. A peer that offers more is not asked on.
    pub bytes_max: Option<u64>,
    /// For all of it, waiting for a place and all sources included; [`crate::Limits::fetch_timeout`] when
    /// nothing is said.
    pub timeout: Option<Duration>,
    /// What is shown to each source.
    pub ticket: Option<Ticket>,
    /// Whether the sources are asked even where the blob is here: they have to have it.
    pub anew: bool,
}

impl FetchOptions {
    /// A blob of so many bytes.
    pub fn sized(bytes: u64) -> Self {
        Self {
            bytes: Some(bytes),
            ..Self::default()
        }
    }

    /// A blob of so many bytes at most.
    pub fn at_most(bytes: u64) -> Self {
        Self {
            bytes_max: Some(bytes),
            ..Self::default()
        }
    }

    /// Given up when it takes longer.
    #[must_use]
    pub fn within(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// With something to show where this peer is not named.
    #[must_use]
    pub fn showing(mut self, ticket: Ticket) -> Self {
        self.ticket = Some(ticket);
        self
    }
}

/// Moves blobs between peers.
///
/// Nothing is served that was not granted: see [`crate::access`].
#[async_trait]
pub trait DataPlane: Send + Sync {
    /// This peer's id, as it stands in endpoints: what others judge it by.
    fn peer_id(&self) -> String;

    /// Where this peer can be reached, best first; at most as many as the chain takes.
    fn endpoints(&self) -> Vec<Endpoint>;

    /// What was moved and what was refused since the start.
    fn counters(&self) -> Counters;

    /// Returns when the data plane has stopped by itself: it serves nobody any more.
    async fn stopped(&self);

    /// Who judges tickets from now on; before the first, all are refused. What was decided before holds as
    /// long as it would have: see [`crate::Limits::gate_memory`] and [`crate::Limits::gate_refusal_memory`].
    fn set_gate(&self, gate: Arc<dyn AccessGate>);

    /// Replaces the peers that are named on chain: providers, and clients of open tasks. For them places are
    /// kept that strangers cannot take, and limits per address do not count them.
    async fn set_named_peers(&self, endpoints: &[Endpoint]) -> Result<(), PlaneError>;

    /// Stores a blob and pins it. It is read by nobody until it is granted or announced.
    async fn publish(&self, bytes: Bytes) -> Result<ContentHash, PlaneError>;

    /// No longer keeps the blob from making room for others.
    async fn release(&self, hash: ContentHash);

    /// Lets `readers` read the blob `hash` as part of `task`, whether it is here already or comes later.
    /// Granting again replaces what was granted for this task and blob before: [`Readers::NOBODY`] takes it
    /// back. Readers of other tasks with the same blob are not affected.
    ///
    /// Grants are not kept over a restart: the chain knows who is in the round.
    async fn grant(&self, task: TaskId, hash: ContentHash, readers: Readers<'_>) -> Result<(), PlaneError>;

    /// The blob, from the own store unless it is wanted anew, or from the first of `sources` that delivers
    /// it. Checked against its hash and, when given, its size. What was fetched is stored, and served to
    /// others as far as it is granted.
    async fn fetch(
        &self,
        hash: ContentHash,
        sources: &[Endpoint],
        options: &FetchOptions,
    ) -> Result<Bytes, PlaneError>;

    /// Tells who asks that `output`, which must have been published, is this peer's for `task`. Announcing
    /// again replaces what was said before.
    ///
    /// Only `readers` are told, and may read the blob; and whom the gate lets in. A provider names its client
    /// there once enough have committed, and until results are revealed: no other provider can copy it.
    async fn announce_output(
        &self,
        task: TaskId,
        output: Announcement,
        readers: Readers<'_>,
    ) -> Result<(), PlaneError>;

    /// Asks `peer` for its output of `task`, showing the ticket if there is one.
    async fn locate_output(
        &self,
        task: TaskId,
        peer: &Endpoint,
        ticket: Option<&Ticket>,
    ) -> Result<OutputLocation, PlaneError>;

    /// Starts serving what this peer computes for `task`, token by token, to `readers`. Opening again starts
    /// over.
    async fn open_stream(&self, task: TaskId, readers: Readers<'_>) -> Result<StreamWriter, PlaneError>;

    /// No longer serves it.
    async fn close_stream(&self, task: TaskId);

    /// The tokens that `peer` has for `task`, from index `from` on: at once when there are some, else as soon
    /// as there is one, and none when there was nothing new for a few seconds. Nothing of it is checked: the
    /// chain's verdict does that, when the output is there.
    async fn read_stream(&self, task: TaskId, peer: &Endpoint, from: u32) -> Result<StreamPage, PeerError>;

    /// Opens a call with the peer at these endpoints, dialling it if need be. Where they are of several
    /// peers, the first that takes it. It is taken, or refused, before anything is said.
    ///
    /// A plane that does not say how has no calls.
    async fn open_call(&self, _: &[Endpoint]) -> Result<CallStream, CallError> {
        Err(CallError::NotServed)
    }

    /// The calls of others, from now on: this peer serves them. Nothing while an earlier listener lives.
    fn calls(&self) -> Option<CallListener> {
        None
    }
}

/// Why the data plane could not do something.
#[derive(Debug, thiserror::Error)]
pub enum PlaneError {
    /// Nobody to ask.
    #[error("blob {0:?} is not here, and there is no peer to fetch it from")]
    NoSources(ContentHash),
    /// More than this peer takes.
    #[error("blob of {bytes} bytes is over the limit of {max} bytes")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The limit.
        max: u64,
    },
    /// Every peer failed.
    #[error("no peer could deliver {what}:{}", Attempts(attempts))]
    AllFailed {
        /// What was asked for.
        what: String,
        /// Who failed, and how, in order.
        attempts: Vec<Attempt>,
    },
    /// The caller's time is up.
    #[error("{what} did not arrive within {seconds} s:{}", Attempts(attempts))]
    OutOfTime {
        /// What was asked for.
        what: String,
        /// The time there was.
        seconds: u64,
        /// Who failed until then, and how, in order.
        attempts: Vec<Attempt>,
    },
    /// The local store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An address is no good.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The key file is no good.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {reason}")]
    Listen {
        /// The address.
        address: String,
        /// What the system said.
        reason: String,
    },
    /// The node has stopped.
    #[error("the data plane has stopped")]
    Closed,
}

/// One peer that did not deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Its address, as text.
    pub endpoint: String,
    /// What went wrong.
    pub fault: PeerError,
}

/// Why a peer did not deliver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// Its address is no good.
    #[error("{0}")]
    Address(AddressError),
    /// No connection.
    #[error("unreachable: {0}")]
    Unreachable(String),
    /// Somebody else answers at that address.
    #[error("another peer answers there: {found}")]
    WrongPeer {
        /// Who answered.
        found: String,
    },
    /// No answer in time.
    #[error("no answer in time")]
    TimedOut,
    /// Answers, but too slowly.
    #[error("too slow: {bytes} bytes in {seconds} s")]
    TooSlow {
        /// What arrived.
        bytes: u64,
        /// In which time.
        seconds: u64,
    },
    /// It does not have it.
    #[error("does not have it")]
    NotFound,
    /// It has it, and this peer may not read it: it is not of the round, or not yet, or its ticket was not
    /// taken, now or within [`crate::Limits::gate_refusal_memory`].
    #[error("refuses: this peer is not among the readers")]
    Refused,
    /// It has too much to do, or this peer has all that it may have for now: requests, bytes, or tickets
    /// being judged.
    #[error("is busy")]
    Busy,
    /// What it sent has another hash.
    #[error("sent bytes with another hash")]
    WrongHash,
    /// What it offers has another size.
    #[error("offers {found} bytes instead of {expected}")]
    WrongSize {
        /// Its size.
        found: u64,
        /// What was to be expected.
        expected: u64,
    },
    /// What it offers is larger than this peer takes.
    #[error("offers {bytes} bytes, over the limit of {max}")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The limit.
        max: u64,
    },
    /// It breaks the protocol.
    #[error("broke the protocol: {0}")]
    Protocol(String),
}

impl PeerError {
    /// Whether asking again a little later may help. A peer that lied is not asked twice.
    pub fn may_pass(&self) -> bool {
        match self {
            // Who is of the round is learnt from the chain, by some peers a moment later than by others.
            Self::Unreachable(_) | Self::TimedOut | Self::NotFound | Self::Refused | Self::Busy => true,
            Self::Address(_)
            | Self::WrongPeer { .. }
            | Self::TooSlow { .. }
            | Self::WrongHash
            | Self::WrongSize { .. }
            | Self::TooLarge { .. }
            | Self::Protocol(_) => false,
        }
    }
}

struct Attempts<'a>(&'a [Attempt]);

impl fmt::Display for Attempts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for attempt in self.0 {
            write!(f, "\n  {}: {}", attempt.endpoint, attempt.fault)?;
        }
        Ok(())
    }
}
