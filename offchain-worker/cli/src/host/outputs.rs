//! Serving outputs: to the client as soon as the chain shows our commitment, to everyone once results are revealed.
//!
//! Not before: another provider of the task could copy it and commit to it, too.

use std::collections::BTreeMap;

use surety_chain_client::{AccountId, RoundRecord};
use surety_network::{DataPlane, Readers};
use surety_types::{
    task::{MemberProgress, RoundPhase},
    ContentHash, TaskId,
};
use surety_worker_core::{Record, TaskSnapshot};

/// To whom an output has been announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Audience {
    Nobody,
    Client,
    Everyone,
}

struct Output {
    hash: ContentHash,
    announced: Audience,
}

/// Outputs of tasks that are not finished.
pub(super) struct Outputs(BTreeMap<TaskId, Output>);

impl Outputs {
    /// The outputs that a journal knows of.
    pub(super) fn from_records(records: &[Record]) -> Self {
        let mut outputs = Self(BTreeMap::new());
        for record in records {
            outputs.record(record);
            if let Record::Finished { task, .. } = record {
                outputs.0.remove(task);
            }
        }
        outputs
    }

    /// Takes a new record in.
    pub(super) fn record(&mut self, record: &Record) {
        if let Record::ResultMade { task, claim, .. } = record {
            let output = Output {
                hash: claim.output,
                announced: Audience::Nobody,
            };
            self.0.insert(*task, output);
        }
    }

    /// After a restart: makes sure that outputs are still there, and keeps them.
    pub(super) async fn restore(&self, plane: &dyn DataPlane) {
        for (task, output) in &self.0 {
            let kept = match plane.fetch(output.hash, None, &[]).await {
                Ok(blob) => plane.publish(blob).await.map(drop),
                Err(e) => Err(e),
            };
            if let Err(e) = kept {
                tracing::error!(task, error = %e, "the output of a task is lost: its client has to get it elsewhere");
            }
        }
    }

    /// Announces what finalised state allows to be announced.
    pub(super) async fn see(&mut self, plane: &dyn DataPlane, stash: &AccountId, tasks: &[TaskSnapshot]) {
        for snapshot in tasks {
            let Some(output) = self.0.get_mut(&snapshot.id) else {
                continue;
            };
            let audience = snapshot
                .round
                .as_ref()
                .map_or(Audience::Nobody, |r| audience(r, stash));
            if audience <= output.announced {
                continue;
            }
            let readers = match audience {
                Audience::Everyone => Readers::Everyone,
                _ => Readers::Only(&snapshot.task.spec.sources),
            };
            match plane.announce_output(snapshot.id, output.hash, readers).await {
                Ok(()) => {
                    tracing::info!(task = snapshot.id, to = ?audience, "output can be fetched");
                    output.announced = audience;
                }
                Err(e) => tracing::warn!(task = snapshot.id, error = %e, "cannot serve the output"),
            }
        }
    }

    /// The task is over: its output stays for as long as there is room, for whoever still asks.
    pub(super) async fn forget(&mut self, plane: &dyn DataPlane, task: TaskId) {
        let Some(output) = self.0.remove(&task) else {
            return;
        };
        if let Err(e) = plane.announce_output(task, output.hash, Readers::Everyone).await {
            tracing::debug!(task, error = %e, "the output is no longer served");
        }
        plane.release(output.hash).await;
    }
}

fn audience(round: &RoundRecord, stash: &AccountId) -> Audience {
    let ours = round.members.iter().find(|member| member.provider == *stash);
    match (ours.map(|member| &member.progress), &round.phase) {
        (None | Some(MemberProgress::Working), _) => Audience::Nobody,
        (Some(MemberProgress::Revealed(_)), _)
        | (_, RoundPhase::Revealing { .. } | RoundPhase::Challengeable { .. }) => Audience::Everyone,
        (Some(MemberProgress::Committed(_)), _) => Audience::Client,
    }
}
