//! A chain as far as one provider sees it: it draws that provider for most tasks, finality lags and stands
//! still now and then, and with it the clock that all deadlines are on.

use std::collections::{BTreeMap, VecDeque};

use sp_core::H256;
use surety_proofs::commitment;
use surety_types::{
    TaskId,
    model::Operation,
    task::{
        Assignment, Bid, FailureReason, MemberProgress, ResultClaim, RoundMember, RoundPhase, Task, TaskSpec,
        TaskState, Verdict,
    },
    trust::FaultKind,
    view::BidTerms,
};
use surety_worker_core::{
    AccountId, Balance, BidSeen, BlockNumber, EffectKind, Failure, RoundRecord, TaskRecord, TaskSnapshot,
};

use crate::{
    auditors::Confirmations,
    client::{Client, Inputs},
    faults::{Fate, Faults},
    host::Outcome,
    random::Random,
};

/// Blocks between the best and the finalised one, while finality goes on.
const LAG: BlockNumber = 3;
/// Finalised states kept, to be shown out of order.
const HISTORY: BlockNumber = 40;

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
    /// For what was not opened in time.
    pub openings: BlockNumber,
}

#[derive(Clone, Debug)]
pub enum Extrinsic {
    Bid(TaskId, H256),
    OpenBid(TaskId, Bid<Balance>),
    Commit(TaskId, H256),
    Reveal(TaskId, ResultClaim, H256),
    DemandInput(TaskId, u32),
    Refute(TaskId),
}

/// An extrinsic on its way.
pub struct Sent {
    pub extrinsic: Extrinsic,
    pub kind: EffectKind,
    /// Which start of the worker hears of it.
    pub start: u32,
    /// Which effect, so that one that was cancelled is heard of no more.
    pub effect: u64,
    pub arrives: BlockNumber,
    pub fate: Fate,
}

#[derive(Clone)]
struct Sim {
    task: TaskRecord,
    round: Option<RoundRecord>,
    seal: Option<H256>,
    bid: Option<Bid<Balance>>,
}

/// A block's state.
#[derive(Clone)]
struct State {
    number: BlockNumber,
    clock: BlockNumber,
    tasks: BTreeMap<TaskId, Sim>,
}

/// How a task of ours is or was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fortune {
    /// Our result was opened in time.
    pub paid: bool,
    /// We committed, and did not open it in time.
    pub missed: bool,
    /// We never opened it.
    pub convicted: bool,
    /// The window to commit ended at this time.
    pub commit_until: BlockNumber,
}

pub struct Chain {
    pub number: BlockNumber,
    /// Stands still while finality does.
    pub clock: BlockNumber,
    finalized: BlockNumber,
    stalled_until: BlockNumber,
    faults: Faults,
    pub pool: Vec<Sent>,
    pub inputs: Inputs,
    pub confirmations: Confirmations,
    windows: Windows,
    tasks: BTreeMap<TaskId, Sim>,
    history: VecDeque<State>,
    /// Tasks for which we were drawn.
    pub drawn: BTreeMap<TaskId, Fortune>,
    /// Tasks that were given out, and whether our bid was among those opened.
    opened: BTreeMap<TaskId, bool>,
    posted: u64,
    to_post: u64,
}

