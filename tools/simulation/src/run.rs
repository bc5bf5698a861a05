//! Playing a strategy many times.

use std::panic::resume_unwind;

use surety_audit_economics::Refusal;

use crate::{
    books::{Books, Role},
    life::{Life, Tally},
    rules::{Market, REWARD, Rules},
    strategies::Strategy,
};

/// What came of a strategy.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// What happened.
    pub tally: Tally,
    /// Everybody's money, all tasks together.
    pub books: Books,
    /// Of the profit of one task beside an honest one, in rewards.
    profits: Sums,
}

/// Enough for a mean and its error.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Outcome {
    /// Mean profit of a task beside an honest one, in rewards.
    pub fn profit(&self) -> f64 {
        self.profits.sum / self.profits.count.max(1.0)
    }

    /// Standard error of that mean.
    pub fn error(&self) -> f64 {
        let count = self.profits.count.max(2.0);
        let variance = (self.profits.squares - count * self.profit().powi(2)) / (count - 1.0);
        (variance.max(0.0) / count).sqrt()
    }

    /// Part of the tasks that an honest verifier was drawn for.
    pub fn audited(&self) -> f64 {
        self.tally.audited as f64 / self.tally.tasks.max(1) as f64
    }

    fn add(&mut self, other: &Self) {
        self.tally.add(&other.tally);
        self.books.add(&other.books);
        self.profits.count += other.profits.count;
        self.profits.sum += other.profits.sum;
        self.profits.squares += other.profits.squares;
    }
}

/// Tasks that one thread plays before it is given others. The result is the same with any number of threads.
const BATCH: u64 = 10_000;

/// Plays `tasks` tasks on some threads.
///
/// # Errors
/// The [`Refusal`] of a market whose risk no lock covers.
pub fn run(
    strategy: &Strategy,
    rules: &Rules,
    market: &Market,
    seed: u64,
    tasks: u64,
) -> Result<Outcome, Refusal> {
    rules.plan(market)?;
    let batches: Vec<u64> = (0..tasks).step_by(usize::try_from(BATCH).unwrap_or(1)).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut found: Vec<(u64, Outcome)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                let mine = batches.iter().skip(worker).step_by(threads).copied();
                let play = move |first: u64| {
                    let last = first.saturating_add(BATCH).min(tasks);
                    (first, batch(strategy, rules, market, seed, first..last))
                };
                scope.spawn(move || mine.map(play).collect::<Vec<_>>())
            })
            .collect();
        workers
            .into_iter()
            // The tasks of a thread that panicked may not just be missing.
            .flat_map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });
    // Sums of floating point numbers depend on their order.
    found.sort_by_key(|(first, _)| *first);
    let mut whole = Outcome::default();
    for (_, part) in &found {
        whole.add(part);
    }
    Ok(whole)
}

fn batch(
    strategy: &Strategy,
    rules: &Rules,
    market: &Market,
    seed: u64,
    tasks: std::ops::Range<u64>,
) -> Outcome {
    let mut whole = Outcome::default();
    let Ok(plan) = rules.plan(market) else {
        return whole;
    };
    let share = rules.audit_share(market, plan.expected);
    for task in tasks {
        let played = |play: fn(&mut Life)| {
            let mut life = Life::new(rules, market, (&plan, share), seed, task);
            life.cronies = life.cronies.max(strategy.cronies);
            play(&mut life);
            life
        };
        let (cheat, honest) = (played(strategy.play), played(strategy.baseline));
        whole.tally.add(&cheat.tally);
        whole.books.add(&cheat.books);
        let profit = cheat.books.together(strategy.cheat) - honest.books.together(strategy.honest);
        let profit = profit as f64 / REWARD as f64;
        whole.profits.count += 1.0;
        whole.profits.sum += profit;
        whole.profits.squares += profit * profit;
    }
    whole
}

/// What all parts together have: zero, or money was made or lost.
pub fn total(books: &Books) -> i128 {
    books.together(&Role::ALL)
}
