//! A worker process around the state machine: a journal, effects that take time and fail, and crashes.

use std::collections::{BTreeMap, BTreeSet};

use codec::Encode;
use sp_core::H256;
use sp_crypto_hashing::blake2_256;
use surety_types::{
    task::{ResultClaim, TaskSpec},
    TaskId,
};
use surety_verification::commitment;
use surety_worker_core::{
    BlockNumber, Config, Effect, EffectKind, Event, Offer, Policy, Provider, Record, SecretSalts, Step,
};

use crate::{
    chain::{stash, Chain, Extrinsic, Sent},
    random::Random,
};

/// How often things go wrong, in thousandths.
#[derive(Clone, Copy)]
pub struct Faults {
    pub crash: u64,
    pub loss: u64,
    pub answer_loss: u64,
    pub replaced_block: u64,
    pub partition: u64,
    pub stale_state: u64,
    pub repeated_state: u64,
    pub local_failure: u64,
    /// Once per life at most. Computing gives the same result every time then, and prices stay as they are.
    pub journal_loss: u64,
}

impl Faults {
    pub const NONE: Self = Self {
        crash: 0,
        loss: 0,
        answer_loss: 0,
        replaced_block: 0,
        partition: 0,
        stale_state: 0,
        repeated_state: 0,
        local_failure: 0,
        journal_loss: 0,
    };

    pub const MANY: Self = Self {
        crash: 30,
        loss: 200,
        answer_loss: 100,
        replaced_block: 100,
        partition: 20,
        stale_state: 100,
        repeated_state: 200,
        local_failure: 150,
        journal_loss: 0,
    };
}

/// How an extrinsic went, for the start of the worker that had sent it.
pub struct Outcome {
    pub task: TaskId,
    pub kind: EffectKind,
    pub start: u32,
    pub done: bool,
    pub retryable: bool,
}

/// Something done on this machine that takes time.
struct Job {
    due: BlockNumber,
    event: Event,
}

impl Job {
    fn task(&self) -> Option<TaskId> {
        match self.event {
            Event::InputReady { task } | Event::ResultReady { task, .. } => Some(task),
            _ => None,
        }
    }
}

pub struct Host {
    pub outcomes: Vec<Outcome>,
    seed: u64,
    faults: Faults,
    provider: Provider,
    journal: Vec<Record>,
    jobs: Vec<Job>,
    under_way: BTreeSet<(TaskId, EffectKind)>,
    start: u32,
    cut_off_until: BlockNumber,
    journal_lost: bool,
    claims_made: u32,
    seals: BTreeMap<TaskId, BTreeSet<H256>>,
    commitments: BTreeMap<TaskId, BTreeSet<H256>>,
    demands: BTreeMap<(TaskId, u32), BTreeSet<u32>>,
}

const TASKS_MAX: usize = 6;
const COMPUTING_MAX: usize = 2;

struct Price(u128);

impl Policy for Price {
    fn offer(&self, _: &TaskSpec) -> Option<Offer> {
        Some(Offer {
            price: self.0,
            seconds: 5,
        })
    }
}

impl Host {
    pub fn new(seed: u64, faults: Faults) -> Self {
        Self {
            outcomes: Vec::new(),
            seed,
            faults,
            provider: provider(1, Vec::new()),
            journal: Vec::new(),
            jobs: Vec::new(),
            under_way: BTreeSet::new(),
            start: 0,
            cut_off_until: 0,
            journal_lost: false,
            claims_made: 0,
            seals: BTreeMap::new(),
            commitments: BTreeMap::new(),
            demands: BTreeMap::new(),
        }
    }

    pub fn check_said_one_thing(&self) {
        for (task, seals) in &self.seals {
            assert!(seals.len() == 1, "{} bids on task {task}", seals.len());
        }
        for (task, hashes) in &self.commitments {
            assert!(hashes.len() == 1, "{} results for task {task}", hashes.len());
        }
        for ((task, number), pieces) in &self.demands {
            assert!(pieces.len() == 1, "{pieces:?} of task {task} in demand {number}");
        }
    }

