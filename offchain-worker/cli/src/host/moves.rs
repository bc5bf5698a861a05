//! Finding moves in disputes.

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    sync::{Arc, Mutex, PoisonError},
};

use surety_chain_client::DisputeRecord;
use surety_engine::{exact::OwnTrace, EngineError, Event as EngineEvent};
use surety_types::{task::TaskSpec, trust::DisputeId};
use surety_verification::{
    bisection::{challenge, defend, CellValue, Game, Level, Move, PlayError, Side, State},
    committee::own_value,
};
use surety_worker_core::{EffectKind, Event};
use tokio::sync::Mutex as AsyncMutex;

use super::{
    audits::{endpoints, input, job},
    cheat::Cheat,
    jobs::{failed, Failure},
    Tools,
};

/// Traces that are kept from move to move. One for each game that is played at once is enough.
const TRACES_MAX: usize = 4;

type Held = Arc<AsyncMutex<Option<OwnTrace>>>;

/// Our views of the claims in dispute.
#[derive(Default)]
pub struct Traces(Mutex<BTreeMap<DisputeId, Held>>);

impl Traces {
    fn of(&self, dispute: DisputeId) -> Held {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !held.contains_key(&dispute) && held.len() >= TRACES_MAX {
            held.pop_first();
        }
        held.entry(dispute).or_default().clone()
    }
}

/// Finds our next move.
pub(super) async fn find(
    tools: &Tools,
    dispute: DisputeId,
    record: DisputeRecord,
    side: Side,
    spec: TaskSpec,
) -> Event {
    let (task, number) = (record.task, record.moves);
    let found = match (tools.cheat, side) {
        (Some(Cheat::FalseChallenge), Side::Challenger) => Ok(false_challenge(&record.game)),
        _ => try_find(tools, dispute, &record, side, &spec).await,
    };
    match found {
        Ok(played) => Event::MoveReady {
            task,
            dispute,
            number,
            played,
        },
        Err((reason, retryable)) => {
            tracing::error!(task, dispute, reason, "no move can be found");
            failed(task, EffectKind::ComputeMove(dispute), retryable)
        }
    }
}

/// What we have at the cell that a dispute has come to. Nothing where our view has no such cell.
pub(super) async fn value(
    tools: &Tools,
    dispute: DisputeId,
    record: &DisputeRecord,
    spec: &TaskSpec,
) -> Result<Option<CellValue>, Failure> {
    let State::Beyond { cell } = *record.game.state() else {
        return Err(("the dispute can be played".into(), false));
    };
    let mut held = tools.traces.of(dispute).lock_owned().await;
    if held.is_none() {
        *held = Some(trace(tools, record, spec).await?);
    }
    let ticket = tools.engines.work(move |_| {
        // It was put there above.
        let trace = held.as_mut().ok_or(EngineError::Closed)?;
        let shape = trace.layout().clone();
        own_value(&shape, trace, &cell)
    });
    let ticket = ticket.map_err(|e| (e.to_string(), e.is_retryable()))?;
    ticket.await.map_err(|e| (e.to_string(), true))
}

async fn try_find(
    tools: &Tools,
    dispute: DisputeId,
    record: &DisputeRecord,
    side: Side,
    spec: &TaskSpec,
) -> Result<Move, Failure> {
    let mut held = tools.traces.of(dispute).lock_owned().await;
    if held.is_none() {
        *held = Some(trace(tools, record, spec).await?);
    }
    let game = record.game.clone();
    let ticket = tools.engines.work(move |_| {
        // It was put there above.
        let trace = held.as_mut().ok_or(EngineError::Closed)?;
        play(&game, side, trace)
    });
    let ticket = ticket.map_err(|e| (e.to_string(), e.is_retryable()))?;
    ticket.await.map_err(|e| (e.to_string(), true))
}

/// Our own view of the claim in dispute.
async fn trace(tools: &Tools, record: &DisputeRecord, spec: &TaskSpec) -> Result<OwnTrace, Failure> {
    let on_chain = |e: surety_chain_client::ChainError| (e.to_string(), true);
    let mut sources = endpoints(tools, record.defender.account())
        .await
        .map_err(on_chain)?;
    let others = endpoints(tools, record.challenger.account())
        .await
        .map_err(on_chain)?;
    sources.extend(others);
    let input = input(tools, spec, &sources).await?;
    let output = tools.plane.fetch(record.claim.output, None, &sources).await;
    let output = output.map_err(|e| (e.to_string(), true))?;
    let engine = tools
        .engines
        .get(&spec.model)
        .map_err(|e| (e.to_string(), false))?;
    let sink = Box::new(|_: EngineEvent| ControlFlow::Continue(()));
    let trace = engine.trace(job(spec, &input), output.to_vec(), record.claim.units, sink);
    trace.map_err(|e| (e.to_string(), false))
}

fn play(game: &Game, side: Side, trace: &mut OwnTrace) -> Result<Move, EngineError> {
    let shape = trace.layout().clone();
    let played = match side {
        Side::Defender => defend(game, &shape, trace),
        Side::Challenger => challenge(game, trace),
    };
    played.map_err(|error| match error {
        PlayError::Trace(error) => error,
        PlayError::NotNow | PlayError::Shape => EngineError::NotInTrace,
    })
}

/// What somebody plays who only claims to have found something: it goes past the tokens, which no block can compute,
/// and then takes the first of everything.
fn false_challenge(game: &Game) -> Move {
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
