//! Counts, as Prometheus reads them.

use std::{
    fmt::Display,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// What has happened since the start.
#[derive(Default)]
pub(crate) struct Metrics {
    pub calls: AtomicU64,
    pub failed: AtomicU64,
    pub refused: AtomicU64,
    pub limited: AtomicU64,
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

    /// As text, with how many places are taken, and how many wait for one, of calls, of files and of tasks.
    pub fn text(&self, [calls, files, tasks]: [(usize, usize); 3]) -> String {
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
                "requests_limited_total",
                "Of these, requests and tokens that went over a key's limit of a minute.",
                &self.limited,
            ),
            (
                "retries_total",
                "Providers that were asked after another had failed.",
                &self.retried,
            ),
            (
                "clients_gone_total",
                "Calls whose client hung up, or read no more, before the end.",
                &self.gone,
            ),
            ("tokens_total", "Tokens that providers have said.", &self.tokens),
            ("tasks_total", "Tasks that were posted for batches.", &self.tasks),
        ];
        let gauges = [
            ("calls_open", "Calls that are being answered.", calls.0),
            ("calls_waiting", "Calls that wait for a place.", calls.1),
            ("files_open", "Files that are being given.", files.0),
            ("files_waiting", "Files that wait for a place.", files.1),
            (
                "tasks_open",
                "Tasks of batches that have a place on the chain.",
                tasks.0,
            ),
            (
                "batches_waiting",
                "Batches whose next task waits for a place.",
                tasks.1,
            ),
        ];
        let counters = counters.map(|(name, help, value)| line(name, help, "counter", value.load(Relaxed)));
        let gauges = gauges.map(|(name, help, value)| line(name, help, "gauge", value));
        counters.concat() + &gauges.concat()
    }
}

fn line(name: &str, help: &str, kind: &str, value: impl Display) -> String {
    let name = format!("surety_gateway_{name}");
    format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n")
}
