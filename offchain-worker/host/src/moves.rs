//! Finding moves in disputes.

use std::{
    collections::VecDeque,
    ops::ControlFlow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use surety_chain_client::DisputeRecord;
use surety_dispute_game::{
    bisection::{
        CellValue, Game, Missing, Move, PARTS_MAX, PlayError, Side, State, Trace, challenge, defend,
    },
    committee::own_value,
};
use surety_engine::{
    Claimed, Difference, EngineError, Event as EngineEvent, JobSink, Leave, Ticket, exact::OwnTrace,
};
use surety_network::Bytes;
use surety_proofs::parts;
use surety_types::{TaskId, model::Operation, multiaddr::Endpoint, task::TaskSpec, trust::DisputeId};
use surety_worker_core::{Event, KeptView, TraceKey};
use tokio::{
    sync::{Mutex as AsyncMutex, OwnedMutexGuard},
    task::AbortHandle,
};

use super::{
    Tools,
    audits::{job, ticket},
    compute::ComputeError,
    effect_error::EffectError,
    jobs::{Task, failed},
    served::output_bytes_max,
    sources::{endpoints, found, input},
    work::{fetch_brief, leaves_of, own_blob},
};

/// Claims of which our views are kept from move to move. They hold inputs, outputs and leaves: what it takes
/// a whole pass to compute.
const VIEWS_MAX: usize = 32;
/// Most bytes of rows that all views keep together, but for those that are being asked.
const ROWS_BYTES_MAX: usize = 1 << 30;

type Held = Arc<AsyncMutex<View>>;

/// Our view of one claim.
#[derive(Default)]
struct View {
    /// Nothing before it is asked for, and after a panic in it.
    trace: Option<OwnTrace>,
    /// Whether its leaves are computed, which takes as long as computing the task does.
    is_computed: bool,
    /// The leave of the job that the trace computes for just now.
    leave: Arc<Mutex<Option<Leave>>>,
}

impl View {
    /// Has it answer a question, in an engine's thread. What is broken off loses nothing of what was computed
    /// before.
    fn answer<T>(
        &mut self,
        sink: &JobSink,
        question: impl FnOnce(&mut OwnTrace) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        *self.leave.lock().unwrap_or_else(PoisonError::into_inner) = Some(sink.leave());
        // It was put there before.
        let mut trace = self.trace.take().ok_or(EngineError::Closed)?;
        let answer = question(&mut trace);
        self.trace = Some(trace);
        answer
    }
}

/// Our view of a claim, for all disputes about it.
struct Kept {
    claim: TraceKey,
    view: Held,
    /// What computes its leaves. It goes on when the dispute is over for which it was begun: the others need
    /// them.
    computing: Option<AbortHandle>,
}

impl Kept {
    /// Whether nobody asks it anything, and nothing is computed for it.
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.view) == 1 && self.computing.as_ref().is_none_or(AbortHandle::is_finished)
    }

    /// Bytes that its rows take.
    fn row_bytes(&self) -> usize {
        let view = self.view.try_lock();
        view.ok()
            .and_then(|view| view.trace.as_ref().map(OwnTrace::row_bytes))
            .unwrap_or(0)
    }

    /// Has it forget its rows where there is no room for them. Returns how much is left.
    fn keep_rows_within(&self, room: usize) -> usize {
        let Ok(mut view) = self.view.try_lock() else {
            return room;
        };
        let Some(trace) = &mut view.trace else { return room };
        match room.checked_sub(trace.row_bytes()) {
            Some(left) => left,
            None => {
                trace.forget_rows();
                0
            }
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(computing) = &self.computing {
            computing.abort();
        }
    }
}

/// Our views of the claims in dispute.
#[derive(Default)]
pub struct Traces(Mutex<VecDeque<Kept>>);

