//! What an operator can see of a worker from outside: whether it is well, and what it does.
//!
//! - [`health`] judges: well or not, with reasons;
//! - [`metrics`] counts, for Prometheus;
//! - [`server`] answers `GET /health` and `GET /metrics`.

mod health;
mod metrics;
pub(super) mod server;

use health::Health;
use metrics::Metrics;
pub use metrics::Seen;
use prometheus::Registry;
use surety_journal::JournalError;
use tokio::time::Instant;

use crate::error::{HostError, Result};

/// Health and figures of one worker.
pub struct Vitals {
    /// Whether it is well.
    pub health: Health,
    /// What it does.
    pub metrics: Metrics,
}

impl Vitals {
    /// Of a worker that has seen and done nothing yet.
    ///
    /// # Errors
    /// Only by a defect.
    pub fn new() -> Result<Self> {
        let metrics = Metrics::new().map_err(|e| HostError::Internal(e.to_string()))?;
        Ok(Self {
            health: Health::default(),
            metrics,
        })
    }

    /// Where parts beside the host's register what they count.
    pub const fn registry(&self) -> &Registry {
        &self.metrics.registry
    }

    /// A block was seen.
    pub(super) fn block(&self, seen: Seen, number: u32) {
        match seen {
            Seen::Best => self.health.best(number, Instant::now()),
            Seen::Finalized => self.health.finalized(number, Instant::now()),
        }
        self.metrics.block(seen, number);
    }

    /// A part of the process is at work.
    pub(super) fn part_started(&self, part: &'static str) {
        self.health.part_started(part);
        self.metrics.part_up(part, true);
    }

    /// A part of the process ended or panicked, which none ever should.
    pub(super) fn part_died(&self, part: &'static str, reason: &str) {
        self.health.part_died(part, reason);
        self.metrics.part_up(part, false);
        self.metrics.part_restarts.with_label_values(&[part]).inc();
    }

    /// The journal did not take what was to be written.
    pub(super) fn journal_failed(&self, why: &JournalError) {
        self.metrics.journal_failures.inc();
        self.health.journal(Some(why.to_string()));
    }

    /// The journal takes what is written, if only for now.
    pub(super) fn journal_works(&self, but: Option<&str>) {
        self.health.journal(but.map(Into::into));
    }
}
