//! All tasks of one provider.

use std::collections::{BTreeMap, BTreeSet};

use surety_types::{
    task::{Bid, MemberProgress, ResultClaim},
    TaskId,
};
use surety_verification::commitment;

use crate::{
    effort::Effort,
    life::{member, Life, Made, Want},
    AccountId, Balance, BlockNumber, Config, EffectKind, Event, Purpose, Record, Step, TaskSnapshot,
};

/// How many finished tasks are remembered, so that none of them is taken up again. Task numbers only grow: once there
/// are this many, everything below the lowest of them counts as finished too.
pub const FINISHED_MAX: usize = 4096;

/// The state machine. See the crate's documentation for what it promises.
pub struct Provider {
    config: Config,
    /// Newest finalised block taken in. An older state changes nothing.
    block: BlockNumber,
    /// Newest block heard of: what pauses and deadlines go by.
    now: BlockNumber,
    lives: BTreeMap<TaskId, Life>,
    finished: BTreeSet<TaskId>,
}

/// Why a journal cannot be ours, or not as we wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// Two bids or two results for one task: going on could mean to say two different things.
    #[error(
        "the journal contradicts itself on task {task}; restore it from a copy, or start with an empty one"
    )]
    Contradiction {
        /// The task.
        task: TaskId,
    },
    /// A provider's journal for a verifier, or the other way round.
    #[error("the journal's records of task {task} are of another role; use one home folder for each")]
    WrongRole {
        /// The task.
        task: TaskId,
    },
    /// A commitment or a seal that another stash made.
    #[error(
        "the journal's result for task {task} was made for another stash; use one home folder for each stash"
    )]
    WrongStash {
        /// The task.
        task: TaskId,
    },
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

impl Provider {
    /// Takes up where the journal ends.
    ///
    /// # Errors
    /// When the journal contradicts itself, or is another stash's.
    pub fn new(config: Config, records: impl IntoIterator<Item = Record>) -> Result<Self, ReplayError> {
        let mut provider = Self {
            config,
            block: 0,
            now: 0,
            lives: BTreeMap::new(),
            finished: BTreeSet::new(),
        };
        for record in records {
            provider.replay(record)?;
        }
        Ok(provider)
    }

    /// Takes an event in. `now` is the newest block that the host knows of.
    pub fn step(&mut self, now: BlockNumber, event: Event) -> Step {
        self.now = self.now.max(now);
        let mut step = Step::default();
        match event {
            Event::Finalised { block, tasks } => {
                if block < self.block {
                    return step;
                }
                self.block = block;
                self.now = self.now.max(block);
                self.see(tasks, &mut step);
            }
            other => self.hear(other, &mut step),
        }
        self.act(&mut step);
        step
    }

    /// The stash it works for.
    pub fn stash(&self) -> &AccountId {
        &self.config.stash
    }

