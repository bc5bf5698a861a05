//! Records, and what can be told from one of them alone.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::ConstU32;
use sp_runtime::{BoundedVec, Permill};

use crate::{DELEGATIONS_MAX, STAKES_MAX, fund::Fund};

/// Days are counted by sessions: so many as reports of equivocations are valid for are one.
pub type Day = u32;

/// Rewards are shared in so many parts of a planck.
pub const PLANCK_PARTS: u128 = 1_000_000_000_000_000_000;

/// The stake behind one operator.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Pool {
    /// All the stake that works.
    pub fund: Fund,
    /// Shares that are the operator's own.
    pub own_shares: u128,
    /// Part of each reward that the operator has before it is shared.
    pub commission: Permill,
    /// Day in which that part was raised last.
    pub raised_on: Day,
    /// What the operator has earned by it and not claimed, in plancks.
    pub earned: u128,
    /// What a share has earned since the pool was opened, in [`PLANCK_PARTS`] of a planck.
    pub per_share: u128,
    /// What did not divide among shares, in the same parts. Goes with the next reward.
    pub carried: u128,
}

impl Pool {
    /// A pool without stake; not to be stored for longer than a call.
    pub(crate) fn new(commission: Permill, today: Day) -> Self {
        Self {
            fund: Fund::default(),
            own_shares: 0,
            commission,
            raised_on: today,
            earned: 0,
            per_share: 0,
            carried: 0,
        }
    }

    /// What a holder of so many shares has earned since `paid_to`: whole plancks, and parts of one beside.
    pub fn due(&self, shares: u128, paid_to: u128) -> (u128, u128) {
        // Not beyond 128 bits: so many parts are in the pot, which all plancks that there are fit into.
        let parts = shares.saturating_mul(self.per_share.saturating_sub(paid_to));
        (parts / PLANCK_PARTS, parts % PLANCK_PARTS)
    }

    /// Shares `amount` plancks. Says whether it could: not where nobody has shares.
    pub(crate) fn reward(&mut self, amount: u128) -> bool {
        let commission = self.commission.mul_floor(amount);
        let shared = || {
            let parts = amount.checked_sub(commission)?.checked_mul(PLANCK_PARTS)?;
            let parts = parts.checked_add(self.carried)?;
            let each = parts.checked_div(self.fund.shares)?;
            let rest = parts.checked_rem(self.fund.shares)?;
            let per_share = self.per_share.checked_add(each)?;
            Some((per_share, rest, self.earned.checked_add(commission)?))
        };
        let Some((per_share, carried, earned)) = shared() else {
            return false;
        };
        (self.per_share, self.carried, self.earned) = (per_share, carried, earned);
        true
    }

    /// A delegation that begins now; without shares, and not to be stored like that.
    pub(crate) fn new_delegation<AccountId>(&self, operator: AccountId) -> Delegation<AccountId> {
        Delegation {
            operator,
            shares: 0,
            held: 0,
            paid_to: self.per_share,
        }
    }

    /// Whether its operator has stake of its own in it.
    pub fn is_led(&self) -> bool {
        self.own_shares > 0
    }
}

/// Stake of somebody behind an operator.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Delegation<AccountId> {
    /// Whose pool it is in.
    pub operator: AccountId,
    /// Shares of the pool's fund.
    pub shares: u128,
    /// What is on hold for it, in plancks. More than the shares are worth where a slash was not burned yet.
    pub held: u128,
    /// The pool's `per_share` at the last claim.
    pub paid_to: u128,
}

/// Stake on its way out of a pool: all that somebody took out on one day.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Chunk<AccountId, BlockNumber> {
    /// Whose pool it was in.
    pub operator: AccountId,
    /// It answers for what the operator did up to this day, the last in which it may have been a validator by
    /// that stake. What an operator took out last answers for longer, where nothing of its own works any
    /// more.
    pub day: Day,
    /// Shares of that day's fund.
    pub shares: u128,
    /// What is on hold for it, in plancks.
    pub held: u128,
    /// From which time of the clock on it can be withdrawn.
    pub available_at: BlockNumber,
}

