//! Bonded stake, as the ledger keeps it.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::ConstU32;
use sp_runtime::BoundedVec;

use crate::limits;

/// What a stash is bonded to do.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum Role {
    /// Computes tasks.
    Provider,
    /// Audits results.
    Verifier,
}

/// Stake on its way out.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct UnlockChunk<Balance, BlockNumber> {
    /// Amount, in plancks.
    pub amount: Balance,
    /// From which time of the clock on it can be withdrawn.
    pub available_at: BlockNumber,
}

/// The stake of one stash. All of it, unbonding chunks included, is held on the stash's account and can be
/// slashed.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct StakeRecord<AccountId, Balance, BlockNumber> {
    /// What it is bonded for.
    pub role: Role,
    /// Stake that works, in plancks of SURE.
    pub bonded: Balance,
    /// The part of `bonded` that open tasks have locked. Never above `bonded`.
    pub locked: Balance,
    /// Stake on its way out, oldest first.
    pub unlocking: BoundedVec<UnlockChunk<Balance, BlockNumber>, ConstU32<{ limits::UNLOCKING_MAX }>>,
    /// The hot key that may act for this stash, once it has confirmed.
    pub agent: Option<AccountId>,
    /// Block in which it last got more stake or another agent. Draws with a seed that was known by then are
    /// not fair.
    pub settled_at: BlockNumber,
}

/// All stashes of one role together.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct RoleTotal<Balance> {
    /// Stake that works, in plancks of SURE.
    pub bonded: Balance,
    /// Stashes that have any.
    pub stashes: u32,
}
