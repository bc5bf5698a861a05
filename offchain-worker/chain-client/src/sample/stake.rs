//! Samples of the calls about stake behind validators, and of the records that are read of it.

use super::account;
use crate::{Call, SessionKeys, StakeCall};

/// One call of each kind.
pub(super) fn calls() -> Vec<Call> {
    let (amount, commission) = (4, 50_000);
    let (operator, delegator) = (account(), account());
    let calls = [
        StakeCall::OpenPool {
            bond: amount,
            commission,
        },
        StakeCall::Delegate {
            operator: operator.clone(),
            amount,
        },
        StakeCall::Undelegate {
            operator: operator.clone(),
            amount,
        },
        StakeCall::Redelegate {
            operator: operator.clone(),
            day: 3,
            to: account(),
            amount,
        },
        StakeCall::WithdrawDelegated,
        StakeCall::Claim {
            operator: operator.clone(),
        },
        StakeCall::Settle { delegator, operator },
        StakeCall::SetCommission { commission },
        StakeCall::Validate,
        StakeCall::Chill,
        StakeCall::SetKeys {
            keys: keys(),
            proof: vec![1; 192],
        },
        StakeCall::PurgeKeys,
    ];
    calls.into_iter().map(Call::Stake).collect()
}

/// Keys of a session.
pub fn keys() -> SessionKeys {
    SessionKeys {
        babe: [1; 32],
        grandpa: [2; 32],
        authority_discovery: [3; 32],
    }
}

/// One record of each kind.
#[cfg(any(test, feature = "testsuite"))]
pub mod records {
    use super::account;
    use crate::{
        CandidateRecord, DelegatedStake, DelegationRecord, LeavingRecord, OperatorPool, PendingSlashes,
        ServiceRecord, StakeFund,
    };

    /// A pool.
    pub fn pool() -> OperatorPool {
        OperatorPool {
            fund: fund(),
            own_shares: 20,
            commission: 50_000,
            earned: 3,
            per_share: 4,
        }
    }

    /// A fund that has lost a part of what it had.
    pub fn fund() -> StakeFund {
        StakeFund {
            amount: 30,
            shares: 60,
        }
    }

    /// All that somebody has in pools.
    pub fn delegated() -> DelegatedStake {
        DelegatedStake {
            delegations: vec![DelegationRecord {
                operator: account(),
                shares: 20,
                held: 20,
                paid_to: 1,
            }],
            leaving: vec![LeavingRecord {
                operator: account(),
                day: 2,
                shares: 5,
                held: 5,
                available_at: 9,
            }],
        }
    }

    /// Slashes that wait.
    pub fn pending() -> PendingSlashes {
        PendingSlashes {
            since: 1,
            until: 2,
            count: 1,
        }
    }

    /// A candidate.
    pub fn candidate() -> CandidateRecord {
        CandidateRecord {
            wants_to: true,
            missed_millionths: 1_500_000,
        }
    }

    /// What a validator did.
    pub fn service() -> ServiceRecord {
        ServiceRecord {
            made: 36,
            expected_millionths: 37_500_000,
        }
    }
}
