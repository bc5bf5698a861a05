//! What an operator sees, in Prometheus' terms.

use prometheus::{Error, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, core::Collector};
use surety_gpu_proofs::{MeasuredView, Tier};

/// How a round went for this provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It has shown its speed.
    Passed,
    /// It did not take part: promised work came first, or the machine was not to be had.
    Skipped,
    /// The device erred.
    Fault,
    /// Its commitment is in no block.
    NotCommitted,
    /// It has committed, and shown nothing: what it had shown before counts no more.
    NotShown,
}

impl Outcome {
    const ALL: [Self; 5] = [
        Self::Passed,
        Self::Skipped,
        Self::Fault,
        Self::NotCommitted,
        Self::NotShown,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Skipped => "skipped",
            Self::Fault => "fault",
            Self::NotCommitted => "not_committed",
            Self::NotShown => "not_shown",
        }
    }
}

/// Figures of a provider's part in the benchmark. Documented in `docs/guides/monitoring.md`.
#[derive(Clone)]
pub struct Metrics {
    rounds: IntCounterVec,
    stopped: IntCounter,
    giga_operations: IntGauge,
    memory: IntGauge,
    tier: IntGaugeVec,
}

impl Metrics {
    /// All at zero, among those of a registry.
    ///
    /// # Errors
    /// Only by a defect: a name that is there twice.
    pub fn new(registry: &Registry) -> Result<Self, Error> {
        let opts = Opts::new(
            "surety_benchmark_rounds_total",
            "Rounds of the benchmark, by how they went.",
        );
        let rounds = keep(registry, IntCounterVec::new(opts, &["outcome"]))?;
        for outcome in Outcome::ALL {
            rounds.with_label_values(&[outcome.name()]);
        }
        let opts = Opts::new(
            "surety_benchmark_tier",
            "1 for the tier that the chain has measured, while that counts.",
        );
        Ok(Self {
            rounds,
            stopped: keep(
                registry,
                IntCounter::new(
                    "surety_benchmark_stopped_total",
                    "Second runs, which make what is shown, that were stopped: they took too long.",
                ),
            )?,
            giga_operations: keep(
                registry,
                IntGauge::new(
                    "surety_benchmark_giga_operations",
                    "Speed that the chain has measured, in 10^9 operations a second; 0 while none counts.",
                ),
            )?,
            memory: keep(
                registry,
                IntGauge::new(
                    "surety_benchmark_memory_mib",
                    "Memory that it was measured over, in MiB; 0 while none counts.",
                ),
            )?,
            tier: keep(registry, IntGaugeVec::new(opts, &["tier"]))?,
        })
    }

    pub(crate) fn count(&self, outcome: Outcome) {
        self.rounds.with_label_values(&[outcome.name()]).inc();
    }

    /// A second run took longer than it may.
    pub(crate) fn stopped(&self) {
        self.stopped.inc();
    }

    /// What the chain has measured.
    pub(crate) fn measured(&self, measured: Option<&MeasuredView>) {
        let of = |read: fn(&MeasuredView) -> u32| measured.map_or(0, |measured| i64::from(read(measured)));
        self.giga_operations.set(of(|measured| measured.giga_operations));
        self.memory.set(of(|measured| measured.memory_mib));
        for (tier, name) in [(Tier::A, "A"), (Tier::B, "B"), (Tier::C, "C")] {
            let is_it = measured.is_some_and(|measured| measured.tier == tier);
            self.tier.with_label_values(&[name]).set(is_it.into());
        }
    }
}

fn keep<T: Collector + Clone + 'static>(registry: &Registry, made: Result<T, Error>) -> Result<T, Error> {
    let made = made?;
    registry.register(Box::new(made.clone()))?;
    Ok(made)
}
