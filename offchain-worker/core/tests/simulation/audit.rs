//! A verifier's life with one task whose provider lies: a chain as far as the verifier sees it, and a process
//! around the state machine that crashes and loses things.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use codec::Encode;
use sp_core::H256;
use surety_dispute_game::bisection::{Move, Reason, Side, challenge, defend};
use surety_dispute_game::testsuite::toy::{Computed, Toy};
use surety_types::{
    task::{FailureReason, MemberProgress, ResultClaim, RoundPhase, Verdict},
    trust::{Audit, AuditProof, AuditState, DisputeId, ItemFound, ItemsFound},
};
use surety_worker_core::{
    AccountId, BlockNumber, Config, Drawn, Effect, Event, Found, NoBids, Record, RoundRecord, SecretSalts,
    Step, TaskSnapshot, Verifier,
};

use crate::{
    faults::{Faults, any, passing},
    random::Random,
    records::{TASK, auditing, claim, dispute, play, provider, right, seal_of, stash, wrong},
};

const LAG: usize = 3;
/// From this block on it is known what auditors draw themselves with.
const SEEDED_AT: BlockNumber = 6;
const SEED: H256 = H256([5; 32]);
/// What our key draws.
const DRAWN: [u8; 32] = [3; 32];
const REVEAL_UNTIL: BlockNumber = 400;
const BLOCKS_MAX: BlockNumber = 6000;

/// Something on its way to the chain.
struct Sent {
    effect: Effect,
    start: u32,
    arrives: BlockNumber,
    answer_lost: bool,
}

/// One life.
pub struct Life {
    random: Random,
    faults: Faults,
    liar: Computed,
    number: BlockNumber,
    snapshot: TaskSnapshot,
    history: VecDeque<(BlockNumber, TaskSnapshot)>,
    pool: Vec<Sent>,
    verifier: Verifier,
    journal: Vec<Record>,
    jobs: Vec<(BlockNumber, Event)>,
    start: u32,
    cut_off_until: BlockNumber,
    empty_until: BlockNumber,
    seals: BTreeSet<H256>,
    moves: BTreeMap<(DisputeId, u32), BTreeSet<Vec<u8>>>,
    audits_made: u32,
    /// Whether one item is ours, and not all of them.
    sampled: bool,
    /// Since the last start.
    fetched: BTreeSet<AccountId>,
    won: Option<(Side, Reason)>,
}

fn verifier(journal: Vec<Record>) -> Verifier {
    Verifier::new(Config::new(stash(), NoBids, SecretSalts::new([3; 32])), journal).unwrap()
}

impl Life {
    pub fn new(seed: u64, faults: Faults) -> Self {
        let mut random = Random::new(seed);
        let liar = wrong(random.next());
        let (mut snapshot, sampled) = (auditing(), random.happens(500));
        if let Some(round) = snapshot.round.as_mut().filter(|_| sampled) {
            round.members[0].audits.items = 1;
        }
        Self {
            random,
            faults,
            liar,
            number: 1,
            snapshot,
            history: VecDeque::new(),
            pool: Vec::new(),
            verifier: verifier(Vec::new()),
            journal: Vec::new(),
            jobs: Vec::new(),
            start: 0,
            cut_off_until: 0,
            empty_until: 0,
            seals: BTreeSet::new(),
            moves: BTreeMap::new(),
            audits_made: 0,
            sampled,
            fetched: BTreeSet::new(),
            won: None,
        }
    }

    /// Lives until the dispute is over, and sees that it ended as it must.
    pub fn run(mut self) {
        while self.won.is_none() {
            self.produce();
            self.tick();
            assert!(self.number < BLOCKS_MAX, "no end: {:?}", self.snapshot.round);
        }
        assert_eq!(self.won, Some((Side::Challenger, Reason::Judged)));
        assert_eq!(self.seals.len(), 1, "one audit, and no other");
        for (state, moves) in &self.moves {
            assert_eq!(moves.len(), 1, "two moves in state {state:?}");
        }
    }

    fn round(&mut self) -> &mut RoundRecord {
        self.snapshot.round.as_mut().unwrap()
    }

    fn claim(&self) -> ResultClaim {
        claim(&self.liar)
    }

