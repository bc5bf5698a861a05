//! All tasks of one provider.

pub(crate) mod confirmations;
mod load;
mod replay;
mod reserve;

use std::collections::BTreeSet;

use codec::Encode;
use sp_crypto_hashing::twox_64;
use surety_proofs::commitment;
use surety_types::{
    ContentHash, TaskId,
    region::Region,
    speed::MeasuredView,
    task::{MemberProgress, ResultClaim},
    trust::{Content, Refutation},
};

use crate::{
    AccountId, Balance, BlockNumber, Effect, EffectKind, Event, Failure, Purpose, Record, Step, TaskSnapshot,
    provider_task::{ProviderTask, SealedResult, Want, member, owes_opening},
    schedule::{Subject, undated},
    speed::Speeds,
    worker::{Duties, Worker},
};
use load::Load;

pub use replay::ReplayError;
pub use reserve::{LARGEST_DEMAND, SUPPLY_FEE, demand_cost, demand_reserve};

/// Its state machine. See the crate's documentation for what it promises.
pub type Provider = Worker<ProviderRole>;

/// Bids, computes, commits and reveals.
#[derive(Default)]
pub struct ProviderRole {
    speeds: Speeds,
    /// Stake that is free for locks, where that is known.
    free_stake: Option<Balance>,
    /// Money that is free for fees, where that is known.
    free_money: Option<Balance>,
    /// What the chain has measured of us, where that counts.
    benchmarked: Option<MeasuredView>,
    /// Where the chain knows us to say that we are.
    declared: Option<Region>,
    /// The chain takes no bid before its clock has passed this.
    barred_until: Option<BlockNumber>,
}

impl Duties for ProviderRole {
    type Task = ProviderTask;

    fn replay(worker: &mut Provider, record: Record) -> Result<(), ReplayError> {
        worker.replay(record)
    }

    fn see(worker: &mut Provider, tasks: Vec<TaskSnapshot>, unread: &[TaskId], step: &mut Step) {
        worker.see(tasks, unread, step);
    }

    fn see_best(task: &mut ProviderTask, snapshot: TaskSnapshot, block: BlockNumber) {
        task.see_best(snapshot, block);
    }

    fn hear(worker: &mut Provider, event: Event, step: &mut Step) {
        worker.hear(event, step);
    }

    fn stages(worker: &Provider) -> impl Iterator<Item = &'static str> {
        worker.progress().map(|(_, progress)| progress.name())
    }

    fn spare_millis(worker: &Provider) -> Option<u64> {
        worker.spare()
    }
}

/// How far a task is, for people to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Not seen on the chain yet since the start.
    Unseen,
    /// Bid, and not decided yet; or in reserve.
    Bidding,
    /// Ours, with no result yet.
    Assigned,
    /// Ours, but no result will come of it.
    GivenUp,
    /// There is a result; the chain does not show our commitment yet.
    Computed,
    /// The chain shows our commitment.
    Committed,
    /// The chain shows our result.
    Revealed,
}

impl Progress {
    /// In one word, as metrics have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unseen => "unseen",
            Self::Bidding => "bidding",
            Self::Assigned => "assigned",
            Self::GivenUp => "given_up",
            Self::Computed => "computed",
            Self::Committed => "committed",
            Self::Revealed => "revealed",
        }
    }
}

