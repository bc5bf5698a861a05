//! What providers stand behind and offer, and their batches.

use std::collections::BTreeMap;

use sp_core::{H256, crypto::AccountId32};
use sp_runtime::FixedPointNumber;
use surety_audit_economics::channels::{POINTS_MEAN_MAX, SURE};
use surety_channels::{BatchNumber, BatchRoot, BatchWindow, Region, Standing, Sums, view::TrackRecord};
use surety_types::{ModelId, model::Operation, stake::Role, task::AuditDraw};

use super::{
    super::state::{Applied, FakeState},
    FakeOffer, event, field,
    receipts::FROZEN,
    refused,
};
use crate::{
    Balance, BatchView, BlockNumber, ChainError, ChainEvent, EventField, OfferView, PoolView, StandingView,
};

/// Most batches of a provider that are not final.
const UNFINISHED_MAX: usize = 64;
/// Batches that a commitment removes at most.
const PRUNED: u32 = 2;
/// Most offers of a provider.
const OFFERS_MAX: usize = 16;
/// Most places of an offer.
const PLACES_MAX: u32 = 1_024;
/// Most agents whose statements bind a provider.
const SIGNERS_MAX: usize = 8;

/// Time for which a pool has one price.
const POOL_PERIOD: BlockNumber = 100;

/// What is offered: an operation of a model.
type Offered = (ModelId, Operation);

impl FakeState {
    pub(super) fn least_lock(&self, cap: Balance) -> Option<Balance> {
        self.channels.is_insurable.then_some(cap.max(1))
    }

    /// Whether a provider can sell more: it does not leave, and its lock is what its cap needs now.
    pub(super) fn ensure_takes_new(&self, standing: &StandingView) -> Result<(), ChainError> {
        if standing.is_leaving {
            return Err(refused("Leaving"));
        }
        let needed = self.least_lock(standing.cap);
        let is_present = needed.is_some_and(|needed| needed <= standing.lock);
        is_present.then_some(()).ok_or_else(|| refused("OldTerms"))
    }

    pub(super) fn stand(&mut self, stash: &AccountId32, lock: Balance, cap: Balance) -> Applied {
        let mut standing = match self.standing(stash) {
            Ok(standing) => self.standing_now(standing),
            Err(_) => never_stood(stash),
        };
        if lock == 0 && standing.lock == 0 {
            return Err(refused("NotStanding"));
        }
        if lock == 0 && is_in_use(&standing) {
            if standing.is_leaving {
                return Err(refused("InUse"));
            }
            standing.is_leaving = true;
            self.channels.standings.insert(stash.clone(), standing);
            return Ok(vec![event("Leaves", vec![field("provider", stash)])]);
        }
        if is_in_use(&standing) && (lock < standing.lock || cap < standing.cap) {
            return Err(refused("InUse"));
        }
        if lock == 0 && self.channels.offers.keys().any(|(of, ..)| of == stash) {
            return Err(refused("PlacesNotCovered"));
        }
        if lock > 0 {
            if self.is_jailed(stash) {
                return Err(refused("InJail"));
            }
            let needed = self.least_lock(cap).ok_or_else(|| refused("NotInsurable"))?;
            if lock < needed {
                return Err(refused("LockTooSmall"));
            }
        } else {
            standing.signers.clear();
        }
        standing.lock = lock;
        standing.is_leaving = false;
        standing.cap = if lock > 0 { cap } else { 0 };
        self.channels.standings.insert(stash.clone(), standing);
        let fields = vec![field("provider", stash), field("lock", &lock)];
        Ok(vec![event("Stands", fields)])
    }

    pub(super) fn add_signer(&mut self, agent: &AccountId32) -> Applied {
        let mut standing = self.agents_standing(agent)?;
        if standing.signers.contains(agent) {
            return Ok(Vec::new());
        }
        if standing.signers.len() >= SIGNERS_MAX {
            return Err(refused("TooManySigners"));
        }
        standing.signers.push(agent.clone());
        let stash = standing.provider.clone();
        self.channels.standings.insert(stash.clone(), standing);
        let fields = vec![field("provider", &stash), field("signer", agent)];
        Ok(vec![event("SignerAdded", fields)])
    }

