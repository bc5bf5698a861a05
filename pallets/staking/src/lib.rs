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

pub use collateral::{AssetCollateral, Collateral, CollateralTerms, HeldCollateral};
pub use pallet::*;
pub use weights::WeightInfo;

mod agents;
mod asset;
#[cfg(feature = "runtime-benchmarks")]
mod benchmarking;
mod calls;
mod collateral;
mod ledger;
#[cfg(test)]
mod mock;
mod stake_ledger;
#[cfg(test)]
mod tests;
#[cfg(any(feature = "std", feature = "try-runtime"))]
mod try_state;
mod weights;

use frame_support::traits::tokens::fungible;
use frame_system::pallet_prelude::BlockNumberFor;
use surety_types::{stake::StakeRecord, traits::StashClosed};

/// Balances of the configured currency, in plancks.
pub type BalanceOf<T> =
    <<T as Config>::Currency as fungible::Inspect<<T as frame_system::Config>::AccountId>>::Balance;

/// The stake of one stash.
pub type LedgerOf<T> = StakeRecord<<T as frame_system::Config>::AccountId, BalanceOf<T>, BlockNumberFor<T>>;

/// What a stash has on hold beside its stake.
pub type CollateralOf<T> = HeldCollateral<
    <<T as Config>::Collateral as Collateral<<T as frame_system::Config>::AccountId, BalanceOf<T>>>::AssetId,
    BalanceOf<T>,
>;

/// The pallet itself; see the crate's documentation.
// The pallet macro turns its own attributes into paths that this lint finds too long.
#[allow(unused_qualifications)]
#[frame_support::pallet]
pub mod pallet {
    use frame_support::pallet_prelude::*;
    use frame_system::pallet_prelude::*;
    use sp_runtime::traits::BlockNumberProvider;
    use surety_types::{
        stake::{Role, RoleTotal},
        traits::{Admission, Jail, PoolStakes},
    };

    use super::*;

    const STORAGE_VERSION: StorageVersion = StorageVersion::new(1);

    /// The pallet.
    #[pallet::pallet]
    #[pallet::storage_version(STORAGE_VERSION)]
    pub struct Pallet<T>(_);

    /// What the pallet needs of a runtime.
    #[pallet::config]
    pub trait Config: frame_system::Config {
        /// The currency that is staked.
        type Currency: fungible::Mutate<Self::AccountId>
            + fungible::hold::Mutate<Self::AccountId, Reason = Self::RuntimeHoldReason>;

        /// The runtime's reasons for holds.
        type RuntimeHoldReason: From<HoldReason>;

        /// Least stake that may work, in plancks.
        type MinBond: Get<BalanceOf<Self>>;

        /// The clock that unbonding is measured with. It stands still while finality does.
        type BlockNumberProvider: BlockNumberProvider<BlockNumber = BlockNumberFor<Self>>;

        /// Who cannot unbond because it missed deadlines.
        type Jail: Jail<Self::AccountId>;

        /// Blocks of the clock from `unbond` until the chunk can be withdrawn.
        type UnbondingPeriod: Get<BlockNumberFor<Self>>;

        /// Who may bond as a provider.
        type Admission: Admission<Self::AccountId>;

        /// What a provider has to have on hold of another asset beside its stake, and where that is kept.
        type Collateral: Collateral<Self::AccountId, BalanceOf<Self>>;

        /// Who backs validators: it has no stake here.
        type Pools: PoolStakes<Self::AccountId>;

        /// Who keeps something for stashes, and drops it when a ledger closes.
        type OnClosed: StashClosed<Self::AccountId>;

        /// Weights of the calls.
        type WeightInfo: WeightInfo;
    }

    /// Why funds are on hold.
    #[pallet::composite_enum]
    pub enum HoldReason {
        /// They are bonded, or were and are on their way out.
        Stake,
        /// They are of another asset, and go with the stake of a provider.
        Collateral,
    }

    /// The stake of each stash.
    #[pallet::storage]
    pub type Ledgers<T: Config> = StorageMap<_, Blake2_128Concat, T::AccountId, LedgerOf<T>>;

    /// What providers have on hold of another asset. It stays when the ledger closes only where the account
    /// cannot take it.
    #[pallet::storage]
    pub type Collaterals<T: Config> = StorageMap<_, Blake2_128Concat, T::AccountId, CollateralOf<T>>;

    /// Stake bonded in each role, of all stashes together, and how many they are.
    #[pallet::storage]
    pub type BondedInAll<T: Config> = StorageMap<_, Twox64Concat, Role, RoleTotal<BalanceOf<T>>, ValueQuery>;

