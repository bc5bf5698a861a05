//! Taking up where the journal ends.

use surety_proofs::commitment;
use surety_types::TaskId;

use super::Provider;
use crate::{BlockNumber, EffectKind, Record, provider_task::SealedResult};

/// Why a journal cannot be ours, or not as we wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// Two bids or two results for one task: going on could mean to say two different things.
    #[error(
        "the journal contradicts itself on task {task}; restore it from a copy, or start with an empty one"
    )]
    Contradiction {
        /// Task id.
        task: TaskId,
    },
    /// A provider's journal for a verifier, or the other way round.
    #[error("the journal's records of task {task} are of another role; use one home folder for each")]
    WrongRole {
        /// Task id.
        task: TaskId,
    },
    /// A commitment or a seal that another stash made.
    #[error(
        "the journal's result for task {task} was made for another stash; use one home folder for each stash"
    )]
    WrongStash {
        /// Task id.
        task: TaskId,
    },
}

impl Provider {
    pub(super) fn replay(&mut self, record: Record) -> Result<(), ReplayError> {
        let task = record.task();
        let entry = self.tasks.entry(task).or_default();
        entry.absence.end(record.at());
        match record {
            Record::BidMade { bid, .. } => {
                if entry.bid.as_ref().is_some_and(|made| *made != bid) {
                    return Err(ReplayError::Contradiction { task });
                }
                entry.bid = Some(bid);
            }
            Record::ResultMade {
                claim,
                salt,
                commitment: recorded,
                ..
            } => {
                if commitment(task, &self.config.stash, &claim, &salt) != recorded {
                    return Err(ReplayError::WrongStash { task });
                }
                let sealed = SealedResult {
                    claim,
                    salt,
                    commitment: recorded,
                };
                let entry = self.tasks.entry(task).or_default();
                if entry.result.as_ref().is_some_and(|known| *known != sealed) {
                    return Err(ReplayError::Contradiction { task });
                }
                entry.result = Some(sealed);
            }
            Record::LeavesKept { leaves, .. } => entry.leaves = Some(leaves),
            Record::InputFetched { .. } => entry.input_fetched = true,
            Record::ConfirmationChecked {
                verifier, refutation, ..
            } => {
                if !entry.confirmations.replay(&verifier, refutation) {
                    return Err(ReplayError::Contradiction { task });
                }
            }
            Record::CommitSubmitted { at, .. } => self.replay_done(task, EffectKind::Commit, at),
            Record::RevealSubmitted { at, .. } => self.replay_done(task, EffectKind::Reveal, at),
            record @ (Record::MoveMade { .. } | Record::MoveSubmitted { .. }) => {
                let entry = self.tasks.entry(task).or_default();
                if !entry.duels.replay(record, &self.config, &mut entry.attempts) {
                    return Err(ReplayError::Contradiction { task });
                }
            }
            Record::InputMissed { since, demands, .. } => entry.inputs.replay_failure(since, demands),
            Record::InputDemandMade { number, segment, .. } => {
                let entry = self.tasks.entry(task).or_default();
                if !entry.inputs.replay(number, segment) {
                    return Err(ReplayError::Contradiction { task });
                }
            }
            // Taken before, and a verifier's.
            Record::Finished { .. }
            | Record::AuditMade { .. }
            | Record::ItemsAudited { .. }
            | Record::AuditCompared { .. }
            | Record::ViewKept { .. }
            | Record::AuditAnnounced { .. }
            | Record::AuditRevealed { .. }
            | Record::AuditServed { .. }
            | Record::VoteMade { .. } => return Err(ReplayError::WrongRole { task }),
        }
        Ok(())
    }

    fn replay_done(&mut self, task: TaskId, kind: EffectKind, at: BlockNumber) {
        if let Some(entry) = self.tasks.get_mut(&task) {
            entry.attempts.done(kind, at, &self.config);
        }
    }
}
