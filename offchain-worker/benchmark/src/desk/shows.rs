//! Shows what was drawn of runs that were committed to, by the last final block.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use sp_core::H256;
use surety_chain_client::{BlockNumber, Call, ChainError, GpuRound, When};
use surety_exact::SplitMix64;
use surety_gpu_proofs::{Openings, PARENTS, Plan, RoundStage, Run, RunView, SAMPLES, draw, seed};
use surety_types::BLOCK_SECONDS;

use super::{Back, Desk, TRIAL, Task, Which, Work, alone, memory};
use crate::{
    journal::{Key, Promise},
    metrics::Outcome,
    runs::{self, Trouble},
};

/// Between attempts to make a run again.
const SHOW_PAUSE: Duration = Duration::from_secs(30);
/// How often it is tried on a device that fails.
const SHOW_TRIES: u32 = 20;
/// How often the time for it is doubled, at most.
const DOUBLED_MAX: u32 = 2;
/// Trees of which something is shown: a sampled row's, and its parents'.
const TREES: u64 = (SAMPLES * (1 + PARENTS)) as u64;
/// Leaves of trees that are hashed in a second, at least, where no device has them.
const LEAVES_A_SECOND: u64 = 10_000_000;

/// A promise whose time to be shown has come.
pub(super) struct Showing {
    samples: H256,
    /// A random part of half of the time to show it.
    not_before: Instant,
    try_from: Instant,
    tries: u32,
    /// How often the time for it is doubled: tries have ended for want of time.
    doubled: u32,
    openings: Option<Box<Openings>>,
}

impl Showing {
    fn new(samples: H256, not_before: Instant, now: Instant) -> Self {
        Self {
            samples,
            not_before,
            try_from: now,
            tries: 0,
            doubled: 0,
            openings: None,
        }
    }

    /// Whether the run still has to be made again, and that is not given up.
    const fn is_open(&self) -> bool {
        self.openings.is_none() && self.tries < SHOW_TRIES
    }

    fn may_try(&self, now: Instant) -> bool {
        self.is_open() && self.try_from <= now
    }

    /// Takes note of why there is nothing to show yet.
    fn failed(&mut self, trouble: &Trouble, now: Instant) {
        match trouble {
            Trouble::Late => self.doubled = self.doubled.saturating_add(1).min(DOUBLED_MAX),
            // Perhaps there is a shorter one.
            Trouble::NoPause(_) => self.doubled = self.doubled.saturating_sub(1),
            _ => {}
        }
        self.try_from = now.checked_add(SHOW_PAUSE).unwrap_or(now);
        self.tries = self.tries.saturating_add(trouble.is_try().into());
    }
}

/// How far what was promised is.
pub(super) enum Standing {
    /// It is not final yet what is drawn.
    Waits,
    /// With what it is drawn, and how many blocks there are left to show it.
    Opening((H256, BlockNumber)),
    /// Its round is over.
    Over,
    /// It was made for a fork that is none any more.
    OnAnotherFork,
}

/// By the rounds of the last final block, and of the best one.
pub(super) fn standing(promise: &Promise, settled: Option<&GpuRound>, best: Option<&GpuRound>) -> Standing {
    let is_over = |round: Option<&GpuRound>| round.is_none_or(|round| round.number > promise.round);
    let Some(round) = settled.filter(|round| round.number == promise.round) else {
        let is_past = settled.is_some_and(|round| round.number > promise.round);
        return match is_past || (settled.is_none() && is_over(best)) {
            true => Standing::Over,
            false => Standing::Waits,
        };
    };
    match round.stage {
        RoundStage::Opening {
            entropy,
            samples,
            until,
        } if entropy == promise.entropy => Standing::Opening((samples, until.saturating_sub(round.now))),
        RoundStage::Opening { .. } => Standing::OnAnotherFork,
        _ => Standing::Waits,
    }
}

/// How long a run takes: as long as it took, which was no longer than its window.
fn run_time(plan: Plan, window_ms: u64, speed: Option<u64>) -> Duration {
    let seconds = plan.operations().checked_div(speed.unwrap_or(0));
    Duration::from_secs(seconds.unwrap_or(window_ms.div_ceil(1000)))
}

