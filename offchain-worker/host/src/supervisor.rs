//! No dead part in a living process: what goes on beside the host loop is started again when it ends or
//! panics, and the process ends when that does not help. A worker that only looks alive makes promises that
//! it cannot keep.

use std::{collections::VecDeque, future::Future, sync::Arc, time::Duration};

use tokio::{
    task::{JoinHandle, JoinSet},
    time::Instant,
};

use super::{retry::Backoff, vitals::Vitals};
use crate::error::HostError;

/// Within this time deaths count together.
const PERIOD: Duration = Duration::from_secs(3600);

/// How often a part is started again within [`PERIOD`]. With the pauses between them that takes three minutes
/// when it dies at once.
const RESTARTS_MAX: usize = 10;

/// Parts that never end by themselves.
pub(super) struct Supervisor {
    vitals: Arc<Vitals>,
    keepers: JoinSet<HostError>,
    pause: fn() -> Backoff,
}

impl Supervisor {
    pub(super) fn new(vitals: Arc<Vitals>) -> Self {
        Self {
            vitals,
            keepers: JoinSet::new(),
            pause: Backoff::new,
        }
    }

    /// Keeps a part running: `start` makes it, each time anew.
    pub(super) fn keep<F>(&mut self, part: &'static str, start: impl Fn() -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let keeper = keep(self.vitals.clone(), part, start, self.pause);
        self.keepers.spawn(keeper);
    }

    /// Ends when a part cannot be kept running, with what to say of it.
    pub(super) async fn failure(&mut self) -> HostError {
        match self.keepers.join_next().await {
            Some(Ok(error)) => error,
            Some(Err(e)) => HostError::Internal(format!("a supervisor ended: {e}")),
            // Nothing to supervise.
            None => std::future::pending().await,
        }
    }
}

/// A task that ends with whoever waits for it.
struct Owned(JoinHandle<()>);

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn keep<F>(
    vitals: Arc<Vitals>,
    part: &'static str,
    start: impl Fn() -> F,
    pause: fn() -> Backoff,
) -> HostError
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut deaths: VecDeque<Instant> = VecDeque::new();
    let mut backoff = pause();
    loop {
        vitals.part_started(part);
        let mut run = Owned(tokio::spawn(start()));
        let reason = match (&mut run.0).await {
            Ok(()) => "it ended, which it never should".to_string(),
            Err(e) => e.to_string(),
        };
        let now = Instant::now();
        vitals.part_died(part, &reason);
        while deaths
            .front()
            .is_some_and(|death| now.saturating_duration_since(*death) > PERIOD)
        {
            deaths.pop_front();
        }
        if deaths.is_empty() {
            backoff.reset();
        }
        deaths.push_back(now);
        if deaths.len() > RESTARTS_MAX {
            return HostError::PartDied {
                part,
                deaths: deaths.len(),
                reason,
            };
        }
        tracing::error!(part, reason, "a part of the worker died; starting it again");
        backoff.wait().await;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::mpsc;

    use super::*;

    fn supervisor() -> (Supervisor, Arc<Vitals>) {
        let vitals = Arc::new(Vitals::new().unwrap());
        let mut supervisor = Supervisor::new(vitals.clone());
        supervisor.pause = || Backoff::from(Duration::ZERO);
        (supervisor, vitals)
    }

    #[tokio::test]
    async fn a_part_that_panics_is_started_again() {
        let (mut supervisor, vitals) = supervisor();
        let (alive, mut lives) = mpsc::channel(1);
        let starts = AtomicUsize::new(0);
        supervisor.keep("part", move || {
            let start = starts.fetch_add(1, Ordering::SeqCst);
            let alive = alive.clone();
            async move {
                match start {
                    0 => panic!("as asked for"),
                    1 => {}
                    _ => {
                        alive.send(start).await.unwrap();
                        std::future::pending().await
                    }
                }
            }
        });
        assert_eq!(lives.recv().await, Some(2), "after a panic and an end");
        assert_eq!(vitals.metrics.part_restarts.with_label_values(&["part"]).get(), 2);
        assert!(vitals.health.report(Instant::now()).parts["part"]);
    }

    #[tokio::test]
    async fn a_part_that_keeps_dying_ends_the_process_with_its_reason() {
        let (mut supervisor, vitals) = supervisor();
        supervisor.keep("good", std::future::pending);
        supervisor.keep("bad", || async { panic!("as asked for") });
        let failure = supervisor.failure().await;
        let text = failure.to_string();
        assert!(text.contains("bad") && text.contains("as asked for"), "{text}");
        assert!(matches!(failure, HostError::PartDied { part: "bad", .. }));
        let parts = vitals.health.report(Instant::now()).parts;
        assert_eq!((parts["good"], parts["bad"]), (true, false));
    }

    #[tokio::test]
    async fn parts_end_with_their_supervisor() {
        let (mut supervisor, _) = supervisor();
        let (alive, mut lives) = mpsc::channel::<()>(1);
        supervisor.keep("part", move || {
            let alive = alive.clone();
            async move {
                alive.send(()).await.unwrap();
                std::future::pending().await
            }
        });
        lives.recv().await.unwrap();
        drop(supervisor);
        assert_eq!(lives.recv().await, None);
    }
}
