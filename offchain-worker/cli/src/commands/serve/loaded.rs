//! What is loaded when somebody asks for it first.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use surety_types::ModelId;
use tokio::sync::Mutex as Turn;

/// Who asks waits so long for its turn. Loading from this machine takes less.
const TURN_MAX: Duration = Duration::from_secs(10);

/// So long nothing that failed is tried again.
const FAILURE_MEMORY: Duration = Duration::from_secs(60);

/// One thing for each model. They are loaded one after the other, whoever asks how often: each may take a
/// thread and a download.
pub(super) struct Loaded<T> {
    /// As many as the chain has models at most.
    known: Arc<Mutex<Known<T>>>,
    turn: Arc<Turn<()>>,
}

type Known<T> = BTreeMap<ModelId, Result<Arc<T>, (Instant, String)>>;

impl<T: Send + Sync + 'static> Loaded<T> {
    pub(super) fn new() -> Self {
        Self {
            known: Arc::default(),
            turn: Arc::default(),
        }
    }

    /// That of a model, which `load` brings where it is not here.
    ///
    /// # Errors
    /// In words, as `load` says them.
    pub(super) async fn get(
        &self,
        model: ModelId,
        load: impl Future<Output = Result<T, String>> + Send + 'static,
    ) -> Result<Arc<T>, String> {
        if let Some(told) = self.told(model) {
            return told;
        }
        let turn = tokio::time::timeout(TURN_MAX, self.turn.clone().lock_owned()).await;
        let turn = turn.map_err(|_| "a tokenizer is being fetched: ask again in a minute".to_owned())?;
        if let Some(told) = self.told(model) {
            return told;
        }
        let known = self.known.clone();
        // It goes on also where who has asked no longer waits: else the next would begin anew beside it.
        let loading = tokio::spawn(async move {
            let loaded = load.await.map(Arc::new);
            let noted = loaded.clone().map_err(|reason| (Instant::now(), reason));
            locked(&known).insert(model, noted);
            drop(turn);
            loaded
        });
        loading.await.map_err(|e| e.to_string())?
    }

    fn told(&self, model: ModelId) -> Option<Result<Arc<T>, String>> {
        match locked(&self.known).get(&model)? {
            Ok(loaded) => Some(Ok(loaded.clone())),
            Err((since, reason)) if since.elapsed() < FAILURE_MEMORY => Some(Err(reason.clone())),
            Err(_) => None,
        }
    }
}

fn locked<T>(known: &Mutex<Known<T>>) -> MutexGuard<'_, Known<T>> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn what_many_ask_for_is_loaded_once_and_what_failed_is_not_tried_again_at_once() {
        for outcome in [Ok(7), Err("it is not here".to_owned())] {
            let (loaded, tries) = (Loaded::new(), Arc::new(AtomicU32::new(0)));
            let ask = || {
                let (tries, outcome) = (tries.clone(), outcome.clone());
                loaded.get(ModelId::zero(), async move {
                    tries.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                    outcome
                })
            };
            let told = tokio::join!(ask(), ask(), ask());
            for told in [told.0, told.1, told.2, ask().await] {
                assert_eq!(told.map(|loaded| *loaded), outcome);
            }
            assert_eq!(tries.load(Ordering::Relaxed), 1);
        }
    }

    #[tokio::test]
    async fn who_no_longer_waits_leaves_no_second_load_beside_the_first() {
        let (loaded, go_on) = (Loaded::new(), Arc::new(Notify::new()));
        let load = {
            let go_on = go_on.clone();
            async move {
                go_on.notified().await;
                Ok(7)
            }
        };
        let left = tokio::time::timeout(Duration::from_millis(50), loaded.get(ModelId::zero(), load));
        assert!(left.await.is_err());
        go_on.notify_one();
        let again = loaded.get(ModelId::zero(), async { Ok(8) }).await;
        assert_eq!(again.map(|loaded| *loaded), Ok(7));
    }
}
