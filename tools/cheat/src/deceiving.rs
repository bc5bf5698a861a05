//! A worker that decides to do something else than what an honest one does.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use surety_chain_client::{AccountId, Call, Chain, Hash, Signer, Until};
use surety_dispute_game::bisection::{Game, Level, Move, Side, State};
use surety_host::{Core, Tools};
use surety_types::{
    TaskId,
    task::{MemberProgress, ResultClaim, RoundPhase},
};
use surety_worker_core::{DisputeRecord, Due, Effect, EffectKind, Event, Failure, Found, Step, TaskSnapshot};

use crate::crowd::Crowd;

/// What is done instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deceit {
    /// Commits to what another one committed to.
    CopiedResult,
    /// Never opens a commitment, or the seal of an audit.
    OpensNothing,
    /// Shows nothing of an output that is demanded on the chain.
    WithheldData,
    /// Shows nothing of an output in a dispute, and makes every other move.
    WithheldOutput,
    /// Has a crowd take all places, and plays against the others alone.
    Crowding,
    /// Makes audits up, and never opens them.
    Lazy,
    /// Challenges the first right result it sees, and plays on as if it had found something.
    FalseChallenge,
}

/// An honest core whose effects are changed before anybody carries them out.
pub struct DeceivingCore {
    core: Box<dyn Core>,
    deceit: Deceit,
    chain: Arc<dyn Chain>,
    signer: Signer,
    stash: AccountId,
    /// In the newest best block: what somebody else has committed to.
    others: BTreeMap<TaskId, Hash>,
    has_challenged: bool,
    crowd: Option<Crowd>,
}

/// What comes of an effect.
enum Instead {
    /// This effect.
    Effect(Effect),
    /// No effect: the core hears at once that it went like this.
    Heard(Event),
}

impl DeceivingCore {
    pub fn new(core: Box<dyn Core>, deceit: Deceit, tools: &Tools) -> Self {
        Self {
            core,
            deceit,
            chain: tools.chain.clone(),
            signer: tools.signer.clone(),
            stash: tools.stash.clone(),
            others: BTreeMap::new(),
            has_challenged: false,
            crowd: None,
        }
    }

    /// The crowd, which is called together when there is something to see.
    fn crowd(&mut self) -> &mut Crowd {
        self.crowd.get_or_insert_with(|| {
            let crowd = Crowd::new(self.chain.clone(), &self.signer);
            crowd.pay(&self.signer);
            crowd
        })
    }

    fn see(&mut self, event: &Event) {
        match (self.deceit, event) {
            (Deceit::CopiedResult, Event::Best { tasks, .. }) => {
                let stash = &self.stash;
                let others = tasks
                    .iter()
                    .filter_map(|task| Some((task.id, others_commitment(task, stash)?)));
                self.others = others.collect();
            }
            (Deceit::FalseChallenge, Event::Finalized { tasks, .. }) if !self.has_challenged => {
                if let Some(call) = challengeable(tasks, &self.stash) {
                    self.has_challenged = true;
                    self.submit(call);
                }
            }
            (Deceit::Crowding, event) => {
                let stash = self.stash.clone();
                self.crowd().see(event, &stash);
            }
            _ => {}
        }
    }

    /// Whether a dispute is one that only takes a place.
    fn is_of_crowd(&self, record: &DisputeRecord) -> bool {
        let crowd = self.crowd.as_ref();
        crowd.is_some_and(|crowd| crowd.has(record.challenger.account()))
    }

    fn submit(&self, call: Call) {
        let (chain, signer) = (self.chain.clone(), self.signer.clone());
        tokio::spawn(async move {
            match chain.submit(&signer, call, Until::Included.into()).await {
                Ok(included) => {
                    tracing::error!(block = included.block.number, "challenged, as --cheat demands")
                }
                Err(e) => tracing::error!(error = %e, "cannot challenge, as --cheat demands"),
            }
        });
    }