    /// The stash that each confirmed agent acts for.
    #[pallet::storage]
    pub type Agents<T: Config> = StorageMap<_, Blake2_128Concat, T::AccountId, T::AccountId>;

    /// The agent that each stash has nominated and that has not confirmed yet.
    #[pallet::storage]
    pub type PendingAgents<T: Config> = StorageMap<_, Blake2_128Concat, T::AccountId, T::AccountId>;

    /// What happened.
    #[pallet::event]
    #[pallet::generate_deposit(pub(crate) fn deposit_event)]
    pub enum Event<T: Config> {
        /// Stake was bonded.
        Bonded {
            /// Stash account.
            stash: T::AccountId,
            /// Role that the stake backs.
            role: Role,
            /// Amount added, in plancks.
            amount: BalanceOf<T>,
        },
        /// Bonded stake was put on its way out.
        Unbonded {
            /// Stash account.
            stash: T::AccountId,
            /// Amount, in plancks.
            amount: BalanceOf<T>,
            /// From which time on it can be withdrawn.
            available_at: BlockNumberFor<T>,
        },
        /// Stake on its way out was bonded again.
        Rebonded {
            /// Stash account.
            stash: T::AccountId,
            /// Amount, in plancks.
            amount: BalanceOf<T>,
        },
        /// Unbonded stake became free.
        Withdrawn {
            /// Stash account.
            stash: T::AccountId,
            /// Amount, in plancks.
            amount: BalanceOf<T>,
        },
        /// A stash named the agent it wants.
        AgentNominated {
            /// Stash that nominated it.
            stash: T::AccountId,
            /// Agent account, which has to confirm.
            agent: T::AccountId,
        },
        /// An agent accepted; it alone acts for the stash from now on.
        AgentConfirmed {
            /// Stash that it acts for.
            stash: T::AccountId,
            /// Agent account.
            agent: T::AccountId,
        },
        /// A stash dismissed its agent and took back its nomination, or had only one of them.
        AgentRemoved {
            /// Stash account.
            stash: T::AccountId,
            /// The agent that acted for it, if there was one.
            agent: Option<T::AccountId>,
        },
        /// Bonded stake was locked for a task.
        Locked {
            /// Stash account.
            stash: T::AccountId,
            /// Amount, in plancks.
            amount: BalanceOf<T>,
        },
        /// Locked stake was set free to back other tasks.
        Unlocked {
            /// Stash account.
            stash: T::AccountId,
            /// Amount, in plancks.
            amount: BalanceOf<T>,
        },
        /// Stake was taken and burned.
        Slashed {
            /// Stash account.
            stash: T::AccountId,
            /// Amount, in plancks.
            amount: BalanceOf<T>,
        },
        /// Slashed stake was handed to somebody.
        Awarded {
            /// Stash account.
            stash: T::AccountId,
            /// Who has it now.
            payee: T::AccountId,
            /// Amount, in plancks.
            amount: BalanceOf<T>,
        },
        /// No stake is left: agent and nomination are gone, and the ledger is as soon as nothing is locked.
        Closed {
            /// Stash account.
            stash: T::AccountId,
        },
        /// The last stake went, and the account could not take its collateral: it stays on hold until the
        /// stash calls `withdraw_unbonded` again.
        CollateralKept {
            /// Stash account.
            stash: T::AccountId,
        },
    }

    /// Why a call was refused.
    #[pallet::error]
    pub enum Error<T> {
        /// The account has no stake here. Call with the stash, or bond stake with this account first.
        NotBonded,
        /// The stash is bonded in another role, or has something locked in it, or has stake behind a
        /// validator. Bond another account for this one, or take all of that out and withdraw it first.
        WrongRole,
        /// The amount is zero. Give one in plancks that is not.
        ZeroAmount,
        /// Less than `MinBond`, but not nothing, would be bonded. Bond more, leave at least that much, or
        /// unbond all of it.
        BelowMinimum,
        /// More than is bonded. Unbond at most what is.
        NotEnoughBonded,
        /// Open tasks have locked what should be unbonded. Wait until they are over, or unbond less.
        StakeLocked,
        /// The provider missed deadlines and gets no tasks for a while. Its stake has to stay as long: unbond
        /// it afterwards.
        Suspended,
        /// Less stake is unlocked than should be locked. Bond more, or wait until an open task is over.
        NotEnoughUnlocked,
        /// More than is on its way out. Rebond at most that much.
        NotEnoughUnlocking,
        /// As many chunks as there may be, 32, are on their way out. Withdraw those whose time has come, or
        /// rebond some.
        TooManyChunks,
        /// No chunk's time has come yet. Wait until the clock shows `available_at` of the first one.
        NothingToWithdraw,
        /// The agent acts for a stash already. Use another key, or have that stash remove it.
        AgentTaken,
        /// The stash has not nominated the caller. Let it call `set_agent` with this account first.
        NotNominated,
        /// There is neither an agent nor a nomination. Nothing has to be removed.
        NoAgent,
        /// Providers have to have an identity that a registrar has judged, and the account has none. Set one
        /// by `Identity.set_identity`, ask for a judgement, and bond once it is `Reasonable` or `KnownGood`.
        NotAdmitted,
        /// Providers have to put another asset on hold beside their stake, and the account has not enough of
        /// it free. Get as much as the parameter `Staking.Collateral` says, and the asset's least balance on
        /// top of it.
        NotEnoughCollateral,
    }

