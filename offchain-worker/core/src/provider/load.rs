//! How much work is promised, and whether more fits.
//!
//! What waits for a window to pass is no work, however long it waits. What counts is computing that is
//! assigned and not done, and a part of what is bid for and not decided.

use sp_core::H256;
use surety_types::task::{Bid, MemberProgress, RoundPhase, TaskState};

use super::Provider;
use crate::{
    Balance, EffectKind, Purpose, TaskSnapshot,
    provider_task::{ProviderTask, member},
};

/// How much of the time to commit is filled, in per cent. The rest is for what was not foreseen.
const FILLED_PERCENT: u64 = 75;
/// A bid whose journal was lost is looked for among those that promise up to so many seconds.
const SECONDS_MAX: u32 = 20_000;

/// What our stake has room for, where that is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stake {
    pub free: Balance,
    pub lock_per_price: u32,
}

/// Promised work.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    /// Milliseconds of computing.
    millis: u64,
    /// Stake that bids would lock, in plancks.
    locks: Balance,
}

/// How far a task is, as far as work is concerned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Share {
    /// Done, lost, or hopeless.
    None,
    /// Bid for; others have, too.
    Undecided,
    /// To be computed.
    Whole,
}

impl Provider {
    pub(super) fn load(&self) -> Load {
        let mut load = Load::default();
        for entry in self.tasks.values() {
            let Some(seen) = &entry.seen else { continue };
            let share = self.share(entry, seen);
            if share == Share::None {
                continue;
            }
            let price = entry.bid.as_ref().map_or(0, |bid| bid.price);
            self.add(&mut load, self.millis(seen), price, share);
        }
        load
    }

    fn add(&self, load: &mut Load, millis: u64, price: Balance, share: Share) {
        let millis = match share {
            Share::None => return,
            Share::Whole => millis,
            Share::Undecided => {
                load.locks = load.locks.saturating_add(self.lock(price));
                millis.saturating_mul(self.config.undecided_percent.into()) / 100
            }
        };
        load.millis = load.millis.saturating_add(millis);
    }

    fn share(&self, entry: &ProviderTask, seen: &TaskSnapshot) -> Share {
        if entry.result.is_some() || entry.has_given_up() || entry.absence.is_likely_over() {
            return Share::None;
        }
        match (&seen.task.state, &seen.round) {
            // The chain has refused the bid.
            (TaskState::Bidding { .. }, _)
                if seen.bid.is_none() && entry.attempts.is_given_up(EffectKind::Bid) =>
            {
                Share::None
            }
            (TaskState::Bidding { .. } | TaskState::Revealing { .. } | TaskState::Drawing { .. }, _) => {
                Share::Undecided
            }
            (TaskState::Running { .. }, Some(round)) => match member(round, &self.config.stash) {
                Some(ours) if ours.fault.is_none() => match (&ours.progress, &round.phase) {
                    (MemberProgress::Working, RoundPhase::Committing { until })
                        if self.clocks.finalized <= *until =>
                    {
                        Share::Whole
                    }
                    // The journal was lost.
                    (MemberProgress::Committed(_), _) => Share::Whole,
                    _ => Share::None,
                },
                _ => Share::None,
            },
            _ => Share::None,
        }
    }

    /// Milliseconds of computing that a task takes at most.
    fn millis(&self, task: &TaskSnapshot) -> u64 {
        let offer = self.config.policy.offer(&task.task.spec);
        // No longer on offer: little is known of it.
        offer.map_or(0, |offer| self.role.speeds.millis(&task.task.spec, &offer))
    }

    fn lock(&self, price: Balance) -> Balance {
        let per_price = self.role.stake.map_or(0, |stake| stake.lock_per_price);
        price.saturating_mul(per_price.into())
    }

    /// The bid to make, if the work fits; it counts from now on.
    pub(super) fn bid_for(&self, snapshot: &TaskSnapshot, load: &mut Load) -> Option<Bid<Balance>> {
        let (price, seconds_ahead) = self.price_of(snapshot)?;
        let own = self.millis(snapshot);
        let places = self.config.computing_max.max(1) as u64;
        let computing = load.millis.saturating_add(own).div_ceil(places);
        let all = computing.saturating_add(u64::from(seconds_ahead).saturating_mul(1000));
        if all > u64::from(self.config.commit_seconds).saturating_mul(10 * FILLED_PERCENT) {
            return None;
        }
        let locks = load.locks.saturating_add(self.lock(price));
        if self.role.stake.is_some_and(|stake| locks > stake.free) {
            return None;
        }
        self.add(load, own, price, Share::Undecided);
        let seconds = u32::try_from(all.div_ceil(1000)).unwrap_or(u32::MAX);
        Some(self.bid(snapshot, price, seconds))
    }

    /// The bid that we made before the journal was lost, which the chain shows this seal of. Its price and
    /// its salt are what they were; what was promised of time is found by trying.
    pub(super) fn bid_sealed_as(&self, snapshot: &TaskSnapshot, seal: H256) -> Option<Bid<Balance>> {
        let (price, _) = self.price_of(snapshot)?;
        let tried = (0..=self.config.commit_seconds.min(SECONDS_MAX))
            .map(|seconds| self.bid(snapshot, price, seconds));
        let mut tried = tried.filter(|bid| bid.seal(snapshot.id, &self.config.stash) == seal);
        tried.next()
    }

    /// What we ask for a task, if its client pays that much, and the seconds it takes besides computing.
    fn price_of(&self, snapshot: &TaskSnapshot) -> Option<(Balance, u32)> {
        let spec = &snapshot.task.spec;
        let offer = self.config.policy.offer(spec)?;
        let shared_out = snapshot.task.cap.checked_div(spec.redundancy.into())?;
        let limit = snapshot.price_limit.unwrap_or(shared_out);
        (offer.price <= limit).then_some((offer.price, offer.seconds_ahead))
    }

    fn bid(&self, snapshot: &TaskSnapshot, price: Balance, seconds: u32) -> Bid<Balance> {
        let salt = self.config.salts.salt(snapshot.id, Purpose::Bid);
        Bid { price, seconds, salt }
    }
}
