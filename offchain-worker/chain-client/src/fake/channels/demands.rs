//! What is demanded of providers, shown by them, or withheld.

use sp_core::crypto::AccountId32;
use surety_channels::{BatchNumber, Batched, ChannelId, Request, SignedChunkStatement, view::Wanted};
use surety_proofs::SegmentOpening;
use surety_types::{stake::Role, trust::FaultKind};

use super::{
    super::{
        blocks::genesis,
        state::{Applied, FakeState},
    },
    FakeDemand, event, field, refused,
    selling::UNFINISHED_MAX,
    verify,
};
use crate::{Balance, ChainError, ChainEvent, DemandView, StandingView};

/// Room under a cap for a batch with a receipt that is demanded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// What that batch takes at most, in plancks.
    most: Balance,
    /// There was as much when the time for it began, and it is kept. Otherwise that time begins again.
    is_due: bool,
}

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
        if said.nonce < channel.purse.next {
            return Err(refused("AlreadyCounted"));
        }
        if !self.is_kept(standing, said.channel) {
            return Err(refused("TooLate"));
        }
        self.ensure_signer(held)?;
        if !held.is_signed(&genesis(), verify) {
            return Err(refused("BadSignature"));
        }
        let wanted = Wanted::Receipt {
            channel: said.channel,
            nonce: said.nonce,
            bytes: said.bytes,
        };
        // Of an answer that goes on nobody knows what it will cost, but the deposit pays for it.
        let uncounted = channel.purse.deposit.saturating_sub(channel.purse.counted);
        let most = said.end.map_or(uncounted, |_| said.price);
        let most = most.min(standing.cap);
        self.demand_of((&said.payee, by), [by, by], wanted, Some(most))
    }

    /// Puts the price on hold with the first that has it. Batching a receipt takes `room` of the cap.
    pub(super) fn demand_of(
        &mut self,
        (provider, demander): (&AccountId32, &AccountId32),
        payers: [&AccountId32; 2],
        wanted: Wanted,
        room: Option<Balance>,
    ) -> Applied {
        let key = (provider.clone(), demander.clone());
        if self.channels.demands.contains_key(&key) {
            return Err(refused("AlreadyDemanded"));
        }
        let price = self.channels.rules.demand_price;
        let can_pay = |payer: &&AccountId32| {
            let funds = self.funds.get(*payer);
            funds.is_none_or(|funds| funds.free >= price)
        };
        let [first, _] = payers;
        let by = payers.into_iter().find(can_pay).unwrap_or(first).clone();
        self.hold(&by, price)?;
        self.change_standing(provider, |standing| {
            standing.demands = standing.demands.saturating_add(1);
        });
        let view = DemandView {
            provider: provider.clone(),
            demander: demander.clone(),
            wanted,
            until: 0,
        };
        Ok(vec![self.begin_demand(FakeDemand { view, by }, room)?])
    }

    /// Gives a provider time for what is demanded. A receipt is only due if there is room for it under the
    /// cap, and a place for a batch, when that begins.
    fn begin_demand(
        &mut self,
        mut demand: FakeDemand,
        room: Option<Balance>,
    ) -> Result<ChainEvent, ChainError> {
        let view = &mut demand.view;
        view.until = self.clock.saturating_add(self.channels.rules.supply_window);
        let key = (view.provider.clone(), view.demander.clone());
        if let Some(most) = room {
            let is_due = self.has_room(&view.provider, most)?;
            let room = Room { most, is_due };
            self.channels.rooms.insert(key.clone(), room);
        }
        let fields = vec![
            field("provider", &view.provider),
            field("demander", &view.demander),
            field("wanted", &view.wanted),
            field("until", &view.until),
        ];
        self.channels.demands.insert(key, demand);
        Ok(event("Demanded", fields))
    }

    /// Whether a provider can batch something, beside what is due already.
    fn has_room(&self, provider: &AccountId32, most: Balance) -> Result<bool, ChainError> {
        let StandingView { cap, open, .. } = self.standing_now(self.standing(provider)?);
        let rooms = self.channels.rooms.iter();
        let due = rooms.filter(|((of, _), room)| of == provider && room.is_due);
        let taken = due.fold(open, |taken, (_, room)| taken.saturating_add(room.most));
        let is_place = self.unfinished(provider).count() < UNFINISHED_MAX;
        Ok(is_place && most <= cap.saturating_sub(taken))
    }

    /// Whether batches with what was not counted of a channel are kept.
    fn is_kept(&self, standing: &StandingView, channel: ChannelId) -> bool {
        let counted = self.channels.counted.get(&channel);
        counted.is_none_or(|batch| standing.oldest <= *batch)
    }

    pub(super) fn show_receipt(
        &mut self,
        agent: &AccountId32,
        demander: &AccountId32,
        (batch, receipt): (BatchNumber, &Batched<AccountId32>),
    ) -> Applied {
        let demand = self.demanded(agent, demander)?;
        let provider = demand.view.provider.clone();
        let Wanted::Receipt {
            channel,
            nonce,
            bytes,
        } = demand.view.wanted
        else {
            return Err(refused("NotDemanded"));
        };
        self.start_in_batch(&provider, batch, receipt)?;
        let said = &receipt.statement;
        let covers = (said.channel, said.nonce) == (channel, nonce) && said.end.is_some();
        if !covers || bytes > said.bytes {
            return Err(refused("NotDemanded"));
        }
        Ok(vec![self.meet(&demand, true)])
    }

    /// No round is opened about it.
    pub(super) fn show_point(
        &mut self,
        agent: &AccountId32,
        demander: &AccountId32,
        receipt: &Batched<AccountId32>,
        (request, head): (&Request, Option<&SegmentOpening>),
    ) -> Applied {
        let demand = self.demanded(agent, demander)?;
        let provider = demand.view.provider.clone();
        let Wanted::Point { batch, point } = demand.view.wanted else {
            return Err(refused("NotDemanded"));
        };
        let start = self.start_in_batch(&provider, batch, receipt)?;
        let offset = point.checked_sub(start);
        if offset.is_none_or(|offset| offset >= receipt.statement.price) {
            return Err(refused("NotDemanded"));
        }
        self.ensure_claimed(&receipt.statement, request, head)?;
        Ok(vec![self.meet(&demand, true)])
    }

    pub(super) fn end_demand(&mut self, provider: &AccountId32, demander: &AccountId32) -> Applied {
        let key = (provider.clone(), demander.clone());
        let demand = self.channels.demands.get(&key).cloned();
        let demand = demand.ok_or_else(|| refused("NotDemanded"))?;
        let is_owed = self.is_owed(self.standing(provider)?, &demand.view.wanted);
        if is_owed && demand.view.until >= self.clock {
            return Err(refused("WrongTime"));
        }
        let waiting = self.channels.rooms.get(&key).filter(|room| !room.is_due);
        if let Some(Room { most, .. }) = waiting.copied().filter(|_| is_owed) {
            return Ok(vec![self.begin_demand(demand, Some(most))?]);
        }
        let mut events = Vec::new();
        if is_owed {
            events = self.convict(provider, FaultKind::WithheldData, Some(demander));
        }
        events.push(self.meet(&demand, false));
        Ok(events)
    }

    /// Whether a provider loses its present lock for what it does not show.
    fn is_owed(&self, standing: &StandingView, wanted: &Wanted) -> bool {
        let is_of_it = match wanted {
            Wanted::Point { batch, .. } => standing.since_batch <= *batch,
            Wanted::Receipt { channel, .. } => {
                standing.since_channel <= *channel && self.is_kept(standing, *channel)
            }
        };
        standing.lock > 0 && is_of_it
    }

    /// What somebody demands of an agent's provider, while that can still show it.
    fn demanded(&self, agent: &AccountId32, demander: &AccountId32) -> Result<FakeDemand, ChainError> {
        let provider = self.stash_in(agent, Role::Provider);
        let provider = provider.ok_or_else(|| refused("NotAgent"))?;
        let key = (provider, demander.clone());
        let demand = self.channels.demands.get(&key);
        let demand = demand.ok_or_else(|| refused("NotDemanded"))?;
        let is_due = self.channels.rooms.get(&key).is_none_or(|room| room.is_due);
        match self.clock <= demand.view.until || !is_due {
            true => Ok(demand.clone()),
            false => Err(refused("WrongTime")),
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

    /// Ends a demand. When it was shown, half of its price is the provider's.
    fn meet(&mut self, demand: &FakeDemand, is_shown: bool) -> ChainEvent {
        let DemandView {
            provider, demander, ..
        } = &demand.view;
        let key = (provider.clone(), demander.clone());
        self.channels.demands.remove(&key);
        self.channels.rooms.remove(&key);
        let price = self.channels.rules.demand_price;
        let borne = if is_shown { price / 2 } else { 0 };
        self.pay_held(&demand.by, provider, borne);
        self.release(&demand.by, price.saturating_sub(borne));
        self.change_standing(provider, |standing| {
            standing.demands = standing.demands.saturating_sub(1);
        });
        if let Wanted::Point { batch, .. } = demand.view.wanted {
            self.change_window(&(provider.clone(), batch), |window| {
                window.disputes = window.disputes.saturating_sub(1);
            });
        }
        event(
            "DemandOver",
            vec![field("provider", provider), field("demander", demander)],
        )
    }
}
