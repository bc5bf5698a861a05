//! Who may read the blobs of a task: its client and its providers, who are named on the chain with the peers
//! they are, and who shows a ticket: an auditor, by its draw or its announcement; a party of a dispute; a
//! verifier, once a committee is to decide; the client from elsewhere. Its output a client reads only once
//! enough providers have committed for the round to be audited.
//!
//! ```text
//!  verifier                                     provider or client
//!  ticket: task, agent, draw, signature  ──>    Gate: signed by the agent, for this very peer?
//!        over all of it and its peer id               in the round, or drawn, by the best block's state?
//! ```
//! The ticket is bound to the peer that shows it: whoever it was shown to cannot use it elsewhere.

mod gate;
#[cfg(test)]
mod tests;
mod ticket;

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use surety_types::{ContentHash, TaskId};

pub use gate::{Gate, KeptInputs, is_open_to_client};
pub use ticket::{signed_ticket, ticket, ticket_hash};

/// Outputs of ours, which the chain does not name yet.
#[derive(Default)]
pub struct OwnOutputs(Mutex<BTreeMap<TaskId, Own>>);

#[derive(Clone, Copy)]
struct Own {
    output: ContentHash,
    /// The blob of the leaves of its trace.
    leaves: Option<ContentHash>,
}

impl OwnOutputs {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<TaskId, Own>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There is an output.
    pub fn insert(&self, task: TaskId, output: ContentHash) {
        self.lock().insert(task, Own { output, leaves: None });
    }

    /// There are leaves of its trace, too: for auditors, once the result is revealed.
    pub fn insert_leaves(&self, task: TaskId, leaves: ContentHash) {
        if let Some(own) = self.lock().get_mut(&task) {
            own.leaves = Some(leaves);
        }
    }

    /// The task is over.
    pub fn remove(&self, task: TaskId) {
        self.lock().remove(&task);
    }

    /// Whether there is an output: its task's input was here to compute it.
    fn has(&self, task: TaskId) -> bool {
        self.lock().contains_key(&task)
    }

    fn is(&self, task: TaskId, blob: ContentHash) -> bool {
        self.lock().get(&task).is_some_and(|own| own.output == blob)
    }

    fn are_leaves(&self, task: TaskId, blob: ContentHash) -> bool {
        self.lock().get(&task).is_some_and(|own| own.leaves == Some(blob))
    }
}
