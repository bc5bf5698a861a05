//! Records that only this pallet keeps.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::H256;
use surety_audit_economics::PlaceRank;
use surety_types::{
    limits,
    task::{Bid, PerBid},
};

use crate::Balance;

/// The bids of a task, counted.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct BidCount {
    /// Bids that were placed, sealed or opened.
    pub placed: u32,
    /// Those that were opened.
    pub opened: u32,
    /// Whether the first window for opening them has passed with some still sealed.
    pub late: bool,
}

impl BidCount {
    /// Whether there is a place for another bid.
    pub const fn has_room(self) -> bool {
        self.placed < limits::BIDS_MAX
    }

    /// Whether sealed bids get the long window when the first one ends.
    pub const fn are_waited_for(self) -> bool {
        self.opened < self.placed && !self.late
    }
}

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

/// A bidder that has a place.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Encode,
    Decode,
    DecodeWithMemTracking,
    MaxEncodedLen,
    TypeInfo,
)]
pub struct Place<AccountId> {
    /// Its rank.
    pub rank: PlaceRank,
    /// Its stash. Breaks ties.
    pub provider: AccountId,
}

/// Who has the places of a task that more have bid for than there are.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Ranking<AccountId> {
    /// What ranks are drawn with: a block author's VRF output.
    pub entropy: H256,
    /// All of its bidders, best first.
    pub places: PerBid<Place<AccountId>>,
}
