//! How much is under way at once.

use std::collections::{BTreeMap, BTreeSet};

use surety_types::TaskId;

use crate::{AccountId, BlockNumber, Config, DisputeRecord, EffectKind, Hash};

/// Calls of one sort that are under way at once: those that open or move have places of their own. All sorts
/// together fit into a signer's queue: a commitment or a move never finds it full of bids.
const CALLS_MAX: usize = 64;
/// Bids that are under way at once: a flood of tasks before a slow pool leaves room for what was promised.
const OFFERS_MAX: usize = 32;

/// Moves that are looked for at once. They fetch before they compute: an opponent that answers slowly holds
/// up one game only.
const MOVES_MAX: usize = 4;

/// Something to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub kind: EffectKind,
    /// Last time for it, on the running clock.
    pub by: BlockNumber,
}

/// The running clock, in finalised state and in the best block's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clocks {
    pub finalized: BlockNumber,
    pub best: BlockNumber,
}

impl Wanted {
    pub fn new(kind: EffectKind, by: BlockNumber) -> Self {
        Self { kind, by }
    }

    pub fn class(&self) -> Class {
        Class::of(self.kind)
    }

    /// What is left until its deadline.
    pub fn left(&self, clocks: Clocks) -> BlockNumber {
        self.by.saturating_sub(clocks.finalized.max(clocks.best))
    }

    /// Whether its deadline is near.
    pub fn is_near(&self, clocks: Clocks, config: &Config) -> bool {
        self.left(clocks) <= config.near_blocks
    }
}

/// What shares places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// Moves, openings, pieces and reports: who is late with them loses stake.
    Answering,
    /// A game does not wait for a task.
    FindingMove,
    /// Nor does a committee; but nobody loses stake by being late in one.
    Voting,
    /// All other calls.
    Calling,
    /// Bids: who is late with one loses nothing.
    Offering,
    /// Draws, and looking whether an output is served.
    Looking,
    Fetching,
    Computing,
}

impl Class {
    pub fn of(kind: EffectKind) -> Self {
        match kind {
            EffectKind::Play(_) | EffectKind::Advance(_) | EffectKind::Report(_) => Self::Answering,
            kind if kind.is_opening() => Self::Answering,
            EffectKind::ComputeMove(_) => Self::FindingMove,
            EffectKind::ComputeVote(_) => Self::Voting,
            EffectKind::Fetch
            | EffectKind::FetchAudit(_)
            | EffectKind::CompareAudit(_)
            | EffectKind::CheckConfirmation(_) => Self::Fetching,
            EffectKind::Compute | EffectKind::Audit(_) | EffectKind::CompareAll(_) => Self::Computing,
            EffectKind::Bid => Self::Offering,
            kind if kind.is_call() => Self::Calling,
            _ => Self::Looking,
        }
    }
}

/// Whose trace a move or a vote is found in: what somebody claims about a task, as far as an own view of it
/// depends on that. All disputes about it need the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TraceKey {
    /// Task id.
    pub task: TaskId,
    /// Content hash of the claimed output.
    pub output: Hash,
    /// Claimed units.
    pub units: u32,
}

impl TraceKey {
    /// That of the claim in dispute.
    pub fn of(record: &DisputeRecord) -> Self {
        Self {
            task: record.task,
            output: record.claim.output,
            units: record.claim.units,
        }
    }
}

/// What an effect has only a share of.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shares<'a> {
    /// Who posted its task.
    pub client: Option<&'a AccountId>,
    /// The trace that it is an answer from.
    pub trace: Option<TraceKey>,
}

/// Places that are taken.
#[derive(Debug, Default)]
pub(crate) struct Places {
    taken: BTreeMap<Class, usize>,
    /// Fetches, by the client whose task they are for.
    fetching: BTreeMap<AccountId, usize>,
    /// Traces that answers are being found in. The others wait, those that are due first before the others:
    /// who opens many disputes about one claim has it computed once, and takes one place.
    traces: BTreeSet<TraceKey>,
}

impl Places {
    /// Counts what is under way.
    pub fn count(&mut self, kind: EffectKind, shares: Shares<'_>) {
        let class = Class::of(kind);
        *self.taken.entry(class).or_default() += 1;
        self.traces.extend(shares.trace);
        if let Some(client) = shares.client.filter(|_| class == Class::Fetching) {
            *self.fetching.entry(client.clone()).or_default() += 1;
        }
    }

    /// Takes a place, if there is one.
    pub fn take(&mut self, kind: EffectKind, shares: Shares<'_>, config: &Config) -> bool {
        let class = Class::of(kind);
        let places = match class {
            Class::Answering | Class::Calling => CALLS_MAX,
            Class::Offering => OFFERS_MAX,
            Class::FindingMove => MOVES_MAX,
            Class::Voting | Class::Computing => config.computing_max,
            Class::Looking => config.draws_max,
            Class::Fetching => config.fetching_max,
        };
        let is_full = self.taken.get(&class).copied().unwrap_or(0) >= places;
        // One that answers slowly, or never, leaves places for the others.
        let share = (config.fetching_max / 2).max(1);
        let has_its_share = class == Class::Fetching
            && shares
                .client
                .and_then(|client| self.fetching.get(client))
                .is_some_and(|fetching| *fetching >= share);
        let is_computed = shares.trace.is_some_and(|trace| self.traces.contains(&trace));
        if is_full || has_its_share || is_computed {
            return false;
        }
        self.count(kind, shares);
        true
    }
}
