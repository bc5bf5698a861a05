#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::unwrap_used
    )
)]

extern crate alloc;

pub use fund::Fund;
pub use pallet::*;
pub use views::{ChunkView, DelegationView, PoolView, StakeView, StakeViewOf};
pub use weights::WeightInfo;

mod asset;
#[cfg(feature = "runtime-benchmarks")]
mod benchmarking;
mod calls;
mod fund;
mod ledger;
#[cfg(test)]
mod mock;
mod pools;
mod stakes;
#[cfg(test)]
mod tests;
#[cfg(any(feature = "std", feature = "try-runtime"))]
mod try_state;
pub mod types;
mod views;
mod weights;

use frame_support::traits::{ConstU32, tokens::fungible};
use frame_system::pallet_prelude::BlockNumberFor;
use sp_runtime::{BoundedVec, Permill};

/// Most pools whose operators have stake of their own.
pub const POOLS_MAX: u32 = 1_000;

/// Most delegators of a pool, beside its operator.
pub const DELEGATORS_MAX: u32 = 128;

/// Most operators that one account backs.
pub const DELEGATIONS_MAX: u32 = 16;

/// Most delegations and chunks of one account together: as many chunks as staking allows may be on their way
/// out, and a delegation that is displaced becomes one more.
pub const STAKES_MAX: u32 = surety_types::limits::UNLOCKING_MAX + DELEGATIONS_MAX;

/// Most days that a slash takes from: that of the offence, up to two until it is reported, as a report lives
/// for a day, and one more in which the convict may be in the set still.
pub const SLASHED_DAYS_MAX: u32 = 4;

/// Sessions for which somebody may still be a validator that is chilled now, or whose stake leaves.
pub const SESSIONS_TO_LEAVE: u32 = 2;

/// Most that a commission may be raised by, and once a day.
pub const RAISE_MAX: Permill = Permill::from_percent(1);

/// All that one account has in pools.
pub type StakeOf<T> = types::Stake<<T as frame_system::Config>::AccountId, BlockNumberFor<T>>;

/// What of it left one operator on one day.
pub type ChunkOf<T> = types::Chunk<<T as frame_system::Config>::AccountId, BlockNumberFor<T>>;

/// Delegators of a pool with their shares, the smallest first and of those with as many the youngest.
pub type DelegatorList<T> =
    BoundedVec<(u128, <T as frame_system::Config>::AccountId), ConstU32<DELEGATORS_MAX>>;

pub(crate) use types::Totals as TotalsRecord;

/// The pallet itself; see the crate's documentation.
// The pallet macro turns its own attributes into paths that this lint finds too long.
#[allow(unused_qualifications)]
#[frame_support::pallet]
pub mod pallet {
    use frame_support::{PalletId, pallet_prelude::*};
    use frame_system::pallet_prelude::*;
    use sp_runtime::{Perquintill, traits::BlockNumberProvider};
    use surety_types::traits::{LeavingPay, Sessions, StakeLedger, StashClosed};

    use super::*;
    use crate::types::{Day, PendingSlashes, Pool};

    const STORAGE_VERSION: StorageVersion = StorageVersion::new(1);

    /// The pallet.
    #[pallet::pallet]
    #[pallet::storage_version(STORAGE_VERSION)]
    pub struct Pallet<T>(_);

    /// What the pallet needs of a runtime.
    #[pallet::config]
    pub trait Config: frame_system::Config {
        /// The currency that is staked, and that rewards are paid in.
        type Currency: fungible::Mutate<Self::AccountId>
            + fungible::Inspect<Self::AccountId, Balance = u128>
            + fungible::hold::Mutate<Self::AccountId, Reason = Self::RuntimeHoldReason>;

        /// The runtime's reasons for holds.
        type RuntimeHoldReason: From<HoldReason>;

        /// Bonds of providers and verifiers: who has one has no stake here.
        type Ledgers: StakeLedger<Self::AccountId, u128>;

        /// Which session runs.
        type Sessions: Sessions;

        /// Sessions that are a day: for so long what happened in one can be reported.
        #[pallet::constant]
        type SessionsKept: Get<u32>;

        /// The clock that leaving is measured with. It stands still while finality does.
        type BlockNumberProvider: BlockNumberProvider<BlockNumber = BlockNumberFor<Self>>;

        /// Blocks of the clock until stake that has left a pool can be withdrawn.
        type UnbondingPeriod: Get<BlockNumberFor<Self>>;

