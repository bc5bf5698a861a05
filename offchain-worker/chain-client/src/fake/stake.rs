//! Stake behind validators of the fake chain, and who they are.
//!
//! Shares are counted as on the chain. Sessions, elections, rewards and slashes are the test's.

use std::collections::BTreeMap;

use async_trait::async_trait;
use sp_core::crypto::AccountId32;
use sp_runtime::{Rounding, helpers_128bit::multiply_by_rational_with_rounding};

use super::{
    FakeChain,
    state::{Applied, FakeState, fault},
};
use crate::{
    Balance, BlockNumber, CandidateRecord, ChainError, Day, DelegatedStake, DelegationRecord, LeavingRecord,
    OperatorPool, PendingSlashes, ServiceRecord, SessionKeys, StakeCall, StakeChain, StakeFund,
    ValidatorSets, When,
};

/// Blocks until what has left can be withdrawn.
const UNBONDING: BlockNumber = 10;

/// Pools, candidates and validators.
#[derive(Clone, Debug, Default)]
pub struct FakeDelegation {
    /// Pools by operator.
    pub pools: BTreeMap<AccountId32, OperatorPool>,
    /// How many delegators pools have, by operator. The test says it.
    pub delegators: BTreeMap<AccountId32, u32>,
    /// What everybody has in pools.
    pub delegated: BTreeMap<AccountId32, DelegatedStake>,
    /// What left each operator on each day.
    pub left: BTreeMap<(AccountId32, Day), StakeFund>,
    /// Slashes that wait, by operator. The test puts them there.
    pub pending: BTreeMap<AccountId32, PendingSlashes>,
    /// Who can be elected, or could.
    pub candidates: BTreeMap<AccountId32, CandidateRecord>,
    /// What validators did since the day began. The test says it.
    pub services: BTreeMap<AccountId32, ServiceRecord>,
    /// Blocks of the running session. The test says it.
    pub authored: BTreeMap<AccountId32, u32>,
    /// Who validates. The test says it.
    pub sets: ValidatorSets,
    /// The running day.
    pub today: Day,
    /// Keys that operators have set.
    pub keys: BTreeMap<AccountId32, SessionKeys>,
}

fn refused(name: &str) -> ChainError {
    fault("Delegation", name)
}

fn scaled(value: u128, numerator: u128, denominator: u128, rounding: Rounding) -> Option<u128> {
    multiply_by_rational_with_rounding(value, numerator, denominator, rounding)
}

impl StakeFund {
    /// Takes money in. Returns the shares that it is given for.
    fn add(&mut self, amount: Balance) -> Option<u128> {
        let shares = match self.shares {
            0 => amount,
            all => scaled(amount, all, self.amount, Rounding::Down)?,
        };
        let worth = match self.shares {
            0 => amount,
            _ => self.worth(shares),
        };
        self.amount = self.amount.saturating_add(worth);
        self.shares = self.shares.saturating_add(shares);
        Some(shares)
    }

    fn remove(&mut self, shares: u128) -> Option<()> {
        let gone = scaled(shares, self.amount, self.shares, Rounding::Up)?;
        self.amount = self.amount.saturating_sub(gone);
        self.shares = self.shares.saturating_sub(shares);
        Some(())
    }
}

impl FakeDelegation {
    fn delegate(&mut self, who: &AccountId32, operator: &AccountId32, amount: Balance) -> Applied {
        let pool = self
            .pools
            .get_mut(operator)
            .ok_or_else(|| refused("UnknownPool"))?;
        if amount == 0 {
            return Err(refused("ZeroAmount"));
        }
        let shares = pool.fund.add(amount).ok_or_else(|| refused("Depleted"))?;
        if who == operator {
            pool.own_shares = pool.own_shares.saturating_add(shares);
        }
        let paid_to = pool.per_share;
        let stake = self.delegated.entry(who.clone()).or_default();
        match stake.delegations.iter_mut().find(|one| one.operator == *operator) {
            Some(known) => {
                known.shares = known.shares.saturating_add(shares);
                known.held = known.held.saturating_add(amount);
                known.paid_to = paid_to;
            }
            None => stake.delegations.push(DelegationRecord {
                operator: operator.clone(),
                shares,
                held: amount,
                paid_to,
            }),
        }
        Ok(Vec::new())
    }

