//! Who is answered next. Where all places are taken, requests wait for one, and it goes to the key that has
//! fewest: nobody keeps others out by asking for much.

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
    /// Of keys that have any.
    taken: BTreeMap<String, usize>,
    /// Of keys that wait for any, in their order; with the order among all.
    waiting: BTreeMap<String, VecDeque<(u64, oneshot::Sender<Place>)>>,
    next: u64,
}

/// The places of calls.
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
        Self {
            places: Arc::new(Mutex::new(Places {
                free: places,
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
            match places.free.checked_sub(1) {
                Some(free) => {
                    places.free = free;
                    return Ok(self.given(&mut places, key));
                }
                None => places.wait(key).ok_or_else(ApiError::busy)?,
            }
        };
        match timeout(patience, given).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) | Err(_) => Err(ApiError::busy()),
        }
    }

    fn given(&self, places: &mut Places, key: &str) -> Place {
        let taken = places.taken.entry(key.to_owned()).or_default();
        *taken = taken.saturating_add(1);
        Place {
            admission: self.clone(),
            key: key.to_owned(),
        }
    }

    /// Calls that are answered, and requests that wait.
    pub fn counts(&self) -> (usize, usize) {
        let places = self.lock();
        let open = |waiting: &VecDeque<(u64, oneshot::Sender<Place>)>| {
            waiting.iter().filter(|(_, place)| !place.is_closed()).count()
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
    fn wait(&mut self, key: &str) -> Option<oneshot::Receiver<Place>> {
        let waiting = self.waiting.entry(key.to_owned()).or_default();
        // Whoever has hung up waits no more.
        waiting.retain(|(_, place)| !place.is_closed());
        if waiting.len() >= WAITING_MAX {
            return None;
        }
        let (give, given) = oneshot::channel();
        waiting.push_back((self.next, give));
        self.next = self.next.saturating_add(1);
        Some(given)
    }

    /// Whose turn it is: of the keys that have fewest, the one that waits longest.
    fn next(&mut self) -> Option<(String, oneshot::Sender<Place>)> {
        for waiting in self.waiting.values_mut() {
            while waiting.front().is_some_and(|(_, place)| place.is_closed()) {
                waiting.pop_front();
            }
        }
        self.waiting.retain(|_, waiting| !waiting.is_empty());
        let turn = |(key, waiting): &(&String, &VecDeque<(u64, oneshot::Sender<Place>)>)| {
            let taken = self.taken.get(*key).copied().unwrap_or(0);
            (taken, waiting.front().map(|(since, _)| *since))
        };
        let key = self.waiting.iter().min_by_key(turn)?.0.clone();
        let (_, give) = self.waiting.get_mut(&key)?.pop_front()?;
        Some((key, give))
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
    use futures::{FutureExt, future::join_all};
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

    /// In whatever order keys ask and places come back: who waits has at least as many as any that is given
    /// one instead of it.
    #[tokio::test]
    async fn a_place_goes_to_a_key_that_has_fewest_in_any_order_of_asking() {
        const KEYS: [&str; 4] = ["a", "b", "c", "d"];
        for seed in 1..=40u64 {
            let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut below = |bound: usize| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                (random % bound as u64) as usize
            };
            let admission = Admission::new(5);
            let mut taken: Vec<(usize, Place)> = Vec::new();
            let mut waiting = Vec::new();
            for _ in 0..120 {
                if below(5) < 3 && waiting.len() < WAITING_MAX {
                    // The first asks for most.
                    let key = below(KEYS.len()) * below(2);
                    let asking = asks(&admission, KEYS[key]).await;
                    if taken.len() < 5 {
                        taken.push((key, asking.await.unwrap().unwrap()));
                    } else {
                        waiting.push((key, asking));
                    }
                } else if !taken.is_empty() {
                    drop(taken.swap_remove(below(taken.len())));
                    let has = |key| taken.iter().filter(|(of, _)| *of == key).count();
                    let next = (0..waiting.len()).min_by_key(|at| (has(waiting[*at].0), *at));
                    if let Some(next) = next {
                        let (key, asking) = waiting.remove(next);
                        let place = timeout(LONG / 4, asking).await.expect("it is its turn");
                        taken.push((key, place.unwrap().unwrap()));
                    }
                }
                assert_eq!(admission.counts(), (taken.len(), waiting.len()));
            }
        }
    }
}