impl Provider {
    /// Every task it has to do with, and how far it is.
    pub fn progress(&self) -> impl Iterator<Item = (TaskId, Progress)> + '_ {
        self.tasks
            .iter()
            .map(|(id, entry)| (*id, self.progress_of(entry)))
    }

    fn progress_of(&self, entry: &ProviderTask) -> Progress {
        let Some(seen) = &entry.seen else {
            return Progress::Unseen;
        };
        let member = seen
            .round
            .as_ref()
            .and_then(|round| member(round, &self.config.stash));
        match member.map(|member| &member.progress) {
            None => Progress::Bidding,
            Some(MemberProgress::Revealed(_)) => Progress::Revealed,
            Some(MemberProgress::Committed(_)) => Progress::Committed,
            Some(MemberProgress::Working) if entry.result.is_some() => Progress::Computed,
            Some(MemberProgress::Working) if entry.has_given_up() => Progress::GivenUp,
            Some(MemberProgress::Working) => Progress::Assigned,
        }
    }

    fn finish(&mut self, task: TaskId, step: &mut Step) {
        self.bury(task, self.block);
        step.records.push(Record::Finished { task, at: self.block });
        step.effects.push(undated(Effect::Forget { task }));
    }

    /// Takes finalised state in, and which tasks of it could not be read.
    fn see(&mut self, tasks: Vec<TaskSnapshot>, unread: &[TaskId], step: &mut Step) {
        let (block, clock) = (self.block, self.clocks.finalized);
        let read = tasks.iter().map(|task| task.id);
        let listed: BTreeSet<_> = read.chain(unread.iter().copied()).collect();
        // Finalised state does not go back: what it no longer lists does not come again.
        self.finished
            .retain(|task, at| *at > block || listed.contains(task));
        let mut unknown = Vec::new();
        for snapshot in tasks {
            // What is owed is not finished, whatever we took the chain's silence for.
            if owes_opening(&snapshot, &self.config.stash) {
                self.finished.remove(&snapshot.id);
            }
            match self.tasks.get_mut(&snapshot.id) {
                Some(entry) => entry.see(snapshot, &self.config, block, clock),
                None if !self.finished.contains_key(&snapshot.id) => unknown.push(snapshot),
                None => {}
            }
        }
        for (task, entry) in &mut self.tasks {
            if !listed.contains(task) {
                entry.absence.note(block);
            } else if unread.contains(task) {
                entry.absence.end(block);
            }
            entry.forget_best_before(block);
        }
        self.adopt_bids();
        let gone: Vec<_> = self
            .tasks
            .iter()
            .filter(|(_, entry)| {
                entry.is_over(&self.config.stash, clock) || entry.is_gone(&self.config.stash, clock)
            })
            .map(|(task, _)| *task)
            .collect();
        for task in gone {
            self.finish(task, step);
        }
        // Where not all of it fits, providers begin with different tasks.
        unknown.sort_by_cached_key(|task| twox_64(&(&self.config.stash, task.id).encode()));
        let mut load = self.load();
        self.back_bids(&mut load);
        for snapshot in unknown {
            self.meet(snapshot, &mut load, step);
        }
    }

    /// After a lost journal, a bid may have been made anew while the first one was on its way: the chain has
    /// taken one.
    fn adopt_bids(&mut self) {
        let stash = &self.config.stash;
        let is_other = |entry: &ProviderTask| {
            let seen = entry.seen.as_ref()?;
            let (bid, shown) = (entry.bid.as_ref()?, seen.bid?);
            (bid.seal(seen.id, stash) != shown.seal).then_some(())?;
            Some((seen.id, self.bid_sealed_as(seen, shown.seal)?))
        };
        let others: Vec<_> = self.tasks.values().filter_map(is_other).collect();
        for (task, bid) in others {
            if let Some(entry) = self.tasks.get_mut(&task) {
                entry.bid = Some(bid);
            }
        }
    }

    /// Decides about a task that we have nothing to do with so far.
    fn meet(&mut self, snapshot: TaskSnapshot, load: &mut Load, step: &mut Step) {
        if self.tasks.len() >= self.config.tasks_max {
            return;
        }
        let mut entry = ProviderTask::default();
        let (stash, clock) = (&self.config.stash, self.clocks.finalized);
        let bid = match entry.want_of(&snapshot, stash, clock) {
            // It would be refused, for a fee.
            Want::Consider if !self.config.takes_work() => None,
            Want::Consider if self.role.barred_until.is_some_and(|until| clock <= until) => None,
            Want::Consider => self.bid_for(&snapshot, load),
            Want::AdoptBid(seal) => self.bid_sealed_as(&snapshot, seal),
            // We are on a task that the journal does not know, or there is a dispute or a demand: it was
            // lost.
            Want::Do(..) | Want::Nothing | Want::Over => None,
        };
        let task = snapshot.id;
        if let Some(bid) = &bid {
            step.records.push(Record::BidMade {
                task,
                at: self.block,
                bid: bid.clone(),
            });
        }
        entry.bid = bid;
        entry.see(snapshot, &self.config, self.block, clock);
        if entry.bid.is_some()
            || !entry.duels.is_empty()
            || !entry.wants(&self.config, self.clocks).is_empty()
        {
            self.tasks.insert(task, entry);
        }
    }

    /// Takes in how an effect went, or what the host has learnt.
    fn hear(&mut self, event: Event, step: &mut Step) {
        let (task, kind) = match event.ends() {
            Some((task, kind, Ok(()))) => (task, kind),
            Some((task, kind, Err(failure))) => return self.take_failure((task, kind), failure, step),
            None => return self.learn(event),
        };
        let of = (task, kind);
        match event {
            Event::InputReady { .. } => {
                if let Some(entry) = self.tasks.get_mut(&task) {
                    entry.input_ready = true;
                    entry.find(Content::Input);
                    if !std::mem::replace(&mut entry.input_fetched, true) {
                        step.records.push(Record::InputFetched { task, at: self.block });
                    }
                    entry.attempts.succeed(kind, self.now, &self.config);
                }
            }
            Event::ResultReady { claim, leaves, .. } => self.take_result(of, (claim, leaves), step),
            Event::EffectDone { .. } => self.take_success(of, step),
            Event::MoveReady {
                dispute,
                number,
                played,
                ..
            } => {
                if let Some(entry) = self.tasks.get_mut(&task) {
                    entry.attempts.succeed(kind, self.now, &self.config);
                    let at = (task, self.block);
                    step.records
                        .extend(entry.duels.take_move(at, dispute, number, played));
                }
            }
            Event::ConfirmationChecked {
                verifier, refutation, ..
            } => self.take_check(of, verifier, refutation, step),
            // A verifier's.
            _ => {}
        }
    }

    fn learn(&mut self, event: Event) {
        match event {
            Event::Measured {
                model,
                operation,
                units,
                millis,
            } => self.role.speeds.measure(model, operation, units, millis),
            Event::TookLonger {
                model,
                operation,
                units,
                millis,
            } => self.role.speeds.took_longer(model, operation, units, millis),
            Event::Unmeasured => self.role.speeds = Speeds::default(),
            Event::Stake { free } => self.role.free_stake = Some(free),
            Event::Money { free } => self.role.free_money = Some(free),
            Event::Benchmarked { measured } => self.role.benchmarked = measured,
            Event::Declared { region } => self.role.declared = region,
            Event::CommitWindow { seconds } => self.config.commit_seconds = seconds,
            Event::Barred { until } => self.role.barred_until = until,
            // Taken before, and a verifier's.
            _ => {}
        }
    }

    /// The only place where it is decided whom we accuse.
    fn take_check(
        &mut self,
        (task, kind): (TaskId, EffectKind),
        verifier: AccountId,
        refutation: Option<Box<Refutation>>,
        step: &mut Step,
    ) {
        if let Some(entry) = self.tasks.get_mut(&task) {
            entry.attempts.succeed(kind, self.now, &self.config);
            let at = (task, self.block);
            step.records
                .extend(entry.confirmations.take(at, verifier, refutation));
        }
    }

    fn take_failure(&mut self, (task, kind): (TaskId, EffectKind), failure: Failure, step: &mut Step) {
        let Some(entry) = self.tasks.get_mut(&task) else {
            return;
        };
        let is_known = entry.attempts.fail(kind, self.now, failure, &self.config);
        match kind {
            EffectKind::Supply(part) if is_known && failure == Failure::Gone => entry.lose(part.content),
            EffectKind::Bid if is_known && failure == Failure::Unbacked => {
                entry.unbacked = true;
                // The chain has just said so, and is asked for more only now and then.
                let less = entry.lock.saturating_sub(1);
                let free = &mut self.role.free_stake;
                *free = Some(free.map_or(less, |free| free.min(less)));
            }
            // A restart does not start waiting for it anew.
            EffectKind::Fetch => {
                let missed = |(since, demands)| Record::InputMissed {
                    task,
                    at: self.block,
                    since,
                    demands,
                };
                step.records.extend(entry.inputs.fail().map(missed));
            }
            EffectKind::Compute => {
                // It may be the input that is no longer here; where it is, fetching takes no time.
                entry.input_ready = false;
                entry.attempts.forget(EffectKind::Fetch);
            }
            _ => {}
        }
    }

    fn take_success(&mut self, (task, kind): (TaskId, EffectKind), step: &mut Step) {
        let Some(entry) = self.tasks.get_mut(&task) else {
            return;
        };
        if !entry.attempts.succeed(kind, self.now, &self.config) {
            return;
        }
        let at = self.block;
        match kind {
            EffectKind::Commit => step.records.push(Record::CommitSubmitted { task, at }),
            EffectKind::Reveal => step.records.push(Record::RevealSubmitted { task, at }),
            EffectKind::Play(dispute) => step.records.extend(entry.duels.sent(dispute, task, at)),
            _ => {}
        }
    }

    /// The only place where a result comes into being.
    fn take_result(
        &mut self,
        (task, kind): (TaskId, EffectKind),
        (claim, leaves): (ResultClaim, Option<ContentHash>),
        step: &mut Step,
    ) {
        let Some(entry) = self.tasks.get_mut(&task) else {
            return;
        };
        entry.attempts.succeed(kind, self.now, &self.config);
        let at = self.block;
        let kept = |leaves| Record::LeavesKept { task, at, leaves };
        if let Some(made) = &entry.result {
            if made.claim != claim {
                // What has to be shown cannot be had any more.
                entry.abandoned = true;
                return;
            }
            entry.find(Content::Output);
            entry.find(Content::Leaves);
            if entry.leaves.is_none() {
                entry.leaves = leaves;
                step.records.extend(leaves.map(kept));
            }
            return;
        }
        if entry.abandoned {
            return;
        }
        let Some(seen) = &entry.seen else {
            return;
        };
        if claim.units > seen.task.spec.units_max {
            // The input has more units than the client pays for; the chain takes no such claim.
            entry.abandoned = true;
            return;
        }
        let salt = self.config.salts.salt(task, Purpose::Result);
        let sealed = SealedResult {
            commitment: commitment(task, &self.config.stash, &claim, &salt),
            claim: claim.clone(),
            salt,
        };
        if !entry.fits_what_is_shown(&self.config.stash, &sealed) {
            // The journal was lost, and this is not what we said: it can be neither opened nor shown.
            entry.abandoned = true;
            return;
        }
        let ours = sealed.commitment;
        entry.result = Some(sealed);
        entry.leaves = leaves;
        step.records.push(Record::ResultMade {
            task,
            at: self.block,
            claim,
            salt,
            commitment: ours,
        });
        step.records.extend(leaves.map(kept));
    }
}
