//! Money that stays free. Whatever is demanded over channels costs its fee before it pays anything, and each
//! batch its levy: who has no money for them shows nothing, and loses its lock, whatever it has computed.

use std::collections::BTreeMap;

use surety_audit_economics::channels::SURE;
use surety_chain_client::{BlockNumber, address};
use surety_channel_calls::{CHUNK_BYTES_MAX, Payee};
use surety_channels::{ChannelId, DEMANDS_AT_BASE, view::Wanted};
use surety_proofs::parts;
use surety_types::limits::INPUT_BYTES_MAX;

use crate::{
    Fees, Parts,
    desk::Desk,
    errands::{Errand, Purpose},
    sight::Sight,
    terms::AGAIN,
    watch::ONE,
};

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
    /// How many requests each channel has had whose receipts may be demanded.
    requests: BTreeMap<ChannelId, u32>,
    /// For how many demands of receipts, and of points, money is kept.
    demands: u128,
    /// What of that is not needed, in plancks, by channel: so much was demanded already, and paid for.
    over: BTreeMap<ChannelId, u128>,
    /// There is too little for what may be demanded already.
    is_short: bool,
    /// Since which block it was said that there is too little for more.
    said: Option<BlockNumber>,
}

impl Float {
    /// What may be demanded by a finalised block.
    fn look(&mut self, sight: &Sight, payee: &Payee) {
        self.requests.clear();
        self.over.clear();
        let wanted = sight.demands.iter().map(|demand| &demand.wanted);
        let points = wanted.filter(|wanted| matches!(wanted, Wanted::Point { .. }));
        self.demands = points.count() as u128;
        let mut open: BTreeMap<ChannelId, u32> = BTreeMap::new();
        for demand in &sight.demands {
            if let Wanted::Receipt { channel, .. } = &demand.wanted {
                let of = open.entry(*channel).or_default();
                *of = of.saturating_add(1);
            }
        }
        for view in sight.channels.iter() {
            let next = payee.next_nonce(view.channel).max(view.purse.next);
            // Nothing is to be counted that could be demanded after this.
            let is_over = view.demanded_until < sight.time && next <= view.purse.next;
            let is_paying = view.channel >= sight.since_channel();
            if is_paying && !is_over {
                self.add(view.channel, next);
                let all = next.min(DEMANDS_AT_BASE);
                let open = open.get(&view.channel).copied().unwrap_or(0);
                let met = view.demanded.times.saturating_sub(open);
                let over = no_longer_needed(&sight.fees, sight.rules.demand_price, all, met);
                if over > 0 {
                    self.over.insert(view.channel, over);
                }
            }
        }
    }

    /// So many more requests of a channel have receipts that may be demanded.
    fn add(&mut self, channel: ChannelId, more: u32) {
        let requests = self.requests.entry(channel).or_default();
        let before = (*requests).min(DEMANDS_AT_BASE);
        *requests = requests.saturating_add(more);
        let added = (*requests).min(DEMANDS_AT_BASE).saturating_sub(before);
        self.demands = self.demands.saturating_add(added.into());
        // What was met so far is fewer rounds over more requests: the next block says how many.
        if added > 0 {
            self.over.remove(&channel);
        }
    }

    /// What is not needed of what is kept, but for one channel that may have one more request.
    fn over(&self, but: Option<ChannelId>) -> u128 {
        let grows = but.filter(|channel| self.added_by(*channel) > 0);
        let others = self.over.iter().filter(|(channel, _)| Some(**channel) != grows);
        others.fold(0u128, |all, (_, over)| all.saturating_add(*over))
    }

    /// For how many demands more one more request of a channel has money kept: for none once it has had as
    /// many as the chain lets demand at its least price.
    fn added_by(&self, channel: ChannelId) -> u128 {
        let requests = self.requests.get(&channel).copied().unwrap_or(0);
        (requests < DEMANDS_AT_BASE).into()
    }

    /// Whether there is too little money for what may be demanded already.
    pub(crate) const fn is_short(&self) -> bool {
        self.is_short
    }
}

/// Of what is kept for `requests` requests of a channel, what is not needed once so many demands over it were
/// met, in plancks. All of them may be demanded once, and again: each of those rounds pays a `price` more for
/// each than the one before.
fn no_longer_needed(fees: &Fees, price: u128, requests: u32, met: u32) -> u128 {
    let rounds = met.checked_div(requests).unwrap_or(0);
    if rounds == 0 {
        return 0;
    }
    let price = price.max(1);
    // What one request costs in the next round, and in all that are to come. One that has begun is whole.
    let next = fees.show.saturating_sub(price.saturating_mul(rounds.into()));
    let left = next.div_ceil(price);
    let cheaper = left.saturating_mul(left.saturating_sub(1)) / 2;
    let costs = left
        .saturating_mul(next)
        .saturating_sub(cheaper.saturating_mul(price));
    let no_more = fees.demand.saturating_sub(costs);
    no_more.saturating_mul(requests.into())
}

impl Desk {
    /// What has to be free where receipts of so much are in no block, and money is kept for so many demands,
    /// of which so much is not needed.
    fn needs(&self, sight: &Sight, at_risk: u128, (demands, over): (u128, u128)) -> Needs {
        let fees = &sight.fees;
        let of_demands = fees.demand.saturating_mul(demands);
        // What pays more than it costs is paid for first, too.
        let one = of_demands.min(fees.show);
        let of_demands = of_demands.saturating_sub(over).max(one);
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
            of_demands,
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
        let demands = float.demands.saturating_add(float.added_by(channel));
        let others = *self.parts.kept_for_others.borrow();
        let needs = self.needs(sight, at_risk, (demands, float.over(Some(channel))));
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
        let float = &self.watch.float;
        let needs = self.needs(sight, self.watch.at_risk, (float.demands, float.over(None)));
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
        // The first request of a new channel.
        let float = &self.watch.float;
        let demands = (float.demands.saturating_add(1), float.over(None));
        let more = self.needs(sight, self.watch.at_risk, demands);
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
        let levies = self.needs(sight, self.watch.at_risk, (0, 0)).levies;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_over_for_a_channel_counts_until_more_of_it_may_be_demanded() {
        let mut float = Float::default();
        float.add(1, 2);
        float.add(2, DEMANDS_AT_BASE);
        float.over = BTreeMap::from([(1, 30), (2, 500)]);
        let over = [None, Some(1), Some(2)].map(|but| float.over(but));
        assert_eq!(over, [530, 500, 530]);
        float.add(2, 1);
        assert_eq!(float.over(None), 530);
        float.add(1, 1);
        assert_eq!(float.over(None), 500);
    }
}
