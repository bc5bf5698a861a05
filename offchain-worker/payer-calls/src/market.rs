//! What is offered, by a finalised block, and who can be asked.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{BuildHasher, RandomState},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use surety_chain_client::{ChannelRules, OfferView, address};
use surety_channels::{ChannelId, Time};
use surety_types::{ModelId, model::Operation, multiaddr::Endpoint};
use tokio::{sync::watch, time::Instant};

use crate::{
    AccountId,
    channel::{CallId, Handle, NoPlace, Place},
    choose::{Candidate, Record, chosen, rank},
    config::Config,
    cover::{Cover, Promised},
    funds::Want,
};

/// A provider that had no place is not asked again for so long.
const BUSY: Duration = Duration::from_secs(2);

/// One of two that have signed different answers to the same is not asked again for so long: nobody here
/// knows which of them has lied.
const SUSPECT: Duration = Duration::from_secs(600);

/// Channels that are wanted: whoever wants more waits for these first.
const WANTS_MAX: usize = 64;

/// What a finalised block says.
#[derive(Clone)]
pub(crate) struct Market {
    pub now: Time,
    pub rules: ChannelRules,
    /// Of the models that can be asked for here.
    pub offers: Vec<OfferView>,
    /// Where providers answer; nothing of those that are not registered.
    pub endpoints: BTreeMap<AccountId, Vec<Endpoint>>,
    /// What those stand behind that this payer has channels to.
    pub covers: BTreeMap<AccountId, Cover>,
    /// This payer's channels.
    pub channels: BTreeMap<ChannelId, Arc<Handle>>,
}

/// What is known of a provider beside what the chain says.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    record: Record,
    busy_until: Option<Instant>,
    suspect_until: Option<Instant>,
}

/// What all parts share.
pub(crate) struct Shared {
    pub config: Config,
    market: RwLock<Arc<Market>>,
    known: Mutex<BTreeMap<AccountId, Known>>,
    wants: Mutex<Vec<Want>>,
    /// Held while it is looked whether a provider's lock covers a request, and until that has its place.
    placing: Mutex<()>,
    begun: Instant,
    calls: AtomicU64,
    /// Told whenever somebody may be answered who could not be before.
    pub changed: watch::Sender<u64>,
    /// Told when somebody wants a channel, or money in one.
    pub wanted: tokio::sync::Notify,
}

/// What is asked of a provider.
#[derive(Clone, Debug)]
pub(crate) struct Need {
    pub model: ModelId,
    pub operation: Operation,
    /// Most units that are paid for.
    pub units: u32,
    /// Most that a unit may cost, in plancks.
    pub unit_price_max: u128,
}

impl Need {
    pub fn price(&self, unit_price: u128) -> u128 {
        unit_price.saturating_mul(self.units.into())
    }
}

/// A way to a provider.
pub(crate) struct Way {
    pub handle: Arc<Handle>,
    pub place: Place,
    pub endpoints: Vec<Endpoint>,
}

/// Why there is none now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoWay {
    /// All its channels are full.
    #[error("all channels to it are full")]
    Full,
    /// No channel has the money for it.
    #[error("its channels have too little money")]
    Exhausted,
    /// There is no channel to it.
    #[error("there is no channel to it")]
    NoChannel,
    /// Its lock covers no more, until what is open has ended.
    #[error("its lock covers no more than what is being answered may cost")]
    Covering,
    /// Its lock covers no more, until batches are final and counted.
    #[error("its lock covers no more than what was asked and is in no final batch: others are asked")]
    Uncovered,
}

impl Shared {
    pub fn new(config: Config, market: Market, changed: watch::Sender<u64>) -> Self {
        Self {
            config,
            market: RwLock::new(Arc::new(market)),
            known: Mutex::default(),
            wants: Mutex::default(),
            placing: Mutex::default(),
            begun: Instant::now(),
            calls: AtomicU64::new(0),
            changed,
            wanted: tokio::sync::Notify::new(),
        }
    }

    pub fn next_call(&self) -> CallId {
        self.calls.fetch_add(1, Relaxed)
    }

