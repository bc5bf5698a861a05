//! The lives of verifiers that a dispute's committee asks: a chain as far as they see it, and processes that
//! crash and lose things around their state machines.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use sp_core::H256;
use surety_dispute_game::testsuite::toy::{Computed, Toy};
use surety_dispute_game::{
    bisection::{Cell, Clocks, Game, Judgement, Missing, Referee, Roots, Side, State, challenge, defend},
    committee::{Candidate, CommitteeState, DisputeCommittee, SeatDraw, own_value, value_hash, windows},
    quorum_streak::{Decision, Stage, seal},
};
use surety_types::{
    task::RoundPhase,
    trust::{AuditProof, DisputeId, Party},
};
use surety_worker_core::{
    AccountId, BlockNumber, CommitteeRecord, Config, DisputeRecord, Effect, EffectKind, Event, NoBids,
    Record, SecretSalts, Step, TaskSnapshot, Verifier,
};

use crate::{
    faults::{Faults, any, passing},
    random::Random,
    records,
};

const DISPUTE: DisputeId = 5;
const QUESTION: H256 = H256::repeat_byte(6);
const LAG: usize = 3;
/// Enough for any streak of bad luck.
const WINDOW: u32 = 400;

fn stash(place: usize) -> AccountId {
    AccountId::new([100 + place as u8; 32])
}

/// Knows what is right, and is no block.
struct NoBlock;

impl Referee for NoBlock {
    fn opening_bytes(&self, _: &Cell) -> Option<u32> {
        None
    }

    fn needed(&self, _: &Cell) -> Option<Missing> {
        None
    }

    fn judge(&self, _: &Cell, _: &Roots, _: &[u8]) -> Judgement {
        Judgement::Unproven
    }
}

/// A dispute that has come to the cell in which `liar` is wrong.
fn referred(mut liar: Computed) -> DisputeRecord {
    let mut game = Game::new(liar.root(), &Toy, Clocks::equal(1_000)).unwrap();
    while let Some(side) = game.to_move() {
        let played = match side {
            Side::Defender => defend(&game, &Toy, &mut liar).unwrap(),
            Side::Challenger => challenge(&game, &mut records::right()).unwrap(),
        };
        game.step(side, played, &Toy, &NoBlock).unwrap();
    }
    DisputeRecord {
        game,
        challenger: Party::Account(AccountId::new([9; 32])),
        ..records::dispute(records::claim(&liar), liar.root(), 1)
    }
}

/// One verifier: its state machine, and the process around it.
struct Host {
    verifier: Verifier,
    journal: Vec<Record>,
    jobs: Vec<(BlockNumber, Event)>,
    seals: BTreeMap<u32, BTreeSet<H256>>,
}

fn verifier(place: usize, journal: Vec<Record>) -> Verifier {
    let salts = SecretSalts::new([place as u8; 32]);
    Verifier::new(Config::new(stash(place), NoBids, salts), journal).unwrap()
}

/// The chain and everybody on it.
pub struct Lives {
    random: Random,
    faults: Faults,
    number: BlockNumber,
    snapshot: TaskSnapshot,
    history: VecDeque<(BlockNumber, TaskSnapshot)>,
    pool: Vec<(BlockNumber, usize, Effect, bool)>,
    hosts: Vec<Host>,
    decision: Option<Decision>,
    right: H256,
}

impl Lives {
    /// So many verifiers, which are drawn, or all summoned at once.
    pub fn new(seed: u64, faults: Faults, verifiers: usize, drawn: bool) -> Self {
        let mut random = Random::new(seed);
        let record = referred(records::wrong(random.next()));
        let State::NeedsCommittee { cell } = record.game.state() else {
            panic!("a block can decide it")
        };
        let right = value_hash(own_value(&Toy, &mut records::right(), cell).unwrap());
        let windows = windows(WINDOW, WINDOW);
        let state = if drawn {
            CommitteeState::new(QUESTION, windows)
        } else {
            CommitteeState::of_all(QUESTION, windows)
        };
        let committee: CommitteeRecord = DisputeCommittee {
            state,
            claimed: value_hash(Some(cell.value)),
            draw: SeatDraw {
                begun_at: 1,
                settled_by: 0,
                epoch_randomness: H256([6; 32]),
                verifier_stake: verifiers as u128,
                corrupt_stake: 0,
                seed: None,
            },
            candidates: Default::default(),
            ticked_at: 1,
            suspended: 0,
            fund: None,
        };
        let mut snapshot = records::auditing();
        let verdict = surety_types::task::Verdict::Failed(surety_types::task::FailureReason::NoAgreement);
        let phase = RoundPhase::Challengeable { until: 1, verdict };
        snapshot.round.as_mut().unwrap().phase = phase;
        snapshot.disputes = vec![(DISPUTE, record)];
        snapshot.committees = vec![(DISPUTE, committee)];
        let host = |place| Host {
            verifier: verifier(place, Vec::new()),
            journal: Vec::new(),
            jobs: Vec::new(),
            seals: BTreeMap::new(),
        };
        Self {
            random,
            faults,
            number: 1,
            snapshot,
            history: VecDeque::new(),
            pool: Vec::new(),
            hosts: (0..verifiers).map(host).collect(),
            decision: None,
            right,
        }
    }

