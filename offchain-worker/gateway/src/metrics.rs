//! Counts, as Prometheus reads them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What has happened since the start.
#[derive(Default)]
pub(crate) struct Metrics {
    pub calls: AtomicU64,
    pub failed: AtomicU64,
    pub refused: AtomicU64,
    pub retried: AtomicU64,
    pub gone: AtomicU64,
    pub tokens: AtomicU64,
    pub tasks: AtomicU64,
}

impl Metrics {
    /// One more.
    pub fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Relaxed);
    }

    /// As text.
    pub fn text(&self) -> String {
        let counters = [
            ("calls_total", "Calls that providers were asked for.", &self.calls),
            (
                "calls_failed_total",
                "Calls, and tasks of batches, that ended with an error.",
                &self.failed,
            ),
            (
                "requests_refused_total",
                "Requests answered with an error, and batches whose file was refused.",
                &self.refused,
            ),
            (
                "retries_total",
                "Providers that were asked after another had failed.",
                &self.retried,
            ),
            (
                "clients_gone_total",
                "Calls whose client hung up before the end.",
                &self.gone,
            ),
            ("tokens_total", "Tokens that providers have said.", &self.tokens),
            ("tasks_total", "Tasks that were posted for batches.", &self.tasks),
        ];
        let lines = counters.map(|(name, help, counter)| {
            let name = format!("surety_gateway_{name}");
            let value = counter.load(Relaxed);
            format!("# HELP {name} {help}\n# TYPE {name} counter\n{name} {value}\n")
        });
        lines.concat()
    }
}
