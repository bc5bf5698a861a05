//! What is demanded of providers, shown by them, or withheld.

use sp_core::crypto::AccountId32;
use surety_channels::{
    BatchNumber, Batched, Request, SignedChunkStatement, Time,
    view::{NotMet, Says, Wanted},
};
use surety_proofs::SegmentOpening;
use surety_types::{stake::Role, trust::FaultKind};

use super::{
    super::{
        blocks::genesis,
        state::{Applied, FakeState},
    },
    FakeDemand, event, field, refused, verify,
};
use crate::{Balance, ChainError, ChainEvent, ChannelView, DemandView, EventField, StandingView};

/// Most that somebody demands of a provider at once.
const DEMANDS_MAX: usize = 32;

impl FakeState {
    pub(super) fn demand_receipt(
        &mut self,
        by: &AccountId32,
        held: &SignedChunkStatement<AccountId32>,
    ) -> Applied {
        let said = &held.statement;
        let standing = self.standing_to_lose(&said.payee)?;
        // The provider has no batch with a price for that.
        if said.is_void() {
            return Err(refused("MayNotDemand"));
        }
        let channel = self.channel_of(said.channel)?;
        if channel.payee != said.payee || standing.since_channel > said.channel {
            return Err(refused("TooLate"));
        }
        if *by != channel.payer && *by != channel.key {
            return Err(refused("MayNotDemand"));
        }
        let counted = if said.nonce < channel.purse.next {
            let marks = self.channels.marks.get(&said.channel);
            let first = marks.and_then(|marks| marks.oldest(said.nonce));
            let first = first.filter(|first| self.clock <= self.demanded_until(&said.payee, *first));
            let first = first.ok_or_else(|| refused("AlreadyCounted"))?;
            let last = self.channels.counted.get(&said.channel).copied();
            Some((first, last.unwrap_or_default()))
        } else if self.clock <= self.seen_now(&channel).demanded_until {
            None
        } else {
            return Err(refused("TooLate"));
        };
        self.ensure_signer(held)?;
        if !held.is_signed(&genesis(), verify) {
            return Err(refused("BadSignature"));
        }
        let wanted = Wanted::Receipt {
            channel: said.channel,
            nonce: said.nonce,
            says: Says::of(said, &genesis()),
            counted,
        };
        let demanded = self.channels.demanded.get(&said.channel).copied();
        let mut demanded = demanded.unwrap_or_default();
        let surplus = demanded.demand(said.nonce, self.channels.rules.demand_price);
        let events = self.demand_of((&said.payee, by), [by, by], (wanted, surplus))?;
        self.channels.demanded.insert(said.channel, demanded);
        let supply = self.channels.rules.supply_window;
        let until = self.clock.saturating_add(supply.saturating_mul(2));
        if let Some(channel) = self.channels.open.get_mut(&said.channel) {
            channel.purse.demand(until);
        }
        Ok(events)
    }

    /// Has the first pay the price, and `surplus` beside it, that can.
    pub(super) fn demand_of(
        &mut self,
        (provider, demander): (&AccountId32, &AccountId32),
        payers: [&AccountId32; 2],
        (wanted, surplus): (Wanted, Balance),
    ) -> Applied {
        let key = (provider.clone(), demander.clone());
        let known = self.channels.demands.get(&key).map_or(&[][..], Vec::as_slice);
        let is_known = known
            .iter()
            .any(|demand| demand.view.wanted.is_about_same(&wanted));
        if is_known {
            return Err(refused("AlreadyDemanded"));
        }
        if known.len() >= DEMANDS_MAX {
            return Err(refused("TooManyDemands"));
        }
        let price = wanted.price(self.channels.rules.demand_price);
        let price = price.saturating_add(surplus);
        let can_pay = |payer: &&AccountId32| {
            let funds = self.funds.get(*payer);
            funds.is_none_or(|funds| funds.free >= price)
        };
        let [first, _] = payers;
        let by = payers.into_iter().find(can_pay).unwrap_or(first).clone();
        self.take(&by, price)?;
        self.change_standing(provider, |standing| {
            standing.demands = standing.demands.saturating_add(1);
        });
        let view = DemandView {
            provider: provider.clone(),
            demander: demander.clone(),
            wanted,
            until: self.clock.saturating_add(self.channels.rules.supply_window),
        };
        let mut fields = of_demand(&view);
        fields.push(field("until", &view.until));
        let demand = FakeDemand { view, by, surplus };
        self.channels.demands.entry(key).or_default().push(demand);
        Ok(vec![event("Demanded", fields)])
    }

