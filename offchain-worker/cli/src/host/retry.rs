//! Waiting between attempts.

use std::time::Duration;

/// Doubles from a first pause to thirty of them.
pub(super) struct Backoff {
    attempts: u32,
    first: Duration,
}

impl Backoff {
    /// From one second to half a minute.
    pub(super) fn new() -> Self {
        Self::from(Duration::from_secs(1))
    }

    /// From another pause.
    pub(super) fn from(first: Duration) -> Self {
        Self { attempts: 0, first }
    }

    pub(super) fn reset(&mut self) {
        self.attempts = 0;
    }

    pub(super) async fn wait(&mut self) {
        let pauses = 1u32 << self.attempts.min(5);
        self.attempts = self.attempts.saturating_add(1);
        tokio::time::sleep(self.first.saturating_mul(pauses.min(30))).await;
    }
}
