//! Profit of cheating over the size of the lock, and where it turns into a loss.

use serde_json::{Value, json};
use surety_audit_economics::Refusal;

use crate::{
    rules::{Market, REWARD, Rules},
    run,
    strategies::THEORY,
};

/// For one corrupt part.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Percent of the verifiers that are corrupt.
    pub corrupt: u32,
    /// The least lock with which honesty pays, by theory, in rewards.
    pub promised: f64,
    /// Where the straight line through the points is zero.
    pub seen: f64,
    /// Lock, mean profit beside an honest provider and the error of that mean; all in rewards.
    pub points: Vec<(f64, f64, f64)>,
}

impl Curve {
    /// As JSON.
    pub fn json(&self) -> Value {
        json!({
            "corrupt_percent": self.corrupt,
            "break_even_promised_in_r": self.promised,
            "break_even_seen_in_r": self.seen,
            "points": self.points,
        })
    }
}

/// Tries locks up to about twice the promised break-even, `steps` of them.
///
/// # Errors
/// The [`Refusal`] of a market in which no lock would do.
pub fn curve(rules: &Rules, market: &Market, seed: u64, steps: u32, tasks: u64) -> Result<Curve, Refusal> {
    let rules = rules.lock_alone(market);
    let promised = rules.plan(market)?.lock;
    let mut points = Vec::new();
    for step in 0..steps {
        let lock = 2 * promised * u128::from(step) / u128::from(steps.saturating_sub(1).max(1));
        let tried = Rules {
            lock: Some(lock),
            ..rules.clone()
        };
        // The same tasks for no two points.
        let found = run::run(&THEORY, &tried, market, seed ^ u64::from(step + 1) << 48, tasks)?;
        points.push((in_rewards(lock), found.profit(), found.error()));
    }
    Ok(Curve {
        corrupt: market.corrupt,
        promised: in_rewards(promised),
        seen: zero_of_line(&points),
        points,
    })
}

fn in_rewards(plancks: u128) -> f64 {
    plancks as f64 / REWARD as f64
}

/// Where the least-squares line through the points crosses zero.
fn zero_of_line(points: &[(f64, f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let both: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let squares: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    x - y * squares / both
}
