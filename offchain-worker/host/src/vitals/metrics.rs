//! What a worker counts, in Prometheus' terms.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use prometheus::{
    Encoder, Error, Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec,
    IntGauge, IntGaugeVec, Opts, Registry, TextEncoder, core::Collector,
};
use surety_network::Counters;
use surety_worker_core::{EffectKind, Failure};

/// Bounds of the buckets of durations, in seconds: from a blob on the same machine to an hour of inference.
const SECONDS: [f64; 14] = [
    0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 180.0, 600.0, 1_800.0, 3_600.0,
];

/// A worker's figures. Documented in `docs/guides/monitoring.md`.
pub struct Metrics {
    pub(super) registry: Registry,
    blocks: IntGaugeVec,
    block_times: GaugeVec,
    clock: IntGauge,
    tasks: IntGaugeVec,
    queues: IntGaugeVec,
    effects_started: IntCounterVec,
    effects_done: IntCounterVec,
    effects_failed: IntCounterVec,
    effects_running: IntGauge,
    funds: GaugeVec,
    demand_reserve: Gauge,
    parts: IntGaugeVec,
    /// What the data plane counts, by its names.
    network: BTreeMap<&'static str, IntCounter>,
    connections: IntGauge,
    connections_outbound: IntGauge,
    /// Time that inputs and outputs took to arrive.
    pub fetch_seconds: Histogram,
    /// Time that an engine was at work.
    pub compute_seconds: HistogramVec,
    /// Units of work done.
    pub units: IntCounterVec,
    /// Parts that ended and were started again.
    pub part_restarts: IntCounterVec,
    /// Records that could not be made durable at once.
    pub journal_failures: IntCounter,
}

/// Which block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The best one.
    Best,
    /// The last finalised one.
    Finalized,
}

/// Registers what it makes.
struct Maker(Registry);

impl Maker {
    fn keep<T: Collector + Clone + 'static>(&self, made: Result<T, Error>) -> Result<T, Error> {
        let made = made?;
        self.0.register(Box::new(made.clone()))?;
        Ok(made)
    }

    fn gauge(&self, name: &str, help: &str) -> Result<IntGauge, Error> {
        self.keep(IntGauge::new(name, help))
    }

    fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntGaugeVec, Error> {
        self.keep(IntGaugeVec::new(Opts::new(name, help), labels))
    }

    fn float_gauges(&self, name: &str, help: &str, labels: &[&str]) -> Result<GaugeVec, Error> {
        self.keep(GaugeVec::new(Opts::new(name, help), labels))
    }

    fn counter(&self, name: &str, help: &str) -> Result<IntCounter, Error> {
        self.keep(IntCounter::new(name, help))
    }

    fn counters(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntCounterVec, Error> {
        self.keep(IntCounterVec::new(Opts::new(name, help), labels))
    }
}

impl Metrics {
    /// All at zero.
    ///
    /// # Errors
    /// Only by a defect: a name that is none, or that is there twice.
    pub fn new() -> Result<Self, Error> {
        let make = Maker(Registry::new());
        let seconds = |name: &str, help: &str| HistogramOpts::new(name, help).buckets(SECONDS.to_vec());
        let started = Gauge::new(
            "surety_start_time_seconds",
            "Unix time at which the worker started.",
        );
        make.keep(started)?.set(unix_seconds());
        Ok(Self {
            blocks: make.gauges("surety_block_height", "Height of the newest block seen.", &["status"])?,
            block_times: make.float_gauges(
                "surety_block_seen_timestamp_seconds",
                "Unix time at which the newest block was seen.",
                &["status"],
            )?,
            clock: make.gauge(
                "surety_chain_clock_ticks",
                "The clock that deadlines count on, in finalised state.",
            )?,
            tasks: make.gauges("surety_tasks", "Tasks under way, by how far they are.", &["progress"])?,
            queues: make.gauges(
                "surety_engine_queue_length",
                "Computations that wait for the one that runs.",
                &["priority"],
            )?,
            effects_started: make.counters("surety_effects_started_total", "Effects begun.", &["kind"])?,
            effects_done: make.counters("surety_effects_done_total", "Effects that succeeded.", &["kind"])?,
            effects_failed: make.counters(
                "surety_effects_failed_total",
                "Effects that failed, by whether that cost nothing (refused), a fee or work (failed), or is for good \
                 (permanent).",
                &["kind", "class"],
            )?,
            effects_running: make.gauge("surety_effects_running", "Effects under way.")?,
            funds: make.float_gauges("surety_funds_plancks", "Money of the worker's accounts.", &["account", "kind"])?,
            demand_reserve: make.keep(Gauge::new(
                "surety_demand_reserve_plancks",
                "Free money that is kept for the fees of showing what may be demanded on chain.",
            ))?,
            parts: make.gauges("surety_part_up", "Whether a part of the process is at work.", &["part"])?,
            network: network(&make)?,
            connections: make.gauge("surety_network_connections", "Connections from other peers.")?,
            connections_outbound: make.gauge(
                "surety_network_connections_outbound",
                "Connections to other peers.",
            )?,
            fetch_seconds: make.keep(Histogram::with_opts(seconds(
                "surety_fetch_duration_seconds",
                "Time that a blob took to arrive.",
            )))?,
            compute_seconds: make.keep(HistogramVec::new(
                seconds("surety_compute_duration_seconds", "Time that the engine worked on one thing."),
                &["work"],
            ))?,
            units: make.counters("surety_units_total", "Units of work done.", &["work"])?,
            part_restarts: make.counters(
                "surety_part_restarts_total",
                "Parts of the process that ended and were started again.",
                &["part"],
            )?,
            journal_failures: make.counter(
                "surety_journal_failures_total",
                "Attempts to write the journal that failed.",
            )?,
            registry: make.0,
        })
    }

