//! The chain's payment channels, by the functions of `ChannelApi`.

use async_trait::async_trait;
use codec::Encode;
use sp_core::crypto::AccountId32;
use surety_channels::{BatchNumber, ChannelId, Time};

use super::{RpcChain, runtime::Runtime, transcode::Shape};
use surety_chain_client::{
    Balance, BatchView, ChainError, ChannelChain, ChannelRules, ChannelView, DemandView, DisputedView,
    OfferView, PointsView, PoolView, StandingView, When,
};

const API: &str = "ChannelApi";

#[async_trait]
impl ChannelChain for RpcChain {
    async fn channel(&self, when: When, id: ChannelId) -> Result<Option<ChannelView>, ChainError> {
        self.0.api(when, (API, "channel"), &id.encode()).await
    }

    async fn channels_of(&self, when: When, payee: &AccountId32) -> Result<Vec<ChannelView>, ChainError> {
        self.0.api(when, (API, "channels_of"), &payee.encode()).await
    }

    async fn channels_by(&self, when: When, payer: &AccountId32) -> Result<Vec<ChannelView>, ChainError> {
        self.0.api(when, (API, "channels_by"), &payer.encode()).await
    }

    async fn offers(&self, when: When) -> Result<Vec<OfferView>, ChainError> {
        self.0.api(when, (API, "offers"), &[]).await
    }

    async fn pools(&self, when: When) -> Result<Vec<PoolView>, ChainError> {
        self.0.api(when, (API, "pools"), &[]).await
    }

    async fn standing(&self, when: When, provider: &AccountId32) -> Result<Option<StandingView>, ChainError> {
        self.0.api(when, (API, "standing"), &provider.encode()).await
    }

    async fn batches(&self, when: When, provider: &AccountId32) -> Result<Vec<BatchView>, ChainError> {
        self.0.api(when, (API, "batches"), &provider.encode()).await
    }

    async fn open_batches(&self, when: When) -> Result<Vec<BatchView>, ChainError> {
        self.0.api(when, (API, "open_batches"), &[]).await
    }

    async fn demands(&self, when: When, provider: &AccountId32) -> Result<Vec<DemandView>, ChainError> {
        self.0.api(when, (API, "demands"), &provider.encode()).await
    }

    async fn disputed(&self, when: When, provider: &AccountId32) -> Result<Vec<DisputedView>, ChainError> {
        self.0.api(when, (API, "disputed"), &provider.encode()).await
    }

    async fn points(
        &self,
        when: When,
        provider: &AccountId32,
        batch: BatchNumber,
    ) -> Result<Vec<PointsView>, ChainError> {
        let arguments = (provider, batch).encode();
        self.0.api(when, (API, "points"), &arguments).await
    }

    async fn rules(&self, when: When) -> Result<ChannelRules, ChainError> {
        self.0.api(when, (API, "rules"), &[]).await
    }

    async fn least_lock(
        &self,
        when: When,
        provider: &AccountId32,
        cap: Balance,
    ) -> Result<Option<Balance>, ChainError> {
        let arguments = (provider, cap).encode();
        self.0.api(when, (API, "least_lock"), &arguments).await
    }

    async fn dispute_bond(&self, when: When) -> Result<Balance, ChainError> {
        self.0.api(when, (API, "dispute_bond"), &[]).await
    }

    async fn time(&self, when: When) -> Result<Time, ChainError> {
        self.0.api(when, (API, "time"), &[]).await
    }
}

impl Runtime {
    /// The functions that are called of a runtime with channels. Those before had none.
    pub(super) fn check_channels(&self) -> Vec<Result<(), ChainError>> {
        if !self.has_channels() {
            return Vec::new();
        }
        let (account, number) = (Shape::of::<AccountId32>, Shape::of::<BatchNumber>);
        let channels = Shape::of::<Vec<ChannelView>>;
        let batches = Shape::of::<Vec<BatchView>>;
        let check = |name, inputs: &[Shape], output| self.check_function((API, name), inputs, &output);
        vec![
            check(
                "channel",
                &[Shape::of::<ChannelId>()],
                Shape::of::<Option<ChannelView>>(),
            ),
            check("channels_of", &[account()], channels()),
            check("channels_by", &[account()], channels()),
            check("offers", &[], Shape::of::<Vec<OfferView>>()),
            check("pools", &[], Shape::of::<Vec<PoolView>>()),
            check("standing", &[account()], Shape::of::<Option<StandingView>>()),
            check("batches", &[account()], batches()),
            check("open_batches", &[], batches()),
            check("demands", &[account()], Shape::of::<Vec<DemandView>>()),
            check("disputed", &[account()], Shape::of::<Vec<DisputedView>>()),
            check("points", &[account(), number()], Shape::of::<Vec<PointsView>>()),
            check("rules", &[], Shape::of::<ChannelRules>()),
            check(
                "least_lock",
                &[account(), Shape::of::<Balance>()],
                Shape::of::<Option<Balance>>(),
            ),
            check("dispute_bond", &[], Shape::of::<Balance>()),
            check("time", &[], Shape::of::<Time>()),
        ]
    }
}
