//! A chain as far as one provider sees it: it draws that provider for most tasks, and finality lags.

use std::collections::{BTreeMap, VecDeque};

use sp_core::H256;
use surety_types::{
    model::Operation,
    task::{
        Assignment, Bid, MemberProgress, ResultClaim, RoundMember, RoundPhase, Task, TaskSpec, TaskState,
    },
    TaskId,
};
use surety_verification::commitment;
use surety_worker_core::{
    AccountId, Balance, BidSeen, BlockNumber, EffectKind, RoundRecord, TaskRecord, TaskSnapshot,
};

use crate::{
    client::{Client, Inputs},
    host::Outcome,
    random::Random,
};

/// Blocks between the best and the finalised one.
const LAG: usize = 3;
/// Old states kept, to be shown out of order.
const HISTORY: usize = 40;

pub fn stash() -> AccountId {
    AccountId::new([7; 32])
}

#[derive(Clone, Copy)]
pub struct Windows {
    pub bid: BlockNumber,
    pub open: BlockNumber,
    pub commit: BlockNumber,
    pub audit: BlockNumber,
    pub reveal: BlockNumber,
    pub challenge: BlockNumber,
}

#[derive(Clone, Debug)]
pub enum Extrinsic {
    Bid(TaskId, H256),
    OpenBid(TaskId, Bid<Balance>),
    Commit(TaskId, H256),
    Reveal(TaskId, ResultClaim, H256),
    DemandInput(TaskId, u32),
}

/// An extrinsic on its way.
pub struct Sent {
    pub extrinsic: Extrinsic,
    pub kind: EffectKind,
    /// Which start of the worker hears of it.
    pub start: u32,
    pub arrives: BlockNumber,
    /// Its block will be replaced by one without it, after the worker has heard of the first.
    pub replaced: bool,
    pub answer_lost: bool,
}

#[derive(Clone)]
struct Sim {
    task: TaskRecord,
    round: Option<RoundRecord>,
    seal: Option<H256>,
    bid: Option<Bid<Balance>>,
}

pub struct Chain {
    pub number: BlockNumber,
    pub pool: Vec<Sent>,
    pub inputs: Inputs,
    windows: Windows,
    tasks: BTreeMap<TaskId, Sim>,
    history: VecDeque<(BlockNumber, BTreeMap<TaskId, Sim>)>,
    /// Tasks for which we were drawn, and whether the chain got our result.
    drawn: BTreeMap<TaskId, bool>,
    /// Tasks that were given out, and whether our bid was among those opened.
    opened: BTreeMap<TaskId, bool>,
    posted: u64,
    to_post: u64,
}

impl Chain {
    pub fn new(windows: Windows, to_post: u64, client: Client) -> Self {
        Self {
            number: 1,
            pool: Vec::new(),
            inputs: Inputs {
                client,
                ..Default::default()
            },
            windows,
            tasks: BTreeMap::new(),
            history: VecDeque::new(),
            drawn: BTreeMap::new(),
            opened: BTreeMap::new(),
            posted: 0,
            to_post,
        }
    }

    pub fn is_over(&self) -> bool {
        self.posted == self.to_post && self.tasks.is_empty()
    }

    pub fn check_all_revealed(&self) {
        for (task, opened) in &self.opened {
            assert!(opened, "there was no bid on task {task}");
        }
        for (task, revealed) in &self.drawn {
            assert!(revealed, "task {task} was not revealed");
        }
    }

    /// Every task that was ours failed because of its client, and each was demanded once.
    pub fn check_all_withheld(&self) {
        for task in self.drawn.keys() {
            assert!(self.inputs.withheld.contains(task), "task {task} ended otherwise");
        }
        for (task, pieces) in &self.inputs.demanded {
            assert_eq!(pieces.len(), 1, "pieces of the input of task {task}");
        }
    }

    /// The finalised state, or one `behind` blocks older.
    pub fn finalised(&self, behind: usize) -> Option<(BlockNumber, Vec<TaskSnapshot>)> {
        let at = self.history.len().checked_sub(1 + LAG + behind)?;
        let (number, tasks) = &self.history[at];
        let show = |(id, sim): (&TaskId, &Sim)| TaskSnapshot {
            id: *id,
            task: sim.task.clone(),
            round: sim.round.clone(),
            bid: sim.seal.map(|seal| BidSeen {
                seal,
                opened: sim.bid.is_some(),
            }),
            price_limit: None,
            disputes: Vec::new(),
            demands: Vec::new(),
            committees: Vec::new(),
        };
        Some((*number, tasks.iter().map(show).collect()))
    }

    /// One more block.
    pub fn produce(&mut self, random: &mut Random, outcomes: &mut Vec<Outcome>) {
        self.number += 1;
        if self.posted < self.to_post && random.happens(200) {
            self.post();
        }
        let (due, waiting) = std::mem::take(&mut self.pool)
            .into_iter()
            .partition(|sent| sent.arrives <= self.number);
        self.pool = waiting;
        for Sent {
            extrinsic,
            kind,
            start,
            replaced,
            answer_lost,
            ..
        } in due
        {
            let task = task_of(&extrinsic);
            let included = replaced || self.apply(extrinsic);
            outcomes.push(Outcome {
                task,
                kind,
                start,
                done: included && !answer_lost,
                retryable: answer_lost,
            });
        }
        let ids: Vec<_> = self.tasks.keys().copied().collect();
        for id in ids {
            self.advance(id, random);
        }
        self.history.push_back((self.number, self.tasks.clone()));
        if self.history.len() > HISTORY {
            self.history.pop_front();
        }
    }

