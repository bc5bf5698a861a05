//! Running a job while its client looks on.

use surety_engine::{Job, Outcome, Ticket};
use surety_network::{Readers, StreamWriter};
use surety_types::{ModelId, TaskId, multiaddr::Endpoints};
use surety_worker_core::Failure;
use tokio::sync::mpsc;

use super::{Tools, compute::ComputeError};

/// Runs a job that nobody can follow.
pub(super) async fn run(tools: &Tools, model: &ModelId, job: Job) -> Result<Outcome, ComputeError> {
    Ok(tools.engines.submit(model, job)?.await?)
}

/// Runs a job and streams its tokens to the client: to nobody else, since another provider of the task could
/// copy them. A client that does not listen costs nothing.
pub(super) async fn run_streaming(
    tools: &Tools,
    task: TaskId,
    model: &ModelId,
    job: Job,
    client: &Endpoints,
) -> Result<Outcome, ComputeError> {
    let stream = match tools.plane.open_stream(task, Readers::Only(client)).await {
        Ok(stream) => Some(stream),
        Err(e) => {
            tracing::warn!(task, error = %e, "the client cannot follow this task");
            None
        }
    };
    let outcome = match tools.engines.submit(model, job) {
        Ok(ticket) => follow(ticket, stream.as_ref()).await,
        Err(e) => Err(e),
    };
    if let Some(stream) = stream {
        match &outcome {
            Ok(_) => stream.complete(),
            Err(e) if e.failure() != Failure::Permanent => drop(stream),
            Err(e) => stream.fail(&e.for_client()),
        }
    }
    outcome
}

async fn follow(mut ticket: Ticket<Outcome>, stream: Option<&StreamWriter>) -> Result<Outcome, ComputeError> {
    if let (Some(stream), Some(tokens)) = (stream, ticket.tokens()) {
        // The tokens end before the outcome is there.
        pass_on(tokens, stream).await;
    }
    Ok(ticket.await?)
}

async fn pass_on(mut tokens: mpsc::Receiver<u32>, stream: &StreamWriter) {
    while let Some(token) = tokens.recv().await {
        stream.push(token);
    }
}