    fn undelegate(
        &mut self,
        who: &AccountId32,
        operator: &AccountId32,
        amount: Balance,
        clock: BlockNumber,
    ) -> Applied {
        let stake = self
            .delegated
            .get_mut(who)
            .ok_or_else(|| refused("NotDelegated"))?;
        let place = stake.delegations.iter().position(|one| one.operator == *operator);
        let place = place.ok_or_else(|| refused("NotDelegated"))?;
        let mut delegation = stake.delegations.remove(place);
        let pool = self
            .pools
            .get_mut(operator)
            .ok_or_else(|| refused("UnknownPool"))?;
        let worth = pool.fund.worth(delegation.shares);
        let stays = worth
            .checked_sub(amount)
            .ok_or_else(|| refused("NotEnoughStake"))?;
        let shares = match stays {
            0 => delegation.shares,
            _ => scaled(amount, pool.fund.shares, pool.fund.amount, Rounding::Up)
                .ok_or_else(|| refused("NotEnoughStake"))?,
        };
        pool.fund.remove(shares);
        delegation.shares = delegation.shares.saturating_sub(shares);
        delegation.held = stays;
        if who == operator {
            pool.own_shares = delegation.shares;
        }
        if delegation.shares > 0 {
            stake.delegations.push(delegation);
        }
        let bucket = self.left.entry((operator.clone(), self.today)).or_default();
        let shares = bucket.add(amount).ok_or_else(|| refused("LeaveTomorrow"))?;
        stake.leaving.push(LeavingRecord {
            operator: operator.clone(),
            day: self.today,
            shares,
            held: amount,
            available_at: clock.saturating_add(UNBONDING),
        });
        Ok(Vec::new())
    }

    fn withdraw(&mut self, who: &AccountId32, clock: BlockNumber) -> Applied {
        let stake = self
            .delegated
            .get_mut(who)
            .ok_or_else(|| refused("NotDelegated"))?;
        let before = stake.leaving.len();
        stake.leaving.retain(|chunk| chunk.available_at > clock);
        match stake.leaving.len() < before {
            true => Ok(Vec::new()),
            false => Err(refused("NothingToWithdraw")),
        }
    }

    fn claim(&mut self, who: &AccountId32, operator: &AccountId32) -> Applied {
        let pool = self
            .pools
            .get_mut(operator)
            .ok_or_else(|| refused("UnknownPool"))?;
        let mut due = match who == operator {
            true => std::mem::take(&mut pool.earned),
            false => 0,
        };
        let stake = self.delegated.entry(who.clone()).or_default();
        if let Some(delegation) = stake.delegations.iter_mut().find(|one| one.operator == *operator) {
            due = due.saturating_add(pool.due(delegation));
            delegation.paid_to = pool.per_share;
        }
        match due {
            0 => Err(refused("NothingToClaim")),
            _ => Ok(Vec::new()),
        }
    }

    fn validate(&mut self, who: &AccountId32) -> Applied {
        if !self.keys.contains_key(who) {
            return Err(fault("Validators", "NoKeys"));
        }
        let candidate = self.candidates.entry(who.clone()).or_default();
        if std::mem::replace(&mut candidate.wants_to, true) {
            return Err(fault("Validators", "AlreadyCandidate"));
        }
        Ok(Vec::new())
    }

    fn chill(&mut self, who: &AccountId32) -> Applied {
        let known = self.candidates.get_mut(who);
        let wanted = known.is_some_and(|candidate| std::mem::take(&mut candidate.wants_to));
        match wanted {
            true => Ok(Vec::new()),
            false => Err(fault("Validators", "NotCandidate")),
        }
    }
}

