//! What a provider does about its channels, by what finalised blocks say of them.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Instant,
};

use surety_audit_economics::channels::{POINTS_MEAN_MAX, SURE};
use surety_chain_client::{BatchView, BlockNumber, Call, ErrorClass, FixedU128, OfferView, Remedy};
use surety_channel_calls::{
    AccountId, PayeeEffect, Step,
    payee::{BatchLimits, ChannelSeen, Offer},
};
use surety_channels::{BatchNumber, BatchRoot, ChannelId};
use surety_types::{ModelId, model::Operation};

use crate::{
    Parts,
    desk::Desk,
    errands::{Back, Errand, NotDone, Purpose},
    float::Float,
    front::CallId,
    memory::Memory,
    shares::Waiting,
    sight::Sight,
    silent::Silent,
    terms::Terms,
    unknown::Unknown,
};

/// What is not in finalised blocks any more is forgotten after so many: another node may be behind.
pub(crate) const GONE_BLOCKS: BlockNumber = 50;

/// Blocks of which the price of a unit is still taken: a payer may not have seen the newest.
const PRICES: usize = 10;

/// Blocks between two reports of how much there is to do: a pool takes one in each of its periods.
const REPORT_BLOCKS: BlockNumber = 100;

/// One, in the fixed point of rates and multipliers.
pub(crate) const ONE: u128 = FixedU128::from_u32(1).into_inner();

