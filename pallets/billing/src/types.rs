//! Records of this pallet. They know nothing of it.

use codec::{Decode, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_runtime::Permill;

/// A client's money, kept for one task.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, MaxEncodedLen, TypeInfo)]
pub struct EscrowRecord<AccountId, Balance> {
    /// Whose it is: what is left goes back to it.
    pub client: AccountId,
    /// What it pays out of, in plancks.
    pub held: Balance,
    /// Its own lock, beside that, in plancks.
    pub lock: Balance,
    /// The fee as it was when the client agreed to it.
    pub fee: FeeTerms<Balance>,
}

/// How the protocol fee is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, MaxEncodedLen, TypeInfo)]
pub struct FeeTerms<Balance> {
    /// Part of what providers are paid.
    pub rate: Permill,
    /// The least a task pays, in plancks.
    pub minimum: Balance,
}

/// Where all escrow since genesis went, in plancks. What is neither of the last four is still open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, MaxEncodedLen, TypeInfo)]
pub struct Totals<Balance> {
    /// Put into escrow, or locked beside it.
    pub opened: Balance,
    /// Arrived on the accounts of providers and auditors, shares of lost locks included.
    pub paid: Balance,
    /// Arrived in the treasury and the validators' pot.
    pub fees: Balance,
    /// Burned: the burned parts of the fee and of lost locks, and what no account could take.
    pub burned: Balance,
    /// Arrived back on clients' accounts, out of escrow or as their locks.
    pub refunded: Balance,
}
