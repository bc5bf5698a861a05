//! What is known of providers beside what the chain says: how they have answered here, and what they wanted.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use surety_chain_client::OfferView;
use surety_types::{ModelId, model::Operation};
use tokio::time::Instant;

use crate::{
    AccountId,
    market::{Shared, named},
    record::Record,
};

/// A provider that had no place is not asked again for so long.
const BUSY: Duration = Duration::from_secs(2);

/// One of two that have signed different answers to the same is not asked again for so long: nobody here
/// knows which of them has lied.
const SUSPECT: Duration = Duration::from_secs(600);

/// For so long somebody is taken to want as much for a unit as it has said, unless the chain says so before,
/// and to sell no more at once than it has said.
const SAID: Duration = Duration::from_secs(600);

/// What is known of one provider.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub record: Record,
    busy_until: Option<Instant>,
    suspect_until: Option<Instant>,
    /// What it wanted for a unit, in plancks, and until when it is taken to.
    wanted: BTreeMap<(ModelId, Operation), (u128, Instant)>,
    /// What one request may cost there, in plancks, and until when it is taken to.
    price_max: Option<(u128, Instant)>,
}

impl Known {
    pub fn is_busy(&self, now: Instant) -> bool {
        self.busy_until.is_some_and(|until| now < until)
    }

    pub fn is_suspect(&self, now: Instant) -> bool {
        self.suspect_until.is_some_and(|until| now < until)
    }

    /// What a unit costs there, in plancks: what the chain says, or what it wanted lately where that is more.
    pub fn unit_price(&self, offer: &OfferView, now: Instant) -> u128 {
        let wanted = self.wanted.get(&(offer.model, offer.operation));
        let wanted = wanted.filter(|(_, until)| now < *until);
        wanted.map_or(0, |(wanted, _)| *wanted).max(offer.unit_price)
    }

    /// Whether it can sell a request that costs so much, in plancks: no more than the chain says, nor than it
    /// has said itself.
    pub fn can_sell(&self, offer: &OfferView, price: u128, now: Instant) -> bool {
        let price_max = self.price_max.filter(|(_, until)| now < *until);
        offer.room >= price && price_max.is_none_or(|(most, _)| price <= most)
    }
}

/// What is known of all of them.
pub(crate) struct Memory {
    known: Mutex<BTreeMap<AccountId, Known>>,
    begun: Instant,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
            begun: Instant::now(),
        }
    }
}

impl Memory {
    /// Milliseconds of the clock that records are by.
    pub fn now_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub fn of(&self, provider: &AccountId) -> Known {
        self.all().get(provider).cloned().unwrap_or_default()
    }

    /// What a finalised block offers. Of those that offer nothing what speaks against them is kept as long as
    /// it does: nobody gets rid of it by offering again.
    pub fn see(&self, offers: &[OfferView]) {
        let (clock, now) = (Instant::now(), self.now_ms());
        let offered: BTreeSet<_> = offers.iter().map(|offer| &offer.provider).collect();
        let mut all = self.all();
        all.retain(|provider, known| {
            offered.contains(provider) || known.record.has_failed(now) || known.is_suspect(clock)
        });
        // Where the chain says as much by now it is followed again, also down.
        for offer in offers {
            let of = (offer.model, offer.operation);
            let wanted = all.get_mut(&offer.provider).map(|known| &mut known.wanted);
            if let Some(wanted) = wanted
                && wanted
                    .get(&of)
                    .is_some_and(|(wanted, _)| *wanted <= offer.unit_price)
            {
                wanted.remove(&of);
            }
        }
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<AccountId, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is remembered of a provider.
    fn note(&self, provider: &AccountId, note: impl FnOnce(&mut Known, u64)) {
        let now = self.now_ms();
        note(self.all().entry(provider.clone()).or_default(), now);
    }
}

impl Shared {
    pub fn failed(&self, provider: &AccountId) {
        self.known.note(provider, |known, now| known.record.failed(now));
    }

    pub fn answered(&self, provider: &AccountId, after: Duration) {
        let latency = u32::try_from(after.as_millis()).unwrap_or(u32::MAX);
        self.known
            .note(provider, |known, _| known.record.answered(latency));
    }

    /// It does not take a request. That counts against whoever says on the chain that it `has_place`, once
    /// for all that ask it in the same moment.
    pub fn refused(&self, provider: &AccountId, has_place: bool) {
        let now = Instant::now();
        self.known.note(provider, |known, now_ms| {
            if has_place && !known.is_busy(now) {
                known.record.refused(now_ms);
            }
            known.busy_until = now.checked_add(BUSY);
        });
    }

    /// It takes a request for so much for a unit, in plancks, and not for what the chain says. False where it
    /// was asked for what it has wanted by itself.
    pub fn wants_more(
        &self,
        provider: &AccountId,
        (model, operation): (ModelId, Operation),
        unit_price: u128,
    ) -> bool {
        let now = Instant::now();
        let until = now.checked_add(SAID).unwrap_or(now);
        let mut is_first = true;
        self.known.note(provider, |known, _| {
            let before = known.wanted.insert((model, operation), (unit_price, until));
            is_first = before.is_none_or(|(_, until)| until <= now);
        });
        is_first
    }

    /// It sells no request that costs more, in plancks.
    pub fn sells_no_more(&self, provider: &AccountId, price_max: u128) {
        let now = Instant::now();
        let until = now.checked_add(SAID).unwrap_or(now);
        self.known
            .note(provider, |known, _| known.price_max = Some((price_max, until)));
    }

    /// Two have signed different answers to the same.
    pub fn suspect(&self, one: &AccountId, other: &AccountId) {
        let until = Instant::now().checked_add(SUSPECT);
        let (first, second) = (named(one), named(other));
        tracing::error!(
            first,
            second,
            "two providers have signed different answers to the same: one of them lies"
        );
        for provider in [one, other] {
            self.failed(provider);
            self.known.note(provider, |known, _| known.suspect_until = until);
        }
    }
}