impl Chain {
    pub fn new(windows: Windows, to_post: u64, client: Client, faults: Faults) -> Self {
        Self {
            number: 1,
            // It has stood still before.
            clock: 0,
            finalized: 1,
            stalled_until: 0,
            faults,
            pool: Vec::new(),
            inputs: Inputs {
                client,
                ..Default::default()
            },
            confirmations: Confirmations::default(),
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

    pub fn check_all_paid(&self) {
        for (task, opened) in &self.opened {
            assert!(opened, "there was no bid on task {task}");
        }
        for (task, fortune) in &self.drawn {
            assert!(fortune.paid, "task {task} was not revealed in time");
        }
        self.check_nobody_convicted();
    }

    pub fn check_nobody_convicted(&self) {
        for (task, fortune) in &self.drawn {
            assert!(!fortune.convicted, "convicted on task {task}");
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
    pub fn finalized(&self, behind: BlockNumber) -> Option<Seen> {
        let number = self.finalized.checked_sub(behind)?;
        let state = self.history.iter().find(|state| state.number == number)?;
        Some(state.show())
    }

    /// The best block's, or one `behind` blocks older.
    pub fn best(&self, behind: usize) -> Option<Seen> {
        let at = self.history.len().checked_sub(1 + behind)?;
        self.history.get(at).map(State::show)
    }

    /// One more block.
    pub fn produce(&mut self, random: &mut Random, outcomes: &mut Vec<Outcome>) {
        self.number += 1;
        if self.number >= self.stalled_until {
            self.clock += 1;
            self.finalized = self.finalized.max(self.number.saturating_sub(LAG));
            if random.happens(self.faults.stall) {
                self.stalled_until = self.number + 10 + random.below(90) as BlockNumber;
            }
        }
        if self.posted < self.to_post && random.happens(200) {
            self.post();
        }
        let (due, waiting) = std::mem::take(&mut self.pool)
            .into_iter()
            .partition(|sent| sent.arrives <= self.number);
        self.pool = waiting;
        for sent in due {
            let task = task_of(&sent.extrinsic);
            let included = match sent.fate {
                Fate::Unheard(_) => false,
                // Its block will be replaced by one without it, after the worker has heard of the first.
                Fate::Replaced => true,
                Fate::Fine | Fate::Misheard(_) => self.apply(sent.extrinsic),
            };
            let result = match sent.fate {
                Fate::Unheard(failure) | Fate::Misheard(failure) => Err(failure),
                Fate::Replaced | Fate::Fine if included => Ok(()),
                // The pool does not take an opening that nobody asks for; other calls fail in a block.
                _ if sent.kind.is_opening() => Err(Failure::Refused),
                _ => Err(Failure::Failed),
            };
            outcomes.push(Outcome {
                task,
                kind: sent.kind,
                start: sent.start,
                effect: sent.effect,
                result,
            });
        }
        let ids: Vec<_> = self.tasks.keys().copied().collect();
        for id in ids {
            self.advance(id, random);
        }
        self.history.push_back(State {
            number: self.number,
            clock: self.clock,
            tasks: self.tasks.clone(),
        });
        let oldest = self.finalized.saturating_sub(HISTORY);
        while self.history.front().is_some_and(|state| state.number < oldest) {
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
            requirements: Default::default(),
        };
        let state = TaskState::Bidding {
            until: self.clock + self.windows.bid,
        };
        let task = Task {
            client: AccountId::new([1; 32]),
            spec,
            cap: 1_000_000,
            audits: surety_types::task::AuditTerms::default(),
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
            let (inputs, now) = (&mut self.inputs, self.clock);
            let round = sim.round.as_mut();
            return round.is_some_and(|round| inputs.demand(id, segment, round, now));
        }
        if let Extrinsic::Refute(_) = extrinsic {
            let round = sim.round.as_mut();
            return round.is_some_and(|round| self.confirmations.refute(id, round));
        }
        let member = sim.round.as_mut().and_then(|round| {
            let member = round.members.iter_mut().find(|m| m.provider == stash())?;
            let opens = match round.phase {
                RoundPhase::Revealing { .. } => true,
                RoundPhase::Challengeable { .. } => round.reveals_until.is_some(),
                _ => false,
            };
            let commits = matches!(round.phase, RoundPhase::Committing { .. });
            Some((commits, opens && member.fault.is_none(), member))
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
            (Extrinsic::Commit(_, hash), _, Some((true, _, member)))
                if member.progress == MemberProgress::Working =>
            {
                member.progress = MemberProgress::Committed(hash);
            }
            (Extrinsic::Reveal(_, claim, salt), _, Some((_, true, member)))
                if member.progress == MemberProgress::Committed(commitment(id, &stash(), &claim, &salt)) =>
            {
                member.progress = MemberProgress::Revealed(claim);
                self.drawn.get_mut(&id).unwrap().paid = !member.missed_reveal;
            }
            _ => return false,
        }
        true
    }

    /// What is due by time.
    fn advance(&mut self, id: TaskId, random: &mut Random) {
        let (now, windows) = (self.clock, self.windows);
        let sim = self.tasks.get_mut(&id).unwrap();
        match &mut sim.task.state {
            TaskState::Bidding { until } if now > *until => {
                sim.task.state = TaskState::Revealing {
                    until: now + windows.open,
                };
            }
            TaskState::Revealing { until } if now > *until => {
                sim.task.state = TaskState::Drawing { since: self.number };
            }
            TaskState::Drawing { since } if self.number > *since + 2 => {
                // Others are drawn in one task of eight; in another one we are a reserve first.
                let luck = random.below(8);
                self.opened.insert(id, sim.bid.is_some());
                let ours = sim.bid.is_some() && luck != 0;
                sim.task.state = running(ours && luck == 1);
                let commit_until = now + windows.commit;
                let first = if ours && luck != 1 {
                    stash()
                } else {
                    AccountId::new([8; 32])
                };
                if first == stash() {
                    self.drawn.insert(id, Fortune::drawn(commit_until));
                }
                sim.round = Some(round(first, commit_until));
            }
            TaskState::Running { reserves, .. } => {
                let round = sim.round.as_mut().unwrap();
                if self.inputs.pass(id, round, now) {
                    self.tasks.remove(&id);
                    return;
                }
                if !reserves.is_empty() && round.members[0].provider != stash() && random.happens(100) {
                    *reserves = Default::default();
                    let commit_until = now + windows.commit;
                    self.drawn.insert(id, Fortune::drawn(commit_until));
                    sim.round = Some(self::round(stash(), commit_until));
                    return;
                }
                let mut fortune = Fortune::default();
                let is_over = pass(
                    round,
                    now,
                    windows,
                    self.drawn.get_mut(&id).unwrap_or(&mut fortune),
                );
                let confirmations = &mut self.confirmations;
                confirmations.pass(id, round, (self.number, now), windows.challenge, random);
                if is_over {
                    self.tasks.remove(&id);
                }
            }
            _ => {}
        }
    }
}

impl Fortune {
    fn drawn(commit_until: BlockNumber) -> Self {
        Self {
            commit_until,
            ..Self::default()
        }
    }
}

/// What a state looks like from outside: its height, its clock, and its tasks.
pub type Seen = (BlockNumber, BlockNumber, Vec<TaskSnapshot>);

impl State {
    fn show(&self) -> Seen {
        let show = |(id, sim): (&TaskId, &Sim)| TaskSnapshot {
            id: *id,
            task: sim.task.clone(),
            round: sim.round.clone(),
            bid: sim.seal.map(|seal| BidSeen {
                seal,
                opened: sim.bid.is_some(),
            }),
            terms: Some(BidTerms {
                price_limit: 1_000_000,
                lock: 0,
            }),
            disputes: Vec::new(),
            demands: Vec::new(),
            committees: Vec::new(),
        };
        (self.number, self.clock, self.tasks.iter().map(show).collect())
    }
}

/// One block passes for a round. Says whether the task is over by it.
fn pass(round: &mut RoundRecord, now: BlockNumber, windows: Windows, fortune: &mut Fortune) -> bool {
    let committed = round.members[0].progress != MemberProgress::Working;
    let owes = round.members[0].owes_opening();
    let reveals_until = round.reveals_until;
    round.phase = match round.phase {
        RoundPhase::Committing { .. } if committed => RoundPhase::Auditing {
            until: now + windows.audit,
        },
        RoundPhase::Committing { until } => {
            fortune.commit_until = until;
            return now > until;
        }
        RoundPhase::Auditing { until } if now > until => RoundPhase::Revealing {
            until: now + windows.reveal,
        },
        RoundPhase::Revealing { until } if now > until => {
            fortune.missed = owes;
            round.members[0].missed_reveal = owes;
            round.reveals_until = owes.then_some(now + windows.openings);
            RoundPhase::Challengeable {
                until: now + windows.challenge,
                verdict: Verdict::Failed(FailureReason::NoAgreement),
            }
        }
        RoundPhase::Challengeable { until, .. } => {
            if owes && reveals_until.is_some_and(|last| now > last) {
                fortune.convicted = true;
                round.members[0].fault = Some(FaultKind::NoReveal);
            }
            return now > until && !round.members[0].owes_opening();
        }
        _ => return false,
    };
    false
}

fn task_of(extrinsic: &Extrinsic) -> TaskId {
    match extrinsic {
        Extrinsic::Bid(task, _)
        | Extrinsic::OpenBid(task, _)
        | Extrinsic::Commit(task, _)
        | Extrinsic::Reveal(task, ..)
        | Extrinsic::DemandInput(task, _)
        | Extrinsic::Refute(task) => *task,
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
        ..RoundRecord::new(100, until)
    }
}
