//! How often an honest verifier is drawn, against what theory promises.

use std::panic::resume_unwind;

use serde_json::{Value, json};
use sp_arithmetic::Perquintill;
use surety_audit_economics::{AuditThreshold, SecurityLevel, honest_audit};

use crate::rules::Rules;
use surety_dispute_game::testsuite::dice::Dice;

/// Verifiers in these draws: enough that the limit of many verifiers is theirs to well under one sigma.
const VERIFIERS: u32 = 1_000;

/// One row of the table.
#[derive(Clone, Debug)]
pub struct Detection {
    /// The level.
    pub level: SecurityLevel,
    /// Percent of the verifiers that are corrupt.
    pub corrupt: u32,
    /// `1 - exp(-lambda (1 - f))`.
    pub promised: f64,
    /// Part of the tasks that an honest verifier was drawn for.
    pub seen: f64,
    /// The difference in standard deviations.
    pub sigmas: f64,
}

impl Detection {
    /// As JSON.
    pub fn json(&self) -> Value {
        json!({
            "level": format!("{:?}", self.level).to_lowercase(),
            "corrupt_percent": self.corrupt,
            "promised": self.promised,
            "seen": self.seen,
            "sigmas": self.sigmas,
        })
    }
}

/// Draws auditors for `tasks` tasks of a provider that is no newcomer.
pub fn detection(rules: &Rules, level: SecurityLevel, corrupt: u32, seed: u64, tasks: u64) -> Detection {
    let expected = rules.policy.rates.expected(level, u32::MAX);
    let threshold = AuditThreshold::equal(expected, VERIFIERS);
    let cronies = VERIFIERS * corrupt / 100;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let count = |worker: usize| {
        let mut seen = 0u64;
        for task in (0..tasks).skip(worker).step_by(threads) {
            let mut dice = Dice::new(seed ^ u64::from(corrupt) << 32 ^ (level as u64) << 40, task);
            // The corrupt draw, too, and nobody is helped by it.
            for _ in 0..cronies {
                dice.number();
            }
            seen += u64::from((cronies..VERIFIERS).any(|_| threshold.draws(&dice.vrf_output())));
        }
        seen
    };
    let count = &count;
    let seen: u64 = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| scope.spawn(move || count(worker)))
            .collect();
        let joined = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
        joined.sum()
    });
    let promised = honest_audit(expected, Perquintill::from_percent((100 - corrupt).into()));
    let promised = promised.deconstruct() as f64 / 1e18;
    let seen = seen as f64 / tasks as f64;
    let sigma = (promised * (1.0 - promised) / tasks as f64).sqrt();
    Detection {
        level,
        corrupt,
        promised,
        seen,
        sigmas: (seen - promised) / sigma,
    }
}
