//! Questions about channels.

use async_trait::async_trait;
use sp_core::crypto::AccountId32;
use surety_channels::{BatchNumber, ChannelId, Time};

use super::super::{FakeChain, state::FakeState};
use crate::{
    Balance, BatchView, ChainError, ChannelChain, ChannelRules, ChannelView, DemandView, DisputedView,
    OfferView, PointsView, PoolView, StandingView, When,
};

#[async_trait]
impl ChannelChain for FakeChain {
    async fn channel(&self, when: When, id: ChannelId) -> Result<Option<ChannelView>, ChainError> {
        self.read(when, |state| {
            let channel = state.channels.open.get(&id)?;
            Some(state.seen_now(channel))
        })
    }

    async fn channels_of(&self, when: When, payee: &AccountId32) -> Result<Vec<ChannelView>, ChainError> {
        self.read(when, |state| match state.channels.is_unreadable {
            true => Err(ChainError::Rpc {
                what: "ChannelApi_channels_of".into(),
                reason: "the script says so".into(),
            }),
            false => Ok(state.open_where(|channel| channel.payee == *payee)),
        })?
    }

    async fn channels_by(&self, when: When, payer: &AccountId32) -> Result<Vec<ChannelView>, ChainError> {
        self.read(when, |state| state.open_where(|channel| channel.payer == *payer))
    }

    async fn offers(&self, when: When) -> Result<Vec<OfferView>, ChainError> {
        self.read(when, FakeState::offer_views)
    }

    async fn pools(&self, when: When) -> Result<Vec<PoolView>, ChainError> {
        self.read(when, FakeState::pool_views)
    }

    async fn standing(&self, when: When, provider: &AccountId32) -> Result<Option<StandingView>, ChainError> {
        self.read(when, |state| {
            let standing = state.channels.standings.get(provider)?;
            Some(state.standing_now(standing))
        })
    }

    async fn batches(&self, when: When, provider: &AccountId32) -> Result<Vec<BatchView>, ChainError> {
        self.read(when, |state| {
            state.batches_where(|batch| batch.provider == *provider)
        })
    }

    async fn open_batches(&self, when: When) -> Result<Vec<BatchView>, ChainError> {
        self.read(when, |state| {
            state.batches_where(|batch| state.clock <= batch.announce_until)
        })
    }

    async fn demands(&self, when: When, provider: &AccountId32) -> Result<Vec<DemandView>, ChainError> {
        self.read(when, |state| {
            let demands = state.channels.demands.values().flatten();
            demands
                .map(|demand| &demand.view)
                .filter(|demand| demand.provider == *provider)
                .cloned()
                .collect()
        })
    }

    async fn disputed(&self, when: When, provider: &AccountId32) -> Result<Vec<DisputedView>, ChainError> {
        self.read(when, |state| {
            let rounds = state.channels.disputed.iter();
            rounds
                .filter(|(_, (of, ..))| of == provider)
                .map(|(round, (_, batch, receipt))| DisputedView {
                    round: *round,
                    batch: *batch,
                    channel: receipt.channel,
                    nonce: receipt.nonce,
                    is_challenged: !state.channels.unserved.contains(round),
                })
                .collect()
        })
    }

    async fn points(
        &self,
        when: When,
        provider: &AccountId32,
        batch: BatchNumber,
    ) -> Result<Vec<PointsView>, ChainError> {
        self.read(when, |state| {
            let of = (provider.clone(), batch);
            let points = state.channels.points.iter();
            points
                .filter(|((about, _), _)| *about == of)
                .map(|(_, points)| points.view.clone())
                .collect()
        })
    }

    async fn rules(&self, when: When) -> Result<ChannelRules, ChainError> {
        self.read(when, |state| state.channels.rules)
    }

    async fn least_lock(
        &self,
        when: When,
        _provider: &AccountId32,
        cap: Balance,
    ) -> Result<Option<Balance>, ChainError> {
        self.read(when, |state| state.least_lock(cap))
    }

    async fn dispute_bond(&self, when: When) -> Result<Balance, ChainError> {
        self.read(when, FakeState::dispute_bond)
    }

    async fn time(&self, when: When) -> Result<Time, ChainError> {
        self.read(when, |state| state.clock)
    }
}

impl FakeState {
    fn open_where(&self, matching: impl Fn(&ChannelView) -> bool) -> Vec<ChannelView> {
        let channels = self.channels.open.values();
        let matching = channels.filter(|channel| matching(channel));
        matching.map(|channel| self.seen_now(channel)).collect()
    }

    fn batches_where(&self, matching: impl Fn(&BatchView) -> bool) -> Vec<BatchView> {
        let batches = self.channels.batches.values();
        let seeded = |batch: &BatchView| {
            let mut batch = batch.clone();
            batch.draw.seed = self.receipts_seed(&batch);
            batch
        };
        batches.filter(|batch| matching(batch)).map(seeded).collect()
    }
}
