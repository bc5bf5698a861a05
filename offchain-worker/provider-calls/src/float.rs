//! Money that stays free. Whatever is demanded over channels costs its fee before it pays anything, and each
//! batch its levy: who has no money for them shows nothing, and loses its lock, whatever it has computed.

use std::collections::BTreeMap;

use surety_audit_economics::channels::SURE;
use surety_chain_client::{BlockNumber, address};
use surety_channel_calls::{AccountId, CHUNK_BYTES_MAX, Payee};
use surety_channels::{ChannelId, view::Wanted};
use surety_proofs::parts;
use surety_types::limits::INPUT_BYTES_MAX;

use crate::{
    Parts,
    desk::Desk,
    errands::{Errand, Purpose},
    sight::Sight,
    terms::AGAIN,
    watch::ONE,
};

/// Most that an account demands of a provider at once: the chain takes no more.
const DEMANDS_MAX: u32 = 32;

/// What is free to pay with, in plancks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Money {
    pub(crate) stash: u128,
    /// Fees are paid with it as long as it lasts; levies never are.
    pub(crate) agent: u128,
}

impl Money {
    const fn all(self) -> u128 {
        self.stash.saturating_add(self.agent)
    }
}

/// What has to be free, in plancks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Needs {
    /// Of stash and agent together.
    all: u128,
    /// Of that what the stash alone can pay: levies.
    levies: u128,
}

impl Needs {
    /// What is missing.
    fn missing(self, money: Money, kept_for_others: u128) -> u128 {
        let all = self.all.saturating_add(kept_for_others);
        let all = all.saturating_sub(money.all());
        all.max(self.levies.saturating_sub(money.stash))
    }
}

/// What may be demanded, and whether there is money for it.
#[derive(Default)]
pub(crate) struct Float {
    /// The payer of each channel, and its key: both can demand its receipts.
    demanders: BTreeMap<ChannelId, [AccountId; 2]>,
    /// How many receipts each of them may demand.
    receipts: BTreeMap<AccountId, u32>,
    /// How many showings all that comes to at once.
    shows: u128,
    /// There is too little for what may be demanded already.
    is_short: bool,
    /// Since which block it was said that there is too little for more.
    said: Option<BlockNumber>,
}

impl Float {
    /// What may be demanded by a finalised block.
    fn look(&mut self, sight: &Sight, payee: &Payee) {
        let paying = sight
            .channels
            .iter()
            .filter(|view| view.channel >= sight.since_channel());
        let demanders = paying.map(|view| (view.channel, [view.payer.clone(), view.key.clone()]));
        self.demanders = demanders.collect();
        self.receipts.clear();
        let points = |demand: &&_| matches!(demand, Wanted::Point { .. });
        let wanted = sight.demands.iter().map(|demand| &demand.wanted);
        self.shows = wanted.filter(points).count() as u128;
        for view in sight.channels.iter() {
            let (known, next) = payee.known(view.channel);
            // Nothing is to be counted that could be demanded after this.
            let is_over = view.demanded_until < sight.time && next <= view.purse.next;
            if !is_over {
                self.add(view.channel, known);
            }
        }
    }

    /// So many more receipts of a channel may be demanded.
    fn add(&mut self, channel: ChannelId, receipts: u32) {
        for who in of_channel(&self.demanders, channel) {
            let known = self.receipts.entry(who.clone()).or_default();
            let before = (*known).min(DEMANDS_MAX);
            *known = known.saturating_add(receipts);
            let more = (*known).min(DEMANDS_MAX).saturating_sub(before);
            self.shows = self.shows.saturating_add(more.into());
        }
    }

    /// How many showings one more receipt of a channel adds: none where its payer and its key can demand as
    /// much as they may anyway.
    fn added_by(&self, channel: ChannelId) -> u128 {
        let may_more = |who: &&AccountId| self.receipts.get(*who).is_none_or(|known| *known < DEMANDS_MAX);
        of_channel(&self.demanders, channel).filter(may_more).count() as u128
    }

    /// Whether there is too little money for what may be demanded already.
    pub(crate) const fn is_short(&self) -> bool {
        self.is_short
    }
}

/// Who can demand receipts of a channel.
fn of_channel(
    demanders: &BTreeMap<ChannelId, [AccountId; 2]>,
    channel: ChannelId,
) -> impl Iterator<Item = &AccountId> {
    let both = demanders.get(&channel);
    let payer = both.map(|[payer, _]| payer);
    let key = both.map(|[_, key]| key).filter(|key| Some(*key) != payer);
    payer.into_iter().chain(key)
}

impl Desk {
    /// What has to be free where receipts of so much are in no block, and so much may be demanded at once.
    fn needs(&self, sight: &Sight, at_risk: u128, shows: u128) -> Needs {
        let fees = &sight.fees;
        let points = |price: u128| {
            let rate = sight.batches.last().map_or(ONE, |batch| batch.rate.into_inner());
            price.saturating_mul(rate).checked_div(ONE).unwrap_or(u128::MAX)
        };
        let cost = |points: u128, each: u128| points.saturating_mul(each).div_ceil(SURE);
        // What verifiers get for a point, and half of that: the premium is a quarter.
        let point = sight.rules.point_cost.saturating_mul(3) / 2;
        let levies = cost(points(at_risk), point);
        let drawn = points(at_risk.saturating_add(sight.committed()));
        let batches = self.watch.batches_for(sight, at_risk).min(sight.places() as u128);
        // In a round about one receipt: the longest input and the most vectors that there are.
        let round = parts(INPUT_BYTES_MAX).saturating_add(parts(CHUNK_BYTES_MAX));
        let all = [
            levies,
            cost(drawn, fees.show_point),
            fees.batch.saturating_mul(batches),
            fees.demand.saturating_mul(shows),
            fees.part.saturating_mul(round.into()),
        ];
        Needs {
            all: all.into_iter().fold(0, u128::saturating_add),
            levies,
        }
    }

