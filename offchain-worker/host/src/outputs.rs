//! Serving outputs, each with our signed word on it, to the client, as soon as our commitment is in a block.
//!
//! Not before: another provider of the task could copy it and commit to it, too. Those who audit it, or
//! decide a dispute about it, show a ticket; see [`surety_access`].

use std::{collections::BTreeMap, sync::Arc};

use surety_access::OwnOutputs;
use surety_chain_client::{AccountId, Hash, RoundRecord, When};
use surety_network::{Announcement, DataPlane, FetchOptions, PlaneError, Readers};
use surety_proofs::CommitStatement;
use surety_types::{
    ContentHash, TaskId,
    multiaddr::{Endpoint, Endpoints},
    task::MemberProgress,
};
use surety_worker_core::{Record, TaskSnapshot};

use super::Tools;

struct Output {
    hash: ContentHash,
    /// What opens to it. From the journal, so that nothing else is ever signed.
    commitment: Hash,
    /// The blob of its trace's leaves.
    leaves: Option<ContentHash>,
    /// Whether its client is told.
    is_announced: bool,
    /// Whether it has been said that it cannot be served.
    is_warned: bool,
}

impl Output {
    /// Tells its client of it, with our signed word that our commitment opens to it.
    async fn tell(&self, tools: &Tools, task: TaskId, client: &[Endpoint]) -> Result<(), PlaneError> {
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
            .announce_output(
                task,
                Announcement::new(self.hash).signed(signed).traced(self.leaves),
                Readers::Only(client),
            )
            .await
    }
}

/// Outputs of tasks that are not finished.
#[derive(Default)]
pub(super) struct Outputs {
    made: BTreeMap<TaskId, Output>,
    /// Where the clients of tasks that are being computed are.
    clients: BTreeMap<TaskId, Endpoints>,
    /// The same for those who judge tickets.
    own: Arc<OwnOutputs>,
}

impl Outputs {
    /// The outputs that a journal knows of.
    pub(super) fn from_records(records: &[Record], own: Arc<OwnOutputs>) -> Self {
        let mut outputs = Self {
            own,
            ..Self::default()
        };
        for record in records {
            outputs.record(record);
            if let Record::Finished { task, .. } = record {
                outputs.made.remove(task);
                outputs.own.remove(*task);
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
                leaves: None,
                is_announced: false,
                is_warned: false,
            };
            self.own.insert(*task, claim.output);
            self.made.insert(*task, output);
        }
        if let Record::LeavesKept { task, leaves, .. } = record
            && let Some(output) = self.made.get_mut(task)
        {
            output.leaves = Some(*leaves);
            self.own.insert_leaves(*task, *leaves);
        }
    }

    /// Whether there is a result that is not finished.
    pub(super) fn has(&self, task: TaskId) -> bool {
        self.made.contains_key(&task)
    }

    /// After a restart: makes sure that outputs are still there, and keeps them.
    pub(super) async fn restore(&self, plane: &dyn DataPlane) {
        for (task, output) in &self.made {
            if let Err(e) = keep(plane, output.hash).await {
                tracing::error!(task, error = %e, "the output of a task is lost: its client has to get it elsewhere");
            }
            if let Some(leaves) = output.leaves
                && let Err(e) = keep(plane, leaves).await
            {
                tracing::warn!(task, error = %e, "the leaves of a trace are lost: auditors have to compute all");
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
            self.announce(tools, task, &client).await;
        }
    }

    /// Announces what finalised state allows to be announced.
    pub(super) async fn see(&mut self, tools: &Tools, tasks: &[TaskSnapshot]) {
        for snapshot in tasks {
            let round = snapshot.round.as_ref();
            if round.is_some_and(|round| has_committed(round, &tools.stash)) {
                self.announce(tools, snapshot.id, &snapshot.task.spec.sources)
                    .await;
            }
        }
    }

    async fn announce(&mut self, tools: &Tools, task: TaskId, client: &[Endpoint]) {
        let Some(output) = self.made.get_mut(&task).filter(|output| !output.is_announced) else {
            return;
        };
        let note = tools.chain.commit_note(When::Best, task, &tools.stash).await;
        let told = match note.map(|note| note.map(|note| note.commitment)) {
            Ok(Some(commitment)) if commitment == output.commitment => {
                let told = output.tell(tools, task, client).await;
                told.map_err(|error| error.to_string())
            }
            // A block was replaced: it comes again.
            Ok(None) => return,
            // A journal was lost while another commitment was on its way. Signed now, this one would convict
            // us.
            Ok(Some(commitment)) => Err(format!("the chain has another commitment, {commitment:?}")),
            Err(error) => Err(error.to_string()),
        };
        match told {
            Ok(()) => {
                tracing::info!(task, "output can be fetched");
                output.is_announced = true;
            }
            // It is tried in every block.
            Err(reason) if output.is_warned => tracing::debug!(task, reason, "the output is not served"),
            Err(reason) => {
                tracing::warn!(task, reason, "the output is not served");
                output.is_warned = true;
            }
        }
    }

    /// The task is over: its output stays for as long as there is room, for its client.
    pub(super) async fn forget(&mut self, tools: &Tools, task: TaskId) {
        self.clients.remove(&task);
        self.own.remove(task);
        if let Some(output) = self.made.remove(&task) {
            tools.plane.release(output.hash).await;
            if let Some(leaves) = output.leaves {
                tools.plane.release(leaves).await;
            }
        }
    }
}

async fn keep(plane: &dyn DataPlane, hash: ContentHash) -> Result<(), PlaneError> {
    let blob = plane.fetch(hash, &[], &FetchOptions::default()).await?;
    plane.publish(blob).await.map(drop)
}

fn has_committed(round: &RoundRecord, stash: &AccountId) -> bool {
    let ours = round.members.iter().find(|member| member.provider == *stash);
    let progress = ours.map(|member| &member.progress);
    matches!(
        progress,
        Some(MemberProgress::Committed(_) | MemberProgress::Revealed(_))
    )
}

/// Whether a task is one that this provider computes.
pub(super) fn is_member(task: &TaskSnapshot, stash: &AccountId) -> bool {
    let mut members = task.round.iter().flat_map(|round| round.members.iter());
    members.any(|member| member.provider == *stash)
}