/// How long it may take to show a run that takes so long, and is made so often for that: with time for what
/// is hashed, which grows with its rows, and for all else. Twice as long each time that was not enough.
fn time_to_show(plan: Plan, run: Duration, passes: u32, doubled: u32) -> Duration {
    let leaves = TREES.saturating_mul(plan.batch_rows().into());
    let hashed = Duration::from_secs(leaves.div_ceil(LEAVES_A_SECOND));
    let time = run
        .saturating_mul(passes)
        .saturating_add(hashed)
        .saturating_add(TRIAL);
    time.saturating_mul(2u32.saturating_pow(doubled.min(DOUBLED_MAX)))
}

impl Desk {
    /// By the last final block: what is drawn stands.
    pub(super) async fn show(
        &mut self,
        promise: &Promise,
        run: Option<RunView>,
        (samples, left): (H256, BlockNumber),
        (last, best): (When, When),
    ) -> Result<(), ChainError> {
        let (key, parts) = (promise.key(), self.parts.clone());
        match run {
            Some(run) if (run.plan, run.root) == (promise.plan, promise.root) => {}
            Some(_) => {
                self.end(key, Outcome::NotCommitted).await;
                return Ok(());
            }
            None => {
                let outcome = match self.is_shown(promise, last).await? {
                    true => Outcome::Passed,
                    false => Outcome::NotCommitted,
                };
                self.end(key, outcome).await;
                self.settled = None;
                return Ok(());
            }
        }
        let now = Instant::now();
        let half = u64::from(left).saturating_mul(u64::from(BLOCK_SECONDS).saturating_mul(500));
        let showing = self.showing.entry(key).or_insert_with(|| {
            let pause = Duration::from_millis(SplitMix64::new(crate::random()).below(half));
            Showing::new(samples, now.checked_add(pause).unwrap_or(now), now)
        });
        let is_due = showing.not_before <= now;
        let may_try = showing.may_try(now);
        match &showing.openings {
            None if may_try && self.work.is_none() => self.start_show(promise, samples),
            None => {}
            Some(openings) if is_due => {
                let call = Call::OpenRun {
                    openings: openings.clone(),
                };
                // It may be there, and not be final.
                if self.may_send(key, Which::Opening)
                    && parts.rounds.gpu_run(best, &parts.stash).await?.is_some()
                {
                    self.send((key, Which::Opening), call, None);
                }
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Takes note of what was computed to show.
    pub(super) fn take_shown(&mut self, key: Key, samples: H256, shown: Result<(Run, Openings), Trouble>) {
        self.work = None;
        let Some(showing) = self.showing.get_mut(&key).filter(|it| it.samples == samples) else {
            return;
        };
        let trouble = match shown {
            Ok((run, openings)) => {
                showing.openings = Some(Box::new(openings));
                self.runs.insert(key, run);
                return;
            }
            Err(trouble) => trouble,
        };
        showing.failed(&trouble, Instant::now());
        if trouble == Trouble::Late {
            self.parts.metrics.stopped();
        }
        if trouble.is_fault() {
            tracing::error!(round = key.0, error = %trouble, "what was committed to cannot be shown");
        } else {
            tracing::warn!(round = key.0, error = %trouble, "nothing can be shown yet");
        }
    }

    /// Whether a run that the chain has no more was shown: it was not before it was seen here to stand, but
    /// by a process before this one.
    async fn is_shown(&self, promise: &Promise, last: When) -> Result<bool, ChainError> {
        let key = promise.key();
        if self.showing.contains_key(&key) || self.runs.contains_key(&key) {
            return Ok(self.showing.contains_key(&key));
        }
        self.is_measured(promise, last).await
    }

    /// Whether the chain has measured what a run comes to.
    async fn is_measured(&self, promise: &Promise, last: When) -> Result<bool, ChainError> {
        let measured = self.parts.rounds.measured(last, &self.parts.stash).await?;
        let plan = promise.plan;
        Ok(measured.is_some_and(|measured| {
            measured.rounds_missed == 0
                && measured.giga_operations == plan.giga_operations(promise.window_ms)
                && measured.memory_mib == plan.memory_mib()
        }))
    }

    fn start_show(&mut self, promise: &Promise, samples: H256) {
        let (key, promise, known) = (
            promise.key(),
            promise.clone(),
            self.runs.get(&promise.key()).cloned(),
        );
        let doubled = self.showing.get(&key).map_or(0, |showing| showing.doubled);
        let (parts, place, stop) = self.start(Task::Show(key));
        tracing::info!(round = key.0, "making the run again, to show what was drawn");
        let passes = if known.is_some() { 1 } else { 2 };
        let run = run_time(promise.plan, promise.window_ms, self.speed);
        let time = time_to_show(promise.plan, run, passes, doubled);
        let work = async move {
            let shown = alone(&parts, place, time, move |parts| {
                // No longer than the pause: what stands aside for it is promised after that.
                let until = Instant::now().checked_add(time);
                let leave = runs::Leave { stop: &stop, until };
                let (mut memory, rows_max) = memory(parts, &stop)?;
                if promise.plan.rows / 2 > rows_max {
                    return Err(Trouble::Memory("less memory is free than the run takes".into()));
                }
                let seed = seed(&promise.entropy, promise.round, &promise.provider);
                let run = match known {
                    Some(run) => run,
                    None => runs::remake(&mut memory, (promise.plan, &seed, &promise.root), leave)?,
                };
                let drawn = draw(promise.plan, &samples, promise.round, &promise.provider);
                let openings = runs::show(&mut memory, &run, &drawn, leave)?;
                Ok((run, openings))
            });
            Back::Shown(key, samples, shown.await)
        };
        self.work_id = Some(self.away.spawn(work).id());
    }

    /// Stops what is made to show a round that is over, or another fork's.
    pub(super) fn stop_show(&self, key: Key) {
        if let Some(Work {
            task: Task::Show(shown),
            stop,
        }) = &self.work
            && *shown == key
            && !stop.swap(true, Ordering::Relaxed)
        {
            self.parts.metrics.stopped();
            tracing::warn!(
                round = key.0,
                "the run that was to show this round is stopped, as there is nothing to show any more: see what \
                 else uses the device, and whether heat slows it down"
            );
        }
    }

    pub(super) async fn over(&mut self, promise: &Promise, last: When) -> Result<(), ChainError> {
        let outcome = match self.is_measured(promise, last).await? {
            true => Outcome::Passed,
            false => {
                tracing::error!(
                    round = promise.round,
                    "nothing was shown of this round's run in time"
                );
                Outcome::NotShown
            }
        };
        self.end(promise.key(), outcome).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use surety_gpu_proofs::{BATCHES, ROWS_MAX};

    use super::*;

    #[test]
    fn there_is_time_to_show_large_runs_and_it_has_an_end() {
        let plan = |rows| Plan { rows, layers: 8 };
        let second = Duration::from_secs(1);
        let least = time_to_show(plan(BATCHES), second * 26, 1, 0);
        assert!(second * 36 <= least && least <= second * 38, "{least:?}");
        // As many rows as a large device has: what is drawn of them are 80 trees of two million leaves.
        let large = time_to_show(plan(70 << 20), second * 26, 1, 0);
        assert!(large >= second * (36 + 18), "{large:?}");
        assert_eq!(
            time_to_show(plan(70 << 20), second * 26, 2, 0),
            large + second * 26
        );
        // Where the speed is not known: the whole window.
        let largest = |doubled| time_to_show(plan(ROWS_MAX), second * 60, 2, doubled);
        assert_eq!([1, 2].map(largest), [2, 4].map(|times| largest(0) * times));
        assert_eq!(largest(u32::MAX), largest(2));
        let opening = second * 20 * 60;
        assert!(largest(2) < opening, "{:?} of {opening:?}", largest(2));
    }

    #[test]
    fn memory_that_others_have_is_waited_for_and_a_device_that_fails_is_given_up() {
        let now = Instant::now();
        let then = now + SHOW_PAUSE;
        let mut showing = Showing::new(H256::zero(), now, now);
        let waited_for = [
            Trouble::Memory("others have it".into()),
            Trouble::NoPause("a promised result could be late".into()),
        ];
        for trouble in waited_for.iter().cycle().take(10 * SHOW_TRIES as usize) {
            showing.failed(trouble, now);
            assert!(!showing.may_try(now) && showing.may_try(then));
        }
        for _ in 0..SHOW_TRIES {
            assert!(showing.is_open());
            showing.failed(&Trouble::Device("it has vanished".into()), now);
        }
        assert!(!showing.is_open() && !showing.may_try(then));
    }

    #[test]
    fn a_run_takes_as_long_as_it_took_or_its_window() {
        let plan = Plan { rows: 64, layers: 9 };
        let second = Duration::from_secs(1);
        assert_eq!(run_time(plan, 3_500, None), second * 4);
        assert_eq!(run_time(plan, 3_500, Some(plan.operations() / 3)), second * 3);
        assert_eq!(run_time(plan, 3_500, Some(0)), second * 4);
    }
}