    pub fn market(&self) -> Arc<Market> {
        self.market.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A finalised block says something else.
    pub fn see(&self, market: Market) {
        let offered: BTreeSet<_> = market.offers.iter().map(|offer| offer.provider.clone()).collect();
        self.known().retain(|provider, _| offered.contains(provider));
        // What is still wanted is wanted again.
        self.wants().clear();
        *self.market.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(market);
        self.changed.send_modify(|times| *times = times.wrapping_add(1));
    }

    pub fn wants(&self) -> MutexGuard<'_, Vec<Want>> {
        self.wants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<AccountId, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Changes what is remembered of a provider.
    fn note(&self, provider: &AccountId, note: impl FnOnce(&mut Known, u64)) {
        let now = self.now_ms();
        note(self.known().entry(provider.clone()).or_default(), now);
    }

    pub fn failed(&self, provider: &AccountId) {
        self.note(provider, |known, now| known.record.failed(now));
    }

    pub fn answered(&self, provider: &AccountId, after: Duration) {
        let latency = u32::try_from(after.as_millis()).unwrap_or(u32::MAX);
        self.note(provider, |known, _| known.record.answered(latency));
    }

    pub fn busy(&self, provider: &AccountId) {
        let until = Instant::now().checked_add(BUSY);
        self.note(provider, |known, _| known.busy_until = until);
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
            self.note(provider, |known, _| known.suspect_until = until);
        }
    }

    /// Somebody waits for a channel to a provider.
    pub fn want(&self, payee: &AccountId, price: u128) {
        let mut wants = self.wants();
        let has_room = wants.len() < WANTS_MAX;
        match wants.iter_mut().find(|want| want.payee == *payee) {
            Some(want) => want.price = want.price.max(price),
            None if has_room => wants.push(Want {
                payee: payee.clone(),
                price,
            }),
            None => return,
        }
        drop(wants);
        self.wanted.notify_one();
    }

    /// Who could be asked now: with an address, for no more than it may cost, none who were `refused`, who
    /// have sold all that their lock is for, or who have lied. And whether there are others, who had no
    /// place a moment ago.
    pub fn candidates(&self, need: &Need, refused: &BTreeSet<AccountId>) -> (Vec<Candidate>, bool) {
        let (market, now, clock) = (self.market(), self.now_ms(), Instant::now());
        let liars = market.liars();
        let region = self.config.region;
        let (mut candidates, mut are_busy) = (Vec::new(), false);
        for offer in &market.offers {
            let provider = &offer.provider;
            let is_right = offer.model == need.model && offer.operation == need.operation;
            let is_sold = offer.places > 0 && offer.room >= need.price(offer.unit_price);
            let is_fit = is_right && is_sold && offer.unit_price <= need.unit_price_max;
            let can_be_asked = market.is_reachable(provider) && !liars.contains(provider);
            if !is_fit || !can_be_asked || refused.contains(provider) {
                continue;
            }
            let known = self.known().get(provider).copied().unwrap_or_default();
            if known.suspect_until.is_some_and(|until| clock < until) {
                continue;
            }
            if known.busy_until.is_some_and(|until| clock < until) {
                are_busy = true;
                continue;
            }
            candidates.push(Candidate {
                provider: provider.clone(),
                unit_price: offer.unit_price,
                latency_ms: known.record.latency_ms(),
                failures: known.record.failures(now),
                record: offer.record,
                is_near: region.is_none_or(|region| offer.region == Some(region)),
                has_channel: market.channels_to(provider).next().is_some(),
                has_place: offer.busy < offer.places,
            });
        }
        (candidates, are_busy)
    }

    /// In which order they are asked: the best first, unless another is tried, of those that have a channel.
    /// One that is tried and has none gets one for the next time.
    pub fn order(&self, need: &Need, candidates: Vec<Candidate>, draw: u64) -> Vec<Candidate> {
        let mut ranked = rank(candidates);
        let config = &self.config;
        // The other half is left to those that are best.
        let may_open = self.market().channels.len() < config.spending.channels_max / 2;
        let Some(tried) = chosen(&ranked, config.tries, may_open, draw).cloned() else {
            return ranked;
        };
        if tried.has_channel {
            // As they were otherwise.
            ranked.sort_by_key(|candidate| candidate.provider != tried.provider);
        } else if ranked.first() != Some(&tried) {
            self.want(&tried.provider, need.price(tried.unit_price));
        }
        ranked
    }

    /// What decides for a request whether another than the best is tried for it.
    pub fn draw(&self) -> u64 {
        RandomState::new().hash_one(self.next_call())
    }

    /// What a unit of a model costs at the cheapest provider that can be asked, in plancks: of those that
    /// have not failed lately, where there are any. What everybody may cost follows it, so that one that is
    /// cheap, and does not answer, would keep out all others.
    pub fn cheapest(&self, model: ModelId, operation: Operation) -> Option<u128> {
        let (market, now) = (self.market(), self.now_ms());
        let has_failed = |offer: &OfferView| {
            let known = self.known().get(&offer.provider).copied();
            known.is_some_and(|known| known.record.has_failed(now))
        };
        let sellers = market.sellers(model, operation);
        // Those that have not come first.
        let cheapest = sellers.map(|offer| (has_failed(offer), offer.unit_price)).min();
        cheapest.map(|(_, unit_price)| unit_price)
    }