impl FakeState {
    pub(super) fn apply_to_stake(&mut self, who: &AccountId32, call: &StakeCall) -> Applied {
        let (clock, of) = (self.clock, &mut self.delegation);
        match call {
            StakeCall::OpenPool { bond, commission } => {
                if of.pools.contains_key(who) {
                    return Err(refused("AlreadyOpen"));
                }
                let pool = OperatorPool {
                    commission: *commission,
                    ..OperatorPool::default()
                };
                of.pools.insert(who.clone(), pool);
                of.delegate(who, who, *bond)
            }
            StakeCall::Delegate { operator, amount } => of.delegate(who, operator, *amount),
            StakeCall::Undelegate { operator, amount } => of.undelegate(who, operator, *amount, clock),
            StakeCall::WithdrawDelegated => of.withdraw(who, clock),
            StakeCall::Claim { operator } => of.claim(who, operator),
            StakeCall::SetCommission { commission } => {
                let pool = of.pools.get_mut(who).ok_or_else(|| refused("UnknownPool"))?;
                pool.commission = *commission;
                Ok(Vec::new())
            }
            StakeCall::Validate => of.validate(who),
            StakeCall::Chill => of.chill(who),
            StakeCall::SetKeys { keys, .. } => {
                of.keys.insert(who.clone(), *keys);
                Ok(Vec::new())
            }
            StakeCall::PurgeKeys => {
                let known = of.keys.remove(who);
                known
                    .map(|_| Vec::new())
                    .ok_or_else(|| fault("Session", "NoKeys"))
            }
            // What they change is not looked at.
            StakeCall::Redelegate { .. } | StakeCall::Settle { .. } => Ok(Vec::new()),
        }
    }
}

#[async_trait]
impl StakeChain for FakeChain {
    async fn pool(&self, when: When, operator: &AccountId32) -> Result<Option<OperatorPool>, ChainError> {
        self.read(when, |state| state.delegation.pools.get(operator).copied())
    }

    async fn operators(&self, when: When) -> Result<Vec<(AccountId32, OperatorPool)>, ChainError> {
        self.read(when, |state| state.delegation.pools.clone().into_iter().collect())
    }

    async fn delegators(&self, when: When, operator: &AccountId32) -> Result<u32, ChainError> {
        self.read(when, |state| {
            let known = state.delegation.delegators.get(operator);
            known.copied().unwrap_or_default()
        })
    }

    async fn delegated(&self, when: When, who: &AccountId32) -> Result<DelegatedStake, ChainError> {
        self.read(when, |state| {
            let known = state.delegation.delegated.get(who);
            known.cloned().unwrap_or_default()
        })
    }

    async fn left(&self, when: When, operator: &AccountId32, day: Day) -> Result<StakeFund, ChainError> {
        self.read(when, |state| {
            let known = state.delegation.left.get(&(operator.clone(), day));
            known.copied().unwrap_or_default()
        })
    }

    async fn pending_slashes(
        &self,
        when: When,
        operator: &AccountId32,
    ) -> Result<Option<PendingSlashes>, ChainError> {
        self.read(when, |state| state.delegation.pending.get(operator).copied())
    }

    async fn candidates(&self, when: When) -> Result<Vec<(AccountId32, CandidateRecord)>, ChainError> {
        self.read(when, |state| {
            state.delegation.candidates.clone().into_iter().collect()
        })
    }

    async fn candidate(
        &self,
        when: When,
        operator: &AccountId32,
    ) -> Result<Option<CandidateRecord>, ChainError> {
        self.read(when, |state| state.delegation.candidates.get(operator).copied())
    }

    async fn service(&self, when: When, operator: &AccountId32) -> Result<ServiceRecord, ChainError> {
        self.read(when, |state| {
            let known = state.delegation.services.get(operator);
            known.copied().unwrap_or_default()
        })
    }

    async fn authored(&self, when: When, operator: &AccountId32) -> Result<u32, ChainError> {
        self.read(when, |state| {
            let known = state.delegation.authored.get(operator);
            known.copied().unwrap_or_default()
        })
    }

    async fn validator_sets(&self, when: When) -> Result<ValidatorSets, ChainError> {
        self.read(when, |state| state.delegation.sets.clone())
    }

    async fn session_keys(
        &self,
        when: When,
        operator: &AccountId32,
    ) -> Result<Option<SessionKeys>, ChainError> {
        self.read(when, |state| state.delegation.keys.get(operator).copied())
    }
}