    /// A channel as the chain tells it: how long something is demanded of it follows from what is kept.
    pub(super) fn seen_now(&self, channel: &ChannelView) -> ChannelView {
        let counted = self.channels.counted.get(&channel.channel);
        let demanded_until = counted.map_or(Time::MAX, |batch| self.demanded_until(&channel.payee, *batch));
        let demanded = self.channels.demanded.get(&channel.channel).copied();
        ChannelView {
            demanded_until,
            demanded: demanded.unwrap_or_default(),
            ..channel.clone()
        }
    }

    /// Last time at which a receipt is demanded that may be in this batch of a provider, or in a later one.
    fn demanded_until(&self, provider: &AccountId32, first: BatchNumber) -> Time {
        let rules = self.channels.rules;
        match self.channels.batches.get(&(provider.clone(), first)) {
            Some(view) => view.window.demanded_until(rules.redeem_by, rules.supply_window),
            None => {
                let standing = self.channels.standings.get(provider);
                let is_to_come = standing.is_none_or(|standing| standing.next <= first);
                if is_to_come { Time::MAX } else { 0 }
            }
        }
    }

    pub(super) fn show_receipt(
        &mut self,
        agent: &AccountId32,
        demander: &AccountId32,
        (batch, receipt): (BatchNumber, &Batched<AccountId32>),
        shown: Option<&SegmentOpening>,
    ) -> Applied {
        let provider = self.agents_provider(agent)?;
        self.start_in_batch(&provider, batch, receipt)?;
        let said = &receipt.statement;
        let channel = self.channel_of(said.channel);
        let is_counted = channel.is_ok_and(|channel| said.nonce < channel.purse.next);
        let window = &self.batch_of(&(provider.clone(), batch))?.window;
        if is_counted && !window.is_settled(self.clock) {
            return Err(refused("NotSettled"));
        }
        let demands = self.channels.demands.get(&(provider.clone(), demander.clone()));
        let mut all = demands.into_iter().flatten().map(|demand| &demand.view.wanted);
        let one = all.find_map(|wanted| match wanted.met_by(batch, said, shown, &genesis()) {
            Ok(()) => Some(Ok(wanted.clone())),
            Err(NotMet::Unproven) => Some(Err(refused("BeginningNotShown"))),
            Err(NotMet::Other) => None,
        });
        let wanted = one.ok_or_else(|| refused("NotDemanded"))??;
        let bytes = wanted.bytes_shown(said, shown);
        self.show(&provider, demander, |of| *of == wanted, bytes)
    }

    /// A round is opened about it, which the test ends with [`FakeState::decide_receipt`]. All models are
    /// known here.
    pub(super) fn show_point(
        &mut self,
        agent: &AccountId32,
        demander: &AccountId32,
        (batch, receipt): (BatchNumber, &Batched<AccountId32>),
        (request, head): (&Request, Option<&SegmentOpening>),
    ) -> Applied {
        let provider = self.agents_provider(agent)?;
        let start = self.start_in_batch(&provider, batch, receipt)?;
        let price = receipt.statement.price;
        let is_in_it = |wanted: &Wanted| match *wanted {
            Wanted::Receipt { .. } => false,
            Wanted::Point { batch: of, point } => {
                let offset = point.checked_sub(start);
                of == batch && offset.is_some_and(|offset| offset < price)
            }
        };
        let demands = self.channels.demands.get(&(provider.clone(), demander.clone()));
        if !demands.is_some_and(|all| all.iter().any(|one| is_in_it(&one.view.wanted))) {
            return Err(refused("NotDemanded"));
        }
        self.ensure_claimed(&receipt.statement, request, head)?;
        let mut events = match self.open_receipt_round(&receipt.statement, Some(batch), false) {
            Ok(events) => events,
            // Whoever disputes it has had it shown.
            Err(error) if error == refused("AlreadyDisputed") => Vec::new(),
            Err(error) => return Err(error),
        };
        events.extend(self.show(&provider, demander, is_in_it, 0)?);
        Ok(events)
    }

    pub(super) fn end_demand(&mut self, provider: &AccountId32, demander: &AccountId32) -> Applied {
        let key = (provider.clone(), demander.clone());
        let demands = self.channels.demands.get(&key).cloned();
        let demands = demands.ok_or_else(|| refused("NotDemanded"))?;
        let standing = self.standing(provider)?;
        let is_owed = |demand: &FakeDemand| is_owed(standing, &demand.view.wanted);
        let mut late = demands.iter().filter(|demand| demand.view.until < self.clock);
        let is_withheld = late.any(is_owed);
        let (over, left): (Vec<_>, Vec<_>) = demands
            .into_iter()
            .partition(|demand| is_withheld || !is_owed(demand));
        if over.is_empty() {
            return Err(refused("WrongTime"));
        }
        let mut events = Vec::new();
        if is_withheld {
            events = self.convict(provider, FaultKind::WithheldData, Some(demander));
        }
        self.keep_demands(key, left);
        events.extend(over.iter().flat_map(|demand| self.meet(demand, None)));
        Ok(events)
    }