    /// Lives until it is decided, and sees that it was decided rightly and that nobody said two things.
    pub fn run(mut self) {
        while self.decision.is_none() {
            self.produce();
            for place in 0..self.hosts.len() {
                self.tick(place);
            }
        }
        let said = self.decision.and_then(|decision| decision.value());
        assert_eq!(said, Some(self.right), "{:?}", self.decision);
        for host in &self.hosts {
            assert!(
                host.seals.values().all(|seals| seals.len() == 1),
                "two answers in a ballot"
            );
        }
    }

    fn committee(&mut self) -> Option<&mut CommitteeRecord> {
        self.snapshot
            .committees
            .first_mut()
            .map(|(_, committee)| committee)
    }

    /// One more block.
    fn produce(&mut self) {
        self.number += 1;
        let now = self.number;
        let due = |sent: &(BlockNumber, usize, Effect, bool)| sent.0 <= now;
        let (due, waiting) = std::mem::take(&mut self.pool)
            .into_iter()
            .partition::<Vec<_>, _>(due);
        self.pool = waiting;
        for (_, place, effect, answer_lost) in due {
            let (task, kind) = (effect.task(), effect.kind());
            let event = if self.apply(place, effect) && !answer_lost {
                Event::EffectDone {
                    task,
                    kind,
                    block: None,
                }
            } else {
                Event::EffectFailed {
                    task,
                    kind,
                    failure: any(&mut self.random),
                }
            };
            self.hosts[place].jobs.push((now, event));
        }
        self.pass();
        self.history.push_back((now, self.snapshot.clone()));
        if self.history.len() > 40 {
            self.history.pop_front();
        }
    }

    /// What time does.
    fn pass(&mut self) {
        let known = self.number > 3;
        let Some(committee) = self.committee() else { return };
        if committee.draw.seed.is_none() && known {
            committee.draw.seed = Some(H256([5; 32]));
        }
        let over = committee.state.left() <= 1;
        let opened = over
            && match committee.state.stage() {
                Stage::Drawing => committee.seat(),
                Stage::Summoning => committee.summon(),
                _ => false,
            };
        if !opened {
            committee.state.tick(1);
        }
        self.decision = committee.state.decision();
    }

    fn apply(&mut self, place: usize, effect: Effect) -> bool {
        let who = stash(place);
        let Some(committee) = self.committee() else {
            return false;
        };
        let done = match effect {
            Effect::SubmitJoin { ballot, seal, .. } => {
                let known = committee.candidates.iter().any(|other| other.verifier == who);
                let candidate = Candidate {
                    verifier: who,
                    rank: place as u128,
                    stake: 1,
                    seal,
                };
                let due = ballot == committee.state.rounds() && !known;
                due && committee.enter(candidate) == surety_dispute_game::committee::Entry::Seated
            }
            Effect::SubmitVote { value, salt, .. } => committee.state.reveal(&who, value, salt).is_ok(),
            other => panic!("no call of a committee: {other:?}"),
        };
        self.decision = committee.state.decision();
        done
    }

    /// Everything that reaches a worker in one block.
    fn tick(&mut self, place: usize) {
        let now = self.number;
        let jobs = std::mem::take(&mut self.hosts[place].jobs);
        let (due, waiting) = jobs.into_iter().partition::<Vec<_>, _>(|(at, _)| *at <= now);
        self.hosts[place].jobs = waiting;
        for (_, event) in due {
            self.feed(place, event);
        }
        if let Some((block, snapshot)) = self.history.back().cloned() {
            let (clock, tasks) = (block, vec![snapshot]);
            self.feed(place, Event::Best { block, clock, tasks });
        }
        let behind = if self.random.happens(self.faults.stale_state) {
            self.random.below(20) as usize
        } else {
            0
        };
        let at = self.history.len().checked_sub(1 + LAG + behind);
        if let Some((block, snapshot)) = at.map(|at| self.history[at].clone()) {
            let (clock, tasks) = (block, vec![snapshot]);
            self.feed(
                place,
                Event::Finalized {
                    block,
                    clock,
                    tasks,
                    unread: Vec::new(),
                },
            );
        }
    }

