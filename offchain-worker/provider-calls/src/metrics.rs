//! What an operator sees, in Prometheus' terms.

use prometheus::{Error, Gauge, IntCounter, IntCounterVec, IntGauge, Opts, Registry, core::Collector};

/// Figures of a provider's calls. Documented in `docs/guides/monitoring.md`.
#[derive(Clone)]
pub struct Metrics {
    pub(crate) taken: IntCounter,
    pub(crate) refused: IntCounter,
    pub(crate) receipts: IntCounterVec,
    pub(crate) open: IntGauge,
    pub(crate) channels: IntGauge,
    pub(crate) unbatched: IntGauge,
    pub(crate) whole: IntGauge,
    pub(crate) kept: IntGauge,
    pub(crate) batches: IntCounter,
    pub(crate) sent: IntCounterVec,
    pub(crate) syncs: IntCounter,
    pub(crate) journal_failures: IntCounter,
    pub(crate) old_terms: IntGauge,
    pub(crate) float: Gauge,
    pub(crate) poor: IntGauge,
    pub(crate) on_devices: IntGauge,
    pub(crate) device_faults: IntCounterVec,
}

impl Metrics {
    /// All at zero, among those of a registry.
    ///
    /// # Errors
    /// Only by a defect: a name that is there twice.
    pub fn new(registry: &Registry) -> Result<Self, Error> {
        let counter = |name, help| keep(registry, IntCounter::new(name, help));
        let gauge = |name, help| keep(registry, IntGauge::new(name, help));
        let counters =
            |name, help, label| keep(registry, IntCounterVec::new(Opts::new(name, help), &[label]));
        Ok(Self {
            taken: counter(
                "surety_calls_taken_total",
                "Requests over channels that were taken.",
            )?,
            refused: counter(
                "surety_calls_refused_total",
                "Requests over channels that were refused.",
            )?,
            receipts: counters(
                "surety_calls_receipts_total",
                "Answers over channels that have ended, by how.",
                "end",
            )?,
            open: gauge(
                "surety_calls_open",
                "Requests over channels that are answered now.",
            )?,
            channels: gauge("surety_calls_channels", "Channels that something is kept of.")?,
            unbatched: gauge("surety_calls_unbatched", "Receipts that wait for a batch.")?,
            whole: gauge(
                "surety_calls_whole",
                "Requests over channels that are kept whole: no final block has their receipts.",
            )?,
            kept: gauge(
                "surety_calls_kept",
                "Other requests over channels that are kept, for as long as their channels.",
            )?,
            batches: counter(
                "surety_calls_batches_total",
                "Batches that finalised blocks have.",
            )?,
            sent: counters(
                "surety_calls_sent_total",
                "Calls to the chain about channels, by outcome.",
                "outcome",
            )?,
            syncs: counter("surety_calls_syncs_total", "Writes to the journal of calls.")?,
            journal_failures: counter(
                "surety_calls_journal_failures_total",
                "Writes to the journal of calls that had to be tried again.",
            )?,
            old_terms: gauge(
                "surety_calls_old_terms",
                "1 while the standing lock is below what the cap needs by the present terms.",
            )?,
            float: keep(
                registry,
                Gauge::new(
                    "surety_calls_float_plancks",
                    "Free money that is kept for levies, and for the fees of showing what may be demanded over channels.",
                ),
            )?,
            poor: gauge(
                "surety_calls_poor",
                "1 while nothing new is taken over channels because too little money is free.",
            )?,
            on_devices: gauge(
                "surety_calls_device_models",
                "Models whose tokens over channels are chosen on a device.",
            )?,
            device_faults: counters(
                "surety_calls_device_faults_total",
                "Answers over channels that a device's fault has ended, by what it was.",
                "fault",
            )?,
        })
    }
}

fn keep<T: Collector + Clone + 'static>(registry: &Registry, made: Result<T, Error>) -> Result<T, Error> {
    let made = made?;
    registry.register(Box::new(made.clone()))?;
    Ok(made)
}
