//! What can be asked of the chain's payment channels.

mod remedy;

use async_trait::async_trait;
use codec::{Decode, Encode};
use scale_info::TypeInfo;
use sp_core::{ConstU32, bounded::BoundedVec, crypto::AccountId32};
use surety_channels::{
    BatchNumber, Batched, ChannelId, ChannelOpening, REDEEMED_MAX, Request, SignedChunkStatement, Time, view,
};
use surety_types::trust::ItemLeaves;

use crate::{Balance, BlockNumber, ChainError, When};

pub use remedy::Remedy;
pub use view::{ChannelRules, DisputedView, PoolView};

/// A channel with this chain's types.
pub type ChannelView = view::ChannelView<AccountId32>;
/// What a provider sells, with this chain's types.
pub type OfferView = view::OfferView<AccountId32>;
/// What a provider stands behind its offers with, with this chain's types.
pub type StandingView = view::StandingView<AccountId32>;
/// A batch with this chain's types.
pub type BatchView = view::BatchView<AccountId32, BlockNumber>;
/// What is demanded of a provider, with this chain's types.
pub type DemandView = view::DemandView<AccountId32>;
/// A verifier's points on a batch, with this chain's types.
pub type PointsView = view::PointsView<AccountId32>;
/// Batches with what a channel has in each, in the order of its requests.
pub type ChannelOpenings = BoundedVec<(BatchNumber, ChannelOpening), ConstU32<REDEEMED_MAX>>;
/// The receipt that a point is in, what was asked for, and of an embedding the leaves of the item there.
pub type ReceiptAtPoint = (Batched<AccountId32>, Request, Option<ItemLeaves>);

/// Where a receipt is that somebody disputes.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub enum ReceiptSource {
    /// In a batch.
    Batch(BatchNumber, Batched<AccountId32>),
    /// With whoever got it.
    Signed(SignedChunkStatement<AccountId32>),
}

/// The chain's payment channels. All sums are in plancks, all times on the chain's clock.
///
/// A chain whose runtime has none answers [`ChainError::Outgrown`].
#[async_trait]
pub trait ChannelChain: Send + Sync {
    /// A channel that was not ended.
    async fn channel(&self, when: When, id: ChannelId) -> Result<Option<ChannelView>, ChainError>;

    /// The channels that pay a provider, by its stash.
    async fn channels_of(&self, when: When, payee: &AccountId32) -> Result<Vec<ChannelView>, ChainError>;

    /// The channels of a payer.
    async fn channels_by(&self, when: When, payer: &AccountId32) -> Result<Vec<ChannelView>, ChainError>;

    /// All offers of providers that stand behind them by the present terms.
    async fn offers(&self, when: When) -> Result<Vec<OfferView>, ChainError>;

    /// What each operation of a model costs at least.
    async fn pools(&self, when: When) -> Result<Vec<PoolView>, ChainError>;

    /// What a provider stands behind, if it ever stood.
    async fn standing(&self, when: When, provider: &AccountId32) -> Result<Option<StandingView>, ChainError>;

    /// The batches of a provider that are kept, in their order.
    async fn batches(&self, when: When, provider: &AccountId32) -> Result<Vec<BatchView>, ChainError>;

    /// The batches of all providers for which verifiers can still announce points.
    async fn open_batches(&self, when: When) -> Result<Vec<BatchView>, ChainError>;

    /// What is demanded of a provider over channels.
    async fn demands(&self, when: When, provider: &AccountId32) -> Result<Vec<DemandView>, ChainError>;

    /// The rounds that there are about a provider's receipts.
    async fn disputed(&self, when: When, provider: &AccountId32) -> Result<Vec<DisputedView>, ChainError>;

    /// The verifiers that have announced points of a batch.
    async fn points(
        &self,
        when: When,
        provider: &AccountId32,
        batch: BatchNumber,
    ) -> Result<Vec<PointsView>, ChainError>;

    /// Parameters that everybody works by.
    async fn rules(&self, when: When) -> Result<ChannelRules, ChainError>;

    /// The least standing lock for a cap; nothing where no lock would do now.
    async fn least_lock(
        &self,
        when: When,
        provider: &AccountId32,
        cap: Balance,
    ) -> Result<Option<Balance>, ChainError>;

    /// What disputing a receipt of whoever stands with the most puts on hold at least; more where the receipt
    /// itself costs much, or a committee may have to decide.
    async fn dispute_bond(&self, when: When) -> Result<Balance, ChainError>;

    /// The time on the chain's clock.
    async fn time(&self, when: When) -> Result<Time, ChainError>;
}
