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

mod asset;
mod audit_pay;
mod client_lock;
mod escrow;
pub mod migrations;
#[cfg(test)]
mod mock;
mod split;
#[cfg(test)]
mod tests;
#[cfg(any(feature = "std", feature = "try-runtime"))]
mod try_state;
mod types;
mod view;

pub use pallet::*;
pub use types::{EscrowRecord, FeeTerms};

use frame_support::traits::fungible::Inspect;

/// Plancks, as the currency counts them.
pub type BalanceOf<T> = <<T as Config>::Currency as Inspect<<T as frame_system::Config>::AccountId>>::Balance;

/// [`types::Totals`] in this runtime's balances.
pub type TotalsOf<T> = types::Totals<BalanceOf<T>>;

#[frame_support::pallet]
#[allow(unused_qualifications)] // In what the macro writes.
pub mod pallet {
    use super::{BalanceOf, EscrowRecord, TotalsOf, asset};
    use frame_support::{
        PalletId,
        pallet_prelude::*,
        traits::fungible::{Mutate, MutateHold},
    };
    use frame_system::pallet_prelude::BlockNumberFor;
    use sp_runtime::Permill;
    use surety_types::{
        TaskId,
        history::{Earning, Page, TaskHistory},
        traits::WorkPay,
    };

    const STORAGE_VERSION: StorageVersion = StorageVersion::new(2);

    /// Escrow of all tasks.
    #[pallet::pallet]
    #[pallet::storage_version(STORAGE_VERSION)]
    pub struct Pallet<T>(_);

    /// What the runtime provides.
    #[pallet::config]
    pub trait Config: frame_system::Config<RuntimeEvent: From<Event<Self>>> {
        /// The runtime's reasons for holds: escrow was on hold until version 2.
        type RuntimeHoldReason: From<HoldReason>;

        /// SURE.
        type Currency: Mutate<Self::AccountId>
            + MutateHold<Self::AccountId, Reason = <Self as Config>::RuntimeHoldReason>;

        /// Where escrow is. The runtime sees to it that its account exists.
        #[pallet::constant]
        type PotId: Get<PalletId>;

        /// Protocol fee, as a part of what providers are paid. A task's is what it was posted with.
        type FeeRate: Get<Permill>;

        /// The least protocol fee of a settled task, in plancks. A task's is what it was posted with.
        type FeeMin: Get<BalanceOf<Self>>;

        /// Part of the fee that goes to the treasury.
        type TreasuryShare: Get<Permill>;

        /// Part of the fee that goes to the validators. What neither gets is burned.
        type ValidatorShare: Get<Permill>;

        /// The treasury.
        type TreasuryAccount: Get<Self::AccountId>;

        /// Where validators' shares are collected.
        type ValidatorPot: Get<Self::AccountId>;

        /// Part of its task's cap that a client locks beside it.
        type ClientLock: Get<Permill>;

        /// Pays providers beyond their prices, by the fees that their work has paid.
        type Work: WorkPay<Self::AccountId, BalanceOf<Self>>;

        /// Who worked on what, for views alone.
        type Tasks: TaskHistory<Self::AccountId, BalanceOf<Self>>;
    }

    /// Why money was on hold.
    #[pallet::composite_enum]
    pub enum HoldReason {
        /// Escrow, until version 2: nothing is on hold for it any more.
        Escrow,
    }

    /// Open escrows by task.
    ///
    /// Task ids are given out in order by the chain, so that nobody can choose keys that collide.
    #[pallet::storage]
    pub type Escrows<T: Config> =
        StorageMap<_, Twox64Concat, TaskId, EscrowRecord<T::AccountId, BalanceOf<T>>>;

    /// Where all escrow since genesis went.
    #[pallet::storage]
    pub type Totals<T: Config> = StorageValue<_, TotalsOf<T>, ValueQuery>;