    #[pallet::hooks]
    impl<T: Config> Hooks<BlockNumberFor<T>> for Pallet<T> {
        #[cfg(feature = "try-runtime")]
        fn try_state(_now: BlockNumberFor<T>) -> Result<(), sp_runtime::TryRuntimeError> {
            Self::do_try_state()
        }
    }

    #[pallet::view_functions]
    impl<T: Config> Pallet<T> {
        /// The stake of a stash: how much of it works, is locked for open tasks and is on its way out, and
        /// which agent acts for it. Nothing when it has none.
        pub fn ledger(stash: T::AccountId) -> Option<LedgerOf<T>> {
            Ledgers::<T>::get(stash)
        }

        /// What a stash has on hold of another asset beside its stake. Nothing when it has none.
        pub fn collateral(stash: T::AccountId) -> Option<CollateralOf<T>> {
            Collaterals::<T>::get(stash)
        }
    }

    /// Calls; each is an origin check and a `do_*`.
    #[pallet::call(weight = <T as Config>::WeightInfo)]
    impl<T: Config> Pallet<T> {
        /// Bonds `amount` plancks of the caller's free balance in `role`, or adds it to what is bonded
        /// already. A provider's collateral is put on hold with it, as far as it is not.
        #[pallet::call_index(0)]
        pub fn bond(origin: OriginFor<T>, role: Role, amount: BalanceOf<T>) -> DispatchResult {
            let stash = ensure_signed(origin)?;
            Self::do_bond(stash, role, amount)
        }

        /// Puts `amount` plancks of the caller's bonded stake on its way out. No task may have locked it, the
        /// caller must not be suspended, and what stays bonded must be nothing or at least `MinBond`.
        #[pallet::call_index(1)]
        pub fn unbond(origin: OriginFor<T>, amount: BalanceOf<T>) -> DispatchResult {
            let stash = ensure_signed(origin)?;
            Self::do_unbond(stash, amount)
        }

        /// Releases the caller's chunks whose time has come, and its collateral with the last of its stake.
        #[pallet::call_index(2)]
        pub fn withdraw_unbonded(origin: OriginFor<T>) -> DispatchResult {
            let stash = ensure_signed(origin)?;
            Self::do_withdraw_unbonded(stash)
        }

        /// Bonds `amount` plancks again that are on their way out, from the youngest chunks.
        #[pallet::call_index(3)]
        pub fn rebond(origin: OriginFor<T>, amount: BalanceOf<T>) -> DispatchResult {
            let stash = ensure_signed(origin)?;
            Self::do_rebond(stash, amount)
        }

        /// Nominates `agent` to act for the caller. Replaces an open nomination; a confirmed agent stays
        /// until the new one confirms.
        #[pallet::call_index(4)]
        pub fn set_agent(origin: OriginFor<T>, agent: T::AccountId) -> DispatchResult {
            let stash = ensure_signed(origin)?;
            Self::do_set_agent(stash, agent)
        }

        /// Accepts, as the nominated agent, to act for `stash`.
        #[pallet::call_index(5)]
        pub fn confirm_agent(origin: OriginFor<T>, stash: T::AccountId) -> DispatchResult {
            let agent = ensure_signed(origin)?;
            Self::do_confirm_agent(agent, stash)
        }

        /// Dismisses the caller's agent and takes back its nomination.
        #[pallet::call_index(6)]
        pub fn remove_agent(origin: OriginFor<T>) -> DispatchResult {
            let stash = ensure_signed(origin)?;
            Self::do_remove_agent(stash)
        }
    }
}
