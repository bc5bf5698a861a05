//! What has to be done for inputs that are kept: demands on the chain are answered, and what no task asks for
//! makes room.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use surety_chain_client::{ChainError, Signer, When};
use surety_network::{Bytes, DataPlane, FetchOptions};
use surety_types::{ContentHash, TaskId};

use super::{Backend, error::HttpError};
use crate::inputs::Supplier;

/// How often the chain is looked at: twice a block.
const POLL: Duration = Duration::from_secs(3);

/// How long an input is kept that no open task asks for.
const UNUSED_MAX: Duration = Duration::from_secs(3_600);

/// Most inputs that are kept at once.
const KEPT_MAX: usize = 1_024;

/// Inputs that are kept, and since when.
pub struct Kept {
    inputs: Mutex<BTreeMap<ContentHash, Instant>>,
    unused_max: Duration,
}

impl Default for Kept {
    fn default() -> Self {
        Self::unused_for(UNUSED_MAX)
    }
}

impl Kept {
    /// Drops what no open task has asked for so long.
    pub fn unused_for(unused_max: Duration) -> Self {
        Self {
            inputs: Mutex::default(),
            unused_max,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ContentHash, Instant>> {
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has(&self, input: &ContentHash) -> bool {
        self.lock().contains_key(input)
    }

    /// Keeps an input for a while.
    pub(super) async fn keep(&self, plane: &dyn DataPlane, blob: Bytes) -> Result<ContentHash, HttpError> {
        let input = surety_engine::content_hash(&blob);
        if let Some(since) = self.lock().get_mut(&input) {
            *since = Instant::now();
            return Ok(input);
        }
        if self.lock().len() >= KEPT_MAX {
            return Err(HttpError::TooMany(KEPT_MAX));
        }
        plane.publish(blob).await?;
        if self.lock().insert(input, Instant::now()).is_some() {
            // Somebody else was as fast: one pin is enough.
            plane.release(input).await;
        }
        Ok(input)
    }

    /// What is in use now is kept anew; what was not for long is kept no longer.
    async fn make_room(&self, plane: &dyn DataPlane, used: &BTreeSet<ContentHash>) {
        let unused: Vec<ContentHash> = {
            let mut inputs = self.lock();
            let is_over = |input: &ContentHash, since: &mut Instant| {
                if used.contains(input) {
                    *since = Instant::now();
                    return false;
                }
                since.elapsed() >= self.unused_max
            };
            inputs.extract_if(.., is_over).map(|(input, _)| input).collect()
        };
        for input in unused {
            plane.release(input).await;
        }
    }
}

/// Looks after inputs for as long as it is polled.
pub struct Upkeep {
    backend: Backend,
    /// Pays for what is shown on the chain.
    signer: Option<Signer>,
    /// Open tasks; with more for those whose input is here.
    tasks: BTreeMap<TaskId, Option<Here>>,
}

/// An open task whose input is here.
struct Here {
    /// Answers demands, where there is a key for that.
    supplier: Option<Supplier>,
}

impl Upkeep {
    /// Of a server that works with this. Without a key demands stay unanswered.
    pub fn new(backend: Backend, signer: Option<Signer>) -> Self {
        Self {
            backend,
            signer,
            tasks: BTreeMap::new(),
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
        let open = self.backend.chain.open_tasks(When::Best, None).await?;
        let mut open: BTreeMap<TaskId, ContentHash> = open
            .tasks
            .into_iter()
            .map(|open| (open.id, open.task.spec.input))
            .collect();
        self.tasks.retain(|task, _| open.contains_key(task));
        for (task, input) in &open {
            // One that was not here may have come since.
            let is_known = self.tasks.get(task).is_some_and(Option::is_some);
            if !is_known && (!self.tasks.contains_key(task) || self.backend.kept.has(input)) {
                let here = self.find(*input).await;
                self.tasks.insert(*task, here);
            }
        }
        open.retain(|task, _| self.tasks.get(task).is_some_and(Option::is_some));
        let used = open.values().copied().collect();
        self.backend.kept.make_room(&*self.backend.plane, &used).await;
        for (task, here) in &mut self.tasks {
            let Some(supplier) = here.as_mut().and_then(|here| here.supplier.as_mut()) else {
                continue;
            };
            let (chain, plane) = (&self.backend.chain, &self.backend.plane);
            if let Some(info) = chain.task(When::Best, *task).await?
                && let Some(said) = supplier.see(chain, plane, *task, &info).await
            {
                tracing::info!(task, "{said}");
            }
        }
        Ok(())
    }

    /// Whether an input is here: since now, or since before a restart.
    async fn find(&self, input: ContentHash) -> Option<Here> {
        let plane = &*self.backend.plane;
        let blob = plane.fetch(input, &[], &FetchOptions::default()).await.ok()?;
        if let Err(e) = self.backend.kept.keep(plane, blob).await {
            tracing::warn!(error = %e, ?input, "the input of an open task may have to make room for others");
        }
        let supplier = self.signer.clone().map(Supplier::new);
        Some(Here { supplier })
    }
}
