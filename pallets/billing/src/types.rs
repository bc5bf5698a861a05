//! Records of this pallet. They know nothing of it.

use codec::{Decode, Encode, MaxEncodedLen};
use scale_info::TypeInfo;

/// A client's money, held for one task.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, MaxEncodedLen, TypeInfo)]
pub struct EscrowRecord<AccountId, Balance> {
    /// On whose account it is held.
    pub client: AccountId,
    /// How much, in plancks.
    pub held: Balance,
}

/// Where all escrow since genesis went, in plancks. What is neither of the last four is still open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, MaxEncodedLen, TypeInfo)]
pub struct Totals<Balance> {
    /// Put into escrow.
    pub opened: Balance,
    /// Arrived on the accounts of providers and auditors.
    pub paid: Balance,
    /// Arrived in the treasury and the validators' pot.
    pub fees: Balance,
    /// Burned: the burned part of the fee, and what no account could take.
    pub burned: Balance,
    /// Arrived back on clients' accounts.
    pub refunded: Balance,
}
