//! Waiting between attempts.

use std::time::Duration;

/// Doubles from one second to half a minute.
pub(super) struct Backoff(u32);

impl Backoff {
    pub(super) fn new() -> Self {
        Self(0)
    }

    pub(super) fn reset(&mut self) {
        self.0 = 0;
    }

    pub(super) async fn wait(&mut self) {
        let seconds = 1u64 << self.0.min(5);
        self.0 = self.0.saturating_add(1);
        tokio::time::sleep(Duration::from_secs(seconds.min(30))).await;
    }
}