    /// Ways to the best that can be asked now, to `most` of them at most, with what a unit costs there. Of
    /// the best `most` those that lack a channel get one for the next time. Who has failed is none of them,
    /// but for the best.
    pub fn ways(&self, need: &Need, refused: &BTreeSet<AccountId>, most: usize) -> Vec<(Way, u128)> {
        let (candidates, _) = self.candidates(need, refused);
        let ordered = self.order(need, candidates, self.draw()).into_iter().enumerate();
        let fit = ordered.filter(|(at, candidate)| *at == 0 || !candidate.has_failed());
        let mut ways = Vec::new();
        for (at, (_, candidate)) in fit.enumerate() {
            if ways.len() >= most {
                break;
            }
            let price = need.price(candidate.unit_price);
            if let Ok(way) = self.way(&candidate.provider, price, at < most) {
                ways.push((way, candidate.unit_price));
            }
        }
        ways
    }

    /// A place in a channel to a provider for a request that may cost so much. Where there is none, money is
    /// wanted for one that lacks it, and another channel where that is said.
    pub fn way(&self, provider: &AccountId, price: u128, is_wanted: bool) -> Result<Way, NoWay> {
        let market = self.market();
        let _placing = self.placing.lock().unwrap_or_else(PoisonError::into_inner);
        if market.channels_to(provider).next().is_some()
            && let Err(why) = market.check_cover(provider, price)
        {
            tracing::debug!(provider = named(provider), price, %why, "a provider is not asked");
            return Err(why);
        }
        let mut why = NoWay::NoChannel;
        for handle in market.channels_to(provider) {
            match handle.place(price, &market.rules) {
                Ok(place) => {
                    let endpoints = market.endpoints.get(provider).cloned().unwrap_or_default();
                    let handle = handle.clone();
                    return Ok(Way {
                        handle,
                        place,
                        endpoints,
                    });
                }
                Err(NoPlace::Full) => why = NoWay::Full,
                Err(NoPlace::Exhausted) if why != NoWay::Full => why = NoWay::Exhausted,
                Err(NoPlace::Exhausted | NoPlace::Closed) => {}
            }
        }
        match why {
            NoWay::Full | NoWay::NoChannel if is_wanted => self.want(provider, price),
            NoWay::Full | NoWay::NoChannel | NoWay::Covering | NoWay::Uncovered => {}
            NoWay::Exhausted => self.wanted.notify_one(),
        }
        Err(why)
    }
}

impl Market {
    /// Channels that pay a provider and over which something can be asked.
    pub fn channels_to(&self, provider: &AccountId) -> impl Iterator<Item = &Arc<Handle>> {
        let to = self
            .channels
            .values()
            .filter(move |handle| handle.payee == *provider);
        to.filter(|handle| !handle.status().is_useless())
    }

    /// Whether what a provider stands behind covers another request of so much, over whatever channel.
    fn check_cover(&self, provider: &AccountId, price: u128) -> Result<(), NoWay> {
        let cover = self.covers.get(provider).ok_or(NoWay::Uncovered)?;
        // Also over those that are being closed: it answers for what it said there.
        let to = self.channels.values().filter(|handle| handle.payee == *provider);
        let promised = to.fold(Promised::default(), |sum, handle| {
            sum.and(handle.status().promised())
        });
        let (now, later) = cover.left(promised);
        match price {
            price if price <= now => Ok(()),
            price if price <= later => Err(NoWay::Covering),
            _ => Err(NoWay::Uncovered),
        }
    }

    /// Whether it is known where a provider answers.
    fn is_reachable(&self, provider: &AccountId) -> bool {
        let mut endpoints = self.endpoints.get(provider).into_iter().flatten();
        endpoints.next().is_some()
    }

    /// Providers that were found to have lied over a channel that is still there.
    fn liars(&self) -> BTreeSet<AccountId> {
        let liars = self
            .channels
            .values()
            .filter(|handle| handle.status().is_distrusted);
        liars.map(|handle| handle.payee.clone()).collect()
    }

    /// Who offers a model and can be asked.
    fn sellers(&self, model: ModelId, operation: Operation) -> impl Iterator<Item = &OfferView> {
        let liars = self.liars();
        self.offers.iter().filter(move |offer| {
            let is_right = offer.model == model && offer.operation == operation && offer.places > 0;
            let can_be_asked = self.is_reachable(&offer.provider) && offer.record.faults == 0;
            is_right && can_be_asked && !liars.contains(&offer.provider)
        })
    }
}

/// A provider's account, for people.
pub(crate) fn named(provider: &AccountId) -> String {
    address(provider)
}