    /// What happened to somebody's money.
    #[pallet::event]
    #[pallet::generate_deposit(pub(super) fn deposit_event)]
    pub enum Event<T: Config> {
        /// A client's money was put into escrow.
        EscrowOpened {
            /// Task id.
            task: TaskId,
            /// Client's account.
            client: T::AccountId,
            /// Amount, in plancks.
            amount: BalanceOf<T>,
        },
        /// A provider was paid: what it earned, less what its auditors got of it.
        ProviderPaid {
            /// Task id.
            task: TaskId,
            /// Provider's stash.
            provider: T::AccountId,
            /// Amount, in plancks.
            amount: BalanceOf<T>,
        },
        /// The protocol fee was taken. The three parts are the fee.
        FeeTaken {
            /// Task id.
            task: TaskId,
            /// Part of the treasury, in plancks.
            treasury: BalanceOf<T>,
            /// Part of the validators' pot, in plancks.
            validators: BalanceOf<T>,
            /// Part that was burned, in plancks.
            burned: BalanceOf<T>,
        },
        /// A client got money back.
        EscrowRefunded {
            /// Task id.
            task: TaskId,
            /// Client's account.
            client: T::AccountId,
            /// Amount, in plancks.
            amount: BalanceOf<T>,
        },
        /// What a provider or client was due was burned: its account does not exist, and the amount is too
        /// small to open one.
        DustBurned {
            /// Task id.
            task: TaskId,
            /// Account that should have had it.
            payee: T::AccountId,
            /// Amount, in plancks.
            amount: BalanceOf<T>,
        },
        /// An auditor was paid out of what the provider earned that it audited.
        AuditorPaid {
            /// Task id.
            task: TaskId,
            /// Verifier's stash.
            verifier: T::AccountId,
            /// Provider's stash.
            provider: T::AccountId,
            /// Amount, in plancks.
            amount: BalanceOf<T>,
        },
        /// A client's own lock was taken beside its escrow.
        ClientLocked {
            /// Task id.
            task: TaskId,
            /// Client's account.
            client: T::AccountId,
            /// Amount, in plancks.
            amount: BalanceOf<T>,
        },
        /// A client lost its lock, because it withheld its input. The two parts are the lock.
        ClientForfeited {
            /// Task id.
            task: TaskId,
            /// Client's account.
            client: T::AccountId,
            /// Part that its providers share, in plancks.
            shared: BalanceOf<T>,
            /// Part that was burned, in plancks.
            burned: BalanceOf<T>,
        },
        /// A provider that waited for an input in vain got its share of the client's lock.
        ProviderCompensated {
            /// Task id.
            task: TaskId,
            /// Provider's stash.
            provider: T::AccountId,
            /// Amount, in plancks.
            amount: BalanceOf<T>,
        },
        /// A client has its lock back.
        ClientUnlocked {
            /// Task id.
            task: TaskId,
            /// Client's account.
            client: T::AccountId,
            /// Amount, in plancks.
            amount: BalanceOf<T>,
        },
    }

    /// Why nothing was done.
    #[pallet::error]
    pub enum Error<T> {
        /// The cap does not cover the smallest fee and one planck for each provider. Raise it, or ask for
        /// fewer providers.
        CapBelowFee,
        /// The task has an escrow already. Nothing has to be put into it.
        EscrowExists,
        /// The task has no escrow, or not any more. Check the task's number: what it paid is in its state.
        UnknownEscrow,
        /// Payments come to more than is in escrow. This is a fault of the runtime: please report it with the
        /// task's number.
        PaymentsExceedEscrow,
    }

    impl<T: Config> Pallet<T> {
        /// The account that escrow is in.
        pub fn pot() -> T::AccountId {
            asset::pot::<T>()
        }
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
        /// What a provider has of tasks: of settled ones what it was paid, for as long as those are kept, of
        /// open ones what it will be at most. A page looks at 256 numbers of tasks, the newest, or those
        /// before `before`: where the page before it says to go on. Of older tasks, and of what auditors
        /// got, events alone tell: `ProviderPaid` and `AuditorPaid`.
        pub fn earnings(provider: T::AccountId, before: Option<TaskId>) -> Page<Earning<BalanceOf<T>>> {
            Self::earnings_of(&provider, before)
        }

        /// What is in escrow for a task, and the client's lock beside it; nothing once it is over.
        pub fn escrow(task: TaskId) -> Option<EscrowRecord<T::AccountId, BalanceOf<T>>> {
            Escrows::<T>::get(task)
        }
    }
}