    /// A block was seen.
    pub fn block(&self, seen: Seen, number: u32) {
        let status = match seen {
            Seen::Best => "best",
            Seen::Finalized => "finalized",
        };
        let gauge = self.blocks.with_label_values(&[status]);
        if gauge.get() != i64::from(number) {
            gauge.set(number.into());
            self.block_times.with_label_values(&[status]).set(unix_seconds());
        }
    }

    /// What the chain's clock shows.
    pub fn clock(&self, clock: u32) {
        self.clock.set(clock.into());
    }

    /// How many tasks are how far.
    pub fn tasks(&self, progress: impl IntoIterator<Item = (&'static str, usize)>) {
        self.tasks.reset();
        for (progress, tasks) in progress {
            self.tasks.with_label_values(&[progress]).add(count(tasks));
        }
    }

    /// How much waits for an engine.
    pub fn queues(&self, waiting: impl IntoIterator<Item = (&'static str, usize)>) {
        for (priority, jobs) in waiting {
            self.queues.with_label_values(&[priority]).set(count(jobs));
        }
    }

    /// An effect was begun.
    pub fn effect_started(&self, kind: EffectKind) {
        self.effects_started.with_label_values(&[kind_name(kind)]).inc();
    }

    /// An effect succeeded.
    pub fn effect_done(&self, kind: EffectKind) {
        self.effects_done.with_label_values(&[kind_name(kind)]).inc();
    }

    /// An effect failed.
    pub fn effect_failed(&self, kind: EffectKind, failure: Failure) {
        let class = match failure {
            Failure::Refused => "refused",
            Failure::Gone => "gone",
            Failure::Unbacked => "unbacked",
            Failure::Failed => "failed",
            Failure::Permanent => "permanent",
        };
        let labels = [kind_name(kind), class];
        self.effects_failed.with_label_values(&labels).inc();
    }

    /// How many effects are under way.
    pub fn effects_running(&self, effects: usize) {
        self.effects_running.set(count(effects));
    }

    /// Money of the account that plays this part for the worker, in plancks.
    pub fn funds(&self, account: &'static str, free: u128, held: u128) {
        // A double has 15 digits: more than anybody looks at.
        self.funds.with_label_values(&[account, "free"]).set(free as f64);
        self.funds.with_label_values(&[account, "held"]).set(held as f64);
    }

    /// What has to stay free for the fees of showing what may be demanded, in plancks.
    pub fn demand_reserve(&self, kept: u128) {
        self.demand_reserve.set(kept as f64);
    }

    /// What the data plane has counted since it started.
    pub fn network(&self, counters: &Counters) {
        for (name, count) in counters.named() {
            match (self.network.get(name), name) {
                (Some(counter), _) => counter.inc_by(count.saturating_sub(counter.get())),
                (None, INBOUND) => self.connections.set(level(count)),
                (None, _) => self.connections_outbound.set(level(count)),
            }
        }
    }

    pub(super) fn part_up(&self, part: &'static str, up: bool) {
        self.parts.with_label_values(&[part]).set(up.into());
    }

    /// An engine was at work on something for so long.
    pub fn computed(&self, work: &'static str, took: Duration, units: u32) {
        let seconds = took.as_secs_f64();
        self.compute_seconds.with_label_values(&[work]).observe(seconds);
        self.units.with_label_values(&[work]).inc_by(units.into());
    }

    /// The text that Prometheus reads, and its media type.
    ///
    /// # Errors
    /// Only by a defect.
    pub fn text(&self) -> Result<(Vec<u8>, String), Error> {
        let encoder = TextEncoder::new();
        let mut text = Vec::new();
        encoder.encode(&self.registry.gather(), &mut text)?;
        Ok((text, encoder.format_type().into()))
    }
}

/// Those of the data plane's numbers that are levels.
const INBOUND: &str = "connections_inbound";
const OUTBOUND: &str = "connections_outbound";

fn level(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn network(make: &Maker) -> Result<BTreeMap<&'static str, IntCounter>, Error> {
    let counters = Counters::default();
    counters
        .named()
        .map(|(name, _)| name)
        .filter(|name| ![INBOUND, OUTBOUND].contains(name))
        .map(|name| {
            let help = format!("Of the data plane: {}.", name.replace('_', " "));
            Ok((
                name,
                make.counter(&format!("surety_network_{name}_total"), &help)?,
            ))
        })
        .collect()
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unix_seconds() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0.0, |now| now.as_secs_f64())
}

fn kind_name(kind: EffectKind) -> &'static str {
    match kind {
        EffectKind::Bid => "bid",
        EffectKind::BidReveal => "bid_reveal",
        EffectKind::Fetch => "fetch",
        EffectKind::Compute => "compute",
        EffectKind::Commit => "commit",
        EffectKind::Reveal => "reveal",
        EffectKind::Supply(_) => "supply",
        EffectKind::Draw(_) => "draw",
        EffectKind::FetchAudit(_) => "fetch_audit",
        EffectKind::Audit(_) => "audit",
        EffectKind::Announce(_) => "announce",
        EffectKind::CompareAudit(_) => "compare_audit",
        EffectKind::CompareAll(_) => "compare_all",
        EffectKind::AuditReveal(_) => "audit_reveal",
        EffectKind::CheckData(_) => "check_data",
        EffectKind::Demand(_) | EffectKind::DemandLeaves(_) => "demand",
        EffectKind::ComputeMove(_) => "compute_move",
        EffectKind::Play(_) => "play",
        EffectKind::Advance(_) => "advance",
        EffectKind::DrawSeat(_) => "draw_seat",
        EffectKind::ComputeVote(_) => "compute_vote",
        EffectKind::Join(_) => "join",
        EffectKind::Vote(_) => "vote",
        EffectKind::DemandInput(_) => "demand_input",
        EffectKind::Report(_) => "report",
        EffectKind::CheckConfirmation(_) => "check_confirmation",
        EffectKind::Refute(_) => "refute",
        EffectKind::Cancel => "cancel",
        EffectKind::Forget => "forget",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn text(metrics: &Metrics) -> String {
        String::from_utf8(metrics.text().unwrap().0).unwrap()
    }

    #[test]
    fn what_was_counted_is_in_the_text() {
        let metrics = Metrics::new().unwrap();
        metrics.block(Seen::Finalized, 7);
        metrics.clock(5);
        metrics.effect_started(EffectKind::Commit);
        metrics.effect_failed(EffectKind::Commit, Failure::Refused);
        metrics.computed("embed", Duration::from_secs(2), 30);
        metrics.funds("agent", 5, 0);
        metrics.demand_reserve(7);
        let mut moved = Counters {
            bytes_served: 7,
            connections_inbound: 2,
            connections_outbound: 3,
            ..Counters::default()
        };
        metrics.network(&moved);
        moved.bytes_served = 9;
        metrics.network(&moved);
        let text = text(&metrics);
        for line in [
            r#"surety_block_height{status="finalized"} 7"#,
            "surety_chain_clock_ticks 5",
            r#"surety_effects_started_total{kind="commit"} 1"#,
            r#"surety_effects_failed_total{class="refused",kind="commit"} 1"#,
            r#"surety_compute_duration_seconds_bucket{work="embed",le="2.5"} 1"#,
            r#"surety_units_total{work="embed"} 30"#,
            "surety_network_bytes_served_total 9",
            "surety_network_connections 2",
            "surety_network_connections_outbound 3",
            r#"surety_funds_plancks{account="agent",kind="free"} 5"#,
            "surety_demand_reserve_plancks 7",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{line} is not in\n{text}"
            );
        }
    }

    #[test]
    fn tasks_that_went_on_are_no_longer_counted_where_they_were() {
        let metrics = Metrics::new().unwrap();
        metrics.tasks([("bidding", 1), ("working", 2)]);
        metrics.tasks([("working", 3)]);
        let text = text(&metrics);
        assert!(text.contains(r#"surety_tasks{progress="working"} 3"#), "{text}");
        assert!(!text.contains("bidding"), "{text}");
    }

    #[test]
    fn names_follow_the_conventions_of_prometheus() {
        let metrics = Metrics::new().unwrap();
        metrics.effect_done(EffectKind::Bid);
        for family in metrics.registry.gather() {
            let name = family.get_name();
            assert!(name.starts_with("surety_"), "{name}");
            let is_counter = family.get_field_type() == prometheus::proto::MetricType::COUNTER;
            assert_eq!(is_counter, name.ends_with("_total"), "{name}");
        }
    }
}
