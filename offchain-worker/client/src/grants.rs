//! Letting the providers of an own task read its input.
//!
//! A blob's hash stands on the chain: knowing it is no right to the blob. Auditors show their draw, which
//! [`surety_access`] judges.

use surety_chain_client::{AccountId, Chain, ChainError, TaskInfo, When};
use surety_network::{DataPlane, Readers};
use surety_types::TaskId;

/// Whom a task's input has been granted to.
#[derive(Default)]
pub struct Grants {
    readers: Vec<AccountId>,
}

impl Grants {
    /// Grants the input to those who are at work by `info`; says so when they are others than before.
    ///
    /// # Errors
    /// When it cannot be found out where they are. Calling again tries again.
    pub async fn see(
        &mut self,
        chain: &dyn Chain,
        plane: &dyn DataPlane,
        task: TaskId,
        info: &TaskInfo,
    ) -> Result<Option<String>, ChainError> {
        let Some(round) = &info.round else {
            return Ok(None);
        };
        let members: Vec<AccountId> = round.members.iter().map(|m| m.provider.clone()).collect();
        if members == self.readers {
            return Ok(None);
        }
        let mut endpoints = Vec::new();
        for member in &members {
            let record = chain.provider(When::Best, member).await?;
            endpoints.extend(record.into_iter().flat_map(|record| record.endpoints));
        }
        let granted = plane
            .grant(task, info.task.spec.input, Readers::Only(&endpoints))
            .await;
        self.readers = members;
        Ok(granted
            .err()
            .map(|e| format!("providers cannot read the input: {e}")))
    }
}
