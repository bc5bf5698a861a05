//! Receipts that are demanded, shown, disputed, or reported as false.

use sp_core::crypto::AccountId32;
use surety_channels::{
    BatchEvidence, BatchNumber, Batched, ChunkStatement, Committed, Equivocation, Request, Said,
    SignedChunkStatement, Struck, view::Wanted,
};
use surety_types::{TaskId, stake::Role, trust::FaultKind};

use super::{
    super::{
        blocks::genesis,
        state::{Applied, FakeState},
    },
    FakeDemand, event, field, refused, verify,
};
use crate::{ChainError, ChainEvent, DemandView, ReceiptSource};

/// Most receipts of a provider that are disputed at once.
const DISPUTED_MAX: u32 = 16;

impl FakeState {
    pub(super) fn demand_receipt(
        &mut self,
        by: &AccountId32,
        held: &SignedChunkStatement<AccountId32>,
    ) -> Applied {
        let said = &held.statement;
        let since = self.standing_to_lose(&said.payee)?.since_channel;
        let channel = self.channel_of(said.channel)?;
        if channel.payee != said.payee || since > said.channel {
            return Err(refused("TooLate"));
        }
        if *by != channel.payer && *by != channel.key {
            return Err(refused("MayNotDemand"));
        }
        if said.nonce < channel.purse.next {
            return Err(refused("AlreadyCounted"));
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
        self.demand_of(&said.payee, (by, by), wanted)
    }

    /// Puts the price on hold.
    pub(super) fn demand_of(
        &mut self,
        provider: &AccountId32,
        (demander, by): (&AccountId32, &AccountId32),
        wanted: Wanted,
    ) -> Applied {
        let key = (provider.clone(), demander.clone());
        if self.channels.demands.contains_key(&key) {
            return Err(refused("AlreadyDemanded"));
        }
        let rules = self.channels.rules;
        self.hold(by, rules.demand_price)?;
        let until = self.clock.saturating_add(rules.supply_window);
        let demand = FakeDemand {
            view: DemandView {
                provider: provider.clone(),
                demander: demander.clone(),
                wanted: wanted.clone(),
                until,
            },
            by: by.clone(),
        };
        self.channels.demands.insert(key, demand);
        self.change_standing(provider, |standing| {
            standing.demands = standing.demands.saturating_add(1);
        });
        let fields = vec![
            field("provider", provider),
            field("demander", demander),
            field("wanted", &wanted),
            field("until", &until),
        ];
        Ok(vec![event("Demanded", fields)])
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
        Ok(vec![self.meet(&demand, true)])
    }

    pub(super) fn end_demand(&mut self, provider: &AccountId32, demander: &AccountId32) -> Applied {
        let demand = self.channels.demands.get(&(provider.clone(), demander.clone()));
        let demand = demand.cloned().ok_or_else(|| refused("NotDemanded"))?;
        let is_owed = self.standing(provider)?.lock > 0;
        if is_owed && demand.view.until >= self.clock {
            return Err(refused("WrongTime"));
        }
        let mut events = Vec::new();
        if is_owed {
            events.push(self.convict(provider, FaultKind::WithheldData));
        }
        events.push(self.meet(&demand, false));
        Ok(events)
    }

    /// What somebody demands of an agent's provider, while that can still show it.
    fn demanded(&self, agent: &AccountId32, demander: &AccountId32) -> Result<FakeDemand, ChainError> {
        let provider = self.stash_in(agent, Role::Provider);
        let provider = provider.ok_or_else(|| refused("NotAgent"))?;
        let demand = self.channels.demands.get(&(provider, demander.clone()));
        let demand = demand.ok_or_else(|| refused("NotDemanded"))?;
        match self.clock <= demand.view.until {
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
        self.channels
            .demands
            .remove(&(provider.clone(), demander.clone()));
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

    /// Opens a round, which the test ends with [`FakeState::decide_receipt`].
    pub(super) fn dispute_receipt(&mut self, source: &ReceiptSource, request: &Request) -> Applied {
        let (said, batch) = match source {
            ReceiptSource::Batch(batch, batched) => {
                self.ensure_disputable(*batch, batched)?;
                (&batched.statement, Some(*batch))
            }
            ReceiptSource::Signed(signed) => {
                self.ensure_signer(signed)?;
                if !signed.is_signed(&genesis(), verify) {
                    return Err(refused("BadSignature"));
                }
                self.channel_of(signed.statement.channel)?;
                (&signed.statement, None)
            }
        };
        let standing = self.standing_to_lose(&said.payee)?;
        if standing.since_channel > said.channel {
            return Err(refused("TooLate"));
        }
        if standing.disputes >= DISPUTED_MAX {
            return Err(refused("TooManyDisputed"));
        }
        if said.check(request).is_err() || said.is_void() || said.end.is_none() {
            return Err(refused("NotDisputable"));
        }
        self.open_receipt_round(said, batch)
    }

    fn ensure_disputable(
        &self,
        batch: BatchNumber,
        batched: &Batched<AccountId32>,
    ) -> Result<(), ChainError> {
        let window = &self.batch_of(&(batched.statement.payee.clone(), batch))?.window;
        if window.is_final(self.clock) || window.is_void {
            return Err(refused("TooLate"));
        }
        let shown = batched.place_in(&genesis(), &window.root);
        let shown = shown.ok_or_else(|| refused("BadOpening"))?;
        match window.has_struck(shown.channel, shown.nonce) {
            true => Err(refused("NotDisputable")),
            false => Ok(()),
        }
    }

    fn open_receipt_round(
        &mut self,
        said: &ChunkStatement<AccountId32>,
        batch: Option<BatchNumber>,
    ) -> Applied {
        let receipt = Struck {
            channel: said.channel,
            nonce: said.nonce,
            price: said.price,
        };
        let disputed = (said.payee.clone(), batch, receipt);
        if self.channels.disputed.values().any(|known| *known == disputed) {
            return Err(refused("AlreadyDisputed"));
        }
        let (task, round) = (
            self.tasks.keys().next_back(),
            self.channels.disputed.keys().next_back(),
        );
        let round: TaskId = task.max(round).map_or(0, |last| last.saturating_add(1));
        self.channels.disputed.insert(round, disputed);
        self.change_standing(&said.payee, |standing| {
            standing.disputes = standing.disputes.saturating_add(1);
        });
        if let Some(batch) = batch {
            self.change_window(&(said.payee.clone(), batch), |window| {
                window.disputes = window.disputes.saturating_add(1);
            });
        }
        let fields = vec![
            field("round", &round),
            field("provider", &said.payee),
            field("batch", &batch),
            field("channel", &said.channel),
            field("nonce", &said.nonce),
        ];
        Ok(vec![event("Disputed", fields)])
    }

    /// Ends the round about a receipt. Where it does not stand, its provider is convicted.
    pub fn decide_receipt(&mut self, round: TaskId, stands: bool) {
        let Some((provider, batch, receipt)) = self.channels.disputed.remove(&round) else {
            return;
        };
        self.change_standing(&provider, |standing| {
            standing.disputes = standing.disputes.saturating_sub(1);
        });
        if let Some(batch) = batch {
            self.change_window(&(provider.clone(), batch), |window| {
                window.disputes = window.disputes.saturating_sub(1);
                if !stands {
                    window.strike(receipt);
                }
            });
        }
        if !stands {
            self.convict(&provider, FaultKind::LostDispute);
        }
    }

    pub(super) fn report_chunks(&mut self, equivocation: &Equivocation<AccountId32>) -> Applied {
        let said = &equivocation.one.statement;
        if self.standing_to_lose(&said.payee)?.since_channel > said.channel {
            return Err(refused("TooLate"));
        }
        self.ensure_signer(&equivocation.one)?;
        self.ensure_signer(&equivocation.other)?;
        match equivocation.verify(&genesis(), verify) {
            Some(_) => Ok(vec![self.convict(&said.payee, FaultKind::Equivocation)]),
            None => Err(refused("NoFault")),
        }
    }

    pub(super) fn report_batch(
        &mut self,
        payee: &AccountId32,
        (batch, other): (BatchNumber, Option<BatchNumber>),
        evidence: &BatchEvidence<AccountId32>,
    ) -> Applied {
        let standing = self.standing_to_lose(payee)?;
        let (since_batch, since_channel) = (standing.since_batch, standing.since_channel);
        let root = |batch: BatchNumber| match since_batch <= batch {
            true => Ok(self.batch_of(&(payee.clone(), batch))?.window.root),
            false => Err(refused("TooLate")),
        };
        let committed = Committed {
            genesis: genesis(),
            payee: payee.clone(),
            batch: root(batch)?,
            other: other.map(root).transpose()?,
        };
        if let BatchEvidence::Contradiction { batched, said, .. } = evidence {
            if since_channel > batched.statement.channel {
                return Err(refused("TooLate"));
            }
            if let Said::Signed(signed) = said {
                self.ensure_signer(signed)?;
            }
        }
        match evidence.verify(&committed, verify) {
            Some(_) => Ok(vec![self.convict(payee, FaultKind::FalseBatch)]),
            None => Err(refused("NoFault")),
        }
    }

    fn ensure_signer(&self, signed: &SignedChunkStatement<AccountId32>) -> Result<(), ChainError> {
        let standing = self.standing_to_lose(&signed.statement.payee)?;
        let is_known = standing.signers.contains(&signed.agent);
        is_known.then_some(()).ok_or_else(|| refused("UnknownSigner"))
    }

    /// Takes a standing lock, and what is not final.
    fn convict(&mut self, offender: &AccountId32, kind: FaultKind) -> ChainEvent {
        let (now, next) = (self.clock, self.channels.next);
        for ((provider, _), batch) in &mut self.channels.batches {
            if provider == offender && !batch.window.is_final(now) {
                batch.window.void();
            }
        }
        self.channels
            .offers
            .retain(|(provider, ..), _| provider != offender);
        self.change_standing(offender, |standing| {
            standing.lock = 0;
            standing.cap = 0;
            standing.signers.clear();
            standing.since_channel = next;
            standing.since_batch = standing.next;
        });
        event(
            "Convicted",
            vec![field("offender", offender), field("kind", &kind)],
        )
    }
}