    /// Everything that reaches the worker in one block.
    pub fn tick(&mut self, chain: &mut Chain, random: &mut Random) {
        let now = chain.number;
        for outcome in std::mem::take(&mut self.outcomes) {
            if outcome.start != self.start {
                continue;
            }
            let (task, kind) = (outcome.task, outcome.kind);
            let event = if outcome.done {
                Event::EffectDone { task, kind }
            } else {
                Event::EffectFailed {
                    task,
                    kind,
                    retryable: outcome.retryable,
                }
            };
            self.under_way.remove(&(task, kind));
            self.feed(event, chain, random);
        }
        let (due, waiting) = std::mem::take(&mut self.jobs)
            .into_iter()
            .partition::<Vec<_>, _>(|job| job.due <= now);
        self.jobs = waiting;
        let start = self.start;
        for job in due {
            if self.start == start {
                self.finish_job(job, chain, random);
            }
        }
        if random.happens(self.faults.partition) {
            self.cut_off_until = now + 10;
        }
        if now < self.cut_off_until {
            return;
        }
        self.show(0, chain, random);
        if random.happens(self.faults.repeated_state) {
            self.show(0, chain, random);
        }
        if random.happens(self.faults.stale_state) {
            let behind = random.below(20) as usize;
            self.show(behind, chain, random);
        }
    }

    fn show(&mut self, behind: usize, chain: &mut Chain, random: &mut Random) {
        if let Some((block, tasks)) = chain.finalised(behind) {
            self.feed(Event::Finalised { block, tasks }, chain, random);
        }
    }

    fn finish_job(&mut self, job: Job, chain: &mut Chain, random: &mut Random) {
        let fails = random.happens(self.faults.local_failure);
        let event = match job.event {
            Event::InputReady { task } => {
                self.under_way.remove(&(task, EffectKind::Fetch));
                if fails || !chain.inputs.is_served(task) {
                    Event::InputFailed {
                        task,
                        retryable: true,
                    }
                } else {
                    Event::InputReady { task }
                }
            }
            Event::ResultReady { task, claim } => {
                self.under_way.remove(&(task, EffectKind::Compute));
                if fails {
                    Event::ComputeFailed {
                        task,
                        retryable: true,
                    }
                } else {
                    Event::ResultReady { task, claim }
                }
            }
            other => other,
        };
        self.feed(event, chain, random);
    }

    /// One step, with a crash in some place of it.
    fn feed(&mut self, event: Event, chain: &mut Chain, random: &mut Random) {
        let Step { records, effects } = self.provider.step(chain.number, event);
        let lives = self.provider.progress().count();
        assert!(lives <= TASKS_MAX, "{lives} tasks at once");
        let crash = random.happens(self.faults.crash);
        if crash && random.happens(300) {
            // Before the journal has it.
            return self.restart(random);
        }
        self.journal.extend(records);
        let crash_after = crash.then(|| random.below(1 + effects.len() as u64) as usize);
        for (at, effect) in effects.into_iter().enumerate() {
            if crash_after == Some(at) {
                return self.restart(random);
            }
            self.carry_out(effect, chain, random);
        }
        if crash {
            self.restart(random);
        }
    }

    fn restart(&mut self, random: &mut Random) {
        self.start += 1;
        self.jobs.clear();
        self.under_way.clear();
        if !self.journal_lost && random.happens(self.faults.journal_loss * 10) {
            self.journal.clear();
            self.journal_lost = true;
        }
        let price = if self.faults.journal_loss > 0 {
            1
        } else {
            1 + random.below(1000) as u128
        };
        self.provider = provider(price, self.journal.clone());
    }

