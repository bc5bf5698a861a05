//! Calls about stake behind validators, and about their keys.

use sp_core::crypto::AccountId32;

use super::{
    argument::{Argument, args},
    name::CallName,
};
use crate::{Balance, Day, SessionKeys};

/// A call about stake behind validators, or about being one, with its arguments as the pallet takes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StakeCall {
    /// `Delegation.open`: opens the signer's pool.
    OpenPool {
        /// How much of its own it puts in, in plancks.
        bond: Balance,
        /// Part of each reward that it has before that is shared, in millionths.
        commission: u32,
    },
    /// `Delegation.delegate`: puts stake behind an operator, or adds to what is there.
    Delegate {
        /// Whom: the operator's account.
        operator: AccountId32,
        /// How much, in plancks.
        amount: Balance,
    },
    /// `Delegation.undelegate`: puts stake on its way out.
    Undelegate {
        /// Whose pool it is in.
        operator: AccountId32,
        /// How much, in plancks.
        amount: Balance,
    },
    /// `Delegation.redelegate`: puts stake that is on its way out behind an operator again.
    Redelegate {
        /// Whose pool it has left.
        operator: AccountId32,
        /// The day it left on.
        day: Day,
        /// Whom it backs from now on.
        to: AccountId32,
        /// How much, in plancks.
        amount: Balance,
    },
    /// `Delegation.withdraw`: takes out what has waited long enough.
    WithdrawDelegated,
    /// `Delegation.claim`: pays what the signer's stake behind an operator has earned.
    Claim {
        /// Whose pool it is in.
        operator: AccountId32,
    },
    /// `Delegation.settle`: burns what somebody has lost behind an operator.
    Settle {
        /// Whose stake it is.
        delegator: AccountId32,
        /// Whose pool it is in.
        operator: AccountId32,
    },
    /// `Delegation.set_commission`: the operator takes another part of each reward from now on.
    SetCommission {
        /// The part, in millionths.
        commission: u32,
    },
    /// `Validators.validate`: the operator can be elected.
    Validate,
    /// `Validators.chill`: the operator cannot be elected any more.
    Chill,
    /// `Session.set_keys`: the operator's node signs with these keys from the session after the next one on.
    SetKeys {
        /// The keys.
        keys: SessionKeys,
        /// That who has the keys means the signer.
        proof: Vec<u8>,
    },
    /// `Session.purge_keys`: the operator has no keys any more, and its deposit for them back.
    PurgeKeys,
}

impl StakeCall {
    pub(super) fn name(&self) -> CallName {
        let (pallet, call, arguments): (_, _, &'static [&'static str]) = match self {
            Self::OpenPool { .. } => ("Delegation", "open", &["bond", "commission"]),
            Self::Delegate { .. } => ("Delegation", "delegate", &["operator", "amount"]),
            Self::Undelegate { .. } => ("Delegation", "undelegate", &["operator", "amount"]),
            Self::Redelegate { .. } => ("Delegation", "redelegate", &["operator", "day", "to", "amount"]),
            Self::WithdrawDelegated => ("Delegation", "withdraw", &[]),
            Self::Claim { .. } => ("Delegation", "claim", &["operator"]),
            Self::Settle { .. } => ("Delegation", "settle", &["delegator", "operator"]),
            Self::SetCommission { .. } => ("Delegation", "set_commission", &["commission"]),
            Self::Validate => ("Validators", "validate", &[]),
            Self::Chill => ("Validators", "chill", &[]),
            Self::SetKeys { .. } => ("Session", "set_keys", &["keys", "proof"]),
            Self::PurgeKeys => ("Session", "purge_keys", &[]),
        };
        CallName {
            pallet,
            call,
            arguments,
        }
    }

    pub(super) fn arguments(&self) -> Vec<Argument> {
        match self {
            Self::OpenPool { bond, commission } => args![bond, commission],
            Self::Delegate { operator, amount } | Self::Undelegate { operator, amount } => {
                args![operator, amount]
            }
            Self::Redelegate {
                operator,
                day,
                to,
                amount,
            } => args![operator, day, to, amount],
            Self::Claim { operator } => args![operator],
            Self::Settle { delegator, operator } => args![delegator, operator],
            Self::SetCommission { commission } => args![commission],
            Self::SetKeys { keys, proof } => args![keys, proof],
            Self::WithdrawDelegated | Self::Validate | Self::Chill | Self::PurgeKeys => Vec::new(),
        }
    }
}
