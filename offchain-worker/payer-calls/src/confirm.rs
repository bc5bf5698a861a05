//! Vectors that others compute again: of a request's items each of them gets a few, which only this end
//! knows. Who computes exactly has the same vectors, bit by bit.
//!
//! Vectors are one chunk, paid ahead as a whole: a race over them would cost as many times their price as
//! there are racers. A sample costs its own, and whoever alters a share `x` of the items is found by each
//! that confirms with `1 - (1 - x)^m`, of `m` items. Who confirms is drawn among all that are fit: were it
//! the next best, two names that are cheap would confirm each other.

use std::{
    collections::BTreeSet,
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::Duration,
};

use surety_gateway::{Receipt, UpstreamError};
use tokio::{
    task::JoinSet,
    time::{Instant, timeout_at},
};

use crate::{
    AccountId,
    ask::{Asked, Failure, lost},
    market::{Shared, Way, named},
    race::paid,
    run::Run,
};

/// One in so many items is confirmed, and one at least.
const SHARE: usize = 8;

/// Who confirms is waited for as long again as the answer has taken, and for so long at least.
const WAITED: Duration = Duration::from_millis(500);

/// Places of some of so many items, in their order: the first by a secret of the moment.
pub(crate) fn sample(items: usize) -> Vec<usize> {
    let secret = RandomState::new();
    let mut places: Vec<usize> = (0..items).collect();
    places.sort_by_cached_key(|place| secret.hash_one(place));
    places.truncate(items.div_ceil(SHARE));
    places.sort_unstable();
    places
}

/// What each is asked: all get the same items, as who confirms does not know of the others.
pub(crate) struct Sample {
    pub places: Vec<usize>,
    pub asked: Asked,
}

struct Confirmed {
    provider: AccountId,
    bytes: Vec<u8>,
    receipt: Receipt,
}

/// Those who confirm an answer while it is made.
pub(crate) struct Confirmations {
    shared: Arc<Shared>,
    begun: Instant,
    places: Vec<usize>,
    asked: JoinSet<(u128, Result<Confirmed, UpstreamError>)>,
    /// What those may be paid who have not answered yet, in plancks.
    owed: u128,
}

/// What has come of them.
#[derive(Default)]
pub(crate) struct Outcome {
    /// What those have signed who have answered in time.
    pub receipts: Vec<Receipt>,
    /// What others may have been paid, in plancks.
    pub spent: u128,
    /// One that has signed other vectors.
    pub other: Option<AccountId>,
}

impl Confirmations {
    /// Asks `most` providers at most, none of those that are refused: any that are fit, so that whoever sells
    /// is not confirmed by its own second name alone.
    pub fn begin(shared: &Arc<Shared>, sample: Sample, refused: &BTreeSet<AccountId>, most: usize) -> Self {
        let (mut asked, mut owed) = (JoinSet::new(), 0u128);
        // Whoever asks more than the chain said may cost as much.
        let price = sample.asked.need.price(sample.asked.need.unit_price_max);
        let ways = shared.drawn_ways(&sample.asked.need, refused, most);
        if ways.is_empty() {
            tracing::warn!("nobody confirms an answer: no other provider can be asked now");
        }
        for (way, unit_price) in ways {
            let (shared, sample) = (shared.clone(), sample.asked.clone());
            owed = owed.saturating_add(price);
            asked.spawn(async move { (price, confirm(shared, &sample, way, unit_price).await) });
        }
        Self {
            shared: shared.clone(),
            begun: Instant::now(),
            places: sample.places,
            asked,
            owed,
        }
    }

    /// What they have said of an answer by `provider`, whose vectors have so many bytes each, where there is
    /// one. Those who are late are cancelled: vectors are paid ahead, so that all that they may cost counts.
    pub async fn end(mut self, provider: &AccountId, answer: Option<&[u8]>, vector_bytes: usize) -> Outcome {
        let begun = self.begun;
        let waited = begun.elapsed().max(WAITED);
        let until = Instant::now().checked_add(waited).unwrap_or(begun);
        let sampled = answer.map(|answer| {
            let vectors: Vec<&[u8]> = answer.chunks(vector_bytes.max(1)).collect();
            let places = self.places.iter();
            let sampled: Vec<&[u8]> = places.filter_map(|place| vectors.get(*place).copied()).collect();
            sampled.concat()
        });
        let mut outcome = Outcome::default();
        while let Ok(Some(asked)) = timeout_at(until, self.asked.join_next()).await {
            if let Ok((price, _)) = &asked {
                self.owed = self.owed.saturating_sub(*price);
            }
            match asked.map(|(_, confirmed)| confirmed) {
                Ok(Ok(confirmed)) => {
                    if sampled
                        .as_ref()
                        .is_some_and(|sampled| *sampled != confirmed.bytes)
                    {
                        self.shared.suspect(provider, &confirmed.provider);
                        outcome.other = Some(confirmed.provider);
                    }
                    outcome.receipts.push(confirmed.receipt);
                }
                Ok(Err(error)) => {
                    let (receipts, spent) = paid(error);
                    outcome.receipts.extend(receipts);
                    outcome.spent = outcome.spent.saturating_add(spent);
                }
                Err(error) => tracing::error!(%error, "who confirms an answer is lost"),
            }
        }
        outcome.spent = outcome.spent.saturating_add(self.owed);
        outcome
    }
}

impl Outcome {
    /// Nothing where all who have answered have signed the same.
    pub fn fault(&self, provider: &AccountId) -> Option<UpstreamError> {
        let other = self.other.as_ref()?;
        let why = format!("{} has signed other vectors of the same", named(other));
        Some(lost(provider, &why, 0))
    }
}

async fn confirm(
    shared: Arc<Shared>,
    asked: &Asked,
    way: Way,
    unit_price: u128,
) -> Result<Confirmed, UpstreamError> {
    let call = shared.ask(asked, way, unit_price).await;
    let call = call.map_err(|failure| match failure {
        Failure::Lost(error) => error,
        Failure::Next | Failure::Dearer => UpstreamError::Busy,
    })?;
    let mut run = Run::new(shared, call);
    let (bytes, receipt) = run.all().await?;
    let provider = run.provider().clone();
    Ok(Confirmed {
        provider,
        bytes,
        receipt,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_an_eighth_of_the_items_and_another_each_time() {
        for (items, sampled) in [(0, 0), (1, 1), (8, 1), (9, 2), (128, 16)] {
            let places = sample(items);
            assert_eq!(places.len(), sampled);
            assert!(places.is_sorted_by(|one, next| one < next));
            assert!(places.iter().all(|place| *place < items));
        }
        let drawn: BTreeSet<Vec<usize>> = (0..50).map(|_| sample(128)).collect();
        assert!(drawn.len() > 40);
    }
}
