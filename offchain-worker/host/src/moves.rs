//! Finding moves in disputes.

use std::{
    collections::VecDeque,
    ops::ControlFlow,
    sync::{Arc, Mutex, PoisonError},
};

use surety_chain_client::{DisputeRecord, When};
use surety_dispute_game::{
    bisection::{CellValue, Game, Missing, Move, PARTS_MAX, PlayError, Side, State, challenge, defend},
    committee::own_value,
};
use surety_engine::{
    Claimed, EngineError, Event as EngineEvent, JobSink, Leave, Ticket, content_hash, exact::OwnTrace,
};
use surety_network::Bytes;
use surety_proofs::parts;
use surety_types::{
    ContentHash, TaskId, model::Operation, multiaddr::Endpoint, task::TaskSpec, trust::DisputeId,
};
use surety_worker_core::Event;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use super::{
    Tools,
    audits::{endpoints, input, job, ticket},
    compute::ComputeError,
    effect_error::EffectError,
    jobs::{Task, failed},
    work::fetch_brief,
};

/// Traces that are kept from move to move. One for each game that is played at once is enough.
const TRACES_MAX: usize = 8;

type Held = Arc<AsyncMutex<View>>;

/// Our view of one claim.
#[derive(Default)]
struct View {
    /// Nothing before it is asked for.
    trace: Option<OwnTrace>,
    /// The leave of the job that the trace computes for just now.
    leave: Arc<Mutex<Option<Leave>>>,
}

impl View {
    /// Has it answer a question, in an engine's thread. What was broken off is begun anew the next time.
    fn answer<T>(
        &mut self,
        sink: &JobSink,
        question: impl FnOnce(&mut OwnTrace) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        *self.leave.lock().unwrap_or_else(PoisonError::into_inner) = Some(sink.leave());
        // It was put there before.
        let trace = self.trace.as_mut().ok_or(EngineError::Closed)?;
        let answer = question(trace);
        if matches!(answer, Err(EngineError::Cancelled)) {
            self.trace = None;
        }
        answer
    }
}

/// Our views of the claims in dispute.
#[derive(Default)]
pub struct Traces(Mutex<VecDeque<(DisputeId, Held)>>);

impl Traces {
    /// The view that has been without a question for longest makes room for another.
    fn of(&self, dispute: DisputeId) -> Held {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = held.iter().position(|(of, _)| *of == dispute);
        let (_, view) = known.and_then(|at| held.remove(at)).unwrap_or_default();
        held.push_back((dispute, view.clone()));
        if held.len() > TRACES_MAX {
            held.pop_front();
        }
        view
    }
}

/// Finds our next move.
pub(super) async fn find(
    tools: &Tools,
    of: Task,
    dispute: DisputeId,
    record: DisputeRecord,
    side: Side,
    spec: TaskSpec,
) -> Event {
    let (task, number) = (record.task, record.moves);
    match try_find(tools, of, dispute, &record, side, &spec).await {
        Ok(played) => Event::MoveReady {
            task,
            dispute,
            number,
            played,
        },
        Err(error) => {
            let reason = error.to_string();
            tracing::error!(task, dispute, reason, "no move can be found");
            failed(task, of.kind, error.class())
        }
    }
}

/// What we have at the cell that a dispute has come to. Nothing where our view has no such cell.
pub(super) async fn value(
    tools: &Tools,
    of: Task,
    dispute: DisputeId,
    record: &DisputeRecord,
    spec: &TaskSpec,
) -> Result<Option<CellValue>, EffectError> {
    let State::NeedsCommittee { cell } = *record.game.state() else {
        return Err(EffectError::StillPlayable);
    };
    let mut view = view(tools, of, dispute, record, spec).await?;
    let ticket = tools.engines.answer(move |sink| {
        view.answer(sink, |trace| {
            let shape = trace.layout().clone();
            own_value(&shape, trace, &cell)
        })
    });
    finished(ticket).await
}

async fn try_find(
    tools: &Tools,
    of: Task,
    dispute: DisputeId,
    record: &DisputeRecord,
    side: Side,
    spec: &TaskSpec,
) -> Result<Move, EffectError> {
    let mut view = match view(tools, of, dispute, record, spec).await {
        // What nobody serves the defender has to show.
        Err(EffectError::NotServed(missing)) if side == Side::Challenger && record.game.asked().is_none() => {
            return Ok(Move::Ask(missing));
        }
        view => view?,
    };
    let game = record.game.clone();
    let ticket = tools
        .engines
        .answer(move |sink| view.answer(sink, |trace| play(&game, side, trace)));
    finished(ticket).await
}