/// Delegations, of one operator each.
pub type Delegations<AccountId> = BoundedVec<Delegation<AccountId>, ConstU32<DELEGATIONS_MAX>>;

/// Chunks, of one operator and day each.
pub type Leaving<AccountId, BlockNumber> = BoundedVec<Chunk<AccountId, BlockNumber>, ConstU32<STAKES_MAX>>;

/// All that somebody has in pools. `STAKES_MAX` at most, so that a delegation can become a chunk at any time.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Stake<AccountId, BlockNumber> {
    /// What works.
    pub delegations: Delegations<AccountId>,
    /// What is on its way out.
    pub leaving: Leaving<AccountId, BlockNumber>,
}

impl<AccountId, BlockNumber> Default for Stake<AccountId, BlockNumber> {
    fn default() -> Self {
        Self {
            delegations: BoundedVec::new(),
            leaving: BoundedVec::new(),
        }
    }
}

impl<AccountId: PartialEq, BlockNumber> Stake<AccountId, BlockNumber> {
    /// All that is on hold.
    pub fn held(&self) -> u128 {
        let working = self.delegations.iter().map(|delegation| delegation.held);
        let leaving = self.leaving.iter().map(|chunk| chunk.held);
        working.chain(leaving).fold(0, u128::saturating_add)
    }

    /// Delegations and chunks.
    pub fn count(&self) -> usize {
        self.delegations.len().saturating_add(self.leaving.len())
    }

    /// The delegation to an operator.
    pub fn delegation(&self, operator: &AccountId) -> Option<&Delegation<AccountId>> {
        self.delegations.iter().find(|one| one.operator == *operator)
    }

    /// The same, to change it.
    pub(crate) fn delegation_mut(&mut self, operator: &AccountId) -> Option<&mut Delegation<AccountId>> {
        let mut delegations = self.delegations.iter_mut();
        delegations.find(|one| one.operator == *operator)
    }

    /// Day of what an operator, whose stake this is, took out last, where nothing of its own works any more.
    ///
    /// It answers for whatever the operator signs while it is on hold. No set changes while finality stands
    /// still, so that whoever left just before that signs for days, and would have nothing to lose. Nobody
    /// honest loses by it: a slash takes a convict's alone, and nothing of this where it had stake of its own
    /// at work, or that left since the offence. To refuse leaving to who is in a set would not do: it may
    /// leave first and have finality stand still then.
    pub(crate) fn left_on(&self, operator: &AccountId) -> Option<Day> {
        if self.delegation(operator).is_some() {
            return None;
        }
        let own = self.leaving.iter().filter(|chunk| chunk.operator == *operator);
        own.map(|chunk| chunk.day).max()
    }

    /// Takes the delegation to an operator out.
    pub(crate) fn take_delegation(&mut self, operator: &AccountId) -> Option<Delegation<AccountId>> {
        let place = self
            .delegations
            .iter()
            .position(|one| one.operator == *operator)?;
        Some(self.delegations.remove(place))
    }

    /// Takes a chunk out.
    pub(crate) fn take_chunk(
        &mut self,
        operator: &AccountId,
        day: Day,
    ) -> Option<Chunk<AccountId, BlockNumber>> {
        let mut chunks = self.leaving.iter();
        let place = chunks.position(|chunk| chunk.operator == *operator && chunk.day == day)?;
        Some(self.leaving.remove(place))
    }
}

/// Slashes of one operator that wait to be carried out.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct PendingSlashes {
    /// Day of the first offence.
    pub since: Day,
    /// Last day in which the operator, convicted, may have been a validator still. Who leaves later leaves as
    /// of this day.
    pub until: Day,
    /// How many wait.
    pub count: u32,
}

/// Of everybody together.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Totals {
    /// Plancks on hold.
    pub held: u128,
    /// What shares are worth, of pools and of what left them. The rest of `held` was slashed and not burned
    /// yet.
    pub backing: u128,
    /// Plancks in the pot that were shared and not claimed.
    pub unclaimed: u128,
    /// Pools whose operators have stake of their own.
    pub led: u32,
}
