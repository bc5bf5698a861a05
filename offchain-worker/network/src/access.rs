//! Who may read which blob.
//!
//! Nobody, until it is said who: a blob's hash stands on chain, so that knowing it gives no right to the
//! blob. Two ways lead to it:
//!
//! 1. the reader shows a [`Ticket`], and the host's [`AccessGate`] finds that good, now or no longer ago than
//!    [`crate::Limits::gate_memory`]. Whom it has refused a blob is refused it unjudged for
//!    [`crate::Limits::gate_refusal_memory`], whatever it shows. Nothing else counts then: a reader of one
//!    task's blob may ask for another's, with the same bytes;
//! 2. it shows none, and is among those to whom the blob was granted ([`crate::DataPlane::grant`]) or
//!    announced as an output.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    time::Duration,
};

use async_trait::async_trait;
use codec::{Decode, Encode, Input};
use libp2p::PeerId;
use surety_types::{ContentHash, TaskId, multiaddr::Endpoint};
use tokio::time::Instant;

/// Largest ticket, in bytes: two accounts, a key, a VRF's output and proof and a signature take about 300.
pub const TICKET_BYTES_MAX: usize = 512;

/// Who may read something of this peer. Endpoints stand for the peers whose ids they end in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers<'a> {
    /// Whoever asks.
    Everyone,
    /// The peers at these endpoints.
    Only(&'a [Endpoint]),
}

impl Readers<'_> {
    /// None but those whom the gate lets in.
    pub const NOBODY: Self = Self::Only(&[]);
}

/// What a peer shows to be let in where it is not named: an auditor's proof that it was drawn. What is in it
/// is between the hosts; here it is bytes.
#[derive(Clone, Debug, PartialEq, Eq, Encode)]
pub struct Ticket(Vec<u8>);

impl Ticket {
    /// A ticket of these bytes; none when there are more than [`TICKET_BYTES_MAX`].
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        (bytes.len() <= TICKET_BYTES_MAX).then_some(Self(bytes))
    }

    /// What is in it.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Decode for Ticket {
    fn decode<I: Input>(input: &mut I) -> Result<Self, codec::Error> {
        Self::new(Vec::decode(input)?).ok_or_else(|| "a ticket is longer than 512 bytes".into())
    }
}

/// Whether a peer may read a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may. For a blob asked for by its hash this holds for [`crate::Limits::gate_memory`]; which output
    /// is a task's is judged each time.
    Allow,
    /// It may not. The peer is refused this blob for [`crate::Limits::gate_refusal_memory`].
    Refuse,
}

/// What a peer asks for.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Its id, as it stands in endpoints. It has proven that it is this peer.
    pub peer: &'a str,
    /// The blob. It is here.
    pub blob: ContentHash,
    /// The task of which it asks what the output is; nothing: it asks for the blob by its hash. Then nothing
    /// is told but the blob.
    pub task: Option<TaskId>,
    /// What it shows.
    pub ticket: &'a Ticket,
}

/// The host's judge of tickets.
///
/// Asked apart from the event loop, of at most [`crate::Limits::gate_checks_max`] tickets at once, of these
/// [`crate::Limits::gate_checks_per_peer_max`] of one peer and [`crate::Limits::gate_checks_per_address_max`]
/// of one address's strangers; further ones are put off as busy. Each is judged for at most
/// [`crate::Limits::gate_timeout`]: what takes longer, or cannot be told, is a refusal which is not
/// remembered. It must not block its thread for long.
#[async_trait]
pub trait AccessGate: Send + Sync {
    /// Whether this may be read; nothing when that cannot be told now, for example because no node answers.
    async fn may_read(&self, asked: Asked<'_>) -> Option<Decision>;
}

/// Who may know of something.
#[derive(Clone, Debug)]
pub(crate) enum Audience<P> {
    Everyone,
    Only(Vec<P>),
}

impl<P: PartialEq> Audience<P> {
    pub(crate) fn has(&self, peer: &P) -> bool {
        match self {
            Self::Everyone => true,
            Self::Only(peers) => peers.contains(peer),
        }
    }
}

/// To whom blobs were granted, task by task: two tasks may share a blob. Bounded; what was granted first is
/// forgotten first.
pub(crate) struct Grants<P> {
    by_blob: HashMap<ContentHash, Vec<(TaskId, Audience<P>)>>,
    /// The pairs in `by_blob`, oldest first.
    order: VecDeque<(TaskId, ContentHash)>,
    max: usize,
}

impl<P: PartialEq> Grants<P> {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            by_blob: HashMap::new(),
            order: VecDeque::new(),
            max,
        }
    }

    /// Replaces what was granted for this task and blob before.
    pub(crate) fn insert(&mut self, task: TaskId, blob: ContentHash, audience: Audience<P>) {
        self.remove(task, blob);
        if matches!(&audience, Audience::Only(peers) if peers.is_empty()) {
            return;
        }
        self.by_blob.entry(blob).or_default().push((task, audience));
        self.order.push_back((task, blob));
        while self.order.len() > self.max {
            if let Some((task, blob)) = self.order.front().copied() {
                self.remove(task, blob);
            }
        }
    }

    fn remove(&mut self, task: TaskId, blob: ContentHash) {
        let Some(granted) = self.by_blob.get_mut(&blob) else {
            return;
        };
        let before = granted.len();
        granted.retain(|(other, _)| *other != task);
        let removed = granted.len() < before;
        if granted.is_empty() {
            self.by_blob.remove(&blob);
        }
        if removed {
            self.order.retain(|pair| *pair != (task, blob));
        }
    }

    pub(crate) fn may_read(&self, blob: &ContentHash, peer: &P) -> bool {
        let granted = self.by_blob.get(blob);
        granted.is_some_and(|granted| granted.iter().any(|(_, audience)| audience.has(peer)))
    }
}

