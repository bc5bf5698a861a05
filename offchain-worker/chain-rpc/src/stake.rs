//! Stake behind validators, and who they are.

use async_trait::async_trait;
use codec::{Decode, Encode};
use scale_info::TypeInfo;
use sp_core::crypto::AccountId32;

use super::{RpcChain, entries::Entry};
use surety_chain_client::{
    CandidateRecord, ChainError, Day, DelegatedStake, OperatorPool, PendingSlashes, ServiceRecord,
    SessionKeys, StakeChain, StakeFund, ValidatorSets, When,
};

/// The shares of a delegator, and who it is.
#[derive(Debug, PartialEq, Encode, Decode, TypeInfo)]
pub(super) struct Delegator(u128, AccountId32);

/// A validator of the next session, with its keys.
#[derive(Debug, PartialEq, Encode, Decode, TypeInfo)]
pub(super) struct Queued(pub AccountId32, pub SessionKeys);

#[async_trait]
impl StakeChain for RpcChain {
    async fn pool(&self, when: When, operator: &AccountId32) -> Result<Option<OperatorPool>, ChainError> {
        self.0.read(when, Entry::Pools, &[operator.as_ref()]).await
    }

    async fn operators(&self, when: When) -> Result<Vec<(AccountId32, OperatorPool)>, ChainError> {
        self.0.all(when, Entry::Pools).await
    }

    async fn delegators(&self, when: When, operator: &AccountId32) -> Result<u32, ChainError> {
        let all: Option<Vec<Delegator>> = self.0.read(when, Entry::Delegators, &[operator.as_ref()]).await?;
        Ok(all.map_or(0, |all| u32::try_from(all.len()).unwrap_or(u32::MAX)))
    }

    async fn delegated(&self, when: When, who: &AccountId32) -> Result<DelegatedStake, ChainError> {
        let stake = self.0.read(when, Entry::DelegatedStakes, &[who.as_ref()]).await?;
        Ok(stake.unwrap_or_default())
    }

    async fn left(&self, when: When, operator: &AccountId32, day: Day) -> Result<StakeFund, ChainError> {
        let keys: [&[u8]; 2] = [operator.as_ref(), &day.encode()];
        let fund = self.0.read(when, Entry::Buckets, &keys).await?;
        Ok(fund.unwrap_or_default())
    }

    async fn pending_slashes(
        &self,
        when: When,
        operator: &AccountId32,
    ) -> Result<Option<PendingSlashes>, ChainError> {
        self.0.read(when, Entry::Pending, &[operator.as_ref()]).await
    }

    async fn candidates(&self, when: When) -> Result<Vec<(AccountId32, CandidateRecord)>, ChainError> {
        self.0.all(when, Entry::Candidates).await
    }

    async fn candidate(
        &self,
        when: When,
        operator: &AccountId32,
    ) -> Result<Option<CandidateRecord>, ChainError> {
        self.0.read(when, Entry::Candidates, &[operator.as_ref()]).await
    }

    async fn service(&self, when: When, operator: &AccountId32) -> Result<ServiceRecord, ChainError> {
        let service = self.0.read(when, Entry::Services, &[operator.as_ref()]).await?;
        Ok(service.unwrap_or_default())
    }

    async fn authored(&self, when: When, operator: &AccountId32) -> Result<u32, ChainError> {
        let blocks = self.0.read(when, Entry::Authored, &[operator.as_ref()]).await?;
        Ok(blocks.unwrap_or_default())
    }

    async fn validator_sets(&self, when: When) -> Result<ValidatorSets, ChainError> {
        let session = self.0.read(when, Entry::CurrentIndex, &[]).await?;
        let present = self.0.read(when, Entry::Validators, &[]).await?;
        let next: Option<Vec<Queued>> = self.0.read(when, Entry::QueuedKeys, &[]).await?;
        let next = next.unwrap_or_default().into_iter();
        Ok(ValidatorSets {
            session: session.unwrap_or_default(),
            present: present.unwrap_or_default(),
            next: next.map(|Queued(operator, _)| operator).collect(),
        })
    }

    async fn session_keys(
        &self,
        when: When,
        operator: &AccountId32,
    ) -> Result<Option<SessionKeys>, ChainError> {
        self.0.read(when, Entry::NextKeys, &[operator.as_ref()]).await
    }
}
