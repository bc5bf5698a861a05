//! What computes runs has the machine alone.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use tokio::{sync::Semaphore, task::spawn_blocking};

use crate::{Parts, RunMemory, runs::Trouble};

/// Computes while everything else on the machine stands aside, and no other run is made.
pub(super) async fn alone<T: Send + 'static>(
    parts: &Arc<Parts>,
    place: Arc<Semaphore>,
    at_most: Duration,
    compute: impl FnOnce(&Parts) -> Result<T, Trouble> + Send + 'static,
) -> Result<T, Trouble> {
    let place = place.try_acquire_owned();
    let place = place.map_err(|_| Trouble::NoPause("the run before it has not ended yet".into()))?;
    let pause = parts.machine.pause(at_most).await.map_err(Trouble::NoPause)?;
    let parts = parts.clone();
    let computed = spawn_blocking(move || {
        // They end with the thread, not with whoever waits for it.
        let _held = (pause, place);
        compute(&parts)
    });
    computed
        .await
        .map_err(|error| Trouble::Device(error.to_string()))?
}

pub(super) fn memory(parts: &Parts, stop: &Arc<AtomicBool>) -> Result<(RunMemory, u32), Trouble> {
    parts.machine.memory(stop).map_err(Trouble::from)
}