impl Traces {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that have been without a question for longest give their rows back, and make room for others
    /// where there are too many: never one that is being computed, or others' claims could keep it from
    /// getting done.
    fn of(&self, claim: TraceKey) -> Held {
        let mut all = self.lock();
        let known = all.iter().position(|kept| kept.claim == claim);
        let kept = known.and_then(|at| all.remove(at)).unwrap_or_else(|| Kept {
            claim,
            view: Held::default(),
            computing: None,
        });
        let view = kept.view.clone();
        // The one that is asked keeps its own: they would be computed anew for each move.
        let room = ROWS_BYTES_MAX.saturating_sub(kept.row_bytes());
        all.iter()
            .rev()
            .fold(room, |room, kept| kept.keep_rows_within(room));
        all.push_back(kept);
        if all.len() > VIEWS_MAX
            && let Some(idle) = all.iter().position(Kept::is_idle)
        {
            all.remove(idle);
        }
        view
    }

    fn note_computing(&self, claim: TraceKey, computing: AbortHandle) {
        if let Some(kept) = self.lock().iter_mut().find(|kept| kept.claim == claim) {
            kept.computing = Some(computing);
        }
    }

    /// Lets go of a task's, and stops what computes them.
    pub(super) fn forget(&self, task: TaskId) {
        self.lock().retain(|kept| kept.claim.task != task);
    }
}

/// Finds our next move.
pub(super) async fn find(
    tools: &Tools,
    of: Task,
    dispute: DisputeId,
    record: DisputeRecord,
    (side, spec, kept): (Side, TaskSpec, Option<KeptView>),
) -> Event {
    let (task, number) = (record.task, record.moves);
    match try_find(tools, of, &record, side, (&spec, kept)).await {
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
    record: &DisputeRecord,
    spec: &TaskSpec,
) -> Result<Option<CellValue>, EffectError> {
    let State::NeedsCommittee { cell } = *record.game.state() else {
        return Err(EffectError::StillPlayable);
    };
    // A committee asks for one number: that takes no whole trace.
    let mut view = view(tools, of, record, (spec, None)).await?;
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
    record: &DisputeRecord,
    side: Side,
    about: (&TaskSpec, Option<KeptView>),
) -> Result<Move, EffectError> {
    let view = match view(tools, of, record, about).await {
        // What nobody serves the defender has to show.
        Err(EffectError::NotServed(missing)) if side == Side::Challenger && record.game.asked().is_none() => {
            return Ok(Move::Ask(missing));
        }
        view => view?,
    };
    let mut view = computed(tools, TraceKey::of(record), view).await?;
    let game = record.game.clone();
    let ticket = tools
        .engines
        .answer(move |sink| view.answer(sink, |trace| play(&game, side, trace)));
    finished(ticket).await
}

async fn finished<T>(ticket: Result<Ticket<T>, ComputeError>) -> Result<T, EffectError> {
    ticket?.await.map_err(EffectError::Answer)
}

/// Our own view of the claim in dispute, kept from move to move and shared by all disputes about it.
async fn view(
    tools: &Tools,
    of: Task,
    record: &DisputeRecord,
    about: (&TaskSpec, Option<KeptView>),
) -> Result<OwnedMutexGuard<View>, EffectError> {
    let mut view = tools.traces.of(TraceKey::of(record)).lock_owned().await;
    if view.trace.is_none() {
        let leave = view.leave.clone();
        view.trace = Some(trace(tools, of, record, about, leave).await?);
        view.is_computed = false;
    }
    Ok(view)
}

/// The same with all leaves computed, once for all disputes: whoever opens and gives up one after the other
/// does not have it begun anew.
async fn computed(
    tools: &Tools,
    claim: TraceKey,
    mut view: OwnedMutexGuard<View>,
) -> Result<OwnedMutexGuard<View>, EffectError> {
    if view.is_computed {
        return Ok(view);
    }
    let ticket = tools.engines.answer(move |sink| {
        view.answer(sink, |trace| trace.leaves().map(drop))?;
        view.is_computed = true;
        Ok(view)
    })?;
    let computing = tokio::spawn(ticket);
    tools.traces.note_computing(claim, computing.abort_handle());
    let computed = computing.await.unwrap_or(Err(EngineError::Cancelled));
    computed.map_err(EffectError::Answer)
}

async fn trace(
    tools: &Tools,
    of: Task,
    record: &DisputeRecord,
    (spec, kept): (&TaskSpec, Option<KeptView>),
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
        known: match kept {
            Some(kept) => known(tools, record.task, spec.operation, kept).await,
            None => None,
        },
    };
    let sink = Box::new(move |_: EngineEvent| {
        let leave = leave.lock().unwrap_or_else(PoisonError::into_inner).clone();
        leave.as_ref().map_or(ControlFlow::Continue(()), Leave::ask)
    });
    let trace = engine.trace(job(spec, &input), claimed, sink);
    trace.map_err(EffectError::Trace)
}

