//! A dispute's record on chain. Plain data, for whoever reads it: the pallet, runtime APIs and the worker.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use surety_types::{
    TaskId,
    task::ResultClaim,
    trust::{DisputeId, Party},
};

use crate::bisection::Game;

/// A dispute that is open.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Dispute<AccountId, Balance, BlockNumber> {
    /// Task id.
    pub task: TaskId,
    /// Who stands by the claim: a provider that made it, or an auditor that confirmed it.
    pub defender: Party<AccountId>,
    /// Who says that it is wrong.
    pub challenger: Party<AccountId>,
    /// What is in dispute.
    pub claim: ResultClaim,
    /// How far they are.
    pub game: Game,
    /// On hold on the challenger's account, in plancks; zero where other stake is behind it.
    pub bond: Balance,
    /// The part of it that is for a committee's members: it is not lost where there was none.
    pub committee_bond: Balance,
    /// What the challenger pays for what the defender shows it.
    pub prepaid: Option<Prepaid<AccountId, Balance>>,
    /// Moves so far.
    pub moves: u32,
    /// Block in which it was opened.
    pub opened_at: BlockNumber,
    /// Time of the clock up to which it has been taken from the sides.
    pub ticked_at: BlockNumber,
    /// Time of the clock at which it was referred to a committee: it came to a cell that no block can compute
    /// again.
    pub referred_at: Option<BlockNumber>,
}

/// What is on hold for content that a challenger has asked for. The loser bears it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Prepaid<AccountId, Balance> {
    /// The account that played the move.
    pub by: AccountId,
    /// The price, in plancks.
    pub amount: Balance,
}

/// A dispute with its number.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct DisputeView<AccountId, Balance, BlockNumber> {
    /// Dispute id.
    pub id: DisputeId,
    /// Its record on chain.
    pub dispute: Dispute<AccountId, Balance, BlockNumber>,
}