    fn post(&mut self) {
        let id = self.posted;
        self.posted += 1;
        let spec = TaskSpec {
            model: H256([1; 32]),
            operation: Operation::Embed,
            input: H256::from_low_u64_be(id),
            input_bytes: 100_000,
            units_max: 100,
            redundancy: 1,
            sources: Default::default(),
            security: Default::default(),
        };
        let state = TaskState::Bidding {
            until: self.number + self.windows.bid,
        };
        let task = Task {
            client: AccountId::new([1; 32]),
            spec,
            cap: 1_000_000,
            posted_at: self.number,
            state,
        };
        let sim = Sim {
            task,
            round: None,
            seal: None,
            bid: None,
        };
        self.tasks.insert(id, sim);
    }

    /// Whether the call succeeded.
    fn apply(&mut self, extrinsic: Extrinsic) -> bool {
        let id = task_of(&extrinsic);
        let Some(sim) = self.tasks.get_mut(&id) else {
            return false;
        };
        if let Extrinsic::DemandInput(_, segment) = extrinsic {
            let (inputs, now) = (&mut self.inputs, self.number);
            let round = sim.round.as_mut();
            return round.is_some_and(|round| inputs.demand(id, segment, round, now));
        }
        let member = sim.round.as_mut().and_then(|round| {
            let member = round.members.iter_mut().find(|m| m.provider == stash())?;
            Some((&round.phase, member))
        });
        match (extrinsic, &sim.task.state, member) {
            (Extrinsic::Bid(_, seal), TaskState::Bidding { .. }, _) if sim.seal.is_none() => {
                sim.seal = Some(seal);
            }
            (Extrinsic::OpenBid(_, bid), TaskState::Revealing { .. }, _)
                if sim.seal == Some(bid.seal(id, &stash())) && sim.bid.is_none() =>
            {
                sim.bid = Some(bid);
            }
            (Extrinsic::Commit(_, hash), _, Some((RoundPhase::Committing { .. }, member)))
                if member.progress == MemberProgress::Working =>
            {
                member.progress = MemberProgress::Committed(hash);
            }
            (Extrinsic::Reveal(_, claim, salt), _, Some((RoundPhase::Revealing { .. }, member)))
                if member.progress == MemberProgress::Committed(commitment(id, &stash(), &claim, &salt)) =>
            {
                member.progress = MemberProgress::Revealed(claim);
                self.drawn.insert(id, true);
            }
            _ => return false,
        }
        true
    }

    /// What is due by time.
    fn advance(&mut self, id: TaskId, random: &mut Random) {
        let (now, windows) = (self.number, self.windows);
        let sim = self.tasks.get_mut(&id).unwrap();
        match &mut sim.task.state {
            TaskState::Bidding { until } if now > *until => {
                sim.task.state = TaskState::Revealing {
                    until: now + windows.open,
                };
            }
            TaskState::Revealing { until } if now > *until => {
                // Others are drawn in one task of eight; in another one we are a reserve first.
                let luck = random.below(8);
                self.opened.insert(id, sim.bid.is_some());
                let ours = sim.bid.is_some() && luck != 0;
                sim.task.state = running(ours && luck == 1);
                let first = if ours && luck != 1 {
                    stash()
                } else {
                    AccountId::new([8; 32])
                };
                if first == stash() {
                    self.drawn.insert(id, false);
                }
                sim.round = Some(round(first, now + windows.commit));
            }
            TaskState::Running { reserves, .. } => {
                let round = sim.round.as_mut().unwrap();
                if self.inputs.pass(id, round, now) {
                    self.tasks.remove(&id);
                    return;
                }
                let member = &mut round.members[0];
                let committed = member.progress != MemberProgress::Working;
                match &mut round.phase {
                    RoundPhase::Committing { .. } if committed => {
                        round.phase = RoundPhase::Auditing {
                            until: now + windows.audit,
                        };
                    }
                    RoundPhase::Committing { .. }
                        if !reserves.is_empty() && member.provider != stash() && random.happens(100) =>
                    {
                        *reserves = Default::default();
                        self.drawn.insert(id, false);
                        sim.round = Some(self::round(stash(), now + windows.commit));
                    }
                    RoundPhase::Committing { until } if now > *until => {
                        self.tasks.remove(&id);
                    }
                    RoundPhase::Auditing { until } if now > *until => {
                        round.phase = RoundPhase::Revealing {
                            until: now + windows.reveal,
                        };
                    }
                    RoundPhase::Revealing { until } if now > *until => {
                        let verdict = surety_types::task::Verdict::Failed(
                            surety_types::task::FailureReason::NoAgreement,
                        );
                        round.phase = RoundPhase::Challengeable {
                            until: now + windows.challenge,
                            verdict,
                        };
                    }
                    RoundPhase::Challengeable { until, .. } if now > *until => {
                        self.tasks.remove(&id);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

fn task_of(extrinsic: &Extrinsic) -> TaskId {
    match extrinsic {
        Extrinsic::Bid(task, _)
        | Extrinsic::OpenBid(task, _)
        | Extrinsic::Commit(task, _)
        | Extrinsic::Reveal(task, ..)
        | Extrinsic::DemandInput(task, _) => *task,
    }
}

fn running(in_reserve: bool) -> TaskState<AccountId, Balance, BlockNumber> {
    let us = Assignment {
        provider: stash(),
        price: 1,
    };
    let reserves = if in_reserve { vec![us] } else { Vec::new() };
    TaskState::Running {
        assignments: Default::default(),
        reserves: reserves.try_into().unwrap(),
    }
}

fn round(provider: AccountId, until: BlockNumber) -> RoundRecord {
    RoundRecord {
        members: vec![RoundMember::new(provider, 1, 1)].try_into().unwrap(),
        ..RoundRecord::new(1, 100, until)
    }
}