    pub(super) fn commit_batch(&mut self, agent: &AccountId32, root: BatchRoot) -> Applied {
        let mut standing = self.agents_standing(agent)?;
        if !root.is_possible() {
            return Err(refused("ImpossibleBatch"));
        }
        // The best state is that of the block to come.
        let block = self.number.saturating_add(1);
        if standing.next > 0 && standing.batched_at >= block {
            return Err(refused("OneABlock"));
        }
        let price = root.sums.price;
        let most = SURE.saturating_mul(POINTS_MEAN_MAX.into());
        if self.channels.rate.saturating_mul_int(price) > most {
            return Err(refused("TooDear"));
        }
        let mut sums = Standing {
            cap: standing.cap,
            open: standing.open,
        };
        sums.commit(price).map_err(|_| refused("BeyondCap"))?;
        if self.unfinished(&standing.provider).count() >= UNFINISHED_MAX {
            return Err(refused("TooManyBatches"));
        }
        let (stash, batch) = (standing.provider.clone(), standing.next);
        standing.next = batch.saturating_add(1);
        standing.batched_at = block;
        let mut events = self.prune(&mut standing);
        let verifiers = self.stakes.values().filter(|stake| stake.role == Role::Verifier);
        let rules = self.channels.rules;
        let until = match self.are_places_taken(&stash) {
            true => FROZEN,
            false => self.clock.saturating_add(rules.batch_window),
        };
        let view = BatchView {
            provider: stash.clone(),
            batch,
            window: BatchWindow::new(root, until),
            draw: AuditDraw {
                begun_at: block,
                settled_by: block,
                epoch_randomness: H256::from_low_u64_be(block.into()),
                verifier_stake: verifiers.map(|stake| stake.bonded).sum(),
                seed: None,
            },
            rate: self.channels.rate,
            announce_until: self.clock.saturating_add(rules.announce_window),
            announced: 0,
        };
        self.channels.batches.insert((stash.clone(), batch), view);
        self.channels.standings.insert(stash.clone(), standing);
        let levy: Balance = 0;
        let fields = vec![
            field("provider", &stash),
            field("batch", &batch),
            field("levy", &levy),
        ];
        events.push(event("BatchCommitted", fields));
        Ok(events)
    }

    /// Batches of a provider that are not final, whatever their order.
    pub(super) fn unfinished(&self, provider: &AccountId32) -> impl Iterator<Item = &BatchView> {
        let batch = |number: BatchNumber| (provider.clone(), number);
        let all = self.channels.batches.range(batch(0)..=batch(BatchNumber::MAX));
        all.map(|(_, batch)| batch)
            .filter(|batch| !batch.window.is_final(self.clock))
    }

    /// It as the chain tells it: what is open of it follows from its batches.
    pub(super) fn standing_now(&self, standing: &StandingView) -> StandingView {
        let open: Vec<_> = self.unfinished(&standing.provider).collect();
        let prices = open.iter().map(|batch| batch.window.root.sums.price);
        StandingView {
            open: prices.fold(0, Balance::saturating_add),
            unfinished: open.first().map_or(standing.next, |batch| batch.batch),
            needed_lock: self.least_lock(standing.cap),
            ..standing.clone()
        }
    }

    /// Removes batches whose time to be redeemed from is over, once nothing of them has to be ended.
    fn prune(&mut self, standing: &mut StandingView) -> Vec<ChainEvent> {
        for _ in 0..PRUNED {
            let of = (standing.provider.clone(), standing.oldest);
            let Some(BatchView {
                window, announced, ..
            }) = self.channels.batches.get(&of)
            else {
                break;
            };
            let last = window.until.saturating_add(self.channels.rules.redeem_by);
            if !window.is_final(self.clock) || last >= self.clock {
                break;
            }
            if *announced > 0 {
                return self.end_some_points(&of);
            }
            self.channels.batches.remove(&of);
            standing.oldest = standing.oldest.saturating_add(1);
        }
        Vec::new()
    }

