//! Waiting between attempts.

use std::time::Duration;

/// Doubles from a first pause to a number of them.
pub(super) struct Backoff {
    attempts: u32,
    first: Duration,
    most: u32,
}

impl Backoff {
    /// From one second to half a minute.
    pub(super) fn new() -> Self {
        Self::from(Duration::from_secs(1))
    }

    /// From another pause.
    pub(super) fn from(first: Duration) -> Self {
        Self {
            attempts: 0,
            first,
            most: 30,
        }
    }

    /// From one second to two: for what no deadline waits for.
    pub(super) fn short() -> Self {
        Self {
            most: 2,
            ..Self::new()
        }
    }

    /// From half a minute to ten: for what costs a fee each time.
    pub(super) fn costly() -> Self {
        Self {
            most: 20,
            ..Self::from(Duration::from_secs(30))
        }
    }

    pub(super) fn reset(&mut self) {
        self.attempts = 0;
    }

    pub(super) async fn wait(&mut self) {
        let pauses = 1u32 << self.attempts.min(5);
        self.attempts = self.attempts.saturating_add(1);
        tokio::time::sleep(self.first.saturating_mul(pauses.min(self.most))).await;
    }
}