    fn instead(&self, effect: Effect) -> Instead {
        let (task, kind) = (effect.task(), effect.kind());
        match (self.deceit, effect) {
            (
                Deceit::OpensNothing,
                Effect::SubmitReveal { .. }
                | Effect::SubmitAuditReveal { .. }
                | Effect::SubmitItemsReveal { .. },
            )
            | (Deceit::WithheldData, Effect::SubmitSupply { .. })
            | (
                Deceit::WithheldOutput,
                Effect::SubmitMove {
                    played: Move::Supply(_),
                    ..
                },
            )
            | (Deceit::Lazy, Effect::SubmitAuditReveal { .. } | Effect::SubmitItemsReveal { .. }) => {
                tracing::error!(task, ?kind, "left out, as --cheat demands");
                failed(task, kind, Failure::Permanent)
            }
            (Deceit::Crowding, Effect::ComputeMove { ref record, .. }) if self.is_of_crowd(record) => {
                failed(task, kind, Failure::Permanent)
            }
            (Deceit::CopiedResult, Effect::SubmitCommit { .. }) => match self.others.get(&task) {
                Some(commitment) => Instead::Effect(Effect::SubmitCommit {
                    task,
                    commitment: *commitment,
                }),
                None => failed(task, kind, Failure::Refused),
            },
            (Deceit::Lazy, Effect::Audit { provider, .. }) => Instead::Heard(Event::AuditReady {
                task,
                found: Found::Whole(made_up(&provider)),
                provider,
            }),
            (
                Deceit::FalseChallenge,
                Effect::ComputeMove {
                    dispute,
                    record,
                    side: Side::Challenger,
                    ..
                },
            ) => Instead::Heard(Event::MoveReady {
                task,
                dispute,
                number: record.moves,
                played: false_move(&record.game),
            }),
            (_, effect) => Instead::Effect(effect),
        }
    }
}

fn failed(task: TaskId, kind: EffectKind, failure: Failure) -> Instead {
    Instead::Heard(Event::EffectFailed { task, kind, failure })
}

impl Core for DeceivingCore {
    /// It ends: what the core hears has failed it does not try again before another block.
    fn step(&mut self, now: u32, event: Event) -> Step {
        self.see(&event);
        let mut whole = Step::default();
        let mut heard = VecDeque::from([event]);
        while let Some(event) = heard.pop_front() {
            let Step { records, effects } = self.core.step(now, event);
            whole.records.extend(records);
            for Due { effect, left, urgent } in effects {
                match self.instead(effect) {
                    Instead::Effect(effect) => whole.effects.push(Due { effect, left, urgent }),
                    Instead::Heard(event) => heard.push_back(event),
                }
            }
        }
        whole
    }

    fn progress(&self) -> BTreeMap<&'static str, usize> {
        self.core.progress()
    }

    fn spare(&self) -> Option<Duration> {
        self.core.spare()
    }
}

/// What somebody else committed to for a task, if anybody has.
fn others_commitment(task: &TaskSnapshot, stash: &AccountId) -> Option<Hash> {
    let round = task.round.as_ref()?;
    round.members.iter().find_map(|member| match member.progress {
        MemberProgress::Committed(hash) if member.provider != *stash => Some(hash),
        _ => None,
    })
}

/// A right result to challenge.
fn challengeable(tasks: &[TaskSnapshot], stash: &AccountId) -> Option<Call> {
    tasks.iter().find_map(|seen| {
        let round = seen.round.as_ref()?;
        let open = matches!(round.phase, RoundPhase::Challengeable { .. }) && round.challenges == 0;
        let mut members = round.members.iter().filter(|_| open);
        let member = members.find(|member| member.standing_claim().is_some() && member.provider != *stash)?;
        Some(Call::Challenge {
            task: seen.id,
            provider: member.provider.clone(),
        })
    })
}

/// What a lazy auditor says.
fn made_up(provider: &AccountId) -> ResultClaim {
    let hash = |what: u8| {
        Hash(sp_crypto_hashing::blake2_256(
            &[AsRef::<[u8]>::as_ref(provider), &[what]].concat(),
        ))
    };
    ResultClaim {
        output: hash(0),
        trace_root: hash(1),
        units: 1,
    }
}

/// What somebody plays who only claims to have found something: it goes past the input, which nobody would
/// take for another, and then takes the first of everything.
fn false_move(game: &Game) -> Move {
    match game.state() {
        State::Naming { children } => {
            let first = game.leaves_in_dispute().start;
            let past = game.place().level == Level::Leaves && first == 0 && children.len() > 1;
            Move::Name(u8::from(past))
        }
        State::Picking { .. } => Move::Pick(0),
        _ => Move::Concede,
    }
}

#[cfg(test)]
#[path = "deceiving_tests.rs"]
mod tests;