    /// One more block.
    fn produce(&mut self) {
        self.number += 1;
        let now = self.number;
        let (due, waiting) = std::mem::take(&mut self.pool)
            .into_iter()
            .partition::<Vec<_>, _>(|sent| sent.arrives <= now);
        self.pool = waiting;
        for sent in due {
            let (task, kind) = (sent.effect.task(), sent.effect.kind());
            let done = self.apply(sent.effect) && !sent.answer_lost;
            if sent.start == self.start {
                let event = if done {
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
                self.jobs.push((now, event));
            }
        }
        self.advance();
        self.defend();
        self.history.push_back((now, self.snapshot.clone()));
        if self.history.len() > 40 {
            self.history.pop_front();
        }
    }

    /// What is due by time.
    fn advance(&mut self) {
        let (now, claim) = (self.number, self.claim());
        let round = self.round();
        if now >= SEEDED_AT {
            round.draw.as_mut().unwrap().seed = Some(SEED);
        }
        match round.phase {
            RoundPhase::Auditing { until } if now > until => {
                round.phase = RoundPhase::Revealing { until: REVEAL_UNTIL };
                round.members[0].progress = MemberProgress::Revealed(claim);
            }
            RoundPhase::Revealing { until } if now > until => {
                let verdict = Verdict::Failed(FailureReason::NoAgreement);
                round.phase = RoundPhase::Challengeable {
                    until: BLOCKS_MAX,
                    verdict,
                };
            }
            _ => {}
        }
    }

    /// The liar plays now and then, and at once has nothing against its being found out.
    fn defend(&mut self) {
        let patient = self.random.happens(500);
        let number = self.number;
        let Some((_, record)) = self.snapshot.disputes.first_mut() else {
            return;
        };
        if patient || record.game.to_move() != Some(Side::Defender) {
            return;
        }
        let played = defend(&record.game, &Toy, &mut self.liar).unwrap();
        play(record, Side::Defender, played, number);
        self.judge();
    }

    fn judge(&mut self) {
        let outcome = self
            .snapshot
            .disputes
            .first()
            .and_then(|(_, record)| record.game.outcome());
        self.won = outcome.map(|outcome| (outcome.winner, outcome.reason));
    }

    /// Whether the call succeeded.
    fn apply(&mut self, effect: Effect) -> bool {
        let (number, liars) = (self.number, self.claim());
        let root = self.liar.root();
        match effect {
            Effect::SubmitAnnouncement { seal, .. } => {
                let round = self.round();
                let is_auditing = matches!(round.phase, RoundPhase::Auditing { .. }) && !round.awaits_seed();
                let open = is_auditing && round.audits.is_empty();
                let audit = Audit {
                    verifier: stash(),
                    provider: provider(),
                    bond: 1,
                    draw: DRAWN.into(),
                    items: None,
                    state: AuditState::Sealed(seal),
                };
                open && round.audits.try_push(audit).is_ok()
            }
            opening @ (Effect::SubmitAuditReveal { .. } | Effect::SubmitItemsReveal { .. }) => {
                let seal = seal_of(&opening);
                let confirms = match opening {
                    Effect::SubmitAuditReveal { claim, .. } => claim == liars,
                    Effect::SubmitItemsReveal { answer, .. } => answer.agrees,
                    _ => false,
                };
                let round = self.round();
                let revealed = round.members[0].claim().is_some();
                let Some(audit) = round.audits.iter_mut().next().filter(|_| revealed) else {
                    return false;
                };
                if Some(&audit.state) != seal.map(AuditState::Sealed).as_ref() {
                    return false;
                }
                assert!(!confirms, "an honest audit does not confirm a lie");
                audit.state = AuditState::Disputed(0);
                let record = dispute(liars, root, number);
                self.snapshot.disputes = vec![(0, record)];
                true
            }
            Effect::SubmitMove {
                dispute,
                number: moves,
                played,
                ..
            } => {
                let Some((id, record)) = self.snapshot.disputes.first_mut() else {
                    return false;
                };
                let due = *id == dispute && record.moves == moves;
                let done = due && play(record, Side::Challenger, played, number);
                self.judge();
                done
            }
            _ => false,
        }
    }

    /// Everything that reaches the worker in one block.
    fn tick(&mut self) {
        let now = self.number;
        let (due, waiting) = std::mem::take(&mut self.jobs)
            .into_iter()
            .partition::<Vec<_>, _>(|(at, _)| *at <= now);
        self.jobs = waiting;
        let start = self.start;
        for (_, event) in due {
            if self.start == start {
                self.feed(event);
            }
        }
        if self.random.happens(self.faults.partition) {
            self.cut_off_until = now + 10;
        }
        if now >= self.cut_off_until {
            self.show_best();
            self.show(0);
            if self.random.happens(self.faults.stale_state) {
                let behind = self.random.below(20) as usize;
                self.show(behind);
            }
        }
    }

    /// What a node says of a task.
    fn said(&mut self, snapshot: TaskSnapshot) -> Vec<TaskSnapshot> {
        if self.random.happens(self.faults.empty_state) {
            self.empty_until = self.number + 6;
        }
        if self.number < self.empty_until {
            Vec::new()
        } else {
            vec![snapshot]
        }
    }

    fn show_best(&mut self) {
        if let Some((block, snapshot)) = self.history.back().cloned() {
            let (clock, tasks) = (block, self.said(snapshot));
            self.feed(Event::Best { block, clock, tasks });
        }
    }

    fn show(&mut self, behind: usize) {
        let at = self.history.len().checked_sub(1 + LAG + behind);
        if let Some((block, snapshot)) = at.map(|at| self.history[at].clone()) {
            let (clock, tasks) = (block, self.said(snapshot));
            self.feed(Event::Finalized {
                block,
                clock,
                tasks,
                unread: Vec::new(),
            });
        }
    }

    /// One step, with a crash in some place of it.
    fn feed(&mut self, event: Event) {
        let Step { records, effects } = self.verifier.step(self.number, event);
        let crash = self.random.happens(self.faults.crash);
        if crash && self.random.happens(300) {
            return self.restart();
        }
        self.journal.extend(records);
        let crash_after = crash.then(|| self.random.below(1 + effects.len() as u64) as usize);
        for (at, due) in effects.into_iter().enumerate() {
            if crash_after == Some(at) {
                return self.restart();
            }
            self.carry_out(due.effect);
        }
        if crash {
            self.restart();
        }
    }

    fn restart(&mut self) {
        self.start += 1;
        self.jobs.clear();
        self.fetched.clear();
        self.verifier = verifier(self.journal.clone());
    }

    fn later(&mut self, event: Event) {
        let due = self.number + 1 + self.random.below(3) as BlockNumber;
        self.jobs.push((due, event));
    }

    fn carry_out(&mut self, effect: Effect) {
        let (task, kind) = (effect.task(), effect.kind());
        if kind.is_heavy() && self.random.happens(self.faults.local_failure) {
            let failure = passing(&mut self.random);
            return self.later(Event::EffectFailed { task, kind, failure });
        }
        match effect {
            Effect::Draw { input, .. } => {
                assert_eq!((input.task, input.seed), (TASK, SEED));
                let drawn = Some(Drawn {
                    proof: AuditProof {
                        pre_output: [1; 32],
                        proof: [2; 64],
                    },
                    output: DRAWN,
                });
                let provider = input.provider;
                self.later(Event::Drawn {
                    task,
                    provider,
                    drawn,
                });
            }
            Effect::FetchAudit { provider, .. } => {
                self.fetched.insert(provider);
                self.later(Event::EffectDone {
                    task,
                    kind,
                    block: None,
                });
            }
            Effect::Audit { provider, items, .. } => self.audit(provider, items),
            Effect::CompareAudit { provider, claim, .. } | Effect::CompareAll { provider, claim, .. } => {
                assert_eq!(claim, self.claim());
                self.later(Event::AuditCompared {
                    task,
                    kind,
                    provider,
                    agrees: false,
                    view: None,
                });
            }
            Effect::ComputeMove {
                dispute,
                record,
                side,
                ..
            } => {
                assert_eq!(side, Side::Challenger);
                let played = challenge(&record.game, &mut right()).unwrap();
                self.later(Event::MoveReady {
                    task,
                    dispute,
                    number: record.moves,
                    played,
                });
            }
            Effect::CheckData { .. } => self.later(Event::EffectDone {
                task,
                kind,
                block: None,
            }),
            Effect::Cancel { kind, .. } => self
                .jobs
                .retain(|(_, event)| event.ends().is_none_or(|(_, of, _)| of != kind)),
            Effect::Forget { .. } => {
                // For all it knows the task is over; but nobody was told anything yet.
                assert!(self.journal.is_empty(), "forgot what it said");
                self.jobs.clear();
            }
            call => self.send(call),
        }
    }

    fn audit(&mut self, provider: AccountId, items: Option<Vec<u32>>) {
        assert!(
            self.fetched.contains(&provider),
            "computed from what was not fetched"
        );
        self.audits_made += 1;
        assert_eq!(items.is_some(), self.sampled);
        // Somebody who computes again may find another trace of the same right result.
        let found = match items {
            None => Found::Whole(ResultClaim {
                units: self.audits_made,
                ..claim(&right())
            }),
            Some(items) => Found::Items(ItemsFound::truncate_from(vec![ItemFound {
                leaves: H256::from_low_u64_be(self.audits_made.into()),
                row: H256::from_low_u64_be(items[0].into()),
            }])),
        };
        self.later(Event::AuditReady {
            task: TASK,
            provider,
            found,
        });
    }

    fn send(&mut self, effect: Effect) {
        match &effect {
            Effect::SubmitAnnouncement { seal, .. } => drop(self.seals.insert(*seal)),
            Effect::SubmitAuditReveal { .. } | Effect::SubmitItemsReveal { .. } => {
                self.seals.extend(seal_of(&effect));
            }
            Effect::SubmitMove {
                dispute,
                number,
                played,
                ..
            } => self.note_move(*dispute, *number, played),
            _ => {}
        }
        if self.random.happens(self.faults.loss) {
            let (task, kind) = (effect.task(), effect.kind());
            let failure = any(&mut self.random);
            return self.later(Event::EffectFailed { task, kind, failure });
        }
        let sent = Sent {
            effect,
            start: self.start,
            arrives: self.number + 1 + self.random.below(3) as BlockNumber,
            answer_lost: self.random.happens(self.faults.answer_loss),
        };
        self.pool.push(sent);
    }

    fn note_move(&mut self, dispute: DisputeId, number: u32, played: &Move) {
        let made = self.journal.iter().any(|record| match record {
            Record::MoveMade {
                dispute: of,
                number: at,
                played: made,
                ..
            } => *of == dispute && *at == number && made == played,
            _ => false,
        });
        assert!(made, "a move is journalled before it is sent");
        let known = self.moves.entry((dispute, number)).or_default();
        known.insert(played.encode());
    }
}