    /// Whether all could be paid that may be demanded with one more request over a channel, of which so much
    /// would be in no block. Who does not know all channels cannot tell.
    pub(crate) fn affords_one_more(&self, sight: &Sight, channel: ChannelId, at_risk: u128) -> bool {
        let float = &self.watch.float;
        let shows = float.shows.saturating_add(float.added_by(channel));
        let others = *self.parts.kept_for_others.borrow();
        let needs = self.needs(sight, at_risk, shows);
        let both = sight.money.zip(others).filter(|_| sight.knows_channels);
        both.is_some_and(|(money, others)| needs.missing(money, others) == 0)
    }

    /// A request over a channel was taken: more may be demanded.
    pub(crate) fn keep_float_for(&mut self, channel: ChannelId) {
        self.watch.float.add(channel, 1);
        if let Some(sight) = self.watch.sight.clone() {
            self.tell_float(&sight);
        }
    }

    /// Tells the others what they have to leave free.
    fn tell_float(&self, sight: &Sight) -> Needs {
        let needs = self.needs(sight, self.watch.at_risk, self.watch.float.shows);
        let stands = sight.standing.as_ref().is_some_and(|standing| standing.lock > 0);
        let kept = if stands { needs.all } else { 0 };
        self.parts.metrics.float.set(kept as f64);
        self.parts
            .kept
            .send_if_modified(|told| told.replace(kept) != Some(kept));
        needs
    }

    /// What has to be free by a finalised block. Where it is not, its operator is told what to do.
    pub(crate) fn look_at_money(&mut self, sight: &Sight) {
        self.watch.float.look(sight, &self.payee);
        let needs = self.tell_float(sight);
        let others = self.parts.kept_for_others.borrow().unwrap_or(0);
        let stands = sight.standing.as_ref().is_some_and(|standing| standing.lock > 0);
        let missing = |needs: Needs| {
            let money = sight.money.filter(|_| stands);
            money.map_or(0, |money| needs.missing(money, others))
        };
        self.watch.float.is_short = missing(needs) > 0;
        // A new payer's first request: it and its key may demand the receipt.
        let more = self.needs(
            sight,
            self.watch.at_risk,
            self.watch.float.shows.saturating_add(2),
        );
        let missing = missing(more);
        self.parts.metrics.poor.set((missing > 0).into());
        self.say_what_is_missing(missing, more, sight);
    }

    fn say_what_is_missing(&mut self, missing: u128, needs: Needs, sight: &Sight) {
        let said = &mut self.watch.float.said;
        if missing == 0 {
            if said.take().is_some() {
                tracing::info!("enough money is free again for what may be demanded over channels");
            }
            return;
        }
        if said.is_some_and(|said| sight.block.saturating_sub(said) < AGAIN) {
            return;
        }
        *said = Some(sight.block);
        let (parts, money): (&Parts, _) = (&self.parts, sight.money.unwrap_or_default());
        tracing::error!(
            needed = needs.all,
            free = money.all(),
            kept_for_tasks = parts.kept_for_others.borrow().unwrap_or(0),
            "too little money is free to pay for what may be demanded over channels (in plancks): new requests are \
             refused as busy, and what is demanded is shown as late as it can be. Whoever cannot pay for showing it \
             loses its lock: send {} SURE to {}",
            missing.div_ceil(SURE),
            address(&parts.stash)
        );
    }

    /// While money is short nothing is sent that can wait, and of what is demanded no more than can be paid,
    /// what has the least time first. For a batch that it needs its levy is left.
    pub(crate) fn leave_out_what_can_wait(&self, sight: &Sight, needs_batch: bool, due: &mut Vec<Errand>) {
        let (true, Some(money)) = (self.watch.float.is_short(), sight.money) else {
            return;
        };
        let fees = sight.fees;
        let cost = |purpose: &Purpose| match purpose {
            Purpose::Show(..) => Some(fees.show),
            Purpose::ShowPoint(..) => Some(fees.show_point),
            _ => None,
        };
        let levies = self.needs(sight, self.watch.at_risk, 0).levies;
        let (unbatched, _) = self.payee.unbatched();
        let is_batch_due = unbatched > 0 || needs_batch || self.payee.uncommitted().is_some();
        let batch = if is_batch_due {
            levies.saturating_add(fees.batch)
        } else {
            0
        };
        let away: Vec<u128> = self.errands.away().filter_map(cost).collect();
        let mut left = away.iter().fold(money.all().saturating_sub(batch), |left, cost| {
            left.saturating_sub(*cost)
        });
        // What a call costs is known only roughly: one is always tried.
        let mut is_none = away.is_empty();
        due.retain(|errand| match (&errand.purpose, cost(&errand.purpose)) {
            (Purpose::Busy(..) | Purpose::GiveBack(_), _) => false,
            (_, None) => true,
            (_, Some(cost)) if cost <= left || is_none => {
                left = left.saturating_sub(cost);
                is_none = false;
                true
            }
            (_, Some(_)) => false,
        });
    }
}