        /// Least that an operator has in its own pool, in plancks.
        type MinSelfBond: Get<u128>;

        /// Least that anybody else has in one, in plancks.
        type MinDelegation: Get<u128>;

        /// The account that rewards wait in. It has an existential deposit of its own.
        #[pallet::constant]
        type PotId: Get<PalletId>;

        /// Pays what an operator has served for before a day is over.
        type Pay: LeavingPay<Self::AccountId>;

        /// Who keeps something for operators, and drops it when a pool closes.
        type OnClosed: StashClosed<Self::AccountId>;

        /// Weights of the calls.
        type WeightInfo: WeightInfo;
    }

    /// Why funds are on hold.
    #[pallet::composite_enum]
    pub enum HoldReason {
        /// They back an operator, or did and are on their way out.
        Delegated,
    }

    /// The pool of each operator.
    #[pallet::storage]
    pub type Pools<T: Config> = StorageMap<_, Blake2_128Concat, T::AccountId, Pool>;

    /// The delegators of each pool, without its operator.
    #[pallet::storage]
    pub type Delegators<T: Config> =
        StorageMap<_, Blake2_128Concat, T::AccountId, DelegatorList<T>, ValueQuery>;

    /// What each account has in pools.
    #[pallet::storage]
    pub type Stakes<T: Config> = StorageMap<_, Blake2_128Concat, T::AccountId, StakeOf<T>>;

    /// What left each operator on each day, and was not withdrawn.
    #[pallet::storage]
    pub type Buckets<T: Config> =
        StorageDoubleMap<_, Blake2_128Concat, T::AccountId, Twox64Concat, Day, Fund>;

    /// Slashes that wait, of each operator that was convicted. They outlive its pool.
    #[pallet::storage]
    pub type Pending<T: Config> = StorageMap<_, Blake2_128Concat, T::AccountId, PendingSlashes>;

    /// Everything together.
    #[pallet::storage]
    pub type Totals<T: Config> = StorageValue<_, TotalsRecord, ValueQuery>;

    /// Pools that there are from the beginning.
    #[pallet::genesis_config]
    #[derive(frame_support::DefaultNoBound)]
    pub struct GenesisConfig<T: Config> {
        /// Each operator with its own stake, in plancks of its free balance, and its commission.
        pub pools: alloc::vec::Vec<(T::AccountId, u128, Permill)>,
    }

    #[pallet::genesis_build]
    impl<T: Config> BuildGenesisConfig for GenesisConfig<T> {
        fn build(&self) {
            for (operator, bond, commission) in &self.pools {
                let opened = Pallet::<T>::do_open(operator.clone(), *bond, *commission);
                assert!(opened.is_ok(), "no pool for {operator:?}: {opened:?}");
            }
        }
    }

