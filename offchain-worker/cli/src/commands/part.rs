//! What runs beside a worker's host: when it cannot go on, everything is told to stop.

use std::future::Future;

use tokio::{sync::watch, task::JoinHandle};

use crate::error::{CliError, Result};

/// It, at work.
pub(super) struct Part {
    what: &'static str,
    task: JoinHandle<Result<()>>,
    stop: watch::Sender<bool>,
}

impl Part {
    /// Begins. `what` it does is for people.
    pub(super) fn start<E>(
        what: &'static str,
        run: impl Future<Output = std::result::Result<(), E>> + Send + 'static,
        stop: watch::Sender<bool>,
    ) -> Self
    where
        E: Send + 'static,
        CliError: From<E>,
    {
        let ended = stop.clone();
        let task = tokio::spawn(async move {
            // A defect ends a task of its own, and is told all the same.
            let outcome = match tokio::spawn(run).await {
                Ok(outcome) => outcome.map_err(CliError::from),
                Err(error) => Err(broke(what, &error)),
            };
            if let Err(error) = &outcome {
                tracing::error!(%error, "{what} have ended");
                ended.send_replace(true);
            }
            outcome
        });
        Self { what, task, stop }
    }

    /// Ends it, and says how it went.
    pub(super) async fn stop(self) -> Result<()> {
        self.stop.send_replace(true);
        self.task.await.map_err(|error| broke(self.what, &error))?
    }
}

fn broke(what: &str, error: &tokio::task::JoinError) -> CliError {
    CliError::Internal(format!("{what} have ended: {error}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::*;

    #[tokio::test]
    async fn a_part_that_fails_or_breaks_tells_all_to_stop_and_says_so_in_the_end() {
        async fn fails() -> Result<()> {
            Err(CliError::Usage("no".into()))
        }
        async fn breaks() -> Result<()> {
            panic!("a defect")
        }
        let (stop, mut stopped) = watch::channel(false);
        let fails = Part::start("trials", fails(), stop);
        stopped.wait_for(|stop| *stop).await.unwrap();
        assert!(matches!(fails.stop().await, Err(CliError::Usage(_))));
        let (stop, mut stopped) = watch::channel(false);
        let breaks = Part::start("trials", breaks(), stop);
        stopped.wait_for(|stop| *stop).await.unwrap();
        assert!(matches!(breaks.stop().await, Err(CliError::Internal(_))));
    }

    #[tokio::test]
    async fn a_part_goes_on_until_it_is_stopped() {
        let (stop, mut stopped) = watch::channel(false);
        let until_stopped = async move {
            stopped.wait_for(|stop| *stop).await.ok();
            Ok::<(), CliError>(())
        };
        let part = Part::start("trials", until_stopped, stop);
        tokio::task::yield_now().await;
        assert!(!part.task.is_finished());
        part.stop().await.unwrap();
    }
}
