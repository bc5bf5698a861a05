//! What can be asked of the stake behind validators, and of who they are.

use async_trait::async_trait;
use codec::{Decode, Encode};
use scale_info::TypeInfo;
use sp_core::crypto::AccountId32;
use sp_runtime::{Rounding, helpers_128bit::multiply_by_rational_with_rounding};

use crate::{Balance, BlockNumber, ChainError, When};

/// Days are counted by sessions: so many as reports of equivocations are valid for are one.
pub type Day = u32;

/// Rewards are shared in so many parts of a planck.
const PLANCK_PARTS: u128 = 1_000_000_000_000_000_000;

/// The public keys that a validator's node signs with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct SessionKeys {
    /// Authors blocks.
    pub babe: [u8; 32],
    /// Votes for finality.
    pub grandpa: [u8; 32],
    /// Signs the validator's network addresses.
    pub authority_discovery: [u8; 32],
}

/// Money that many have shares of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct StakeFund {
    /// In plancks. Never more than there are shares.
    pub amount: Balance,
    /// All holders' together.
    pub shares: u128,
}

impl StakeFund {
    /// What so many shares are worth, in plancks, rounded down as the chain does.
    pub fn worth(&self, shares: u128) -> Balance {
        multiply_by_rational_with_rounding(shares, self.amount, self.shares, Rounding::Down)
            .unwrap_or_default()
    }
}

/// What is read of the stake behind one operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct OperatorPool {
    /// All the stake that works.
    pub fund: StakeFund,
    /// Shares that are the operator's own.
    pub own_shares: u128,
    /// Part of each reward that the operator has before it is shared, in millionths.
    pub commission: u32,
    /// What the operator has earned by it and not claimed, in plancks.
    pub earned: Balance,
    /// What a share has earned since the pool was opened, in 10^-18 of a planck.
    pub per_share: u128,
}

impl OperatorPool {
    /// What the operator has in it, in plancks.
    pub fn own(&self) -> Balance {
        self.fund.worth(self.own_shares)
    }

    /// What a delegation has earned since it was last paid, in plancks; without the operator's commission.
    pub fn due(&self, delegation: &DelegationRecord) -> Balance {
        let earned = self.per_share.saturating_sub(delegation.paid_to);
        delegation.shares.saturating_mul(earned) / PLANCK_PARTS
    }
}

/// Stake of somebody behind an operator.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct DelegationRecord {
    /// Whose pool it is in.
    pub operator: AccountId32,
    /// Shares of the pool's fund.
    pub shares: u128,
    /// What is on hold for it, in plancks. More than the shares are worth where a slash was not burned yet.
    pub held: Balance,
    /// The pool's `per_share` at the last claim.
    pub paid_to: u128,
}

/// Stake on its way out of a pool: all that somebody took out on one day.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct LeavingRecord {
    /// Whose pool it was in.
    pub operator: AccountId32,
    /// It answers for what the operator did up to this day.
    pub day: Day,
    /// Shares of that day's fund.
    pub shares: u128,
    /// What is on hold for it, in plancks.
    pub held: Balance,
    /// From which time of the clock on it can be withdrawn.
    pub available_at: BlockNumber,
}

/// All that somebody has in pools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct DelegatedStake {
    /// What works.
    pub delegations: Vec<DelegationRecord>,
    /// What is on its way out.
    pub leaving: Vec<LeavingRecord>,
}

/// Slashes of one operator that wait to be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct PendingSlashes {
    /// Day of the first offence. What left since is neither withdrawn nor moved.
    pub since: Day,
    /// Last day in which the operator may have been a validator still.
    pub until: Day,
    /// How many wait.
    pub count: u32,
}

/// An operator that validates, has validated, or wants to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct CandidateRecord {
    /// Whether it can be elected.
    pub wants_to: bool,
    /// What was expected of it in sessions in which it made nothing, since it last made a block: in
    /// millionths of a block.
    pub missed_millionths: u64,
}

/// What is read of what a validator did since the day began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct ServiceRecord {
    /// Blocks that it made, without those of the running session.
    pub made: u32,
    /// Its part of the blocks that all made, in millionths of a block.
    pub expected_millionths: u64,
}