    /// What happened.
    #[pallet::event]
    #[pallet::generate_deposit(pub(crate) fn deposit_event)]
    pub enum Event<T: Config> {
        /// An operator can be backed.
        PoolOpened {
            /// Operator's account.
            operator: T::AccountId,
            /// Part of each reward that it has before that is shared.
            commission: Permill,
        },
        /// Nobody has stake in a pool any more: it is gone.
        PoolClosed {
            /// Operator's account.
            operator: T::AccountId,
        },
        /// Stake was put behind an operator.
        Delegated {
            /// Operator's account.
            operator: T::AccountId,
            /// Whose stake it is.
            delegator: T::AccountId,
            /// Amount added, in plancks.
            amount: u128,
        },
        /// Stake is on its way out.
        Undelegated {
            /// Operator's account.
            operator: T::AccountId,
            /// Whose stake it is.
            delegator: T::AccountId,
            /// Amount, in plancks.
            amount: u128,
            /// Day that it counts as left on.
            day: Day,
            /// From which time on it can be withdrawn.
            available_at: BlockNumberFor<T>,
        },
        /// A larger delegation has taken the place of the smallest one, which is on its way out.
        Displaced {
            /// Operator's account.
            operator: T::AccountId,
            /// Whose stake has lost its place.
            delegator: T::AccountId,
            /// Amount, in plancks.
            amount: u128,
            /// Day that it counts as left on.
            day: Day,
            /// From which time on it can be withdrawn.
            available_at: BlockNumberFor<T>,
        },
        /// Stake on its way out backs an operator again.
        Redelegated {
            /// Whose pool it had left.
            operator: T::AccountId,
            /// Whom it backs now.
            to: T::AccountId,
            /// Whose stake it is.
            delegator: T::AccountId,
            /// Amount, in plancks.
            amount: u128,
        },
        /// Stake that had left became free.
        Withdrawn {
            /// Whose stake it was.
            delegator: T::AccountId,
            /// Amount, in plancks.
            amount: u128,
        },
        /// Rewards were paid.
        Claimed {
            /// Whose pool earned them.
            operator: T::AccountId,
            /// Who has them now.
            delegator: T::AccountId,
            /// Amount, in plancks.
            amount: u128,
        },
        /// What a slash had taken was burned.
        Burned {
            /// Who was slashed.
            operator: T::AccountId,
            /// Who backed it.
            delegator: T::AccountId,
            /// Amount, in plancks.
            amount: u128,
        },
        /// An operator takes another part of each reward from now on.
        CommissionSet {
            /// Operator's account.
            operator: T::AccountId,
            /// The part.
            commission: Permill,
        },
        /// A reward was shared.
        Rewarded {
            /// Operator's account.
            operator: T::AccountId,
            /// Amount, commission included, in plancks.
            amount: u128,
        },
        /// A slash waits. What left the pool since the first offence stays until it is decided.
        SlashNoted {
            /// Operator's account.
            operator: T::AccountId,
            /// Day of the offence.
            since: Day,
            /// Last day in which it may have been a validator still.
            until: Day,
        },
        /// A slash was vetoed.
        Spared {
            /// Operator's account.
            operator: T::AccountId,
        },
        /// A slash was carried out.
        Slashed {
            /// Operator's account.
            operator: T::AccountId,
            /// Part that everybody lost.
            part: Perquintill,
            /// All of it together, in plancks.
            amount: u128,
        },
    }

    /// Why a call was refused.
    #[pallet::error]
    pub enum Error<T> {
        /// The account has a pool. Add to your own stake with `delegate`.
        AlreadyOpen,
        /// There are as many pools as there may be, 1,000. Wait until an operator leaves.
        TooManyPools,
        /// The operator has no pool. Check the account.
        UnknownPool,
        /// The operator has taken its own stake out. Back another one.
        OperatorLeft,
        /// The account has stake as provider or verifier. Use another account, or unbond and withdraw that
        /// first.
        WrongRole,
        /// The account has no stake behind this operator. Check both accounts.
        NotDelegated,
        /// The amount is zero. Give one in plancks that is not.
        ZeroAmount,
        /// What is there afterwards would be less than the minimum, but not nothing. Delegate more, leave at
        /// least the minimum, or take all of it.
        BelowMinimum,
        /// That is more than the stake is worth. Ask for what it is worth now: a slash may have changed
        /// that.
        NotEnoughStake,
        /// The pool is full, and nobody in it has less. Delegate more, or to another operator.
        PoolFull,
        /// The account backs as many operators as it may, 16. Leave one of them first.
        TooManyDelegations,
        /// Delegations and chunks on their way out are as many as there may be, 48. Withdraw those whose time
        /// has come, or take a delegation out as a whole.
        TooManyStakes,
        /// A slash of the operator waits. Come back when it is carried out or vetoed.
        SlashPending,
        /// The pool has lost more than 99.9 % of what was put into it. Back another operator.
        Depleted,
        /// What left this operator on the same day has lost more than 99.9 %. Leave on another day, or once
        /// no slash waits.
        LeaveTomorrow,
        /// Nothing left that operator on that day, or it is gone by now. Look at the account's chunks.
        UnknownChunk,
        /// What the stake answers for can still be reported. Move it when a whole day has passed, what an
        /// operator took out last when it can be withdrawn, or back to the operator it left.
        TooEarly,
        /// No chunk's time has come yet. Wait until the clock shows `available_at` of one.
        NothingToWithdraw,
        /// Nothing was earned since the last claim. Wait for the next reward.
        NothingToClaim,
        /// Nothing was slashed that is not burned. Nothing has to be done.
        NothingToSettle,
        /// A commission may be raised once a day, and by 1 % at most. Raise it by less, or tomorrow.
        RaisedTooFast,
    }

    #[pallet::hooks]
    impl<T: Config> Hooks<BlockNumberFor<T>> for Pallet<T> {
        fn integrity_test() {
            assert!(T::SessionsKept::get() > 0, "a day has sessions");
            assert!(
                T::SessionsKept::get() >= SESSIONS_TO_LEAVE.saturating_mul(2),
                "days are too short: a slash would take from more than `SLASHED_DAYS_MAX` of them"
            );
        }

