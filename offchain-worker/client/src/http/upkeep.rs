//! What has to be done for inputs that are kept: demands on the chain are answered, and what no task asks for
//! makes room.

use std::{collections::BTreeMap, time::Duration};

use surety_access::KeptInputs;
use surety_chain_client::{ChainError, Signer, When};
use surety_types::TaskId;

use super::{Backend, kept::Given};
use crate::inputs::Supplier;

/// How often the chain is looked at: twice a block.
const POLL: Duration = Duration::from_secs(3);

/// Looks after inputs for as long as it is polled.
pub struct Upkeep {
    backend: Backend,
    /// Pays for what is shown on the chain.
    signer: Option<Signer>,
    /// Those who answer demands, by open task whose client gave its input.
    suppliers: BTreeMap<TaskId, Supplier>,
}

impl Upkeep {
    /// Of a server that works with this. Without a key demands stay unanswered.
    pub fn new(backend: Backend, signer: Option<Signer>) -> Self {
        Self {
            backend,
            signer,
            suppliers: BTreeMap::new(),
        }
    }

    /// Goes on until it is dropped.
    pub async fn run(mut self) {
        loop {
            if let Err(e) = self.look().await {
                tracing::warn!(error = %e, "cannot see which tasks ask for the inputs that are kept");
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Looks once.
    ///
    /// # Errors
    /// When the chain cannot be asked. Looking again goes on.
    pub async fn look(&mut self) -> Result<(), ChainError> {
        let Backend {
            chain, plane, kept, ..
        } = &self.backend;
        let open = chain.open_tasks(When::Best, None).await?;
        let ours: BTreeMap<TaskId, Given> = open
            .tasks
            .into_iter()
            .map(|open| (open.id, (open.task.spec.input, open.task.client)))
            .filter(|(_, (input, client))| kept.has(client, *input))
            .collect();
        let used: Vec<Given> = ours.values().cloned().collect();
        kept.make_room(&**plane, &used).await;
        self.suppliers.retain(|task, _| ours.contains_key(task));
        let Some(signer) = &self.signer else {
            return Ok(());
        };
        for task in ours.into_keys() {
            let supplier = self.suppliers.entry(task);
            let supplier = supplier.or_insert_with(|| Supplier::new(signer.clone()));
            if let Some(info) = chain.task(When::Best, task).await?
                && let Some(said) = supplier.see(chain, plane, task, &info).await
            {
                tracing::info!(task, "{said}");
            }
        }
        Ok(())
    }
}