    fn carry_out(&mut self, effect: Effect, chain: &mut Chain, random: &mut Random) {
        let (task, kind) = (effect.task(), effect.kind());
        if kind != EffectKind::Forget {
            assert!(
                self.under_way.insert((task, kind)),
                "{kind:?} of task {task} is already under way"
            );
        }
        let working = self.under_way.iter().filter(|(_, at)| *at == kind).count();
        let due = chain.number + 1 + random.below(3) as BlockNumber;
        match effect {
            Effect::FetchInput { .. } => {
                assert!(working <= COMPUTING_MAX);
                let event = Event::InputReady { task };
                self.jobs.push(Job { due, event });
            }
            Effect::Compute { .. } => {
                assert!(working <= COMPUTING_MAX);
                let claim = self.compute(task);
                let event = Event::ResultReady { task, claim };
                self.jobs.push(Job { due, event });
            }
            Effect::SubmitBid { seal, .. } => {
                self.seals.entry(task).or_default().insert(seal);
                self.send(Extrinsic::Bid(task, seal), task, kind, chain, random);
            }
            Effect::SubmitBidReveal { bid, .. } => {
                let seal = bid.seal(task, &stash());
                self.seals.entry(task).or_default().insert(seal);
                self.send(Extrinsic::OpenBid(task, bid), task, kind, chain, random);
            }
            Effect::SubmitCommit { commitment, .. } => {
                self.commitments.entry(task).or_default().insert(commitment);
                self.send(Extrinsic::Commit(task, commitment), task, kind, chain, random);
            }
            Effect::SubmitReveal { claim, salt, .. } => {
                let hash = commitment(task, &stash(), &claim, &salt);
                self.commitments.entry(task).or_default().insert(hash);
                self.send(Extrinsic::Reveal(task, claim, salt), task, kind, chain, random);
            }
            Effect::SubmitInputDemand { number, segment, .. } => {
                self.demands.entry((task, number)).or_default().insert(segment);
                let demand = Extrinsic::DemandInput(task, segment);
                self.send(demand, task, kind, chain, random);
            }
            other @ (Effect::SubmitSupply { .. }
            | Effect::Draw { .. }
            | Effect::Audit { .. }
            | Effect::SubmitAnnouncement { .. }
            | Effect::SubmitAuditReveal { .. }
            | Effect::CheckData { .. }
            | Effect::SubmitDemand { .. }
            | Effect::ComputeMove { .. }
            | Effect::SubmitMove { .. }
            | Effect::SubmitAdvance { .. }
            | Effect::DrawSeat { .. }
            | Effect::ComputeVote { .. }
            | Effect::SubmitJoin { .. }
            | Effect::SubmitVote { .. }) => panic!("nothing here asks for {other:?}"),
            Effect::Forget { .. } => {
                self.jobs.retain(|job| job.task() != Some(task));
                self.under_way.retain(|(other, _)| *other != task);
                let over = |record: &Record| matches!(record, Record::Finished { .. });
                self.journal
                    .retain(|record| record.task() != task || over(record));
            }
        }
    }

    /// A result; a different one every time, unless journals get lost.
    fn compute(&mut self, task: TaskId) -> ResultClaim {
        self.claims_made += 1;
        let nonce = if self.faults.journal_loss > 0 {
            0
        } else {
            self.claims_made
        };
        let hash = |what: u8| H256(blake2_256(&(self.seed, task, nonce, what).encode()));
        ResultClaim {
            output: hash(0),
            trace_root: hash(1),
            units: 5,
        }
    }

    fn send(
        &mut self,
        extrinsic: Extrinsic,
        task: TaskId,
        kind: EffectKind,
        chain: &mut Chain,
        random: &mut Random,
    ) {
        let start = self.start;
        if random.happens(self.faults.loss) {
            self.outcomes.push(Outcome {
                task,
                kind,
                start,
                done: false,
                retryable: true,
            });
            return;
        }
        chain.pool.push(Sent {
            extrinsic,
            kind,
            start,
            arrives: chain.number + 1 + random.below(3) as BlockNumber,
            replaced: random.happens(self.faults.replaced_block),
            answer_lost: random.happens(self.faults.answer_loss),
        });
    }
}

fn provider(price: u128, journal: Vec<Record>) -> Provider {
    let mut config = Config::new(stash(), Price(price), SecretSalts::new([3; 32]));
    config.tasks_max = TASKS_MAX;
    config.computing_max = COMPUTING_MAX;
    Provider::new(config, journal).unwrap()
}