/// What we have kept of our own view; nothing where it is not there any more. It is computed then.
async fn known(
    tools: &Tools,
    task: TaskId,
    operation: Operation,
    kept: KeptView,
) -> Option<surety_engine::View> {
    let read = async {
        let leaves = own_blob(tools, kept.leaves).await?;
        let output = match operation {
            Operation::Embed => own_blob(tools, kept.output).await?.to_vec(),
            Operation::Generate => Vec::new(),
        };
        let leaves = leaves_of(&leaves).ok_or(EffectError::NoLeaves)?;
        let differs = kept.differs.map(|(leaf, segment)| Difference { leaf, segment });
        Ok::<_, EffectError>(surety_engine::View {
            leaves,
            output,
            differs,
        })
    };
    let known = read.await;
    if let Err(error) = &known {
        let reason = error.to_string();
        tracing::warn!(
            task,
            reason,
            "what was kept to play with is gone, and is computed again"
        );
    }
    known.ok()
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
    let input = input(tools, of, spec, sources, pass.clone()).await;
    let output = match spec.operation {
        Operation::Embed => Ok(Bytes::new()),
        Operation::Generate => {
            let wanted = (record.claim.output, output_bytes_max(tools, spec));
            let from_peers = fetch_brief(tools, of, wanted, sources, pass);
            found(tools, record.task, record.claim.output, from_peers).await
        }
    };
    let is_short = parts(spec.input_bytes) <= PARTS_MAX;
    match (input, output) {
        (Ok(input), Ok(output)) => Ok((input, output)),
        // It may be shown on a chain that cannot be asked now.
        (Err(error @ EffectError::Chain(_)), _) | (_, Err(error @ EffectError::Chain(_))) => Err(error),
        (Err(error), _) if !is_short => Err(error),
        (input, output) => {
            let missing = Missing::new(input.is_err(), output.is_err());
            Err(missing.map_or(EffectError::NoEndpoints, EffectError::NotServed))
        }
    }
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

    fn claim(task: TaskId) -> TraceKey {
        TraceKey {
            task,
            output: Default::default(),
            units: 1,
        }
    }

    #[test]
    fn the_view_that_was_asked_longest_ago_makes_room() {
        let traces = Traces::default();
        let views: Vec<_> = (0..VIEWS_MAX as TaskId)
            .map(|task| Arc::downgrade(&traces.of(claim(task))))
            .collect();
        drop(traces.of(claim(0)));
        drop(traces.of(claim(99)));
        let is_kept = |task: usize| views[task].strong_count() > 0;
        assert!((2..VIEWS_MAX).chain([0]).all(is_kept));
        assert!(!is_kept(1));
    }

    #[test]
    fn a_view_that_is_being_asked_makes_room_for_no_other() {
        let traces = Traces::default();
        let asked = traces.of(claim(0));
        for task in 1..100 {
            drop(traces.of(claim(task)));
        }
        assert!(Arc::ptr_eq(&asked, &traces.of(claim(0))));
        assert_eq!(traces.lock().len(), VIEWS_MAX);
    }
}
