//! A worker process around the state machine: a journal, effects that take time and fail, and crashes.

use std::collections::{BTreeMap, BTreeSet};

use codec::Encode;
use sp_core::H256;
use sp_crypto_hashing::blake2_256;
use surety_proofs::commitment;
use surety_types::{
    TaskId,
    task::{ResultClaim, TaskSpec},
};
use surety_worker_core::{
    BlockNumber, Config, Effect, EffectKind, Event, Failure, Offer, Policy, Provider, Record, SecretSalts,
    Step, TaskSnapshot,
};

use crate::{
    auditors::checked,
    chain::{Chain, Extrinsic, Seen, Sent, stash},
    faults::{Fate, Faults, passing},
    random::Random,
};

/// How an extrinsic went, for the start of the worker that had sent it.
pub struct Outcome {
    pub task: TaskId,
    pub kind: EffectKind,
    pub start: u32,
    pub effect: u64,
    pub result: Result<(), Failure>,
}

/// Something done on this machine that takes time.
struct Job {
    due: BlockNumber,
    event: Event,
}

impl Job {
    fn of(&self) -> Option<(TaskId, EffectKind)> {
        let (task, kind, _) = self.event.ends()?;
        Some((task, kind))
    }
}

pub struct Host {
    pub outcomes: Vec<Outcome>,
    seed: u64,
    /// One life is repeated, for somebody to read.
    is_told: bool,
    faults: Faults,
    provider: Provider,
    journal: Vec<Record>,
    jobs: Vec<Job>,
    /// With a number for each.
    under_way: BTreeMap<(TaskId, EffectKind), u64>,
    effects: u64,
    /// How often each call was sent.
    calls: BTreeMap<(TaskId, EffectKind), u32>,
    /// Faults in a row, for each call.
    rows: BTreeMap<(TaskId, EffectKind), u32>,
    empty_until: BlockNumber,
    /// When the first result of each task was made, on the clock of the best block.
    pub made_at: BTreeMap<TaskId, BlockNumber>,
    start: u32,
    cut_off_until: BlockNumber,
    journal_lost: bool,
    claims_made: u32,
    seals: BTreeMap<TaskId, BTreeSet<H256>>,
    commitments: BTreeMap<TaskId, BTreeSet<H256>>,
    demands: BTreeMap<(TaskId, u32), BTreeSet<u32>>,
}

const LIVES_MAX: usize = 6;
const COMPUTING_MAX: usize = 2;
const FETCHING_MAX: usize = 6;

struct Price(u128);

impl Policy for Price {
    fn offer(&self, _: &TaskSpec) -> Option<Offer> {
        Some(Offer {
            price: self.0,
            seconds_ahead: 5,
            units_per_second: 100,
        })
    }
}