    /// Every task it has to do with, and how far it is.
    pub fn progress(&self) -> impl Iterator<Item = (TaskId, Progress)> + '_ {
        self.lives.iter().map(|(id, life)| (*id, self.progress_of(life)))
    }

    fn progress_of(&self, life: &Life) -> Progress {
        let Some(seen) = &life.seen else {
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
            Some(MemberProgress::Working) if life.result.is_some() => Progress::Computed,
            Some(MemberProgress::Working) if life.has_given_up() => Progress::GivenUp,
            Some(MemberProgress::Working) => Progress::Assigned,
        }
    }

    fn replay(&mut self, record: Record) -> Result<(), ReplayError> {
        let task = record.task();
        self.block = self.block.max(record.at());
        if self.is_finished(task) {
            return Ok(());
        }
        match record {
            Record::BidMade { bid, .. } => {
                let life = self.lives.entry(task).or_default();
                if life.bid.as_ref().is_some_and(|made| *made != bid) {
                    return Err(ReplayError::Contradiction { task });
                }
                life.bid = Some(bid);
            }
            Record::ResultMade {
                claim,
                salt,
                commitment: recorded,
                ..
            } => {
                if commitment(task, &self.config.stash, &claim, &salt) != recorded {
                    return Err(ReplayError::WrongStash { task });
                }
                let made = Made {
                    claim,
                    salt,
                    commitment: recorded,
                };
                let life = self.lives.entry(task).or_default();
                if life.result.as_ref().is_some_and(|known| *known != made) {
                    return Err(ReplayError::Contradiction { task });
                }
                life.result = Some(made);
            }
            Record::CommitSubmitted { at, .. } => self.replay_done(task, EffectKind::Commit, at),
            Record::RevealSubmitted { at, .. } => self.replay_done(task, EffectKind::Reveal, at),
            Record::Finished { .. } => self.bury(task),
            record @ (Record::MoveMade { .. } | Record::MoveSubmitted { .. }) => {
                let life = self.lives.entry(task).or_default();
                if !life.duels.replay(record, &self.config, &mut life.efforts) {
                    return Err(ReplayError::Contradiction { task });
                }
            }
            Record::InputMissed { since, demands, .. } => {
                let life = self.lives.entry(task).or_default();
                life.inputs.replay_failure(since, demands);
            }
            Record::InputDemandMade { number, segment, .. } => {
                let life = self.lives.entry(task).or_default();
                if !life.inputs.replay(number, segment) {
                    return Err(ReplayError::Contradiction { task });
                }
            }
            Record::AuditMade { .. }
            | Record::AuditAnnounced { .. }
            | Record::AuditRevealed { .. }
            | Record::VoteMade { .. } => return Err(ReplayError::WrongRole { task }),
        }
        Ok(())
    }

    fn replay_done(&mut self, task: TaskId, kind: EffectKind, at: BlockNumber) {
        if let Some(life) = self.lives.get_mut(&task) {
            *life.efforts.of(kind) = Effort::done_at(at, &self.config);
        }
    }

    fn is_finished(&self, task: TaskId) -> bool {
        let below_all = || self.finished.first().is_some_and(|lowest| task < *lowest);
        self.finished.contains(&task) || (self.finished.len() >= FINISHED_MAX && below_all())
    }

    fn bury(&mut self, task: TaskId) {
        self.lives.remove(&task);
        self.finished.insert(task);
        while self.finished.len() > FINISHED_MAX {
            self.finished.pop_first();
        }
    }

    fn finish(&mut self, task: TaskId, step: &mut Step) {
        self.bury(task);
        step.records.push(Record::Finished { task, at: self.block });
        step.effects.push(crate::Effect::Forget { task });
    }

    /// Takes a finalised state in.
    fn see(&mut self, tasks: Vec<TaskSnapshot>, step: &mut Step) {
        let mut listed = BTreeSet::new();
        for snapshot in tasks {
            let task = snapshot.id;
            listed.insert(task);
            if self.is_finished(task) {
                continue;
            }
            match self.lives.get_mut(&task) {
                Some(life) => life.see(snapshot, &self.config, self.block),
                None => self.meet(snapshot, step),
            }
        }
        let gone: Vec<_> = self
            .lives
            .iter()
            .filter(|(task, life)| {
                let over = || life.want(&self.config.stash, self.now) == Want::Over && life.duels.is_empty();
                !listed.contains(task) || over()
            })
            .map(|(task, _)| *task)
            .collect();
        for task in gone {
            self.finish(task, step);
        }
    }

    /// Decides about a task that we have nothing to do with so far.
    fn meet(&mut self, snapshot: TaskSnapshot, step: &mut Step) {
        if self.lives.len() >= self.config.tasks_max {
            return;
        }
        let mut life = Life::default();
        let want = life.want_of(&snapshot, &self.config.stash, self.now);
        match want {
            Want::Consider | Want::AdoptBid(_) => {
                let Some(bid) = self.bid_for(&snapshot) else {
                    return;
                };
                if matches!(want, Want::AdoptBid(seal) if seal != bid.seal(snapshot.id, &self.config.stash)) {
                    return;
                }
                step.records.push(Record::BidMade {
                    task: snapshot.id,
                    at: self.block,
                    bid: bid.clone(),
                });
                life.bid = Some(bid);
            }
            // We are on a task that the journal does not know: it was lost.
            Want::Do(..) => {}
            // There may be a dispute that the journal does not know.
            Want::Nothing | Want::Over => {}
        }
        let (task, wanted) = (snapshot.id, !matches!(want, Want::Nothing | Want::Over));
        life.see(snapshot, &self.config, self.block);
        if wanted || !life.duels.is_empty() {
            self.lives.insert(task, life);
        }
    }

    fn bid_for(&self, snapshot: &TaskSnapshot) -> Option<Bid<Balance>> {
        let spec = &snapshot.task.spec;
        let offer = self.config.policy.offer(spec)?;
        let shared_out = snapshot.task.cap.checked_div(spec.redundancy.into())?;
        if offer.price > snapshot.price_limit.unwrap_or(shared_out) {
            return None;
        }
        Some(Bid {
            price: offer.price,
            seconds: offer.seconds,
            salt: self.config.salts.salt(snapshot.id, Purpose::Bid),
        })
    }

    /// Takes in how an effect went.
    fn hear(&mut self, event: Event, step: &mut Step) {
        match event {
            Event::Finalised { .. } => {}
            Event::InputReady { task } => {
                if let Some(life) = self.lives.get_mut(&task) {
                    life.input_ready = true;
                    life.efforts.of(EffectKind::Fetch).succeed(self.now, &self.config);
                }
            }
            Event::ResultReady { task, claim } => self.take_result(task, claim, step),
            Event::InputFailed { task, retryable } => {
                self.take_failure(task, EffectKind::Fetch, retryable);
                self.miss_input(task, step);
            }
            Event::ComputeFailed { task, retryable } => {
                self.take_failure(task, EffectKind::Compute, retryable)
            }
            Event::EffectFailed {
                task,
                kind,
                retryable,
            } => self.take_failure(task, kind, retryable),
            Event::EffectDone { task, kind } => self.take_success(task, kind, step),
            Event::MoveReady {
                task,
                dispute,
                number,
                played,
            } => {
                if let Some(life) = self.lives.get_mut(&task) {
                    life.efforts
                        .succeed(EffectKind::ComputeMove(dispute), self.now, &self.config);
                    if life.duels.take_move(dispute, number, &played) {
                        step.records.push(Record::MoveMade {
                            task,
                            at: self.block,
                            dispute,
                            number,
                            played,
                        });
                    }
                }
            }
            // A verifier's.
            Event::Drawn { .. }
            | Event::AuditReady { .. }
            | Event::SeatDrawn { .. }
            | Event::VoteReady { .. } => {}
        }
    }

    fn take_failure(&mut self, task: TaskId, kind: EffectKind, retryable: bool) {
        if let Some(life) = self.lives.get_mut(&task) {
            life.efforts.fail(kind, self.now, retryable, &self.config);
        }
    }

    /// Notes that an input cannot be had, so that a restart does not start waiting for it anew.
    fn miss_input(&mut self, task: TaskId, step: &mut Step) {
        let missed = self.lives.get_mut(&task).and_then(|life| life.inputs.fail());
        if let Some((since, demands)) = missed {
            step.records.push(Record::InputMissed {
                task,
                at: self.block,
                since,
                demands,
            });
        }
    }

    fn take_success(&mut self, task: TaskId, kind: EffectKind, step: &mut Step) {
        let Some(life) = self.lives.get_mut(&task) else {
            return;
        };
        if !life.efforts.succeed(kind, self.now, &self.config) {
            return;
        }
        let at = self.block;
        match kind {
            EffectKind::Commit => step.records.push(Record::CommitSubmitted { task, at }),
            EffectKind::Reveal => step.records.push(Record::RevealSubmitted { task, at }),
            EffectKind::Play(dispute) => step.records.extend(life.duels.sent(dispute, task, at)),
            _ => {}
        }
    }

    /// The only place where a result comes into being.
    fn take_result(&mut self, task: TaskId, claim: ResultClaim, step: &mut Step) {
        let Some(life) = self.lives.get_mut(&task) else {
            return;
        };
        if life.result.is_some() || life.abandoned {
            return;
        }
        let Some(seen) = &life.seen else {
            return;
        };
        if claim.units > seen.task.spec.units_max {
            // The input has more units than the client pays for; the chain takes no such claim.
            life.abandoned = true;
            return;
        }
        let salt = self.config.salts.salt(task, Purpose::Result);
        let ours = commitment(task, &self.config.stash, &claim, &salt);
        if life
            .commitment_shown(&self.config.stash)
            .is_some_and(|shown| shown != ours)
        {
            life.abandoned = true;
            return;
        }
        life.efforts
            .of(EffectKind::Compute)
            .succeed(self.now, &self.config);
        life.result = Some(Made {
            claim: claim.clone(),
            salt,
            commitment: ours,
        });
        step.records.push(Record::ResultMade {
            task,
            at: self.block,
            claim,
            salt,
            commitment: ours,
        });
    }

    /// Starts whatever is wanted and may start now.
    fn act(&mut self, step: &mut Step) {
        let mut wanted: Vec<(BlockNumber, TaskId, EffectKind)> = Vec::new();
        for (task, life) in &self.lives {
            let wants = life.wants(&self.config, self.block, self.now);
            let ready = wants
                .into_iter()
                .filter(|(_, kind)| life.efforts.is_ready(*kind, self.now, &self.config));
            wanted.extend(ready.map(|(by, kind)| (by, *task, kind)));
        }
        // What is due first comes first: fetching and computing have few places.
        wanted.sort_unstable();
        for (_, task, kind) in wanted {
            if kind.is_heavy() && self.under_way(kind) >= self.config.computing_max {
                continue;
            }
            let Some(life) = self.lives.get_mut(&task) else {
                continue;
            };
            if let EffectKind::DemandInput(number) = kind {
                step.records
                    .extend(life.demand_input(number, &self.config, self.block));
            }
            if let Some(effect) = life.effect(kind, &self.config.stash) {
                life.efforts.of(kind).start();
                step.effects.push(effect);
            }
        }
    }

    fn under_way(&self, kind: EffectKind) -> usize {
        let alike = |life: &Life| match kind {
            // Moves have places of their own: a game does not wait for a task.
            EffectKind::ComputeMove(_) => life.efforts.moves_under_way(),
            kind => life.efforts.under_way(kind),
        };
        self.lives.values().map(alike).sum()
    }
}
