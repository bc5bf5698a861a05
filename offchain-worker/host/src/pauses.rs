//! Has the engines stand aside for a while, for what needs the machine to itself.
//!
//! A job on each driver of the pool takes the engines' time and does nothing with it. It is of the priority
//! of audits: results for clients wait for it, moves in disputes and votes do not. It begins only if no
//! promised result is late for it.
//!
//! What is promised would always be in the way where a provider goes on bidding for whatever fits, or where
//! somebody posts tasks and takes them back. So whoever waits for a pause has nothing new bid for meanwhile
//! ([`Hold`]), and so has an attempt that was refused, for a while: what is promised is done in minutes.

use std::{
    ops::ControlFlow,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use surety_engine::{EngineError, EnginePool, Event, JobSink, Priority, Sink, Ticket};
use surety_types::model::Operation;
use tokio::time::timeout;

use super::compute::OwnTime;

/// How long engines may take to stand aside: they do at the next event of what they run.
const ASIDE: Duration = Duration::from_secs(5);

/// How often a pause looks whether it is over, or something more urgent waits.
const LOOK: Duration = Duration::from_millis(20);

/// For how long an attempt that was refused has nothing new bid for: longer than until the next one of the
/// benchmark's, and no longer where none comes.
const HELD: Duration = Duration::from_secs(60);

/// Why the engines do not stand aside.
#[derive(Debug, thiserror::Error)]
pub enum PauseError {
    /// It is not known yet what is promised.
    #[error("it is not known yet what was promised")]
    Unknown,
    /// Something would be late.
    #[error("a promised result could be late: there are {} s to spare", .spare.as_secs())]
    Promised {
        /// For how long nothing has to be computed.
        spare: Duration,
    },
    /// What runs does not stand aside, or others wait to.
    #[error("what is being computed does not stand aside")]
    Busy,
    /// There are no engines any more.
    #[error(transparent)]
    Engines(#[from] EngineError),
}

/// Until when nothing has to be computed.
#[derive(Clone, Copy, Debug)]
enum Spare {
    Unknown,
    Until(Instant),
    Always,
}

/// What has engines stand aside. Clones are the same.
#[derive(Clone)]
pub struct Pauses {
    pool: Weak<EnginePool>,
    /// Other pools on the same machine.
    others: Arc<Mutex<Vec<Weak<EnginePool>>>>,
    spare: Arc<Mutex<Spare>>,
    /// Until when each lasts.
    lasting: Moments,
    /// Until when each has nothing new bid for.
    held: Moments,
    /// What the last attempt has left, where it was refused.
    refused: Arc<Mutex<Option<Hold>>>,
    /// Whether tokens over channels have to stand aside: they are chosen where pauses are for.
    tokens: Arc<AtomicBool>,
}

/// Moments that are held by one each: what gives its own back, or does not come about, ends no other.
#[derive(Clone, Default)]
struct Moments(Arc<Mutex<Vec<Weak<Instant>>>>);

impl Moments {
    /// The moment after so long, while it is held.
    fn after(&self, time: Duration) -> Arc<Instant> {
        let now = Instant::now();
        let moment = Arc::new(now.checked_add(time).unwrap_or(now));
        let mut moments = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        moments.retain(|other| other.strong_count() > 0);
        moments.push(Arc::downgrade(&moment));
        moment
    }

    /// Whether one of them is still to come.
    fn any_to_come(&self) -> bool {
        let moments = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut moments = moments.iter().filter_map(Weak::upgrade);
        let now = Instant::now();
        moments.any(|moment| now < *moment)
    }
}

/// While it is there, and for no longer than it was asked for, nothing new is bid for. What is promised goes
/// on, and so does what is asked for over channels.
#[must_use]
pub struct Hold {
    _until: Arc<Instant>,
}

/// While it is there, engines compute nothing but what a clock runs against.
pub struct Pause {
    tickets: Vec<Ticket<()>>,
    _lasting: Arc<Instant>,
}

impl Drop for Pause {
    fn drop(&mut self) {
        self.tickets.iter().for_each(Ticket::cancel);
    }
}

impl Pauses {
    pub(super) fn new(pool: &Arc<EnginePool>) -> Self {
        Self {
            pool: Arc::downgrade(pool),
            others: Arc::default(),
            spare: Arc::new(Mutex::new(Spare::Unknown)),
            lasting: Moments::default(),
            held: Moments::default(),
            refused: Arc::default(),
            // Without a device pauses are for what runs on the processor.
            tokens: Arc::new(AtomicBool::new(pool.devices().is_empty())),
        }
    }

    /// Has another pool on this machine stand aside as well.
    pub fn add(&self, pool: &Arc<EnginePool>) {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        others.retain(|other| other.strong_count() > 0);
        others.push(Arc::downgrade(pool));
    }

    /// Tokens over channels are chosen on the devices.
    pub fn tokens_on_devices(&self) {
        self.tokens.store(true, Ordering::Relaxed);
    }

    /// Whether engines stand aside, or are asked to.
    fn lasts(&self) -> bool {
        self.lasting.any_to_come()
    }

    /// Has nothing new bid for, for so long at most: whoever is to ask for a pause shall not find more in its
    /// way than there is now.
    pub fn hold(&self, at_most: Duration) -> Hold {
        Hold {
            _until: self.held.after(at_most),
        }
    }

    /// Whether nothing new is to be bid for: a pause lasts, or is waited for.
    pub(super) fn bars_bids(&self) -> bool {
        self.lasts() || self.held.any_to_come()
    }

    /// Whether a pause lasts that what is asked for now over channels would have to wait for, or would take
    /// time from. Vectors wait for the end of any. Tokens wait for none: they are in the way of what runs
    /// where they are chosen, the processor unless a device does that, and of nothing elsewhere.
    pub fn concerns(&self, operation: Operation) -> bool {
        let is_concerned = match operation {
            Operation::Embed => true,
            Operation::Generate => self.tokens.load(Ordering::Relaxed),
        };
        is_concerned && self.lasts()
    }

    /// Takes note of how long nothing has to be computed from now on; nothing: as long as nobody says more.
    pub(super) fn note(&self, spare: Option<Duration>) {
        let noted = match spare {
            Some(spare) => Spare::Until(Instant::now() + spare),
            None => Spare::Always,
        };
        *self.spare.lock().unwrap_or_else(PoisonError::into_inner) = noted;
    }

    /// For how long nothing has to be computed; nothing where nothing is promised.
    fn spare(&self) -> Result<Option<Duration>, PauseError> {
        match *self.spare.lock().unwrap_or_else(PoisonError::into_inner) {
            Spare::Unknown => Err(PauseError::Unknown),
            Spare::Until(until) => Ok(Some(until.saturating_duration_since(Instant::now()))),
            Spare::Always => Ok(None),
        }
    }

    /// Returns once all engines stand aside, which they do until the pause is dropped, for `at_most` so long.
    ///
    /// # Errors
    /// [`PauseError`]: nothing stands aside then. Nothing new is bid for until the next attempt, or for a
    /// minute where there is none.
    pub async fn begin(&self, at_most: Duration) -> Result<Pause, PauseError> {
        // From now on nothing more is bid for.
        let hold = self.hold(HELD);
        let begun = self.try_begin(at_most).await;
        let refused = begun.is_err().then_some(hold);
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = refused;
        begun
    }

    async fn try_begin(&self, at_most: Duration) -> Result<Pause, PauseError> {
        let lasting = self.lasting.after(at_most.saturating_add(ASIDE));
        self.ensure_spare(at_most)?;
        let aside = |pool: Arc<EnginePool>| {
            let drivers = pool.devices().len().max(1);
            (0..drivers)
                .map(|_| pool.work(Priority::Audit, move |sink| stand_aside(sink, at_most)))
                .collect::<Result<Vec<_>, _>>()
        };
        let mut tickets = aside(self.pool.upgrade().ok_or(EngineError::Closed)?)?;
        // The others do so when they can: no dispute over a channel keeps this provider from a run.
        let others = self.others.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let others = others.iter().filter_map(Weak::upgrade).map(aside);
        let others = others.collect::<Result<Vec<_>, _>>()?;
        let all = async {
            for mut progress in tickets.iter().map(Ticket::progress).collect::<Vec<_>>() {
                progress.wait_for(|progress| progress.done > 0).await?;
            }
            Ok::<_, tokio::sync::watch::error::RecvError>(())
        };
        let Ok(Ok(())) = timeout(ASIDE, all).await else {
            return Err(PauseError::Busy);
        };
        // Something may have been promised meanwhile.
        self.ensure_spare(at_most)?;
        tickets.extend(others.into_iter().flatten());
        Ok(Pause {
            tickets,
            _lasting: lasting,
        })
    }

    fn ensure_spare(&self, at_most: Duration) -> Result<(), PauseError> {
        match self.spare()? {
            Some(spare) if spare < at_most.saturating_add(ASIDE) => Err(PauseError::Promised { spare }),
            _ => Ok(()),
        }
    }
}

/// Takes the engine's time until it is cancelled, or has taken enough of it.
fn stand_aside(sink: &mut JobSink, at_most: Duration) -> Result<(), EngineError> {
    // What it has interrupted is not slower for it.
    let _time = OwnTime::start();
    let began = Instant::now();
    let (done, total) = (1, 1);
    while began.elapsed() < at_most {
        if let ControlFlow::Break(()) = sink.event(Event::Progress { done, total }) {
            return Err(EngineError::Cancelled);
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use surety_engine::PoolConfig;

    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    fn pauses() -> (Arc<EnginePool>, Pauses) {
        let config = PoolConfig {
            threads: 1,
            ..PoolConfig::default()
        };
        let pool = Arc::new(EnginePool::new(config).unwrap());
        let pauses = Pauses::new(&pool);
        (pool, pauses)
    }

    #[tokio::test]
    async fn clients_work_waits_for_the_end_of_a_pause_and_moves_do_not() {
        let (pool, pauses) = pauses();
        pauses.note(None);
        let pause = pauses.begin(LONG).await.unwrap();
        let mut result = pool.work(Priority::Inference, |_| Ok(())).unwrap();
        pool.work(Priority::Urgent, |_| Ok(())).unwrap().await.unwrap();
        assert!(futures::poll!(&mut result).is_pending());
        drop(pause);
        result.await.unwrap();
    }

    #[tokio::test]
    async fn what_is_computed_over_channels_waits_as_well() {
        let ((_pool, pauses), (over_channels, _)) = (pauses(), pauses());
        pauses.add(&over_channels);
        pauses.note(None);
        let pause = pauses.begin(LONG).await.unwrap();
        let mut result = over_channels.work(Priority::Inference, |_| Ok(())).unwrap();
        let urgent = over_channels.work(Priority::Urgent, |_| Ok(()));
        urgent.unwrap().await.unwrap();
        assert!(futures::poll!(&mut result).is_pending());
        drop(pause);
        result.await.unwrap();
        // A pool that has ended holds up nothing.
        drop(over_channels);
        drop(pauses.begin(LONG).await.unwrap());
    }

    #[tokio::test]
    async fn it_is_known_whether_a_pause_lasts() {
        let (_pool, pauses) = pauses();
        pauses.note(None);
        assert!(!pauses.lasts());
        let pause = pauses.begin(LONG).await.unwrap();
        assert!(pauses.lasts());
        drop(pause);
        assert!(!pauses.lasts());
        pauses.note(Some(Duration::ZERO));
        assert!(pauses.begin(LONG).await.is_err());
        assert!(!pauses.lasts(), "one that has not come about");
    }

    #[tokio::test]
    async fn what_is_promised_gets_less_until_a_pause_that_was_refused_comes_about() {
        let (_pool, pauses) = pauses();
        // A provider that bids for whatever fits has no time to spare until it bids for nothing.
        let mut spare = Duration::ZERO;
        let mut attempts = 0;
        let pause = loop {
            spare = match pauses.bars_bids() {
                true => spare + LONG,
                false => Duration::ZERO,
            };
            pauses.note(Some(spare));
            match pauses.begin(LONG).await {
                Ok(pause) => break pause,
                Err(error) => assert!(matches!(error, PauseError::Promised { .. }), "{error}"),
            }
            assert!(!pauses.lasts(), "whoever asks over channels is answered");
            attempts += 1;
            assert!(attempts < 9, "{spare:?} to spare");
        };
        assert!(pauses.bars_bids());
        drop(pause);
        assert!(!pauses.bars_bids());
    }

    #[tokio::test]
    async fn nothing_is_held_up_by_who_has_given_up_or_is_lost() {
        let (_pool, pauses) = pauses();
        let (one, other) = (pauses.hold(LONG), pauses.hold(LONG));
        assert!(pauses.bars_bids() && !pauses.lasts());
        drop(one);
        assert!(pauses.bars_bids());
        drop(other);
        assert!(!pauses.bars_bids());
        let _lost = pauses.hold(Duration::ZERO);
        assert!(!pauses.bars_bids(), "its time is over");
    }

    #[tokio::test]
    async fn a_pause_that_does_not_come_about_ends_none_that_lasts() {
        let (_pool, pauses) = pauses();
        pauses.note(None);
        let first = pauses.begin(LONG).await.unwrap();
        pauses.note(Some(Duration::ZERO));
        assert!(pauses.begin(LONG).await.is_err());
        assert!(pauses.lasts());
        drop(first);
        assert!(!pauses.lasts());
    }

    #[tokio::test]
    async fn a_pause_for_the_processor_concerns_tokens_as_well_as_vectors_and_only_while_it_lasts() {
        let (_pool, pauses) = pauses();
        pauses.note(None);
        let concerned = || Operation::ALL.map(|operation| pauses.concerns(operation));
        assert_eq!(concerned(), [false, false]);
        let pause = pauses.begin(LONG).await.unwrap();
        assert_eq!(concerned(), [true, true]);
        drop(pause);
        assert_eq!(concerned(), [false, false]);
    }

    #[tokio::test]
    async fn nothing_stands_aside_while_a_promised_result_could_be_late_or_before_promises_are_known() {
        let (_pool, pauses) = pauses();
        assert!(matches!(pauses.begin(LONG).await, Err(PauseError::Unknown)));
        pauses.note(Some(LONG));
        assert!(matches!(
            pauses.begin(LONG).await,
            Err(PauseError::Promised { .. })
        ));
        pauses.note(Some(LONG * 2));
        drop(pauses.begin(LONG).await.unwrap());
    }
}
