//! Records that only this pallet keeps.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::H256;
use surety_types::task::Bid;

use crate::Balance;

/// One provider's bid on one task.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct BidRecord {
    /// `blake2_256(task ‖ stash ‖ bid)`, in SCALE.
    pub seal: H256,
    /// The bid, once it was opened.
    pub opened: Option<Bid<Balance>>,
    /// Stake locked when the bid was placed, in plancks. The parameter may have changed since.
    pub deposit: Balance,
}