async fn finished<T>(ticket: Result<Ticket<T>, ComputeError>) -> Result<T, EffectError> {
    ticket?.await.map_err(EffectError::Answer)
}

/// Our own view of the claim in dispute, kept from move to move.
async fn view(
    tools: &Tools,
    of: Task,
    dispute: DisputeId,
    record: &DisputeRecord,
    spec: &TaskSpec,
) -> Result<OwnedMutexGuard<View>, EffectError> {
    let mut view = tools.traces.of(dispute).lock_owned().await;
    if view.trace.is_none() {
        let leave = view.leave.clone();
        view.trace = Some(trace(tools, of, record, spec, leave).await?);
    }
    Ok(view)
}

async fn trace(
    tools: &Tools,
    of: Task,
    record: &DisputeRecord,
    spec: &TaskSpec,
    leave: Arc<Mutex<Option<Leave>>>,
) -> Result<OwnTrace, EffectError> {
    let claimant = record.defender.claimant();
    let mut sources = endpoints(tools, claimant).await?;
    let others = endpoints(tools, record.challenger.claimant()).await;
    sources.extend(others?);
    let (input, bytes) = content(tools, of, record, spec, &sources).await?;
    let engine = tools.engines.get(&spec.model)?;
    let claimed = Claimed {
        output: record.claim.output,
        bytes: bytes.to_vec(),
        units: record.claim.units,
    };
    let sink = Box::new(move |_: EngineEvent| {
        let leave = leave.lock().unwrap_or_else(PoisonError::into_inner).clone();
        leave.as_ref().map_or(ControlFlow::Continue(()), Leave::ask)
    });
    let trace = engine.trace(job(spec, &input), claimed, sink);
    trace.map_err(EffectError::Trace)
}

/// The input, and of a generation the claimed output: ours, or somebody's, or what was shown on chain.
///
/// Of embeddings the output follows from the input. What a challenger does not get is [asked](Move::Ask) for,
/// so what could not be had by peers is not waited for.
pub(super) async fn content(
    tools: &Tools,
    of: Task,
    record: &DisputeRecord,
    spec: &TaskSpec,
    sources: &[Endpoint],
) -> Result<(Bytes, Bytes), EffectError> {
    let pass = ticket(tools, record.task, record.defender.claimant());
    let input = match shown(tools, record.task, spec.input).await? {
        Some(shown) => Ok(shown),
        None => input(tools, of, spec, sources, pass.clone()).await,
    };
    let output = match (
        spec.operation,
        shown(tools, record.task, record.claim.output).await?,
    ) {
        (Operation::Embed, _) => Ok(Bytes::new()),
        (Operation::Generate, Some(shown)) => Ok(shown),
        (Operation::Generate, None) => fetch_brief(tools, of, record.claim.output, sources, pass).await,
    };
    let is_short = parts(spec.input_bytes) <= PARTS_MAX;
    match (input, output) {
        (Ok(input), Ok(output)) => Ok((input, output)),
        (Err(error), _) if !is_short => Err(error),
        (input, output) => {
            let missing = Missing::new(input.is_err(), output.is_err());
            Err(missing.map_or(EffectError::NoEndpoints, EffectError::NotServed))
        }
    }
}

/// Content that has been shown on chain, whole.
async fn shown(tools: &Tools, task: TaskId, content: ContentHash) -> Result<Option<Bytes>, EffectError> {
    let shown = tools.chain.shown(When::Finalized, task, content).await?;
    Ok((!shown.is_empty() && content_hash(&shown) == content).then(|| shown.into()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_view_that_was_asked_longest_ago_makes_room() {
        let traces = Traces::default();
        let views: Vec<Held> = (0..TRACES_MAX)
            .map(|dispute| traces.of(dispute as DisputeId))
            .collect();
        let is_kept = |dispute: usize| Arc::ptr_eq(&views[dispute], &traces.of(dispute as DisputeId));
        assert!(is_kept(0));
        drop(traces.of(99));
        assert!((2..TRACES_MAX).chain([0]).all(is_kept));
        assert!(!is_kept(1));
    }
}