/// Who validates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValidatorSets {
    /// The running session.
    pub session: u32,
    /// Who works in it.
    pub present: Vec<AccountId32>,
    /// Who works in the next one.
    pub next: Vec<AccountId32>,
}

impl ValidatorSets {
    /// Last session that somebody is known to work in now.
    pub fn works_until(&self, operator: &AccountId32) -> Option<u32> {
        match (self.next.contains(operator), self.present.contains(operator)) {
            (true, _) => Some(self.session.saturating_add(1)),
            (false, true) => Some(self.session),
            (false, false) => None,
        }
    }
}

/// Stake behind validators, and who they are. All sums are in plancks, all times on the chain's clock.
///
/// A chain whose runtime has no such stake answers [`ChainError::Outgrown`].
#[async_trait]
pub trait StakeChain: Send + Sync {
    /// The pool of an operator.
    async fn pool(&self, when: When, operator: &AccountId32) -> Result<Option<OperatorPool>, ChainError>;

    /// All pools, by their operators.
    async fn operators(&self, when: When) -> Result<Vec<(AccountId32, OperatorPool)>, ChainError>;

    /// How many delegators a pool has, its operator not counted.
    async fn delegators(&self, when: When, operator: &AccountId32) -> Result<u32, ChainError>;

    /// All that somebody has in pools.
    async fn delegated(&self, when: When, who: &AccountId32) -> Result<DelegatedStake, ChainError>;

    /// What left an operator on a day, and was not withdrawn.
    async fn left(&self, when: When, operator: &AccountId32, day: Day) -> Result<StakeFund, ChainError>;

    /// Slashes of an operator that wait.
    async fn pending_slashes(
        &self,
        when: When,
        operator: &AccountId32,
    ) -> Result<Option<PendingSlashes>, ChainError>;

    /// Operators that validate, have validated, or want to.
    async fn candidates(&self, when: When) -> Result<Vec<(AccountId32, CandidateRecord)>, ChainError>;

    /// One of them.
    async fn candidate(
        &self,
        when: When,
        operator: &AccountId32,
    ) -> Result<Option<CandidateRecord>, ChainError>;

    /// What a validator did since the day began.
    async fn service(&self, when: When, operator: &AccountId32) -> Result<ServiceRecord, ChainError>;

    /// Blocks that a validator has made in the running session.
    async fn authored(&self, when: When, operator: &AccountId32) -> Result<u32, ChainError>;

    /// Who validates.
    async fn validator_sets(&self, when: When) -> Result<ValidatorSets, ChainError>;

    /// The keys that an operator has set last.
    async fn session_keys(
        &self,
        when: When,
        operator: &AccountId32,
    ) -> Result<Option<SessionKeys>, ChainError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_worth_their_part_rounded_down_and_nothing_of_an_empty_fund() {
        let fund = StakeFund {
            amount: 100,
            shares: 300,
        };
        assert_eq!([fund.worth(300), fund.worth(10), fund.worth(2)], [100, 3, 0]);
        assert_eq!(StakeFund::default().worth(5), 0);
    }

    #[test]
    fn a_delegation_has_earned_what_each_share_has_since_it_was_paid() {
        let delegation = DelegationRecord {
            operator: AccountId32::new([1; 32]),
            shares: 10,
            held: 10,
            paid_to: PLANCK_PARTS / 2,
        };
        let pool = OperatorPool {
            per_share: PLANCK_PARTS * 3 / 4,
            ..OperatorPool::default()
        };
        assert_eq!(pool.due(&delegation), 2);
    }

    #[test]
    fn who_is_queued_works_to_the_end_of_the_next_session() {
        let [one, other, neither] = [1, 2, 3].map(|byte| AccountId32::new([byte; 32]));
        let sets = ValidatorSets {
            session: 7,
            present: vec![one.clone(), other.clone()],
            next: vec![other.clone()],
        };
        assert_eq!(sets.works_until(&one), Some(7));
        assert_eq!(sets.works_until(&other), Some(8));
        assert_eq!(sets.works_until(&neither), None);
    }
}
