//! What clients are told. None of it is asked by a call.

use alloc::vec::Vec;
use codec::{Decode, Encode};
use frame_support::traits::Get;
use frame_system::pallet_prelude::BlockNumberFor;
use scale_info::TypeInfo;
use sp_runtime::Permill;

use crate::{
    Config, Delegators, Pallet, Pending, Pools, Stakes, Totals,
    types::{Day, PendingSlashes},
};

/// A pool, as whoever thinks of backing its operator sees it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct PoolView {
    /// All the stake behind the operator, in plancks.
    pub backing: u128,
    /// The part of it that is the operator's own.
    pub own: u128,
    /// Part of each reward that the operator has before it is shared.
    pub commission: Permill,
    /// How many delegators it has beside the operator.
    pub delegators: u32,
    /// What a delegator that comes now has to have at least, in plancks: `MinDelegation`, or more than the
    /// smallest one of a full pool. Nothing where it takes none: its operator has left, most of it is lost,
    /// or a slash waits.
    pub least: Option<u128>,
    /// Slashes that wait.
    pub pending: Option<PendingSlashes>,
}

/// Somebody's stake behind an operator.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct DelegationView<AccountId> {
    /// Whose pool it is in.
    pub operator: AccountId,
    /// What it is worth, in plancks.
    pub worth: u128,
    /// What of what is on hold for it was slashed and will be burned, in plancks.
    pub lost: u128,
    /// What can be claimed, in plancks; of an operator with its commission.
    pub claimable: u128,
}

/// Somebody's stake on its way out.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct ChunkView<AccountId, BlockNumber> {
    /// Whose pool it was in.
    pub operator: AccountId,
    /// Day as of which it left: its name in `redelegate`.
    pub day: Day,
    /// What it is worth, in plancks.
    pub worth: u128,
    /// What of what is on hold for it was slashed and will be burned, in plancks.
    pub lost: u128,
    /// From which time of the clock on it can be withdrawn.
    pub available_at: BlockNumber,
    /// Whether a slash that waits keeps it until that is carried out or vetoed.
    pub is_kept: bool,
    /// Whether it can be moved to another operator by now.
    pub is_movable: bool,
}

/// All that somebody has in pools.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct StakeView<AccountId, BlockNumber> {
    /// What works.
    pub delegations: Vec<DelegationView<AccountId>>,
    /// What is on its way out.
    pub leaving: Vec<ChunkView<AccountId, BlockNumber>>,
}

/// [`StakeView`] of a runtime.
pub type StakeViewOf<T> = StakeView<<T as frame_system::Config>::AccountId, BlockNumberFor<T>>;

impl<T: Config> Pallet<T> {
    pub(crate) fn view_pool(operator: &T::AccountId) -> Option<PoolView> {
        let pool = Pools::<T>::get(operator)?;
        let delegators = Delegators::<T>::get(operator);
        let pending = Pending::<T>::get(operator);
        let more_than = delegators.first().filter(|_| delegators.is_full());
        let least = more_than.map_or(0, |(shares, _)| {
            // So much has more shares, whatever does not divide.
            pool.fund.worth(*shares).saturating_add(2)
        });
        let is_open = pool.is_led() && !pool.fund.is_depleted() && pending.is_none();
        Some(PoolView {
            backing: pool.fund.amount,
            own: pool.fund.worth(pool.own_shares),
            commission: pool.commission,
            delegators: delegators.len() as u32,
            least: is_open.then(|| least.max(T::MinDelegation::get())),
            pending,
        })
    }

    pub(crate) fn view_stake(who: &T::AccountId) -> Option<StakeViewOf<T>> {
        let stake = Stakes::<T>::get(who)?;
        let delegations = stake.delegations.iter().map(|delegation| {
            let worth = Self::worth_of(delegation);
            DelegationView {
                operator: delegation.operator.clone(),
                worth,
                lost: delegation.held.saturating_sub(worth),
                claimable: Self::view_claimable(who, &delegation.operator),
            }
        });
        let last = stake.left_on(who);
        let leaving = stake.leaving.iter().map(|chunk| {
            let bucket = crate::ledger::read_bucket::<T>(&chunk.operator, chunk.day);
            let worth = bucket.worth(chunk.shares);
            let is_last_own = chunk.operator == *who && last == Some(chunk.day);
            let is_kept = Self::is_kept(chunk, is_last_own);
            ChunkView {
                operator: chunk.operator.clone(),
                day: chunk.day,
                worth,
                lost: chunk.held.saturating_sub(worth),
                available_at: chunk.available_at,
                is_kept,
                is_movable: !is_kept && Self::is_movable(chunk, is_last_own),
            }
        });
        Some(StakeView {
            delegations: delegations.collect(),
            leaving: leaving.collect(),
        })
    }

    pub(crate) fn view_claimable(who: &T::AccountId, operator: &T::AccountId) -> u128 {
        let Some(pool) = Pools::<T>::get(operator) else {
            return 0;
        };
        let commission = if who == operator { pool.earned } else { 0 };
        let stake = Stakes::<T>::get(who);
        let delegation = stake.as_ref().and_then(|stake| stake.delegation(operator));
        let (due, _) = delegation.map_or((0, 0), |one| pool.due(one.shares, one.paid_to));
        commission.saturating_add(due)
    }

    pub(crate) fn view_unburned() -> u128 {
        let totals = Totals::<T>::get();
        totals.held.saturating_sub(totals.backing)
    }
}