/// Who was let in, for which blob, and what its ticket is remembered by.
pub(crate) type Allowed = (PeerId, ContentHash, ContentHash);

/// What a ticket is remembered by: it has up to some hundred bytes.
pub(crate) fn ticket_hash(ticket: &Ticket) -> ContentHash {
    sp_crypto_hashing::blake2_256(ticket.as_bytes()).into()
}

/// Decisions of the gate that still hold, all of one kind: who was let in, or who was refused. A blob is read
/// in many requests, and its reader is judged once. Bounded; when it is full of decisions that hold, all are
/// forgotten.
pub(crate) struct DecisionCache<K> {
    until: HashMap<K, Instant>,
    memory: Duration,
    max: usize,
}

impl<K: Eq + Hash> DecisionCache<K> {
    pub(crate) fn new(memory: Duration, max: usize) -> Self {
        Self {
            until: HashMap::new(),
            memory,
            max,
        }
    }

    pub(crate) fn insert(&mut self, of: K, now: Instant) {
        if self.until.len() >= self.max {
            self.until.retain(|_, until| *until > now);
        }
        if self.until.len() >= self.max {
            // All of them hold: to forget them costs a check each.
            self.until.clear();
        }
        self.until.insert(of, now + self.memory);
    }

    pub(crate) fn has(&self, of: &K, now: Instant) -> bool {
        self.until.get(of).is_some_and(|until| *until > now)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use codec::DecodeAll;

    use super::*;

    const BLOB: ContentHash = ContentHash::repeat_byte(1);

    #[test]
    fn a_blob_of_two_tasks_is_read_by_the_readers_of_both_until_each_is_taken_back() {
        let mut grants = Grants::new(8);
        assert!(!grants.may_read(&BLOB, &"ann"));
        grants.insert(1, BLOB, Audience::Only(vec!["ann"]));
        grants.insert(2, BLOB, Audience::Only(vec!["bob"]));
        assert!(grants.may_read(&BLOB, &"ann") && grants.may_read(&BLOB, &"bob"));
        assert!(!grants.may_read(&BLOB, &"eve"));
        assert!(!grants.may_read(&ContentHash::zero(), &"ann"));
        grants.insert(1, BLOB, Audience::Only(vec!["eve"]));
        assert!(!grants.may_read(&BLOB, &"ann") && grants.may_read(&BLOB, &"eve"));
        grants.insert(2, BLOB, Audience::Only(vec![]));
        assert!(!grants.may_read(&BLOB, &"bob"));
        grants.insert(1, BLOB, Audience::Everyone);
        assert!(grants.may_read(&BLOB, &"bob"));
    }

    #[test]
    fn the_oldest_grant_is_forgotten_first_and_nothing_else_is_kept() {
        let mut grants = Grants::new(2);
        for task in 1..=3 {
            grants.insert(
                task,
                ContentHash::from_low_u64_be(task),
                Audience::Only(vec!["ann"]),
            );
        }
        let may = |task| grants.may_read(&ContentHash::from_low_u64_be(task), &"ann");
        assert_eq!([1, 2, 3].map(may), [false, true, true]);
        assert_eq!((grants.by_blob.len(), grants.order.len()), (2, 2));
    }

    #[test]
    fn a_decision_holds_for_a_while_and_few_are_kept() {
        let (peer, now) = (PeerId::random(), Instant::now());
        let mut allowances = DecisionCache::new(Duration::from_secs(60), 2);
        allowances.insert((peer, BLOB), now);
        assert!(allowances.has(&(peer, BLOB), now + Duration::from_secs(59)));
        assert!(!allowances.has(&(peer, BLOB), now + Duration::from_secs(60)));
        assert!(!allowances.has(&(PeerId::random(), BLOB), now));
        for _ in 0..9 {
            allowances.insert((PeerId::random(), BLOB), now);
            assert!(allowances.until.len() <= 2);
        }
    }

    #[test]
    fn a_ticket_is_bounded_on_either_side() {
        let largest = Ticket::new(vec![7; TICKET_BYTES_MAX]).unwrap();
        assert_eq!(
            Ticket::decode_all(&mut largest.encode().as_slice()).unwrap(),
            largest
        );
        assert_eq!(Ticket::new(vec![7; TICKET_BYTES_MAX + 1]), None);
        let over = vec![7u8; TICKET_BYTES_MAX + 1].encode();
        assert!(Ticket::decode_all(&mut over.as_slice()).is_err());
    }
}