    /// One step, with a crash in some place of it.
    fn feed(&mut self, place: usize, event: Event) {
        let Step { records, effects } = self.hosts[place].verifier.step(self.number, event);
        let crash = self.random.happens(self.faults.crash);
        if crash && self.random.happens(300) {
            return self.restart(place);
        }
        self.hosts[place].journal.extend(records);
        let crash_after = crash.then(|| self.random.below(1 + effects.len() as u64) as usize);
        for (at, due) in effects.into_iter().enumerate() {
            if crash_after == Some(at) {
                break;
            }
            self.carry_out(place, due.effect);
        }
        if crash {
            self.restart(place);
        }
    }

    /// What was under way is lost, but for what is on its way to the chain.
    fn restart(&mut self, place: usize) {
        let host = &mut self.hosts[place];
        host.jobs.clear();
        host.verifier = verifier(place, host.journal.clone());
    }

    fn carry_out(&mut self, place: usize, effect: Effect) {
        let (task, kind) = (effect.task(), effect.kind());
        let due = self.number + 1 + self.random.below(3) as BlockNumber;
        let failed = kind.is_heavy() && self.random.happens(self.faults.local_failure);
        let event = match effect {
            _ if failed => Event::EffectFailed {
                task,
                kind,
                failure: passing(&mut self.random),
            },
            Effect::DrawSeat { input, .. } => Event::SeatDrawn {
                task,
                dispute: input.dispute,
                ballot: input.ballot,
                proof: Some(AuditProof {
                    pre_output: [1; 32],
                    proof: [2; 64],
                }),
            },
            Effect::ComputeVote { dispute, record, .. } => {
                let State::NeedsCommittee { cell } = record.game.state() else {
                    panic!("a block can decide it")
                };
                let value = value_hash(own_value(&Toy, &mut records::right(), cell).unwrap());
                Event::VoteReady { task, dispute, value }
            }
            Effect::Cancel { kind, .. } => {
                let ends = |event: &Event| match event {
                    Event::SeatDrawn { dispute, .. } => EffectKind::DrawSeat(*dispute),
                    Event::VoteReady { dispute, .. } => EffectKind::ComputeVote(*dispute),
                    Event::EffectDone { kind, .. } | Event::EffectFailed { kind, .. } => *kind,
                    other => panic!("no end of an effect: {other:?}"),
                };
                return self.hosts[place].jobs.retain(|(_, event)| ends(event) != kind);
            }
            call => return self.send(place, call),
        };
        self.hosts[place].jobs.push((due, event));
    }

    fn send(&mut self, place: usize, effect: Effect) {
        self.note(place, &effect);
        let (task, kind) = (effect.task(), effect.kind());
        let due = self.number + 1 + self.random.below(3) as BlockNumber;
        if self.random.happens(self.faults.loss) {
            let failure = any(&mut self.random);
            let event = Event::EffectFailed { task, kind, failure };
            return self.hosts[place].jobs.push((due, event));
        }
        let answer_lost = self.random.happens(self.faults.answer_loss);
        self.pool.push((due, place, effect, answer_lost));
    }

    /// What is said stands in the journal, and is the same whenever it is said of the same ballot.
    fn note(&mut self, place: usize, effect: &Effect) {
        let host = &mut self.hosts[place];
        let made = host.journal.iter().rev().find_map(|record| match record {
            Record::VoteMade {
                ballot,
                value,
                salt,
                seal,
                ..
            } => Some((*ballot, *value, *salt, *seal)),
            _ => None,
        });
        let (ballot, value, salt, sealed) = made.expect("an answer is journalled before it is sent");
        assert_eq!(sealed, seal(QUESTION, ballot, &stash(place), value, salt));
        match effect {
            Effect::SubmitJoin { ballot: of, seal, .. } => {
                assert_eq!((*of, *seal), (ballot, sealed));
                host.seals.entry(*of).or_default().insert(*seal);
            }
            Effect::SubmitVote {
                value: said,
                salt: with,
                ..
            } => {
                assert_eq!((*said, *with), (value, salt));
            }
            _ => {}
        }
    }
}
