//! How much work is promised, and whether more fits.
//!
//! What waits for a window to pass is no work, however long it waits. What counts is computing that is
//! assigned and not done, and a part of what is bid for and not decided. Money is kept for whatever can still
//! be demanded, done or not.

use sp_core::H256;
use surety_types::{
    BLOCK_SECONDS,
    task::{Bid, MemberProgress, RoundPhase, TaskState},
};

use super::{
    Provider,
    reserve::{demand_cost, demand_reserve},
};
use crate::{
    Balance, BlockNumber, EffectKind, Offer, Purpose, TaskSnapshot,
    provider_task::{ProviderTask, member},
};

/// How much of the time to commit is filled, in per cent. The rest is for what was not foreseen.
const FILLED_PERCENT: u64 = 75;
/// A bid whose journal was lost is looked for among those that promise up to so many seconds.
const SECONDS_MAX: u32 = 20_000;

/// Promised work.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    /// Milliseconds of computing.
    millis: u64,
    /// Stake that has to be free for bids to be drawn, in plancks.
    locks: Balance,
    /// Money that is kept for the fees of showing what is demanded, in plancks.
    reserve: Balance,
}

/// What one more task takes.
#[derive(Clone, Copy, Debug)]
struct Need {
    /// Milliseconds of computing.
    millis: u64,
    /// Seconds before it can begin.
    seconds_ahead: u32,
    lock: Balance,
    reserve: Balance,
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
    /// Done, but lost since: computed again by this time of the running clock, to show what is demanded.
    Again(BlockNumber),
}

impl Provider {
    pub(super) fn load(&self) -> Load {
        let mut load = Load::default();
        for entry in self.tasks.values() {
            let Some(seen) = &entry.seen else { continue };
            let share = self.share(entry, seen);
            if !entry.absence.is_likely_over() {
                let has_bid = share == Share::Undecided;
                let kept = demand_reserve(&seen.task, seen.round.as_ref(), has_bid, &self.config.stash);
                load.reserve = load.reserve.saturating_add(kept);
            }
            self.add_work(&mut load, self.millis(seen), entry.lock, share);
        }
        load
    }

    /// Milliseconds for which nothing has to be computed: what is left of the time for promised work with the
    /// nearest deadline, less all that is promised, and a third of that for what was not foreseen. What is
    /// bid for may be ours with the next block, with all of its time. Nothing where there is neither.
    pub(super) fn spare(&self) -> Option<u64> {
        let left_until = |until: BlockNumber| {
            u64::from(until.saturating_sub(self.clocks.finalized.max(self.clocks.best)))
                .saturating_mul(BLOCK_SECONDS.into())
                .saturating_mul(1000)
        };
        let nearest = self.tasks.values().filter_map(|entry| {
            let Some(seen) = &entry.seen else {
                // What has to be done of it, and until when, is not known yet.
                return (!entry.absence.is_likely_over()).then_some(0);
            };
            match (
                self.share(entry, seen),
                seen.round.as_ref().map(|round| &round.phase),
            ) {
                (Share::None, _) => None,
                (Share::Undecided, _) => Some(u64::from(self.config.commit_seconds).saturating_mul(1000)),
                (
                    Share::Whole,
                    Some(
                        RoundPhase::Committing { until }
                        | RoundPhase::Auditing { until }
                        | RoundPhase::Revealing { until },
                    ),
                ) => Some(left_until(*until)),
                (Share::Whole, _) => Some(0),
                (Share::Again(until), _) => Some(left_until(until)),
            }
        });
        let nearest = nearest.min()?;
        let places = self.config.computing_max.max(1) as u64;
        let needed = self.load().millis.div_ceil(places).saturating_mul(100) / FILLED_PERCENT;
        Some(nearest.saturating_sub(needed))
    }

    /// A task that is bid for counts from now on.
    fn add(&self, load: &mut Load, need: Need) {
        load.reserve = load.reserve.saturating_add(need.reserve);
        self.add_work(load, need.millis, need.lock, Share::Undecided);
    }

    fn add_work(&self, load: &mut Load, millis: u64, lock: Balance, share: Share) {
        let millis = match share {
            Share::None => return,
            Share::Whole | Share::Again(_) => millis,
            Share::Undecided => {
                load.locks = load.locks.saturating_add(lock);
                millis.saturating_mul(self.config.undecided_percent.into()) / 100
            }
        };
        load.millis = load.millis.saturating_add(millis);
    }

