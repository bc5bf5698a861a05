//! Records.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_runtime::Perquintill;

/// What a provider's stake has earned, and its work has not claimed yet.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Allowance<Balance, BlockNumber> {
    /// In plancks.
    pub amount: Balance,
    /// Up to this block stake is counted in it.
    pub since: BlockNumber,
}

/// How much SURE there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, TypeInfo)]
pub struct Supply<Balance> {
    /// In existence now, in plancks.
    pub issued: Balance,
    /// Ever minted, genesis included, in plancks.
    pub minted: Balance,
    /// That may still be minted, in plancks.
    pub left: Balance,
    /// Part of the rate that is paid now.
    pub tau: Perquintill,
}
