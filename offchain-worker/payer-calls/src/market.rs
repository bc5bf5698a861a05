//! What is offered, by a finalised block, and who can be asked.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{BuildHasher, RandomState},
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use surety_chain_client::{ChannelRules, OfferView, address};
use surety_channels::{ChannelId, Time};
use surety_types::{ModelId, model::Operation, multiaddr::Endpoint};
use tokio::{sync::watch, time::Instant};

use crate::{
    AccountId,
    channel::{CallId, Handle, NoPlace, Place},
    choose::{Candidate, chosen, fit, rank},
    config::Config,
    cover::{Cover, Promised},
    funds::Want,
    known::Memory,
};

/// What a finalised block says.
#[derive(Clone)]
pub(crate) struct Market {
    pub now: Time,
    pub rules: ChannelRules,
    /// Of the models that can be asked for here.
    pub offers: Vec<OfferView>,
    /// Where providers answer; nothing of those that are not registered.
    pub endpoints: BTreeMap<AccountId, Vec<Endpoint>>,
    /// What those stand behind that this payer has channels to, and those that it wanted one to lately.
    pub covers: BTreeMap<AccountId, Cover>,
    /// This payer's channels.
    pub channels: BTreeMap<ChannelId, Arc<Handle>>,
}

/// What all parts share.
pub(crate) struct Shared {
    pub config: Config,
    market: RwLock<Arc<Market>>,
    pub known: Memory,
    pub wants: Mutex<Vec<Want>>,
    /// What may be deposited still, in plancks.
    pub free: Mutex<u128>,
    /// Held while it is looked whether a provider's lock covers a request, and until that has its place.
    placing: Mutex<()>,
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
    /// There is no channel to it, nor room for one.
    #[error("there is no channel to it, and others have all that there may be, or the money for them")]
    NoRoom,
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
            free: Mutex::new(config.spending.budget),
            config,
            market: RwLock::new(Arc::new(market)),
            known: Memory::default(),
            wants: Mutex::default(),
            placing: Mutex::default(),
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
        self.known.see(&market.offers);
        // What is still wanted is wanted again.
        self.wants().clear();
        self.replace(Arc::new(market));
    }

    /// More is known of what a finalised block says. By the keeper alone.
    pub fn replace(&self, market: Arc<Market>) {
        *self.market.write().unwrap_or_else(PoisonError::into_inner) = market;
        self.changed.send_modify(|times| *times = times.wrapping_add(1));
    }

    /// Who could be asked now: with an address, for no more than it may cost, none who were `refused`, who
    /// have sold all that their lock is for, or who have lied. And whether there are others, who had no
    /// place a moment ago.
    pub fn candidates(&self, need: &Need, refused: &BTreeSet<AccountId>) -> (Vec<Candidate>, bool) {
        let (market, now, clock) = (self.market(), self.known.now_ms(), Instant::now());
        let region = self.config.region;
        let (mut candidates, mut are_busy) = (Vec::new(), false);
        for offer in market.sellers(need.model, need.operation, refused) {
            let provider = &offer.provider;
            let known = self.known.of(provider);
            let unit_price = known.unit_price(offer, clock);
            let price = need.price(unit_price);
            let is_fit = unit_price <= need.unit_price_max && known.can_sell(offer, price, clock);
            if !is_fit || known.is_suspect(clock) {
                continue;
            }
            if known.is_busy(clock) {
                are_busy = true;
                continue;
            }
            candidates.push(Candidate {
                provider: provider.clone(),
                unit_price,
                latency_ms: known.record.latency_ms(),
                failures: known.record.failures(now),
                record: offer.record,
                is_near: region.is_none_or(|region| offer.region == Some(region)),
                has_channel: market.channels_to(provider).next().is_some(),
                has_place: has_place(offer),
            });
        }
        (candidates, are_busy)
    }

    /// In which order they are asked: the best first, unless another is tried, of those that have a channel.
    /// One that is tried and has none gets one for the next time.
    pub fn order(&self, need: &Need, candidates: Vec<Candidate>, draw: u64) -> Vec<Candidate> {
        let mut ranked = rank(candidates);
        let may_open = self.may_try(&self.market());
        let Some(tried) = chosen(&ranked, self.config.tries, may_open, draw).cloned() else {
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

    /// What a unit costs at the cheapest provider that could take a request for so many now, in plancks, of
    /// those that were not `refused`. What everybody may cost follows it, so that whoever is cheap and takes
    /// nothing would keep out all others: those come last to whom there is no channel yet, then those that
    /// are busy, and then those that have failed lately, sold all that their lock is for, or been asked for
    /// it, and those that no channel is for.
    pub fn cheapest(
        &self,
        (model, operation): (ModelId, Operation),
        units: u32,
        refused: &BTreeSet<AccountId>,
    ) -> Option<u128> {
        let (market, now, clock) = (self.market(), self.known.now_ms(), Instant::now());
        let priced = market.sellers(model, operation, refused).map(|offer| {
            let known = self.known.of(&offer.provider);
            let unit_price = known.unit_price(offer, clock);
            let price = unit_price.saturating_mul(units.into());
            let is_sound = !known.record.has_failed(now) && !known.is_suspect(clock);
            let can_sell = known.can_sell(offer, price, clock);
            let is_ready = is_sound && can_sell && self.has_way(&market, &offer.provider, price);
            let is_busy = known.is_busy(clock) || !has_place(offer);
            let has_channel = market.channels_to(&offer.provider).next().is_some();
            (!is_ready, is_busy, !has_channel, unit_price)
        });
        let may_cost = self.config.spending.unit_price_max;
        let cheapest = priced.filter(|(.., unit_price)| *unit_price <= may_cost).min();
        cheapest.map(|(.., unit_price)| unit_price)
    }

    /// Whether a request that costs so much could have its place at a provider soon.
    fn has_way(&self, market: &Market, provider: &AccountId, price: u128) -> bool {
        let mut channels = market.channels_to(provider).peekable();
        let has_channel = channels.peek().is_some();
        let is_known = has_channel || market.covers.contains_key(provider);
        if is_known && self.check_cover(market, provider, price) == Err(NoWay::Uncovered) {
            return false;
        }
        match has_channel {
            true => channels.any(|handle| handle.status().left() >= price) || self.free() >= price,
            false => self.may_open(market, provider, price),
        }
    }

    /// Ways to the best that can be asked now, to `most` of them at most, with what a unit costs there. Of
    /// the best `most` those that lack a channel get one for the next time. Who has failed is none of them,
    /// but for the best.
    pub fn ways(&self, need: &Need, refused: &BTreeSet<AccountId>, most: usize) -> Vec<(Way, u128)> {
        let (candidates, _) = self.candidates(need, refused);
        let ordered = self.order(need, candidates, self.draw()).into_iter().enumerate();
        let fit = ordered.filter(|(at, candidate)| *at == 0 || !candidate.has_failed());
        let fit = fit.map(|(_, candidate)| candidate).enumerate();
        let ways = fit.filter_map(|(at, candidate)| self.way_to(need, &candidate, at < most));
        ways.take(most).collect()
    }

    /// The same to any that are fit, all equally often: those that are cheapest may be one and the same.
    pub fn drawn_ways(&self, need: &Need, refused: &BTreeSet<AccountId>, most: usize) -> Vec<(Way, u128)> {
        let (candidates, _) = self.candidates(need, refused);
        let ranked = rank(candidates);
        let mut fit: Vec<&Candidate> = fit(&ranked).collect();
        let best = fit.iter().take(most);
        for candidate in best.filter(|candidate| !candidate.has_channel) {
            self.want(&candidate.provider, need.price(candidate.unit_price));
        }
        let secret = RandomState::new();
        fit.sort_by_cached_key(|candidate| secret.hash_one(&candidate.provider));
        let ways = fit
            .into_iter()
            .filter_map(|candidate| self.way_to(need, candidate, false));
        ways.take(most).collect()
    }

    /// A way to one of them, with what a unit costs there.
    fn way_to(&self, need: &Need, candidate: &Candidate, is_wanted: bool) -> Option<(Way, u128)> {
        let unit_price = candidate.unit_price;
        let way = self.way(&candidate.provider, need.price(unit_price), is_wanted);
        Some((way.ok()?, unit_price))
    }

    /// A place in a channel to a provider for a request that may cost so much. Where there is none, money is
    /// wanted for one that lacks it, and another channel where that is said.
    pub fn way(&self, provider: &AccountId, price: u128, is_wanted: bool) -> Result<Way, NoWay> {
        let market = self.market();
        let _placing = self.placing.lock().unwrap_or_else(PoisonError::into_inner);
        let has_channel = market.channels_to(provider).next().is_some();
        if (has_channel || market.covers.contains_key(provider))
            && let Err(why) = self.check_cover(&market, provider, price)
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
            NoWay::Exhausted => self.wanted.notify_one(),
            NoWay::Full | NoWay::NoChannel if is_wanted && !self.want(provider, price) => {
                return Err(NoWay::NoRoom);
            }
            _ => {}
        }
        Err(why)
    }

    /// Whether what a provider stands behind covers another request of so much, over whatever channel, or
    /// over the first.
    pub fn check_cover(&self, market: &Market, provider: &AccountId, price: u128) -> Result<(), NoWay> {
        let cover = market.covers.get(provider).ok_or(NoWay::Uncovered)?;
        // Also over those that are being closed: it answers for what it said there.
        let to = market
            .channels
            .values()
            .filter(|handle| handle.payee == *provider);
        let mut promised = to.fold(Promised::default(), |sum, handle| {
            sum.and(handle.status().promised())
        });
        if market.channels_to(provider).next().is_none() {
            promised.deposited = promised.deposited.saturating_add(self.deposit(price));
        }
        let (now, later) = cover.left(promised);
        match price {
            price if price <= now => Ok(()),
            price if price <= later => Err(NoWay::Covering),
            _ => Err(NoWay::Uncovered),
        }
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

    /// Who offers a model and can be asked, but for those who were `refused`.
    fn sellers(
        &self,
        model: ModelId,
        operation: Operation,
        refused: &BTreeSet<AccountId>,
    ) -> impl Iterator<Item = &OfferView> {
        let liars = self.liars();
        self.offers.iter().filter(move |offer| {
            let is_right = offer.model == model && offer.operation == operation && offer.places > 0;
            let can_be_asked = self.is_reachable(&offer.provider) && offer.record.faults == 0;
            let is_out = refused.contains(&offer.provider) || liars.contains(&offer.provider);
            is_right && can_be_asked && !is_out
        })
    }

    /// Whether a provider says that it has a place for such a request.
    pub fn says_free(&self, provider: &AccountId, need: &Need) -> bool {
        let mut offers = self.offers.iter();
        offers.any(|offer| {
            let is_right = offer.model == need.model && offer.operation == need.operation;
            is_right && offer.provider == *provider && has_place(offer)
        })
    }
}

const fn has_place(offer: &OfferView) -> bool {
    offer.busy < offer.places
}

/// A provider's account, for people.
pub(crate) fn named(provider: &AccountId) -> String {
    address(provider)
}
