//! A chain that never gets some calls.

use std::sync::Arc;

use async_trait::async_trait;
use surety_chain_client::{
    AccountId, Balance, BidRecord, BidTerms, BlockNumber, BlockRef, BlockStream, Call, Chain, ChainError,
    ChainEvent, ChainInfo, CommitRecord, CommitteeRecord, DemandRecord, DisputeRecord, FixedU128, Funds,
    Hash, Included, ItemsOpening, OpenTasks, Parameter, PartKey, ProviderRecord, ProviderTerms,
    RegisteredModel, Sent, Signer, SlashRecord, StakeInfo, SubmitOptions, TaskInfo, TaskRecord, TrustInfo,
    When,
};
use surety_types::{
    ContentHash, ModelId, TaskId,
    trust::{DisputeId, SlashId},
};

/// A chain that gets no batch of receipts, and is shown none of them.
pub struct QuietChain(pub Arc<dyn Chain>);

/// Questions are passed on as they are.
macro_rules! asked {
    ($($name:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {
        #[async_trait]
        impl Chain for QuietChain {
            fn info(&self) -> &ChainInfo {
                self.0.info()
            }

            $(async fn $name(&self, $($arg: $type),*) -> Result<$out, ChainError> {
                self.0.$name($($arg),*).await
            })*

            async fn submit(
                &self,
                signer: &Signer,
                call: Call,
                options: SubmitOptions,
            ) -> Result<Included, ChainError> {
                if is_kept(&call) {
                    tracing::error!(call = call.name().call, "not sent, as --cheat demands");
                    return Err(ChainError::Unknown {
                        reason: "it was not sent".into(),
                    });
                }
                self.0.submit(signer, call, options).await
            }
        }
    };
}

/// What would show a receipt to others than its payer.
const fn is_kept(call: &Call) -> bool {
    matches!(
        call,
        Call::CommitBatch { .. } | Call::ShowReceipt { .. } | Call::ShowPoint { .. }
    )
}

asked! {
    is_test_network() -> bool;
    finalized_blocks() -> Box<dyn BlockStream>;
    best_blocks() -> Box<dyn BlockStream>;
    block(when: When) -> BlockRef;
    block_at(number: BlockNumber) -> BlockRef;
    clock(when: When) -> BlockNumber;
    task(when: When, id: TaskId) -> Option<TaskInfo>;
    open_tasks(when: When, bidder: Option<&AccountId>) -> OpenTasks;
    recent_tasks(when: When, limit: u32) -> Vec<(TaskId, TaskRecord)>;
    bids(when: When, task: TaskId) -> Vec<(AccountId, BidRecord)>;
    provider(when: When, stash: &AccountId) -> Option<ProviderRecord>;
    benchmarked(when: When, stash: &AccountId) -> Option<surety_types::speed::MeasuredView>;
    providers(when: When) -> Vec<(AccountId, ProviderRecord)>;
    model(when: When, id: &ModelId) -> Option<RegisteredModel>;
    models(when: When) -> Vec<(ModelId, RegisteredModel)>;
    auditors(when: When, model: &ModelId) -> Vec<AccountId>;
    audit_speed(when: When, model: &ModelId) -> Option<u32>;
    stake(when: When, stash: &AccountId) -> Option<StakeInfo>;
    agent_stash(when: When, agent: &AccountId) -> Option<AccountId>;
    pending_agent(when: When, stash: &AccountId) -> Option<AccountId>;
    funds(when: When, account: &AccountId) -> Funds;
    sent(account: &AccountId) -> Sent;
    price_limit(when: When, cap: Balance, redundancy: u32) -> Option<Balance>;
    bid_terms(when: When, task: TaskId) -> Option<BidTerms>;
    provider_terms(when: When) -> ProviderTerms;
    dispute(when: When, id: DisputeId) -> Option<DisputeRecord>;
    disputes(when: When) -> Vec<(DisputeId, DisputeRecord)>;
    committee(when: When, dispute: DisputeId) -> Option<CommitteeRecord>;
    demands(when: When, task: TaskId, provider: &AccountId) -> Vec<DemandRecord>;
    commit_note(when: When, task: TaskId, provider: &AccountId) -> Option<CommitRecord>;
    shown(when: When, task: TaskId, content: ContentHash) -> Vec<u8>;
    shown_part(at: When, task: TaskId, part: PartKey) -> Option<Vec<u8>>;
    items_opened(block: BlockNumber, task: TaskId, provider: &AccountId, verifier: &AccountId) -> Vec<ItemsOpening>;
    slashes(when: When) -> Vec<(SlashId, SlashRecord)>;
    trust(when: When, stash: &AccountId) -> TrustInfo;
    auditors_expected(when: When, task: TaskId, provider: &AccountId) -> FixedU128;
    parameters(when: When) -> Vec<Parameter>;
    fee_multiplier(when: When) -> FixedU128;
    events(block: Hash) -> Vec<ChainEvent>;
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use surety_chain_client::{FakeChain, Until};
    use surety_channels::{BatchRoot, Sums};

    use super::*;

    #[tokio::test]
    async fn receipts_are_shown_to_nobody_and_everything_else_is_sent() {
        let chain = Arc::new(FakeChain::default());
        let quiet = QuietChain(chain.clone());
        let signer = Signer::from_uri("//Agent").unwrap();
        let root = BatchRoot {
            hash: Hash::zero(),
            channels: 1,
            sums: Sums::default(),
        };
        let submit = |call| quiet.submit(&signer, call, Until::Included.into());
        let kept = submit(Call::CommitBatch { root }).await;
        assert!(matches!(kept, Err(ChainError::Unknown { .. })));
        assert!(chain.attempts().is_empty());
        submit(Call::AddSigner).await.ok();
        assert_eq!(chain.attempts().len(), 1);
    }
}