    pub(super) fn offer(
        &mut self,
        stash: &AccountId32,
        (model, operation): Offered,
        (unit_price, places): (Balance, u32),
        region: Option<Region>,
    ) -> Applied {
        let standing = self.standing(stash)?;
        if standing.lock == 0 {
            return Err(refused("NotStanding"));
        }
        if self.is_jailed(stash) {
            return Err(refused("InJail"));
        }
        if places > 0 {
            self.ensure_takes_new(standing)?;
        }
        if places > PLACES_MAX {
            return Err(refused("TooManyPlaces"));
        }
        let key = (stash.clone(), model, operation);
        let offers = self.channels.offers.keys().filter(|(of, ..)| of == stash);
        if !self.channels.offers.contains_key(&key) && offers.count() >= OFFERS_MAX {
            return Err(refused("TooManyOffers"));
        }
        // What a token's time is worth at least nobody knows here.
        if unit_price == 0 {
            return Err(refused("PriceTooLow"));
        }
        let known = self.channels.offers.entry(key);
        let offer = known.or_insert(FakeOffer {
            unit_price,
            places,
            busy: 0,
            reported: None,
            region,
        });
        (offer.unit_price, offer.places, offer.region) = (unit_price, places, region);
        offer.busy = offer.busy.min(places);
        let mut fields = of_offer(stash, (model, operation));
        fields.extend([
            field("unit_price", &unit_price),
            field("places", &places),
            field("region", &region),
        ]);
        Ok(vec![event("Offered", fields)])
    }

    pub(super) fn withdraw_offer(&mut self, stash: &AccountId32, (model, operation): Offered) -> Applied {
        let standing = self.standing_now(self.standing(stash)?);
        let key = (stash.clone(), model, operation);
        if !self.channels.offers.contains_key(&key) {
            return Err(refused("NoOffer"));
        }
        if is_in_use(&standing) || self.is_audited(stash) {
            return Err(refused("OfferInUse"));
        }
        self.channels.offers.remove(&key);
        let fields = of_offer(stash, (model, operation));
        Ok(vec![event("OfferWithdrawn", fields)])
    }

    /// Ends all offers of a provider that stands behind nothing any more.
    pub(super) fn end_offers(&mut self, stash: &AccountId32) -> Vec<ChainEvent> {
        let all = std::mem::take(&mut self.channels.offers).into_iter();
        let (ended, left): (BTreeMap<_, _>, _) = all.partition(|((of, ..), _)| of == stash);
        self.channels.offers = left;
        let withdrawn = |(_, model, operation)| event("OfferWithdrawn", of_offer(stash, (model, operation)));
        ended.into_keys().map(withdrawn).collect()
    }

    /// Whether what verifiers announced of a batch was not ended yet.
    fn is_audited(&self, stash: &AccountId32) -> bool {
        let mut batches = self.channels.batches.iter();
        batches.any(|((of, _), batch)| of == stash && batch.announced > 0)
    }

    pub(super) fn report_busy(
        &mut self,
        agent: &AccountId32,
        (model, operation): Offered,
        busy: u32,
    ) -> Applied {
        let stash = self.stash_in(agent, Role::Provider);
        let stash = stash.ok_or_else(|| refused("NotAgent"))?;
        let period = self.clock / POOL_PERIOD;
        let offer = self.channels.offers.get_mut(&(stash.clone(), model, operation));
        let offer = offer.ok_or_else(|| refused("NoOffer"))?;
        if busy > offer.places {
            return Err(refused("TooBusy"));
        }
        if offer.reported == Some(period) {
            return Err(refused("ReportedAlready"));
        }
        (offer.busy, offer.reported) = (busy, Some(period));
        let mut fields = of_offer(&stash, (model, operation));
        fields.push(field("busy", &busy));
        Ok(vec![event("BusyReported", fields)])
    }

    pub(super) fn is_jailed(&self, stash: &AccountId32) -> bool {
        let record = self.records.get(stash);
        let jailed_until = record.and_then(|record| record.jailed_until);
        jailed_until.is_some_and(|until| self.clock <= until)
    }

