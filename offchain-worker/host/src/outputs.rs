//! Serving outputs, each with our signed word on it: as soon as our commitment is in a block to those who
//! show a ticket (who audit it, or decide a dispute about it; see [`surety_access`]), and to the client once
//! finalised state shows that enough have committed.
//!
//! Not before the first: another provider of the task could copy it and commit to it, too. Not to the client
//! before the second: if seats are its own it could leave them empty, and have the output and its money back.

use std::{collections::BTreeMap, sync::Arc};

use surety_access::{OwnOutputs, is_open_to_client};
use surety_chain_client::{AccountId, Hash, RoundRecord, When};
use surety_network::{Announcement, DataPlane, FetchOptions, PlaneError, Readers};
use surety_proofs::CommitStatement;
use surety_types::{ContentHash, TaskId, task::MemberProgress};
use surety_worker_core::{Record, TaskSnapshot};

use super::Tools;

/// Who is told of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Told {
    Nobody,
    /// Who shows a ticket.
    Tickets,
    /// The client, too.
    Client,
}

struct Output {
    hash: ContentHash,
    /// What opens to it. From the journal, so that nothing else is ever signed.
    commitment: Hash,
    /// The blob of its trace's leaves.
    leaves: Option<ContentHash>,
    told: Told,
    /// Whether it has been said that it cannot be served.
    is_warned: bool,
}

impl Output {
    /// Tells of it, with our signed word that our commitment opens to it.
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
            .announce_output(
                task,
                Announcement::new(self.hash).signed(signed).traced(self.leaves),
                readers,
            )
            .await
    }
}

/// Outputs of tasks that are not finished.
#[derive(Default)]
pub(super) struct Outputs {
    made: BTreeMap<TaskId, Output>,
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
                told: Told::Nobody,
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

    /// Our commitment is in a block. Should the block be replaced, nobody has learnt anything: whoever shows
    /// a ticket has been drawn since.
    pub(super) async fn committed(&mut self, tools: &Tools, task: TaskId) {
        let tickets = (Told::Tickets, Readers::NOBODY);
        self.announce(tools, task, tickets).await;
    }

    /// Announces what finalised state allows to be announced.
    pub(super) async fn see(&mut self, tools: &Tools, tasks: &[TaskSnapshot]) {
        for snapshot in tasks {
            let Some(round) = &snapshot.round else { continue };
            if !has_committed(round, &tools.stash) {
                continue;
            }
            let to = match is_open_to_client(round) {
                true => (Told::Client, Readers::Only(&snapshot.task.spec.sources)),
                false => (Told::Tickets, Readers::NOBODY),
            };
            self.announce(tools, snapshot.id, to).await;
        }
    }

    async fn announce(&mut self, tools: &Tools, task: TaskId, (told, readers): (Told, Readers<'_>)) {
        let Some(output) = self.made.get_mut(&task).filter(|output| output.told < told) else {
            return;
        };
        let note = tools.chain.commit_note(When::Best, task, &tools.stash).await;
        let said = match note.map(|note| note.map(|note| note.commitment)) {
            Ok(Some(commitment)) if commitment == output.commitment => {
                let said = output.tell(tools, task, readers).await;
                said.map_err(|error| error.to_string())
            }
            // A block was replaced: it comes again.
            Ok(None) => return,
            // A journal was lost while another commitment was on its way. Signed now, this one would convict
            // us.
            Ok(Some(commitment)) => Err(format!("the chain has another commitment, {commitment:?}")),
            Err(error) => Err(error.to_string()),
        };
        match said {
            Ok(()) => {
                tracing::info!(task, to = ?told, "output can be fetched");
                output.told = told;
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
