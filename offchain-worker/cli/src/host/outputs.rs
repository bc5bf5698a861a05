//! Serving outputs, each with our signed word on it: to the client as soon as our commitment is in a block, to everyone
//! from the audit window on.
//!
//! Not before: another provider of the task could copy it and commit to it, too. Once the audit window is open in
//! finalised state nobody can commit any more, and auditors of generated text need the output for their pass over it.

use std::collections::BTreeMap;

use surety_chain_client::{AccountId, Hash, RoundRecord};
use surety_network::{DataPlane, PlaneError, Readers};
use surety_types::{
    multiaddr::{Endpoint, Endpoints},
    task::{MemberProgress, RoundPhase},
    ContentHash, TaskId,
};
use surety_verification::CommitStatement;
use surety_worker_core::{Record, TaskSnapshot};

use super::Tools;

/// To whom an output has been announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Audience {
    Nobody,
    Client,
    Everyone,
}

struct Output {
    hash: ContentHash,
    /// What opens to it. From the journal, so that nothing else is ever signed.
    commitment: Hash,
    announced: Audience,
}

impl Output {
    /// Tells readers of it, with our signed word that our commitment opens to it.
    async fn tell(&self, tools: &Tools, task: TaskId, readers: Readers<'_>) -> Result<(), PlaneError> {
        let statement = CommitStatement {
            task,
            provider: tools.stash.clone(),
            commitment: self.commitment,
            output: self.hash,
        };
        let genesis = tools.chain.info().genesis;
        let signed = tools.signer.sign_statement(statement, &genesis);
        tools
            .plane
            .announce_output(task, self.hash, Some(signed), readers)
            .await
    }
}

/// Outputs of tasks that are not finished.
#[derive(Default)]
pub(super) struct Outputs {
    made: BTreeMap<TaskId, Output>,
    /// Where the clients of tasks that are being computed are.
    clients: BTreeMap<TaskId, Endpoints>,
}

impl Outputs {
    /// The outputs that a journal knows of.
    pub(super) fn from_records(records: &[Record]) -> Self {
        let mut outputs = Self::default();
        for record in records {
            outputs.record(record);
            if let Record::Finished { task, .. } = record {
                outputs.made.remove(task);
            }
        }
        outputs
    }

    /// Takes a new record in.
    pub(super) fn record(&mut self, record: &Record) {
        if let Record::ResultMade {
            task,
            claim,
            commitment,
            ..
        } = record
        {
            let output = Output {
                hash: claim.output,
                commitment: *commitment,
                announced: Audience::Nobody,
            };
            self.made.insert(*task, output);
        }
    }

    /// After a restart: makes sure that outputs are still there, and keeps them.
    pub(super) async fn restore(&self, plane: &dyn DataPlane) {
        for (task, output) in &self.made {
            let kept = match plane.fetch(output.hash, None, &[]).await {
                Ok(blob) => plane.publish(blob).await.map(drop),
                Err(e) => Err(e),
            };
            if let Err(e) = kept {
                tracing::error!(task, error = %e, "the output of a task is lost: its client has to get it elsewhere");
            }
        }
    }

    /// Remembers where a task's client is.
    pub(super) fn client_is_at(&mut self, task: TaskId, endpoints: &Endpoints) {
        self.clients.insert(task, endpoints.clone());
    }

    /// Our commitment is in a block. Should the block be replaced, only the client has learnt anything.
    pub(super) async fn committed(&mut self, tools: &Tools, task: TaskId) {
        if let Some(client) = self.clients.get(&task).cloned() {
            self.announce(tools, task, Audience::Client, &client).await;
        }
    }

    /// Announces what finalised state allows to be announced.
    pub(super) async fn see(&mut self, tools: &Tools, tasks: &[TaskSnapshot]) {
        for snapshot in tasks {
            if let Some(round) = &snapshot.round {
                let client = &snapshot.task.spec.sources;
                let audience = audience(round, &tools.stash);
                self.announce(tools, snapshot.id, audience, client).await;
            }
        }
    }

    async fn announce(&mut self, tools: &Tools, task: TaskId, audience: Audience, client: &[Endpoint]) {
        let Some(output) = self.made.get_mut(&task) else {
            return;
        };
        if audience <= output.announced {
            return;
        }
        let readers = match audience {
            Audience::Everyone => Readers::Everyone,
            _ => Readers::Only(client),
        };
        match output.tell(tools, task, readers).await {
            Ok(()) => {
                tracing::info!(task, to = ?audience, "output can be fetched");
                output.announced = audience;
            }
            Err(e) => tracing::warn!(task, error = %e, "cannot serve the output"),
        }
    }

    /// The task is over: its output stays for as long as there is room, for whoever still asks.
    pub(super) async fn forget(&mut self, tools: &Tools, task: TaskId) {
        self.clients.remove(&task);
        let Some(output) = self.made.remove(&task) else {
            return;
        };
        if let Err(e) = output.tell(tools, task, Readers::Everyone).await {
            tracing::debug!(task, error = %e, "the output is no longer served");
        }
        tools.plane.release(output.hash).await;
    }
}

fn audience(round: &RoundRecord, stash: &AccountId) -> Audience {
    let ours = round.members.iter().find(|member| member.provider == *stash);
    match (ours.map(|member| &member.progress), &round.phase) {
        (None | Some(MemberProgress::Working), _) => Audience::Nobody,
        (Some(MemberProgress::Committed(_)), RoundPhase::Committing { .. }) => Audience::Client,
        (Some(MemberProgress::Committed(_) | MemberProgress::Revealed(_)), _) => Audience::Everyone,
    }
}