    fn share(&self, entry: &ProviderTask, seen: &TaskSnapshot) -> Share {
        if entry.has_given_up() || entry.absence.is_likely_over() {
            return Share::None;
        }
        let again = entry.computed_again_by(seen, &self.config.stash, self.clocks.finalized);
        match (self.share_promised(entry, seen), again) {
            (Share::None, Some(until)) => Share::Again(until),
            (share, _) => share,
        }
    }

    fn share_promised(&self, entry: &ProviderTask, seen: &TaskSnapshot) -> Share {
        if entry.result.is_some() {
            return Share::None;
        }
        match (&seen.task.state, &seen.round) {
            // The chain has refused the bid, and not because it has one of ours already.
            (TaskState::Bidding { .. }, _)
                if entry.newest().is_none_or(|newest| newest.bid.is_none())
                    && (entry.unbacked || entry.attempts.is_given_up(EffectKind::Bid)) =>
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

    /// The bid to make, if the work fits; it counts from now on.
    pub(super) fn bid_for(&self, snapshot: &TaskSnapshot, load: &mut Load) -> Option<Bid<Balance>> {
        let terms = snapshot.terms?;
        let asked = &snapshot.task.spec.requirements;
        // It would be refused, for a fee.
        if !asked.are_met_by(self.role.declared, self.role.benchmarked.as_ref()) {
            return None;
        }
        let Offer {
            price, seconds_ahead, ..
        } = self.config.policy.offer(&snapshot.task.spec)?;
        if price > terms.price_limit {
            return None;
        }
        let need = Need {
            millis: self.millis(snapshot),
            seconds_ahead,
            lock: terms.lock,
            reserve: demand_cost(&snapshot.task),
        };
        let all = self.fits(*load, need)?;
        self.add(load, need);
        let seconds = u32::try_from(all.div_ceil(1000)).unwrap_or(u32::MAX);
        Some(self.bid(snapshot, price, seconds))
    }

    /// Milliseconds until one more task is computed; nothing where there is not the time for it beside the
    /// load, or not the stake, or not the money.
    fn fits(&self, load: Load, need: Need) -> Option<u64> {
        let places = self.config.computing_max.max(1) as u64;
        let computing = load.millis.saturating_add(need.millis).div_ceil(places);
        let all = computing.saturating_add(u64::from(need.seconds_ahead).saturating_mul(1000));
        let is_in_time = all <= u64::from(self.config.commit_seconds).saturating_mul(10 * FILLED_PERCENT);
        // The draw passes over who has less, however little is asked for; and all that is bid for may be won.
        let locks = load.locks.saturating_add(need.lock);
        let is_backed = self.role.free_stake.is_none_or(|free| locks <= free);
        let reserve = load.reserve.saturating_add(need.reserve);
        let can_show = self.role.free_money.is_none_or(|free| reserve <= free);
        (is_in_time && is_backed && can_show).then_some(all)
    }

    /// Has bids made again that the chain has refused for want of free stake, where they fit by now.
    pub(super) fn back_bids(&mut self, load: &mut Load) {
        let mut backed = Vec::new();
        for (task, entry) in self.tasks.iter().filter(|(_, entry)| entry.unbacked) {
            let Some(seen) = &entry.seen else { continue };
            let Some(offer) = self.config.policy.offer(&seen.task.spec) else {
                continue;
            };
            let need = Need {
                millis: self.millis(seen),
                seconds_ahead: offer.seconds_ahead,
                lock: entry.lock,
                reserve: demand_cost(&seen.task),
            };
            if self.fits(*load, need).is_some() {
                self.add(load, need);
                backed.push(*task);
            }
        }
        for task in backed {
            if let Some(entry) = self.tasks.get_mut(&task) {
                entry.unbacked = false;
            }
        }
    }

    /// The bid that we made before the journal was lost, which the chain shows this seal of. Its price and
    /// its salt are what they were; what was promised of time is found by trying.
    pub(super) fn bid_sealed_as(&self, snapshot: &TaskSnapshot, seal: H256) -> Option<Bid<Balance>> {
        let price = self.config.policy.offer(&snapshot.task.spec)?.price;
        let mut tried = (0..=SECONDS_MAX).map(|seconds| self.bid(snapshot, price, seconds));
        tried.find(|bid| bid.seal(snapshot.id, &self.config.stash) == seal)
    }

    fn bid(&self, snapshot: &TaskSnapshot, price: Balance, seconds: u32) -> Bid<Balance> {
        let salt = self.config.salts.salt(snapshot.id, Purpose::Bid);
        Bid { price, seconds, salt }
    }
}