        #[cfg(feature = "try-runtime")]
        fn try_state(_now: BlockNumberFor<T>) -> Result<(), sp_runtime::TryRuntimeError> {
            Self::do_try_state()
        }
    }

    #[pallet::view_functions]
    impl<T: Config> Pallet<T> {
        /// The pool of an operator. Nothing where it has none.
        pub fn pool(operator: T::AccountId) -> Option<PoolView> {
            Self::view_pool(&operator)
        }

        /// All that somebody has in pools, what it is worth, and what it has earned. Nothing where that is
        /// nothing.
        pub fn stake(who: T::AccountId) -> Option<StakeViewOf<T>> {
            Self::view_stake(&who)
        }

        /// What somebody can claim of what an operator's pool has earned, in plancks.
        pub fn claimable(who: T::AccountId, operator: T::AccountId) -> u128 {
            Self::view_claimable(&who, &operator)
        }

        /// Plancks that were slashed and are not burned yet: the issuance is too high by that.
        pub fn unburned() -> u128 {
            Self::view_unburned()
        }
    }

    /// Calls; each is an origin check and a `do_*`.
    #[pallet::call(weight = <T as Config>::WeightInfo)]
    impl<T: Config> Pallet<T> {
        /// Opens a pool with `bond` plancks of the caller's own, who has `commission` of each reward before
        /// it is shared.
        #[pallet::call_index(0)]
        pub fn open(origin: OriginFor<T>, bond: u128, commission: Permill) -> DispatchResult {
            let operator = ensure_signed(origin)?;
            Self::do_open(operator, bond, commission)
        }

        /// Puts `amount` plancks of the caller's free balance behind `operator`, or adds them to what is
        /// there. Where the pool is full, the smallest delegator has to leave for a larger one.
        #[pallet::call_index(1)]
        pub fn delegate(origin: OriginFor<T>, operator: T::AccountId, amount: u128) -> DispatchResult {
            let who = ensure_signed(origin)?;
            Self::do_delegate(who, operator, amount)
        }

        /// Puts `amount` plancks of the caller's stake on their way out. What stays has to be nothing or the
        /// minimum.
        #[pallet::call_index(2)]
        pub fn undelegate(origin: OriginFor<T>, operator: T::AccountId, amount: u128) -> DispatchResult {
            let who = ensure_signed(origin)?;
            Self::do_undelegate(who, operator, amount)
        }

        /// Puts `amount` plancks of what left `operator` on `day` behind `to`: when a whole day has passed,
        /// for what the operator itself took out last when it can be withdrawn, or at any time where that is
        /// the operator it left.
        #[pallet::call_index(3)]
        pub fn redelegate(
            origin: OriginFor<T>,
            operator: T::AccountId,
            day: Day,
            to: T::AccountId,
            amount: u128,
        ) -> DispatchResult {
            let who = ensure_signed(origin)?;
            Self::do_redelegate(who, operator, day, to, amount)
        }

        /// Releases the caller's chunks whose time has come and that no slash waits for.
        #[pallet::call_index(4)]
        pub fn withdraw(origin: OriginFor<T>) -> DispatchResult {
            let who = ensure_signed(origin)?;
            Self::do_withdraw(who)
        }

        /// Pays what the caller's stake behind `operator` has earned.
        #[pallet::call_index(5)]
        pub fn claim(origin: OriginFor<T>, operator: T::AccountId) -> DispatchResult {
            let who = ensure_signed(origin)?;
            Self::do_claim(who, operator)
        }

        /// Burns what `delegator` has lost behind `operator`. Anybody may call it; it costs nothing where it
        /// burns at least an existential deposit.
        #[pallet::call_index(6)]
        pub fn settle(
            origin: OriginFor<T>,
            delegator: T::AccountId,
            operator: T::AccountId,
        ) -> DispatchResultWithPostInfo {
            ensure_signed(origin)?;
            Self::do_settle(delegator, operator)
        }

        /// Has the caller take another part of each reward from now on: less at once, more by 1 % a day.
        #[pallet::call_index(7)]
        pub fn set_commission(origin: OriginFor<T>, commission: Permill) -> DispatchResult {
            let operator = ensure_signed(origin)?;
            Self::do_set_commission(operator, commission)
        }
    }
}
