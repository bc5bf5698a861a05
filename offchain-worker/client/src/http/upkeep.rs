//! What has to be done for inputs that are kept: demands on the chain are answered, and what no task asks for
//! makes room.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use surety_access::KeptInputs;
use surety_chain_client::{ChainError, Signer, When};
use surety_types::TaskId;

use super::{Backend, kept::Given};
use crate::{inputs::Supplier, serve::name_providers};

/// How often the chain is looked at: twice a block.
const POLL: Duration = Duration::from_secs(3);

/// How often it is looked which providers there are.
const NAMING: Duration = Duration::from_secs(60);

/// Looks after inputs for as long as it is polled.
pub struct Upkeep {
    backend: Backend,
    /// Pays for what is shown on the chain.
    signer: Option<Signer>,
    /// Those who answer demands, by open task whose client gave its input.
    suppliers: BTreeMap<TaskId, Supplier>,
    /// When it was looked last which providers there are.
    named_at: Instant,
}

impl Upkeep {
    /// Of a server that works with this. Without a key demands stay unanswered.
    pub fn new(backend: Backend, signer: Option<Signer>) -> Self {
        Self {
            backend,
            signer,
            suppliers: BTreeMap::new(),
            named_at: Instant::now(),
        }
    }

    /// Goes on until it is dropped.
    pub async fn run(mut self) {
        loop {
            if let Err(e) = self.look().await {
                tracing::warn!(error = %e, "cannot see which tasks ask for the inputs that are kept");
            }
            if self.named_at.elapsed() >= NAMING {
                self.named_at = Instant::now();
                let Backend { chain, plane, .. } = &self.backend;
                if let Err(e) = name_providers(&**chain, &**plane).await {
                    tracing::warn!(error = %e, "cannot see which providers there are");
                }
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Looks once.
    ///
    /// # Errors
    /// When the chain cannot be asked which tasks there are. Looking again goes on.
    pub async fn look(&mut self) -> Result<(), ChainError> {
        let Backend {
            chain, plane, kept, ..
        } = &self.backend;
        let open = chain.open_tasks(When::Best, None).await?;
        // Of the rest nobody knows which inputs they have.
        let knows_all = open.unread.iter().all(|unread| unread.task.is_some());
        let read = open.tasks.into_iter().map(|open| (open.id, open.task));
        let partly = open
            .unread
            .into_iter()
            .filter_map(|open| Some((open.id, open.task?)));
        let ours: BTreeMap<TaskId, Given> = read
            .chain(partly)
            .map(|(id, task)| (id, (task.spec.input, task.client)))
            .filter(|(_, (input, client))| kept.has(client, *input))
            .collect();
        if knows_all {
            let used: Vec<Given> = ours.values().cloned().collect();
            kept.make_room(&**plane, &used).await;
            self.suppliers.retain(|task, _| ours.contains_key(task));
        }
        let Some(signer) = &self.signer else {
            return Ok(());
        };
        for task in ours.into_keys() {
            let supplier = self.suppliers.entry(task);
            let supplier = supplier.or_insert_with(|| Supplier::new(signer.clone()));
            match chain.task(When::Best, task).await {
                Ok(Some(info)) => {
                    if let Some(said) = supplier.see(chain, plane, task, &info).await {
                        tracing::info!(task, "{said}");
                    }
                }
                Ok(None) => {}
                // It keeps nobody from what is demanded for other tasks.
                Err(e) => tracing::warn!(task, error = %e, "cannot see what is demanded of an input"),
            }
        }
        Ok(())
    }
}