/// An operation of a model; by the operation's name.
pub(crate) type Kind = (ModelId, &'static str);

pub(crate) fn kind(model: ModelId, operation: Operation) -> Kind {
    (model, operation.name())
}

/// What is remembered from block to block.
#[derive(Default)]
pub(crate) struct Watch {
    /// The newest finalised block, and when that was seen.
    pub(crate) sight: Option<Arc<Sight>>,
    pub(crate) seen_at: Option<Instant>,
    pub(crate) channels: BTreeMap<ChannelId, ChannelSeen>,
    /// Who has each of them.
    pub(crate) payers: BTreeMap<ChannelId, AccountId>,
    /// Who waits for places.
    pub(crate) waiting: Waiting,
    /// What a unit of each offer has cost lately.
    prices: BTreeMap<Kind, VecDeque<u128>>,
    /// Since which block something is missing.
    gone_channels: BTreeMap<ChannelId, BlockNumber>,
    gone_batches: BTreeMap<BatchNumber, BlockNumber>,
    /// Batches that the journal has not.
    pub(crate) unknown: Unknown,
    /// What was answered and is in no block yet may cost, in plancks: as of the newest block, and what was
    /// taken since.
    pub(crate) at_risk: u128,
    /// The batch that was promised last, once that is written down: nothing is sent before.
    pub(crate) written: Option<BatchRoot>,
    /// Since which block a receipt waits for a batch.
    waits_since: Option<BlockNumber>,
    /// What a batch may cost, as far as that was learnt by a refusal.
    learnt_max: Option<u128>,
    /// The batch that was refused for good, and the block by which that is sure.
    refused: Option<(BatchRoot, BlockNumber)>,
    reported: BTreeMap<Kind, BlockNumber>,
    pub(crate) silent: Silent,
    /// Whether the lock is enough.
    pub(crate) terms: Terms,
    /// What has to stay free for fees and levies.
    pub(crate) float: Float,
    /// Whether much is kept in memory.
    pub(crate) memory: Memory,
}

impl Watch {
    /// After a start: whatever batch the journal has is written down.
    pub(crate) fn new(written: Option<BatchRoot>) -> Self {
        Self {
            written,
            ..Self::default()
        }
    }

    /// What is known of a channel; nothing where it pays nothing any more.
    pub(crate) fn channel(&self, id: ChannelId) -> Option<ChannelSeen> {
        let sight = self.sight.as_ref()?;
        sight.standing.as_ref()?;
        let seen = self.channels.get(&id)?;
        (id >= sight.since_channel()).then(|| seen.clone())
    }

    /// How many requests of this kind are offered to be answered at once.
    pub(crate) fn places(&self, model: ModelId, operation: Operation) -> u32 {
        let offers = self.sight.iter().flat_map(|sight| &sight.offers);
        let offer = offers.filter(|offer| (offer.model, offer.operation) == (model, operation));
        offer.map(|offer| offer.places).max().unwrap_or(0)
    }

    fn note(&mut self, sight: Arc<Sight>) {
        let seen = sight.channels.iter().map(|view| {
            let seen = ChannelSeen {
                terms: view.terms(),
                purse: view.purse,
            };
            (view.channel, seen)
        });
        self.channels = seen.collect();
        let payers = sight.channels.iter();
        self.payers = payers.map(|view| (view.channel, view.payer.clone())).collect();
        let offered: BTreeSet<Kind> = sight.offers.iter().map(of_offer).collect();
        self.prices.retain(|kind, _| offered.contains(kind));
        for offer in &sight.offers {
            let prices = self.prices.entry(of_offer(offer)).or_default();
            prices.push_back(offer.unit_price);
            if prices.len() > PRICES {
                prices.pop_front();
            }
        }
        self.seen_at = Some(Instant::now());
        self.sight = Some(sight);
    }

    /// Whether receipts of so much find room, and places for as many batches as they may need: half of one
    /// may stay empty because the next receipt is too dear for the rest of it.
    pub(crate) fn has_room(&self, sight: &Sight, at_risk: u128) -> bool {
        let most = self.batch_price_max(sight);
        let batches = self.batches_for(sight, at_risk);
        let places = u128::try_from(sight.places()).unwrap_or(0);
        at_risk <= sight.room() && (batches <= places || (at_risk <= most && places > 0))
    }

    /// How many batches receipts of so much may need.
    pub(crate) fn batches_for(&self, sight: &Sight, at_risk: u128) -> u128 {
        let batches = at_risk.saturating_mul(2).checked_div(self.batch_price_max(sight));
        batches.map_or(u128::MAX, |batches| batches.saturating_add(1))
    }

    /// What a batch may cost at most, whatever other batches do.
    fn batch_price_max(&self, sight: &Sight) -> u128 {
        let cap = sight.standing.as_ref().map_or(0, |standing| standing.cap);
        // The chain draws no more points on a batch than this at the mean.
        let most = SURE.saturating_mul(POINTS_MEAN_MAX.into()).saturating_mul(ONE);
        let rate = sight.batches.last().map(|batch| batch.rate.into_inner());
        let drawn = rate.and_then(|rate| most.checked_div(rate));
        let limits = [drawn, self.learnt_max].into_iter().flatten();
        limits.fold(cap, u128::min)
    }
}

fn of_offer(offer: &OfferView) -> Kind {
    kind(offer.model, offer.operation)
}

impl Desk {
    /// What follows from a finalised block.
    pub(crate) fn see(&mut self, sight: Sight) -> Step<PayeeEffect> {
        let sight = Arc::new(sight);
        self.watch.note(sight.clone());
        let mut step = Step::default();
        for seen in self.watch.channels.values() {
            self.payee.see(seen);
        }
        self.look_at_terms(&sight);
        self.sell(&sight);
        self.follow_batches(&sight, &mut step);
        self.forget_channels(&sight, &mut step);
        self.end_in_time(&sight, &mut step);
        self.watch.at_risk = self.payee.at_risk();
        self.look_at_money(&sight);
        let mut due = Vec::new();
        let demanded = self.meet_demands(&sight, &mut step, &mut due);
        let is_urgent = self.do_duties(&sight, &mut due);
        self.give_back_silent(&sight, &mut due);
        self.defend(&sight, &mut due);
        self.batch(&sight, (is_urgent, &demanded), &mut step);
        self.look_at_memory(&sight);
        self.watch.at_risk = self.payee.at_risk();
        self.say_busy(&sight, &mut due);
        if sight.is_agent && may_be_signer(&sight, &self.parts) {
            due.push(Errand::new(Purpose::Signer, Call::AddSigner));
        }
        let mut purposes: BTreeSet<Purpose> = due.iter().map(|errand| errand.purpose.clone()).collect();
        if self.payee.uncommitted().is_some() {
            purposes.insert(Purpose::Commit);
        }
        self.errands.keep(&purposes, sight.block);
        self.leave_out_what_can_wait(&sight, !demanded.is_empty(), &mut due);
        // Not as many are sent at once as there may be.
        let is_short = self.watch.float.is_short();
        let is_first = |errand: &Errand| match errand.purpose {
            Purpose::Hold(_) => true,
            // It brings money.
            Purpose::Redeem(_) => errand.is_pressing || is_short,
            _ => errand.is_pressing,
        };
        due.sort_by_key(|errand| !is_first(errand));
        for errand in due {
            self.send(errand, &sight);
        }
        self.send_batch();
        self.tell_what_is_owed(&sight);
        let channels = self.payee.channels().count();
        let metrics = &self.parts.metrics;
        metrics.channels.set(i64::try_from(channels).unwrap_or(i64::MAX));
        step
    }

    pub(crate) fn send(&mut self, errand: Errand, sight: &Sight) {
        if self.errands.may(&errand.purpose, sight.block) {
            self.errands.send(&self.parts, errand, &self.newest, &self.events);
        }
    }

    /// What is offered on the chain and loaded here.
    fn sell(&mut self, sight: &Sight) {
        let offers = sight.offers.iter().filter_map(|offer| {
            let model = self.parts.models.get(&offer.model)?;
            let is_able = model.engine.manifest().operations.contains(&offer.operation);
            let prices = self.watch.prices.get(&of_offer(offer))?;
            let config = &self.parts.config;
            is_able.then(|| Offer {
                model: offer.model,
                operation: offer.operation,
                unit_price: prices.iter().copied().min().unwrap_or(offer.unit_price),
                facts: model.facts.clone(),
                chunk_units: match offer.operation {
                    Operation::Embed => 1..=config.items_max,
                    Operation::Generate => 1..=config.chunk_tokens_max,
                },
            })
        });
        let offers = offers.collect();
        self.payee.sell(offers);
        let price_max = self.watch.batch_price_max(sight);
        self.payee.limit_receipts(price_max);
    }

    /// Batches that have become final blocks' or have left them, and the one that will never be.
    fn follow_batches(&mut self, sight: &Sight, step: &mut Step<PayeeEffect>) {
        if let Some(root) = self.payee.uncommitted() {
            let known: BTreeSet<BatchNumber> = self.payee.batches().map(|(number, _)| number).collect();
            let is_it = |batch: &&BatchView| batch.window.root == root && !known.contains(&batch.batch);
            if let Some(batch) = sight.batches.iter().find(is_it) {
                let number = batch.batch;
                tracing::info!(batch = number, "a batch is final in the chain");
                self.parts.metrics.batches.inc();
                step.join(self.payee.committed(&root, number));
                self.watch.refused = None;
            } else if let Some((refused, by)) = self.watch.refused
                && refused == root
                && sight.block >= by
                && !self.errands.is_away(&Purpose::Commit)
            {
                tracing::warn!(
                    "a batch that the chain never takes is taken back: its receipts go into others"
                );
                self.watch.refused = None;
                step.join(self.payee.recall(&root));
            }
        }
        self.find_unknown(sight, step);
        // What is disputed has to be shown.
        if sight.is_disputed() {
            return;
        }
        let kept: BTreeSet<BatchNumber> = sight.batches.iter().map(|batch| batch.batch).collect();
        let ours: Vec<BatchNumber> = self.payee.batches().map(|(number, _)| number).collect();
        for number in gone(&mut self.watch.gone_batches, ours, &kept, sight.block) {
            step.join(self.payee.forget(number));
        }
    }

    fn forget_channels(&mut self, sight: &Sight, step: &mut Step<PayeeEffect>) {
        if sight.is_disputed() {
            return;
        }
        let kept: BTreeSet<ChannelId> = self.watch.channels.keys().copied().collect();
        let ours: Vec<ChannelId> = self.payee.channels().collect();
        for channel in gone(&mut self.watch.gone_channels, ours, &kept, sight.block) {
            step.join(self.payee.forget_channel(channel));
        }
    }

    /// Promises a batch, when it is time for one.
    fn batch(
        &mut self,
        sight: &Sight,
        (is_urgent, demanded): (bool, &[CallId]),
        step: &mut Step<PayeeEffect>,
    ) {
        let is_demanded = !demanded.is_empty();
        if self.payee.uncommitted().is_some() {
            return;
        }
        let (receipts, price) = self.payee.unbatched();
        self.parts.metrics.unbatched.set(receipts.into());
        // Receipts of nothing alone are worth no fee, unless somebody demands one, or nothing more could be
        // taken for them before long.
        let is_crowded = self.payee.is_crowded();
        let is_worth = receipts > 0 && (price > 0 || is_crowded);
        if !is_worth && !is_demanded {
            self.watch.waits_since = None;
            return;
        }
        let since = *self.watch.waits_since.get_or_insert(sight.block);
        let Some(standing) = sight.standing.as_ref().filter(|standing| standing.lock > 0) else {
            return;
        };
        let config = &self.parts.config;
        let is_time = is_crowded
            || !self.parts.takes_new
            || sight.block.saturating_sub(since) >= config.batch_blocks
            // While it can be disputed, others have to find room beside it.
            || price >= standing.cap / 4
            || receipts >= config.batch_receipts_max
            // A channel has no more than a quarter of the places.
            || receipts as usize >= config.calls_max / 8;
        // Only memory has that doubt, and no unknown batch is looked for behind one that is newer: after a
        // restart an older copy of the journal would sign again.
        let is_due = is_urgent || is_demanded || (is_time && !self.watch.unknown.is_in_doubt());
        if !is_due || !sight.is_agent || !(is_demanded || sight.has_place()) {
            return;
        }
        let limits = BatchLimits {
            receipts_max: config.batch_receipts_max,
            price_max: sight.room().min(self.watch.batch_price_max(sight)),
        };
        let made = match is_demanded {
            true => self.payee.make_demanded_batch(&limits, demanded),
            false => self.payee.make_batch(&limits),
        };
        if !made.is_empty() {
            self.watch.waits_since = None;
        }
        step.join(made);
    }

    /// Sends the batch that was promised, unless it is on its way, or in a final block.
    pub(crate) fn send_batch(&mut self) {
        let Some(sight) = self.watch.sight.clone() else {
            return;
        };
        let Some(root) = self.payee.uncommitted() else {
            return;
        };
        let stands = sight.standing.as_ref().is_some_and(|standing| standing.lock > 0);
        let may_come = stands && sight.is_agent && self.watch.refused.is_none();
        if self.watch.written != Some(root) || !may_come || root.sums.price > sight.room() {
            return;
        }
        self.send(Errand::new(Purpose::Commit, Call::CommitBatch { root }), &sight);
    }

    /// A batch that was promised before the start may be on its way: it is not sent again before that shows.
    pub(crate) fn settle_batch(&mut self) {
        if self.payee.uncommitted().is_some() {
            let wait = Errand {
                purpose: Purpose::Commit,
                call: None,
                segment_of: None,
                part: None,
                is_pressing: false,
            };
            self.errands.send(&self.parts, wait, &self.newest, &self.events);
        }
    }

    /// Says how much there is to do, where that has changed: by a quarter, or from or to nothing.
    fn say_busy(&mut self, sight: &Sight, due: &mut Vec<Errand>) {
        let mut load: BTreeMap<Kind, u32> = BTreeMap::new();
        for (channel, nonce) in self.payee.open_calls() {
            if let Some(request) = self.payee.request(channel, nonce) {
                let open = load.entry(kind(request.model, request.operation)).or_default();
                *open = open.saturating_add(1);
            }
        }
        let stands = sight.may_sell(&self.parts);
        for offer in sight.offers.iter().filter(|offer| stands && offer.places > 0) {
            let of = of_offer(offer);
            let busy = load.get(&of).copied().unwrap_or(0).min(offer.places);
            let change = busy.abs_diff(offer.busy);
            let is_other = change > 0 && (busy == 0 || offer.busy == 0 || busy == offer.places);
            let is_much = change.saturating_mul(4) >= offer.places && change > 0;
            let last = self.watch.reported.get(&of).copied();
            let is_time = last.is_none_or(|last| sight.block.saturating_sub(last) >= REPORT_BLOCKS);
            if (is_other || is_much) && is_time {
                self.watch.reported.insert(of, sight.block);
                let call = Call::ReportBusy {
                    model: offer.model,
                    operation: offer.operation,
                    busy,
                };
                due.push(Errand::new(Purpose::Busy(of.0, of.1), call));
            }
        }
    }

    /// A call is back from the chain.
    pub(crate) fn back(&mut self, back: &Back) {
        self.errands.back(back);
        let purpose = &back.purpose;
        let outcome = if back.outcome.is_ok() { "done" } else { "failed" };
        self.parts.metrics.sent.with_label_values(&[outcome]).inc();
        let error = match &back.outcome {
            Ok(()) => return tracing::info!(?purpose, "on the chain"),
            Err(error) => error,
        };
        let remedy = match error {
            NotDone::Chain(error) => error.remedy(),
            NotDone::Journal(_) => None,
        };
        let is_fatal = matches!(error, NotDone::Chain(error) if error.class() == ErrorClass::Fatal);
        match remedy {
            Some(Remedy::Mend | Remedy::Never) => {
                tracing::error!(?purpose, %error, "the chain refuses a call about channels");
            }
            None if is_fatal => tracing::error!(?purpose, %error, "a call about channels cannot be sent"),
            _ => tracing::warn!(?purpose, %error, "not on the chain"),
        }
        let is_for_good = matches!(remedy, Some(Remedy::Split | Remedy::Never));
        if let (Purpose::Commit, true, Some(root)) = (purpose, is_for_good, self.payee.uncommitted()) {
            if remedy == Some(Remedy::Split) {
                self.watch.learnt_max = Some(root.sums.price / 2);
            }
            self.watch.refused = Some((root, back.settled));
        }
    }
}

/// What has been missing for long.
fn gone<T: Ord + Copy>(
    since: &mut BTreeMap<T, BlockNumber>,
    ours: Vec<T>,
    kept: &BTreeSet<T>,
    block: BlockNumber,
) -> Vec<T> {
    let missing: BTreeSet<T> = ours.into_iter().filter(|one| !kept.contains(one)).collect();
    since.retain(|one, _| missing.contains(one));
    let is_gone = |one: &T| {
        let first = *since.entry(*one).or_insert(block);
        block.saturating_sub(first) >= GONE_BLOCKS
    };
    missing.into_iter().filter(is_gone).collect()
}

/// What this agent signs does not bind the provider yet.
fn may_be_signer(sight: &Sight, parts: &Parts) -> bool {
    let agent = parts.signer.account();
    let standing = sight.standing.as_ref().filter(|standing| standing.lock > 0);
    standing.is_some_and(|standing| !standing.signers.contains(agent))
}
