//! A thread that runs the steps.

use std::{
    sync::Arc,
    thread::{self, JoinHandle},
};

use super::{Batcher, Handle, Limits};
use crate::{error::EngineError, exact::ExactLlama, pool::threads};

/// A [`Batcher`] on threads of its own. Dropping it shuts it down: nothing is taken any more, and what runs
/// is cut after the step that is going on, with what there is of it.
pub struct Server {
    handle: Handle,
    driver: Option<JoinHandle<()>>,
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
        let driver = thread::Builder::new()
            .name("serving".into())
            .spawn(move || pool.install(|| batcher.run()))
            .map_err(|error| EngineError::Threads(error.to_string()))?;
        Ok(Self {
            handle,
            driver: Some(driver),
        })
    }

    /// Takes requests.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// The same as dropping it: returns when everything has ended. That takes as long as a step.
    pub fn shutdown(self) {}
}

impl Drop for Server {
    fn drop(&mut self) {
        self.handle.admission.close();
        if let Some(driver) = self.driver.take() {
            // A panic would have been told where it happened.
            driver.join().ok();
        }
    }
}