impl Host {
    pub fn new(seed: u64, faults: Faults) -> Self {
        Self {
            outcomes: Vec::new(),
            seed,
            is_told: std::env::var("SURETY_SIMULATION_SEED").is_ok(),
            faults,
            provider: provider(1, Vec::new()),
            journal: Vec::new(),
            jobs: Vec::new(),
            under_way: BTreeMap::new(),
            effects: 0,
            calls: BTreeMap::new(),
            rows: BTreeMap::new(),
            empty_until: 0,
            made_at: BTreeMap::new(),
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
        // A bid tells of the work that is waiting. Who lost its journal makes another; the chain takes one,
        // and that is found again.
        for (task, seals) in self.seals.iter().filter(|_| self.faults.journal_loss == 0) {
            assert!(seals.len() == 1, "{} bids on task {task}", seals.len());
        }
        for (task, hashes) in &self.commitments {
            assert!(hashes.len() == 1, "{} results for task {task}", hashes.len());
        }
        for ((task, number), pieces) in &self.demands {
            assert!(pieces.len() == 1, "{pieces:?} of task {task} in demand {number}");
        }
    }

    /// Where nothing goes wrong, each call is sent once, however long finality takes.
    pub fn check_spared_the_chain(&self) {
        for ((task, kind), calls) in &self.calls {
            assert_eq!(*calls, 1, "{kind:?} of task {task}");
        }
    }

    /// Everything that reaches the worker in one block.
    pub fn tick(&mut self, chain: &mut Chain, random: &mut Random) {
        let now = chain.number;
        for outcome in std::mem::take(&mut self.outcomes) {
            let (task, kind) = (outcome.task, outcome.kind);
            let is_awaited = self.under_way.get(&(task, kind)) == Some(&outcome.effect);
            if outcome.start != self.start || !is_awaited {
                continue;
            }
            let event = match outcome.result {
                Ok(()) => Event::EffectDone {
                    task,
                    kind,
                    block: None,
                },
                Err(failure) => Event::EffectFailed { task, kind, failure },
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
            self.cut_off_until = now + self.faults.partition_blocks;
        }
        if now < self.cut_off_until {
            return;
        }
        if random.happens(self.faults.empty_state) {
            self.empty_until = now + 1 + random.below(self.faults.empty_blocks) as BlockNumber;
        }
        self.show_best(0, chain, random);
        self.show(0, chain, random);
        if random.happens(self.faults.repeated_state) {
            self.show(0, chain, random);
        }
        if random.happens(self.faults.stale_state) {
            let behind = random.below(20);
            self.show(behind as BlockNumber, chain, random);
            self.show_best(behind as usize, chain, random);
        }
    }

    /// What a node says of a state.
    fn said(&self, (block, clock, tasks): Seen, chain: &Chain) -> Seen {
        if chain.number < self.empty_until {
            (block, clock, Vec::new())
        } else {
            (block, clock, tasks)
        }
    }

    fn show(&mut self, behind: BlockNumber, chain: &mut Chain, random: &mut Random) {
        if let Some(seen) = chain.finalized(behind) {
            let (block, clock, tasks) = self.said(seen, chain);
            self.feed(
                Event::Finalized {
                    block,
                    clock,
                    tasks,
                    unread: Vec::new(),
                },
                chain,
                random,
            );
        }
    }

    fn show_best(&mut self, behind: usize, chain: &mut Chain, random: &mut Random) {
        if let Some(seen) = chain.best(behind) {
            let (block, clock, tasks) = self.said(seen, chain);
            self.feed(Event::Best { block, clock, tasks }, chain, random);
        }
    }

    fn finish_job(&mut self, job: Job, chain: &mut Chain, random: &mut Random) {
        let fails = random.happens(self.faults.local_failure);
        let Some((task, kind)) = job.of() else {
            return;
        };
        self.under_way.remove(&(task, kind));
        let is_missing = kind == EffectKind::Fetch && !chain.inputs.is_served(task);
        let event = if fails || is_missing {
            let failure = passing(random);
            Event::EffectFailed { task, kind, failure }
        } else {
            if kind == EffectKind::Compute {
                self.made_at.entry(task).or_insert(chain.clock);
            }
            job.event
        };
        self.feed(event, chain, random);
    }

    /// One step, with a crash in some place of it.
    fn feed(&mut self, event: Event, chain: &mut Chain, random: &mut Random) {
        let told = self.is_told.then(|| brief(&event));
        let Step { records, effects } = self.provider.step(chain.number, event);
        if let Some(event) = told {
            let kinds: Vec<_> = effects
                .iter()
                .map(|due| (due.effect.task(), due.effect.kind()))
                .collect();
            eprintln!("{} {}: {event} -> {kinds:?}", chain.number, chain.clock);
        }
        let lives = self.provider.progress().count();
        assert!(lives <= LIVES_MAX, "{lives} tasks at once");
        let crash = random.happens(self.faults.crash);
        if crash && random.happens(300) {
            // Before the journal has it.
            return self.restart(random);
        }
        self.journal.extend(records);
        let crash_after = crash.then(|| random.below(1 + effects.len() as u64) as usize);
        for (at, due) in effects.into_iter().enumerate() {
            if crash_after == Some(at) {
                return self.restart(random);
            }
            self.carry_out(due.effect, chain, random);
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
        if !matches!(kind, EffectKind::Forget | EffectKind::Cancel) {
            self.effects += 1;
            let before = self.under_way.insert((task, kind), self.effects);
            assert_eq!(before, None, "{kind:?} of task {task} is already under way");
        }
        let working = self.under_way.keys().filter(|(_, at)| *at == kind).count();
        let due = chain.number + 1 + random.below(self.faults.slowness) as BlockNumber;
        match effect {
            Effect::FetchInput { .. } => {
                assert!(working <= FETCHING_MAX);
                let event = Event::InputReady { task };
                self.jobs.push(Job { due, event });
            }
            Effect::Compute { .. } => {
                assert!(working <= COMPUTING_MAX);
                let claim = self.compute(task);
                let event = Event::ResultReady {
                    task,
                    claim,
                    leaves: Some(H256::zero()),
                };
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
            Effect::CheckConfirmation { confirmation, .. } => {
                let event = checked(task, confirmation);
                self.jobs.push(Job { due, event });
            }
            Effect::SubmitRefutation { .. } => self.send(Extrinsic::Refute(task), task, kind, chain, random),
            Effect::Cancel { kind, .. } => {
                let known = self.under_way.remove(&(task, kind));
                assert!(known.is_some(), "{kind:?} of task {task} is not under way");
                self.jobs.retain(|job| job.of() != Some((task, kind)));
            }
            Effect::Forget { .. } => {
                self.jobs
                    .retain(|job| job.of().is_none_or(|(other, _)| other != task));
                self.under_way.retain(|(other, _), _| *other != task);
                let over = |record: &Record| matches!(record, Record::Finished { .. });
                self.journal
                    .retain(|record| record.task() != task || over(record));
            }
            other => panic!("nothing here asks for {other:?}"),
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
        let (start, effect) = (self.start, self.effects);
        *self.calls.entry((task, kind)).or_default() += 1;
        let row = self.rows.entry((task, kind)).or_default();
        let fate = match Fate::draw(&self.faults, random) {
            _ if *row >= self.faults.row_max => Fate::Fine,
            fate => fate,
        };
        *row = if fate == Fate::Fine { 0 } else { *row + 1 };
        chain.pool.push(Sent {
            extrinsic,
            kind,
            start,
            effect,
            arrives: chain.number + 1 + random.below(self.faults.latency) as BlockNumber,
            fate,
        });
    }
}

fn brief(event: &Event) -> String {
    let of = |tasks: &[TaskSnapshot]| -> Vec<_> {
        let member = |task: &TaskSnapshot| {
            let round = task.round.as_ref()?;
            Some((round.phase.clone(), round.members[0].progress.clone()))
        };
        let brief = |task: &TaskSnapshot| match member(task) {
            Some(running) => format!("{}: {running:?}", task.id),
            None => format!("{}: {:?}", task.id, task.task.state),
        };
        tasks.iter().map(brief).collect()
    };
    match event {
        Event::Finalized {
            block, clock, tasks, ..
        } => format!("finalised {block} {clock} {:?}", of(tasks)),
        Event::Best { block, clock, tasks } => format!("best {block} {clock} {:?}", of(tasks)),
        other => format!("{other:?}"),
    }
}

fn provider(price: u128, journal: Vec<Record>) -> Provider {
    let mut config = Config::new(stash(), Price(price), SecretSalts::new([3; 32]));
    config.tasks_max = LIVES_MAX;
    config.fetching_max = FETCHING_MAX;
    config.computing_max = COMPUTING_MAX;
    Provider::new(config, journal).unwrap()
}
