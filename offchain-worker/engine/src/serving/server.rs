//! A thread that runs the steps.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    thread,
    time::Duration,
};

use super::{Batcher, Handle, Limits};
use crate::{error::EngineError, exact::ExactLlama, pool::threads};

/// How often who waits for the end looks whether a device answers.
const LOOK: Duration = Duration::from_millis(100);

/// A [`Batcher`] on threads of its own. Dropping it shuts it down: nothing is taken any more, and what runs
/// is cut after the step that is going on, with what there is of it. A step that waits for a device
/// which does not answer is left to itself.
pub struct Server {
    handle: Handle,
    /// Says nothing, and is closed when the thread has ended.
    ended: Mutex<Receiver<()>>,
}

impl Server {
    /// Starts the threads: so many compute.
    ///
    /// # Errors
    /// [`EngineError::Threads`].
    pub fn start(decoder: Arc<ExactLlama>, limits: Limits, count: usize) -> Result<Self, EngineError> {
        let pool = threads(count)?;
        let mut batcher = Batcher::new(decoder, limits);
        let handle = batcher.handle();
        let (end, ended) = channel::<()>();
        thread::Builder::new()
            .name("serving".into())
            .spawn(move || {
                pool.install(|| batcher.run());
                // A panic, which would have been told where it happened, drops it, too.
                drop((batcher, end));
            })
            .map_err(|error| EngineError::Threads(error.to_string()))?;
        let ended = Mutex::new(ended);
        Ok(Self { handle, ended })
    }

    /// Takes requests.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// The same as dropping it: returns when everything has ended. That takes as long as a step, or until a
    /// device that does not answer counts as silent.
    pub fn shutdown(self) {}
}

impl Drop for Server {
    fn drop(&mut self) {
        self.handle.admission.close();
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) && !self.handle.is_stuck() {}
    }
}
