//! Our moves in games about receipts.
//!
//! A move follows from the game's state and the receipt, so that none is written down: after a restart the
//! same one is found again.

use std::{
    collections::VecDeque,
    ops::ControlFlow,
    sync::{Arc, Mutex, PoisonError},
};

use surety_dispute_game::bisection::{Game, Move, PlayError, defend};
use surety_engine::{
    Claimed, Engine, EngineError, Event as EngineEvent, Job, JobSink, Leave, Priority, content_hash,
    exact::OwnTrace,
};
use surety_types::task::ResultClaim;

use super::receipt::Receipt;
use crate::{CallsError, Parts, front::CallId};

/// Traces that are kept from move to move: of as many receipts as can be disputed at once.
const VIEWS_MAX: usize = 16;
/// Most bytes of rows that all of them keep together, but for those that are being asked.
const ROWS_BYTES_MAX: usize = 1 << 30;

/// Why there is no move.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoMove {
    #[error("its model is not loaded: start with it again, or the lock is lost")]
    NotLoaded,
    #[error("what is disputed is not what the receipt says")]
    OtherClaim,
    #[error(transparent)]
    Journal(#[from] CallsError),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Our view of a receipt's claim.
#[derive(Default)]
pub(crate) struct View {
    /// Nothing before it is asked, and after a panic in it.
    trace: Option<OwnTrace>,
    /// The leave of the job that it computes for just now.
    leave: Arc<Mutex<Option<Leave>>>,
}

impl View {
    fn play(
        &mut self,
        (engine, job, claimed): (Arc<dyn Engine>, Job, Claimed),
        game: &Game,
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
                engine.trace(job, claimed, Box::new(sink))?
            }
        };
        let shape = trace.layout().clone();
        let played = defend(game, &shape, &mut trace);
        // Also where it was broken off: what was computed before is kept.
        self.trace = Some(trace);
        played.map_err(|error| match error {
            PlayError::Trace(error) => error,
            PlayError::NotNow | PlayError::Shape => EngineError::NotInTrace,
        })
    }

    /// Bytes that its rows take.
    fn row_bytes(&self) -> usize {
        self.trace.as_ref().map_or(0, OwnTrace::row_bytes)
    }

    /// Has it forget its rows where there is no room for them. Returns how much is left.
    fn keep_rows_within(&mut self, room: usize) -> usize {
        let Some(trace) = &mut self.trace else { return room };
        match room.checked_sub(trace.row_bytes()) {
            Some(left) => left,
            None => {
                trace.forget_rows();
                0
            }
        }
    }
}

/// Views of receipts that are disputed.
#[derive(Default)]
pub(crate) struct Views(VecDeque<(CallId, Arc<Mutex<View>>)>);

impl Views {
    /// Of the others those that were asked for longest ago give their rows back where there is no room for
    /// all, and the first of them goes where there are too many.
    pub(crate) fn of(&mut self, call: CallId) -> Arc<Mutex<View>> {
        let known = self.0.iter().position(|(of, _)| *of == call);
        let view = known.and_then(|at| self.0.remove(at));
        let (_, view) = view.unwrap_or_else(|| (call, Arc::default()));
        // The one that is asked keeps its own: they would be computed anew for each move.
        let asked = view.try_lock().map_or(0, |view| view.row_bytes());
        let mut room = ROWS_BYTES_MAX.saturating_sub(asked);
        for (_, other) in self.0.iter().rev() {
            if let Ok(mut other) = other.try_lock() {
                room = other.keep_rows_within(room);
            }
        }
        self.0.push_back((call, view.clone()));
        if self.0.len() > VIEWS_MAX {
            self.0.pop_front();
        }
        view
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Finds the defender's move.
pub(crate) async fn find(
    parts: &Parts,
    receipt: &Receipt,
    (claim, game): (ResultClaim, Game),
    view: Arc<Mutex<View>>,
) -> Result<Move, NoMove> {
    let model = parts
        .models
        .get(&receipt.request.model)
        .ok_or(NoMove::NotLoaded)?;
    let engine = model.engine.clone();
    let job = receipt.job(parts).await?;
    let bytes = receipt.output(parts).await?;
    if content_hash(&bytes) != claim.output {
        return Err(NoMove::OtherClaim);
    }
    let claimed = Claimed {
        output: claim.output,
        bytes,
        units: claim.units,
        known: None,
    };
    let ticket = parts.models.pool.work(Priority::Urgent, move |sink| {
        let mut view = view.lock().unwrap_or_else(PoisonError::into_inner);
        view.play((engine, job, claimed), &game, sink)
    });
    Ok(ticket?.await?)
}
