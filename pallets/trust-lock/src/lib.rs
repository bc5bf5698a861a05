#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

#[cfg(feature = "runtime-benchmarks")]
mod benchmarking;
mod calls;
#[cfg(test)]
mod mock;
#[cfg(test)]
mod tests;
mod transitions;
#[cfg(any(feature = "std", feature = "try-runtime"))]
mod try_state;
mod types;
mod verdict;
pub mod weights;

pub use pallet::*;
pub use types::PhaseName;
pub use weights::WeightInfo;

use frame_system::pallet_prelude::BlockNumberFor;
use surety_types::task::Round;

/// A round in this runtime's types.
pub type RoundOf<T> =
    Round<<T as frame_system::Config>::AccountId, <T as Config>::Balance, BlockNumberFor<T>>;

#[frame_support::pallet]
#[allow(unused_qualifications)] // In what the macro writes.
pub mod pallet {
    use super::{PhaseName, RoundOf, WeightInfo};
    use frame_support::{pallet_prelude::*, traits::tokens};
    use frame_system::pallet_prelude::*;
    use sp_core::H256;
    use surety_types::{
        task::{ResultClaim, Verdict},
        traits::{StakeLedger, TaskClock, TaskOutcome},
        TaskId,
    };

    /// Rounds of all running tasks.
    #[pallet::pallet]
    pub struct Pallet<T>(_);

    /// What the runtime provides.
    #[pallet::config]
    pub trait Config: frame_system::Config<RuntimeEvent: From<Event<Self>>> {
        /// Plancks.
        type Balance: tokens::Balance;

        /// Stake of providers, and their agents.
        type Stake: StakeLedger<Self::AccountId, Self::Balance>;

        /// Who hears the verdict, and has reserves.
        type Outcome: TaskOutcome<Self::AccountId, Self::Balance>;

        /// Who wakes rounds up.
        type Clock: TaskClock<BlockNumberFor<Self>>;

        /// Blocks in which providers compute and commit.
        type CommitWindow: Get<BlockNumberFor<Self>>;

        /// Blocks between the last commitment and the first reveal.
        type AuditWindow: Get<BlockNumberFor<Self>>;

        /// Blocks in which commitments are opened.
        type RevealWindow: Get<BlockNumberFor<Self>>;

        /// Blocks for which a verdict can be challenged.
        type ChallengeWindow: Get<BlockNumberFor<Self>>;

        /// How many times its price a provider locks for a task.
        type LockMultiple: Get<u32>;

        /// Weights of the calls.
        type WeightInfo: WeightInfo;
    }

    /// Rounds by task, while they last.
    ///
    /// Task ids are given out in order by the chain, so that nobody can choose keys that collide.
    #[pallet::storage]
    pub type Rounds<T: Config> = StorageMap<_, Twox64Concat, TaskId, RoundOf<T>>;

    /// How a round went on.
    #[pallet::event]
    #[pallet::generate_deposit(pub(super) fn deposit_event)]
    pub enum Event<T: Config> {
        /// Providers were put to work on a task, and their stake was locked.
        RoundOpened {
            /// The task.
            task: TaskId,
            /// Last block for commitments.
            until: BlockNumberFor<T>,
        },
        /// A provider committed to a result.
        Committed {
            /// For which task.
            task: TaskId,
            /// The provider's stash.
            provider: T::AccountId,
            /// What it will have to open.
            commitment: H256,
        },
        /// A provider that committed nothing in time was replaced, and its stake unlocked.
        ProviderReplaced {
            /// On which task.
            task: TaskId,
            /// Who is off it.
            dropped: T::AccountId,
            /// Who is on it now.
            by: T::AccountId,
        },
        /// A round entered a phase, or the same one again with providers replaced.
        PhaseChanged {
            /// Of which task.
            task: TaskId,
            /// The phase it is in now.
            phase: PhaseName,
            /// Last block of that phase.
            until: BlockNumberFor<T>,
        },
        /// A provider opened its commitment.
        Revealed {
            /// For which task.
            task: TaskId,
            /// The provider's stash.
            provider: T::AccountId,
            /// What it had committed to.
            claim: ResultClaim,
        },
        /// It is known how the task went. Carried out when the challenge window has passed.
        VerdictReached {
            /// Which task.
            task: TaskId,
            /// The verdict, with everybody's part in it.
            verdict: Verdict<T::AccountId>,
        },
        /// The round is over, and the stake behind it unlocked.
        RoundClosed {
            /// Of which task.
            task: TaskId,
        },
    }

    /// Why nothing was done.
    #[pallet::error]
    pub enum Error<T> {
        /// The task has a round already.
        RoundExists,
        /// The task has no round.
        UnknownRound,
        /// The redundancy is not the number of providers, or is zero.
        WrongMemberCount,
        /// A provider is assigned to the task twice.
        DuplicateMember,
        /// The signer is not the agent of a provider.
        NotProviderAgent,
        /// The provider is not on this task, or not any more.
        NotMember,
        /// The round is not in the phase for this call, or its time is over.
        WrongPhase,
        /// The provider has committed before.
        AlreadyCommitted,
        /// The provider has not committed.
        NotCommitted,
        /// The provider has revealed before.
        AlreadyRevealed,
        /// Claim and salt do not open the commitment.
        CommitmentMismatch,
        /// The claim reports more units than the client pays for.
        TooManyUnits,
    }

    #[pallet::hooks]
    impl<T: Config> Hooks<BlockNumberFor<T>> for Pallet<T> {
        #[cfg(feature = "try-runtime")]
        fn try_state(_now: BlockNumberFor<T>) -> Result<(), sp_runtime::TryRuntimeError> {
            Self::do_try_state()
        }
    }

    #[pallet::call]
    impl<T: Config> Pallet<T> {
        /// Commits the signer's stash to a result of `task` without showing it.
        ///
        /// `commitment` is [`surety_verification::commitment`] of the task, the **stash**, the claim and a salt. It
        /// cannot be taken back or changed. The last commitment opens the audit window.
        ///
        /// # Errors
        /// `NotProviderAgent`, `UnknownRound`, `WrongPhase` after the deadline, `NotMember`, `AlreadyCommitted`.
        #[pallet::call_index(0)]
        #[pallet::weight(T::WeightInfo::commit())]
        pub fn commit(origin: OriginFor<T>, task: TaskId, commitment: H256) -> DispatchResult {
            let agent = ensure_signed(origin)?;
            Self::do_commit(&agent, task, commitment)
        }

        /// Opens the commitment of the signer's stash.
        ///
        /// Possible as soon as the audit window has passed. The last reveal brings the verdict.
        ///
        /// # Errors
        /// `NotProviderAgent`, `UnknownRound`, `WrongPhase` before and after its time, `NotMember`, `NotCommitted`,
        /// `AlreadyRevealed`, `CommitmentMismatch`, `TooManyUnits`.
        #[pallet::call_index(1)]
        #[pallet::weight(T::WeightInfo::reveal())]
        pub fn reveal(origin: OriginFor<T>, task: TaskId, claim: ResultClaim, salt: H256) -> DispatchResult {
            let agent = ensure_signed(origin)?;
            Self::do_reveal(&agent, task, claim, salt)
        }
    }
}
