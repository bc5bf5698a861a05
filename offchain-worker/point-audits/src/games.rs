//! Games about receipts, played from what was shown of them.
//!
//! A move follows from the game's state and the receipt, so that none is journalled: after a restart the same
//! one is found again.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::ControlFlow,
    sync::{Arc, Mutex, PoisonError},
};

use surety_chain_client::{AccountId, DisputeRecord};
use surety_channels::Time;
use surety_dispute_game::bisection::{Move, PlayError, Side, challenge, defend};
use surety_engine::{
    Claimed, Engine, EngineError, Event as EngineEvent, JobSink, Leave, Priority, content_hash,
    exact::OwnTrace,
};
use surety_types::{TaskId, model::Operation, trust::DisputeId};

use crate::{Parts, book::BatchKey, shown::Receipt};

/// Traces that are kept from move to move.
const TRACES_MAX: usize = 4;

/// What a dispute asks of a verifier.
#[derive(Clone, Debug)]
pub(crate) enum Due {
    /// A move about this receipt.
    Move(DisputeId, Box<DisputeRecord>, Box<Receipt>),
    /// The other side's time is over.
    Advance(DisputeId),
    /// Somebody else plays about a receipt that we have found wrong, and may mean to lose.
    Join(TaskId, AccountId),
}

/// What is due in these disputes of finalised state.
pub(crate) fn due<'a>(
    disputes: &[(DisputeId, DisputeRecord)],
    ours: &[&AccountId],
    disputed: impl Iterator<Item = (&'a BatchKey, &'a Receipt, bool)>,
    time: Time,
) -> Vec<Due> {
    let mut due = Vec::new();
    for ((provider, _), receipt, was_first) in disputed {
        let Some(claim) = receipt.claim() else { continue };
        let about = |record: &DisputeRecord| record.claim == claim && record.defender.claimant() == provider;
        let mut of_it = disputes.iter().filter(|(_, record)| about(record)).peekable();
        let Some(one) = of_it.peek().map(|(_, record)| record.task) else {
            continue;
        };
        let mut is_ours = false;
        for (id, record) in of_it.filter(|(_, record)| ours.contains(&record.challenger.account())) {
            is_ours = true;
            let Some(to_move) = record.game.to_move() else {
                continue;
            };
            let last = record
                .ticked_at
                .saturating_add(record.game.clocks().left(to_move));
            match to_move {
                Side::Challenger => {
                    due.push(Due::Move(
                        *id,
                        Box::new(record.clone()),
                        Box::new(receipt.clone()),
                    ));
                }
                Side::Defender if last < time => due.push(Due::Advance(*id)),
                Side::Defender => {}
            }
        }
        if was_first && !is_ours {
            due.push(Due::Join(one, provider.clone()));
        }
    }
    due
}

/// Our view of a claim, kept from move to move.
#[derive(Default)]
pub struct View {
    trace: Option<OwnTrace>,
    /// The leave of the job that it computes for just now.
    leave: Arc<Mutex<Option<Leave>>>,
}

impl View {
    /// Finds a move about a receipt, on either side. Blocks for as long as what it takes is computed.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn play(
        &mut self,
        (engine, receipt): (Arc<dyn Engine>, &Receipt),
        (side, record): (Side, &DisputeRecord),
        sink: &JobSink,
    ) -> Result<Move, EngineError> {
        *self.leave.lock().unwrap_or_else(PoisonError::into_inner) = Some(sink.leave());
        let mut trace = match self.trace.take() {
            Some(trace) => trace,
            None => {
                let leave = self.leave.clone();
                let sink = move |_: EngineEvent| {
                    let leave = leave.lock().unwrap_or_else(PoisonError::into_inner).clone();
                    leave.as_ref().map_or(ControlFlow::Continue(()), Leave::ask)
                };
                let bytes = receipt.claimed_bytes();
                let claimed = Claimed {
                    output: match receipt.request.operation {
                        Operation::Generate => content_hash(&bytes),
                        Operation::Embed => receipt.batched.statement.output,
                    },
                    bytes,
                    units: receipt.batched.statement.units,
                    known: None,
                };
                engine.trace(receipt.job(), claimed, Box::new(sink))?
            }
        };
        let played = match side {
            Side::Challenger => challenge(&record.game, &mut trace),
            Side::Defender => {
                let shape = trace.layout().clone();
                defend(&record.game, &shape, &mut trace)
            }
        };
        self.trace = Some(trace);
        played.map_err(|error| match error {
            PlayError::Trace(error) => error,
            PlayError::NotNow | PlayError::Shape => EngineError::NotInTrace,
        })
    }
}

/// Finds the challenger's move.
pub(crate) async fn find(
    parts: &Parts,
    view: Arc<Mutex<View>>,
    receipt: Receipt,
    record: DisputeRecord,
) -> Result<Move, EngineError> {
    let engine = parts.engines.get(&receipt.request.model);
    let engine = engine.ok_or(EngineError::Closed)?.clone();
    let ticket = parts.pool.work(Priority::Urgent, move |sink| {
        let mut view = view.lock().unwrap_or_else(PoisonError::into_inner);
        view.play((engine, &receipt), (Side::Challenger, &record), sink)
    });
    ticket?.await
}

/// Views, and moves that were found.
#[derive(Default)]
pub(crate) struct Games {
    views: VecDeque<(Receipt, Arc<Mutex<View>>)>,
    moves: BTreeMap<DisputeId, (u32, Option<Move>)>,
}

impl Games {
    /// The move of this number, if it was found. If not, it is said whether it has to be looked for; it is
    /// being looked for then.
    pub(crate) fn found(&mut self, dispute: DisputeId, number: u32) -> Result<Move, bool> {
        match self.moves.get(&dispute) {
            Some((of, Some(played))) if *of == number => Ok(played.clone()),
            Some((of, None)) if *of == number => Err(false),
            _ => {
                self.moves.insert(dispute, (number, None));
                Err(true)
            }
        }
    }

    /// A move was found, or could not be.
    pub(crate) fn note(&mut self, dispute: DisputeId, number: u32, played: Option<Move>) {
        match played {
            Some(played) => drop(self.moves.insert(dispute, (number, Some(played)))),
            None => drop(self.moves.remove(&dispute)),
        }
    }

    /// Forgets all disputes but these.
    pub(crate) fn keep(&mut self, open: &[DisputeId]) {
        self.moves.retain(|id, _| open.contains(id));
        if open.is_empty() {
            self.views.clear();
        }
    }

    /// Our view of a receipt's claim. The oldest makes room.
    pub(crate) fn view(&mut self, receipt: &Receipt) -> Arc<Mutex<View>> {
        if let Some((_, view)) = self.views.iter().find(|(of, _)| of == receipt) {
            return view.clone();
        }
        if self.views.len() >= TRACES_MAX {
            self.views.pop_front();
        }
        let view = Arc::<Mutex<View>>::default();
        self.views.push_back((receipt.clone(), view.clone()));
        view
    }
}