    fn agents_provider(&self, agent: &AccountId32) -> Result<AccountId32, ChainError> {
        let provider = self.stash_in(agent, Role::Provider);
        provider.ok_or_else(|| refused("NotAgent"))
    }

    /// A provider has shown what somebody demands of it, as far as `is_shown` and in time, and so many bytes
    /// beside it.
    fn show(
        &mut self,
        provider: &AccountId32,
        demander: &AccountId32,
        is_shown: impl Fn(&Wanted) -> bool,
        bytes: u32,
    ) -> Applied {
        let key = (provider.clone(), demander.clone());
        let demands = self.channels.demands.get(&key).cloned();
        let demands = demands.ok_or_else(|| refused("NotDemanded"))?;
        let now = self.clock;
        let mut asked = demands.iter().filter(|demand| is_shown(&demand.view.wanted));
        let is_late = asked.any(|demand| demand.view.until < now);
        let (shown, left): (Vec<_>, Vec<_>) = demands
            .into_iter()
            .partition(|demand| is_shown(&demand.view.wanted) && now <= demand.view.until);
        if shown.is_empty() {
            return Err(refused(if is_late { "WrongTime" } else { "NotDemanded" }));
        }
        self.keep_demands(key, left);
        // What is shown once is paid once, whatever it meets.
        let mut paid = Some(bytes);
        let price = self.channels.rules.demand_price;
        let mut events = Vec::new();
        for demand in &shown {
            let price = demand.view.wanted.price(price);
            let borne = paid.take().map_or(0, |bytes| Wanted::borne(price, bytes));
            let borne = borne.saturating_add(demand.surplus);
            events.extend(self.meet(demand, Some(borne)));
        }
        Ok(events)
    }

    fn keep_demands(&mut self, key: (AccountId32, AccountId32), left: Vec<FakeDemand>) {
        match left.is_empty() {
            true => drop(self.channels.demands.remove(&key)),
            false => drop(self.channels.demands.insert(key, left)),
        }
    }

    /// Where on the line of its batch's price a receipt of a provider begins.
    fn start_in_batch(
        &self,
        provider: &AccountId32,
        batch: BatchNumber,
        receipt: &Batched<AccountId32>,
    ) -> Result<u128, ChainError> {
        let root = self.batch_of(&(provider.clone(), batch))?.window.root;
        let shown = receipt.place_in(&genesis(), &root);
        let shown = shown.filter(|_| receipt.statement.payee == *provider);
        Ok(shown.ok_or_else(|| refused("BadOpening"))?.start)
    }

    /// Ends a demand that is not kept any more. When it was shown its provider has so much of its price, and
    /// what it has kept back.
    fn meet(&mut self, demand: &FakeDemand, borne: Option<Balance>) -> Vec<ChainEvent> {
        let provider = &demand.view.provider;
        let price = demand.view.wanted.price(self.channels.rules.demand_price);
        let price = price.saturating_add(demand.surplus);
        let (is_shown, borne) = (borne.is_some(), borne.unwrap_or(0));
        self.pay(provider, borne);
        self.pay(&demand.by, price.saturating_sub(borne));
        self.change_standing(provider, |standing| {
            standing.demands = standing.demands.saturating_sub(1);
        });
        let paid = match demand.view.wanted {
            Wanted::Receipt { channel, .. } => self.end_hold(channel, is_shown),
            Wanted::Point { batch, .. } => {
                self.change_window(&(provider.clone(), batch), |window| {
                    window.disputes = window.disputes.saturating_sub(1);
                });
                None
            }
        };
        let over = event("DemandOver", of_demand(&demand.view));
        paid.into_iter().chain([over]).collect()
    }
}

/// Whether a provider loses its present lock for what it does not show.
fn is_owed(standing: &StandingView, wanted: &Wanted) -> bool {
    let is_of_it = match wanted {
        Wanted::Point { batch, .. } => standing.since_batch <= *batch,
        Wanted::Receipt { channel, .. } => standing.since_channel <= *channel,
    };
    standing.lock > 0 && is_of_it
}

fn of_demand(view: &DemandView) -> Vec<EventField> {
    vec![
        field("provider", &view.provider),
        field("demander", &view.demander),
        field("wanted", &view.wanted),
    ]
}