    pub(super) fn offer_views(&self) -> Vec<OfferView> {
        let view = |((provider, model, operation), offer): (&(AccountId32, _, _), &FakeOffer)| {
            let standing = self.standing_now(self.channels.standings.get(provider)?);
            let is_sold = standing.lock > 0 && self.ensure_takes_new(&standing).is_ok();
            let is_shown = is_sold && !self.is_jailed(provider);
            let unit_price = offer.unit_price.max(self.pool_price((*model, *operation)));
            is_shown.then(|| OfferView {
                provider: provider.clone(),
                model: *model,
                operation: *operation,
                unit_price,
                places: offer.places,
                busy: offer.busy,
                signers: standing.signers.clone(),
                room: standing.cap.saturating_sub(standing.open),
                region: offer.region,
                record: self.track_record(&standing),
            })
        };
        self.channels.offers.iter().filter_map(view).collect()
    }

    /// What follows from its batches, unless the test says something else.
    fn track_record(&self, standing: &StandingView) -> TrackRecord {
        let stash = &standing.provider;
        if let Some(record) = self.channels.records.get(stash) {
            return *record;
        }
        let batch = |number: BatchNumber| (stash.clone(), number);
        let final_ones = batch(standing.since_batch)..batch(standing.unfinished.max(standing.since_batch));
        let settled = self.channels.batches.range(final_ones);
        let settled = settled.fold(Sums::default(), |all, (_, batch)| {
            all.plus(batch.window.settled()).unwrap_or(all)
        });
        TrackRecord {
            settled,
            batches: standing.unfinished.saturating_sub(standing.since_batch),
            was_convicted: (standing.since_channel, standing.since_batch) != (0, 0),
            missed: self.records.get(stash).map_or(0, |record| record.missed),
            ..TrackRecord::default()
        }
    }

    /// A sixteenth of twice the largest lock: all of it would be burned here.
    pub(super) fn dispute_bond(&self) -> Balance {
        let locks = self.channels.standings.values().map(|standing| standing.lock);
        locks.max().unwrap_or_default().div_ceil(8)
    }

    pub(super) fn pool_views(&self) -> Vec<PoolView> {
        let mut pools: Vec<PoolView> = Vec::new();
        for ((_, model, operation), offer) in &self.channels.offers {
            let (model, operation) = (*model, *operation);
            let known = pools
                .iter_mut()
                .find(|pool| (pool.model, pool.operation) == (model, operation));
            match known {
                Some(pool) => {
                    pool.places = pool.places.saturating_add(offer.places);
                    pool.busy = pool.busy.saturating_add(offer.busy);
                }
                None => pools.push(PoolView {
                    model,
                    operation,
                    price: self.pool_price((model, operation)),
                    places: offer.places,
                    busy: offer.busy,
                }),
            }
        }
        pools
    }

    fn pool_price(&self, of: Offered) -> Balance {
        self.channels.pool_prices.get(&of).copied().unwrap_or_default()
    }

    /// What the provider stands behind that an agent acts for.
    fn agents_standing(&self, agent: &AccountId32) -> Result<StandingView, ChainError> {
        let stash = self.stash_in(agent, Role::Provider);
        let stash = stash.ok_or_else(|| refused("NotAgent"))?;
        let standing = self.standing_now(self.standing(&stash)?);
        match standing.lock {
            0 => Err(refused("NotStanding")),
            _ => Ok(standing),
        }
    }
}

/// Whether there is anything that its lock may still be needed for.
fn is_in_use(standing: &StandingView) -> bool {
    let has_open = standing.channels > 0 || standing.disputes > 0 || standing.demands > 0;
    has_open || standing.unfinished < standing.next
}

fn of_offer(provider: &AccountId32, (model, operation): Offered) -> Vec<EventField> {
    vec![
        field("provider", provider),
        field("model", &model),
        field("operation", &operation),
    ]
}

fn never_stood(stash: &AccountId32) -> StandingView {
    StandingView {
        provider: stash.clone(),
        lock: 0,
        cap: 0,
        open: 0,
        signers: Vec::new(),
        oldest: 0,
        unfinished: 0,
        next: 0,
        batched_at: 0,
        channels: 0,
        disputes: 0,
        demands: 0,
        since_channel: 0,
        since_batch: 0,
        needed_lock: None,
        is_leaving: false,
    }
}
