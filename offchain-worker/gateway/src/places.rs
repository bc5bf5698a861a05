//! Who is answered next. Where all places are taken, requests wait for one, and it goes to the key that has
//! fewest; of several such keys to the one that has waited longest for its next. So while a key waits no
//! other is given more than one place more than it has; and one that has none gets one of the next few that
//! come back, as many as there are keys. Nobody keeps others out by asking for much. Where a key has a share,
//! it waits beyond that for places of its own, and what is free goes to others.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, oneshot},
    time::timeout,
};

use crate::error::ApiError;

/// Requests of a key that wait for a place.
const WAITING_MAX: usize = 32;

#[derive(Default)]
struct Places {
    free: usize,
    /// Most that a key has.
    of_key: usize,
    /// Of keys that have any.
    taken: BTreeMap<String, usize>,
    /// Keys that wait for one.
    waiting: BTreeMap<String, Waiting>,
    /// Counts whatever changes a key's turn.
    clock: u64,
}

/// A key that waits.
struct Waiting {
    /// When it began to, or was given a place last.
    since: u64,
    /// In their order.
    requests: VecDeque<oneshot::Sender<Place>>,
}

impl Waiting {
    /// Forgets whoever has hung up.
    fn prune(&mut self) {
        self.requests.retain(|place| !place.is_closed());
    }
}

/// The places of calls, of tasks, or of files that are given.
#[derive(Clone)]
pub(crate) struct Admission {
    places: Arc<Mutex<Places>>,
    /// Told whenever none is taken any more.
    idle: Arc<Notify>,
}

/// A place, until it is dropped.
pub(crate) struct Place {
    admission: Admission,
    key: String,
}

impl Admission {
    pub fn new(places: usize) -> Self {
        Self::shared(places, usize::MAX)
    }

    /// Places of which each key has so many at most.
    pub fn shared(places: usize, of_key: usize) -> Self {
        Self {
            places: Arc::new(Mutex::new(Places {
                free: places,
                of_key,
                ..Places::default()
            })),
            idle: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a request of a key, at once or within `patience`.
    ///
    /// # Errors
    /// That the gateway is busy.
    pub async fn place(&self, key: &str, patience: Duration) -> Result<Place, ApiError> {
        let given = {
            let mut places = self.lock();
            match places.take(key) {
                true => return Ok(self.given(&mut places, key)),
                false => places.wait(key).ok_or_else(ApiError::busy)?,
            }
        };
        match timeout(patience, given).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) | Err(_) => Err(ApiError::busy()),
        }
    }

    /// A place for a key, where it needs not wait.
    pub fn try_place(&self, key: &str) -> Option<Place> {
        let mut places = self.lock();
        places.take(key).then(|| self.given(&mut places, key))
    }

    fn given(&self, places: &mut Places, key: &str) -> Place {
        let taken = places.taken.entry(key.to_owned()).or_default();
        *taken = taken.saturating_add(1);
        Place {
            admission: self.clone(),
            key: key.to_owned(),
        }
    }

    /// Places that are taken, and requests that wait.
    pub fn counts(&self) -> (usize, usize) {
        let places = self.lock();
        let open = |waiting: &Waiting| {
            let requests = waiting.requests.iter();
            requests.filter(|place| !place.is_closed()).count()
        };
        (
            places.taken.values().sum(),
            places.waiting.values().map(open).sum(),
        )
    }

    /// Waits until no place is taken.
    pub async fn idle(&self) {
        loop {
            // Before it is looked, so that nothing is missed.
            let told = self.idle.notified();
            if self.lock().taken.is_empty() {
                return;
            }
            told.await;
        }
    }
}

impl Places {
    fn has(&self, key: &str) -> usize {
        self.taken.get(key).copied().unwrap_or(0)
    }

    /// Takes a free one, where there is one for this key. Nobody who might have it waits then.
    fn take(&mut self, key: &str) -> bool {
        let free = self.free.checked_sub(1).filter(|_| self.has(key) < self.of_key);
        if let Some(free) = free {
            self.free = free;
        }
        free.is_some()
    }

    /// Nothing where too many of its requests wait already.
    fn wait(&mut self, key: &str) -> Option<oneshot::Receiver<Place>> {
        let since = self.tick();
        let waiting = self.waiting.entry(key.to_owned()).or_insert_with(|| Waiting {
            since,
            requests: VecDeque::new(),
        });
        waiting.prune();
        if waiting.requests.is_empty() {
            waiting.since = since;
        }
        if waiting.requests.len() >= WAITING_MAX {
            return None;
        }
        let (give, given) = oneshot::channel();
        waiting.requests.push_back(give);
        Some(given)
    }

    /// Whose turn it is.
    fn next(&mut self) -> Option<(String, oneshot::Sender<Place>)> {
        let since = self.tick();
        self.waiting.retain(|_, waiting| {
            waiting.prune();
            !waiting.requests.is_empty()
        });
        let turn = |(key, waiting): &(&String, &Waiting)| (self.has(key), waiting.since);
        let waiting = self.waiting.iter().filter(|(key, _)| self.has(key) < self.of_key);
        let key = waiting.min_by_key(turn)?.0.clone();
        let waiting = self.waiting.get_mut(&key)?;
        waiting.since = since;
        let give = waiting.requests.pop_front()?;
        Some((key, give))
    }

    const fn tick(&mut self) -> u64 {
        self.clock = self.clock.wrapping_add(1);
        self.clock
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let admission = self.admission.clone();
        let mut places = admission.lock();
        if let Some(taken) = places.taken.get_mut(&self.key) {
            *taken = taken.saturating_sub(1);
            if *taken == 0 {
                places.taken.remove(&self.key);
            }
        }
        let Some((key, give)) = places.next() else {
            places.free = places.free.saturating_add(1);
            if places.taken.is_empty() {
                admission.idle.notify_waiters();
            }
            return;
        };
        let place = admission.given(&mut places, &key);
        // Outside of the lock: whoever has hung up meanwhile gives it back by this.
        drop(places);
        drop(give.send(place));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use futures::{
        FutureExt,
        future::{LocalBoxFuture, join_all},
    };
    use tokio::task::{JoinHandle, yield_now};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// Asks for a place, and is in the queue when this returns.
    async fn asks(admission: &Admission, key: &'static str) -> JoinHandle<Result<Place, ApiError>> {
        let (admission, before) = (admission.clone(), admission.counts());
        let asked = admission.clone();
        let asking = tokio::spawn(async move { asked.place(key, LONG).await });
        while admission.counts() == before {
            yield_now().await;
        }
        asking
    }

    #[tokio::test]
    async fn a_key_that_asks_for_all_keeps_nobody_out() {
        let admission = Admission::new(3);
        let greedy = join_all((0..3).map(|_| admission.place("greedy", LONG))).await;
        let mut greedy: Vec<Place> = greedy.into_iter().map(Result::unwrap).collect();
        let more = asks(&admission, "greedy").await;
        let modest = asks(&admission, "modest").await;
        let second = asks(&admission, "modest").await;
        // The greedy one has waited longer, and the other has fewer.
        drop(greedy.pop());
        let modest = modest.await.unwrap().unwrap();
        // Now they have as many.
        drop(greedy.pop());
        let more = more.await.unwrap().unwrap();
        drop(greedy.pop());
        let second = second.await.unwrap().unwrap();
        assert_eq!(admission.counts(), (3, 0));
        drop((modest, more, second));
        assert_eq!(admission.counts(), (0, 0));
    }

    #[tokio::test]
    async fn beyond_its_share_a_key_waits_for_its_own_and_what_is_free_is_for_others() {
        let admission = Admission::shared(2, 1);
        let first = admission.try_place("greedy").unwrap();
        assert!(admission.try_place("greedy").is_none());
        let more = asks(&admission, "greedy").await;
        // It has waited longer, and one place is free.
        let modest = admission.place("modest", LONG).now_or_never().unwrap().unwrap();
        assert_eq!(admission.counts(), (2, 1));
        assert!(admission.try_place("third").is_none());
        drop(modest);
        assert_eq!(admission.counts(), (1, 1));
        drop(first);
        let more = more.await.unwrap().unwrap();
        assert_eq!(admission.counts(), (1, 0));
        drop(more);
        let both = ["modest", "third"].map(|key| admission.try_place(key));
        assert!(both.iter().all(Option::is_some));
    }

    #[tokio::test]
    async fn a_place_given_to_whoever_hung_up_is_not_lost() {
        let admission = Admission::new(1);
        let place = admission.place("a", LONG).await.unwrap();
        let [gone, waits] = [asks(&admission, "b").await, asks(&admission, "c").await];
        gone.abort();
        assert!(gone.await.is_err());
        drop(place);
        let place = waits.await.unwrap().unwrap();
        assert_eq!(admission.counts(), (1, 0));
        // And what is given back last is seen by whoever waits for that.
        let idle = admission.idle();
        drop(place);
        idle.await;
        assert_eq!(admission.counts(), (0, 0));
    }

    #[tokio::test]
    async fn nobody_waits_for_ever_nor_without_bound() {
        let admission = Admission::new(1);
        let place = admission.place("a", LONG).await.unwrap();
        assert!(admission.place("b", Duration::from_millis(5)).await.is_err());
        let mut waiting = Vec::new();
        for _ in 0..WAITING_MAX {
            waiting.push(asks(&admission, "b").await);
        }
        // What does not even wait needs no patience.
        assert!(admission.place("b", LONG).now_or_never().unwrap().is_err());
        drop(place);
        assert!(waiting.remove(0).await.unwrap().is_ok());
    }

    /// A model of who asks, waits and is answered, beside the real thing.
    struct Asked {
        admission: Admission,
        taken: Vec<(usize, Place)>,
        waiting: Vec<(usize, LocalBoxFuture<'static, Result<Place, ApiError>>)>,
        /// Of keys that wait and have none: how often others were given one since.
        passed: BTreeMap<usize, usize>,
    }

    impl Asked {
        fn has(&self, key: usize) -> usize {
            self.taken.iter().filter(|(of, _)| *of == key).count()
        }

        fn ask(&mut self, key: usize) {
            let admission = self.admission.clone();
            let mut asking = Box::pin(async move { admission.place(&format!("key {key}"), LONG).await });
            match asking.as_mut().now_or_never() {
                Some(given) => self.taken.extend(given.ok().map(|place| (key, place))),
                None => self.waiting.push((key, asking)),
            }
        }

        /// Who has been given a place since it was looked last: one at most.
        fn look(&mut self) {
            let polled = self.waiting.iter_mut().enumerate();
            let mut given = polled.filter_map(|(at, (_, asking))| {
                let place = asking.as_mut().now_or_never()?;
                Some((at, place.unwrap_or_else(|_| panic!("it was patient"))))
            });
            let (first, second) = (given.next(), given.next().is_some());
            assert!(!second, "one place came back");
            let Some((at, place)) = first else {
                // A place that is free is nobody's to wait for.
                assert!(self.waiting.is_empty() || self.taken.len() == PLACES);
                return;
            };
            let (key, _) = self.waiting.remove(at);
            self.taken.push((key, place));
            self.passed.remove(&key);
            for (other, _) in &self.waiting {
                assert!(
                    self.has(key) <= self.has(*other) + 1,
                    "{key} has more than {other}"
                );
            }
            for passed in self.passed.values_mut() {
                *passed += 1;
                assert!(*passed < KEYS, "a key that has none is passed over again");
            }
        }

        /// Keys that have none and wait.
        fn note(&mut self) {
            let waits = |key: &usize| self.waiting.iter().any(|(of, _)| of == key) && self.has(*key) == 0;
            let without: Vec<usize> = (0..KEYS).filter(waits).collect();
            self.passed.retain(|key, _| without.contains(key));
            for key in without {
                self.passed.entry(key).or_default();
            }
        }
    }

    const KEYS: usize = 7;
    const PLACES: usize = 5;

    /// Keys ask, hang up and are done in any order, some of them all the time: while a key waits no other is
    /// given more than one place more than it has, and one that has none is passed over once by each other.
    #[tokio::test]
    async fn no_key_gets_more_than_one_place_more_than_one_that_waits_and_none_starves() {
        // Futures that are polled by hand have no budget that comes back.
        tokio::task::unconstrained(async {
            for seed in 1..=60u64 {
                let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let mut below = |bound: usize| {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    (random % bound as u64) as usize
                };
                let mut asked = Asked {
                    admission: Admission::new(PLACES),
                    taken: Vec::new(),
                    waiting: Vec::new(),
                    passed: BTreeMap::new(),
                };
                for _ in 0..400 {
                    match below(10) {
                        // The first asks for most.
                        0..5 => asked.ask(below(KEYS) * below(2)),
                        5..9 if !asked.taken.is_empty() => {
                            drop(asked.taken.swap_remove(below(asked.taken.len())));
                        }
                        9 if !asked.waiting.is_empty() => {
                            drop(asked.waiting.remove(below(asked.waiting.len())));
                        }
                        _ => {}
                    }
                    asked.look();
                    asked.note();
                    let counts = (asked.taken.len(), asked.waiting.len());
                    assert_eq!(asked.admission.counts(), counts);
                }
            }
        })
        .await;
    }
}
