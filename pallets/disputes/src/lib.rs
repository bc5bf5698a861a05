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

#[cfg(feature = "runtime-benchmarks")]
mod benchmarking;
mod bond;
mod calls;
mod committee;
mod fund;
mod game;
mod hooks;
mod matching;
mod showing;
#[cfg(any(feature = "std", feature = "try-runtime"))]
mod try_state;
mod undecided;
mod view;
pub mod weights;

pub use committee::SUSPENDED_AT_ONCE;
pub use fund::PAID_AT_ONCE;
pub use matching::{Matchup, OPENED_AT_ONCE};
pub use pallet::*;
pub use weights::WeightInfo;

use frame_system::pallet_prelude::BlockNumberFor;
use surety_dispute_game::{
    committee::{CommitteeFund, DisputeCommittee, SeatDraw},
    dispute::{Dispute, DisputeView},
};
use surety_types::trust::Party;

/// A side of a dispute in this runtime's types.
pub type PartyOf<T> = Party<<T as frame_system::Config>::AccountId>;

/// A dispute in this runtime's types.
pub type DisputeOf<T> = Dispute<
    <T as frame_system::Config>::AccountId,
    <T as surety_pallet_trust_lock::Config>::Balance,
    BlockNumberFor<T>,
>;

/// A dispute with its number in this runtime's types.
pub type DisputeViewOf<T> = DisputeView<
    <T as frame_system::Config>::AccountId,
    <T as surety_pallet_trust_lock::Config>::Balance,
    BlockNumberFor<T>,
>;

/// A dispute's committee in this runtime's types.
pub type CommitteeOf<T> = DisputeCommittee<
    <T as frame_system::Config>::AccountId,
    <T as surety_pallet_trust_lock::Config>::Balance,
    BlockNumberFor<T>,
>;

/// What a committee's members are paid out of, in this runtime's types.
pub type FundOf<T> =
    CommitteeFund<<T as frame_system::Config>::AccountId, <T as surety_pallet_trust_lock::Config>::Balance>;

/// What a committee's members draw themselves with, in this runtime's types.
pub type SeatDrawOf<T> = SeatDraw<<T as surety_pallet_trust_lock::Config>::Balance, BlockNumberFor<T>>;

#[frame_support::pallet]
#[allow(unused_qualifications)] // In what the macro writes.
pub mod pallet {
    use super::*;
    use alloc::vec::Vec;
    use frame_support::{pallet_prelude::*, traits::EnsureOrigin};
    use frame_system::pallet_prelude::*;
    use sp_core::H256;
    use surety_dispute_game::{
        bisection::{Cell, Missing, Move, Outcome, Side},
        quorum_streak::Decision,
    };
    use surety_types::{
        TaskId,
        task::ResultClaim,
        trust::{AuditProof, DisputeId},
    };

    const STORAGE_VERSION: StorageVersion = StorageVersion::new(1);

    /// Disputes about results of rounds, and the committees that decide what no block can compute.
    #[pallet::pallet]
    #[pallet::storage_version(STORAGE_VERSION)]
    pub struct Pallet<T>(_);

    /// What the runtime provides.
    #[pallet::config]
    pub trait Config:
        frame_system::Config<RuntimeEvent: From<Event<Self>>>
        + surety_pallet_results::Config<RuntimeHoldReason: From<HoldReason>>
    {
        /// How many times a provider's price a challenger puts on hold at least.
        type ChallengeBondMultiple: Get<u32>;

        /// What it costs to defend a result, in plancks. A challenger puts at least twice that on hold.
        type DefenseCost: Get<Self::Balance>;

        /// Blocks that each side of a dispute has in all.
        type DisputeClock: Get<u32>;

        /// Blocks for which a dispute waits for others to decide it, at least: it waits for its committee.
        type DecisionWindow: Get<BlockNumberFor<Self>>;

        /// Who may decide disputes that no block can.
        type DecideOrigin: EnsureOrigin<Self::RuntimeOrigin>;

        /// Blocks in which seats of a committee are taken, and answers sealed with them. Of a task that takes
        /// long to compute there are more.
        type SeatWindow: Get<u32>;

        /// Blocks in which the members of a committee open their answers.
        type VoteWindow: Get<u32>;

        /// Blocks of the chain, not of the clock, before a draw began in which a member's stake must not have
        /// grown and its key must not have changed. At least as long as the draw's seed is known before it is
        /// used.
        type SeatSeasoning: Get<u32>;

        /// Weights of the calls.
        type WeightInfo: WeightInfo;
    }

    /// Why money is held.
    #[pallet::composite_enum]
    pub enum HoldReason {
        /// Behind a challenge.
        Challenge,
        /// For content that a challenger has not got and its defender is to show.
        Showing,
    }

    /// The number of the next dispute.
    #[pallet::storage]
    pub type NextDisputeId<T: Config> = StorageValue<_, DisputeId, ValueQuery>;

    /// Disputes that are open, by their number. Their rounds list them.
    #[pallet::storage]
    pub type Disputes<T: Config> = StorageMap<_, Twox64Concat, DisputeId, DisputeOf<T>>;

    /// Committees that sit, by their dispute.
    #[pallet::storage]
    pub type Committees<T: Config> = StorageMap<_, Twox64Concat, DisputeId, CommitteeOf<T>>;

    #[pallet::hooks]
    impl<T: Config> Hooks<BlockNumberFor<T>> for Pallet<T> {
        #[cfg(feature = "std")]
        fn integrity_test() {
            assert!(T::DisputeClock::get() > 0, "the sides of a dispute need time");
            let committee = T::SeatWindow::get().min(T::VoteWindow::get());
            assert!(committee > 0, "the members of a committee need time");
        }

        #[cfg(feature = "try-runtime")]
        fn try_state(_now: BlockNumberFor<T>) -> Result<(), sp_runtime::TryRuntimeError> {
            Self::do_try_state()
        }
    }

    #[pallet::view_functions]
    impl<T: Config> Pallet<T> {
        /// A dispute, while it is open.
        pub fn dispute(id: DisputeId) -> Option<DisputeOf<T>> {
            Disputes::<T>::get(id)
        }

        /// The open disputes of a task.
        pub fn disputes_of(task: TaskId) -> Vec<DisputeViewOf<T>> {
            Self::views_of(task)
        }

        /// The committee of a dispute, while it sits.
        pub fn committee(id: DisputeId) -> Option<CommitteeOf<T>> {
            Committees::<T>::get(id)
        }
    }

    /// What the pallet tells the world.
    #[pallet::event]
    #[pallet::generate_deposit(pub(super) fn deposit_event)]
    pub enum Event<T: Config> {
        /// Two parties say different things, and play.
        DisputeOpened {
            /// Dispute id.
            dispute: DisputeId,
            /// Task id.
            task: TaskId,
            /// Who stands by the claim.
            defender: PartyOf<T>,
            /// Who says that it is wrong.
            challenger: PartyOf<T>,
            /// Result in dispute.
            claim: ResultClaim,
            /// On hold on the challenger's account, in plancks.
            bond: T::Balance,
        },
        /// A move was made. What it was is in the extrinsic.
        MovePlayed {
            /// Dispute id.
            dispute: DisputeId,
            /// Side that moved.
            side: Side,
            /// Its number in the dispute, from 1.
            number: u32,
            /// Who is to move next; nobody when the dispute is over or needs a committee.
            next: Option<Side>,
        },
        /// A challenger has not got something: its defender is to show it, in its next moves. Each part is in
        /// its extrinsic, and in `Results.Shown` while the round lasts.
        ContentDemanded {
            /// Dispute id.
            dispute: DisputeId,
            /// Account that pays for it should its side lose.
            by: T::AccountId,
            /// What of the task and the claim it is.
            missing: Missing,
            /// On hold for it, in plancks.
            amount: T::Balance,
        },
        /// A dispute is over in which content was asked for.
        ShowingSettled {
            /// Dispute id.
            dispute: DisputeId,
            /// Account on which the price was on hold.
            by: T::AccountId,
            /// What the defender got for showing it, in plancks.
            paid: T::Balance,
            /// What was returned, in plancks.
            returned: T::Balance,
        },
        /// A dispute came to one cell.
        CellReached {
            /// Dispute id.
            dispute: DisputeId,
            /// What is in dispute now.
            cell: Cell,
            /// Whether it is referred to a committee, because no block can compute it again.
            needs_committee: bool,
        },
        /// A dispute is over.
        DisputeEnded {
            /// Dispute id.
            dispute: DisputeId,
            /// Task id.
            task: TaskId,
            /// Who won and why. Nothing when nobody could decide it, and when one of the parties lost
            /// elsewhere.
            outcome: Option<Outcome>,
        },
        /// A challenger lost its bond, or half of it.
        BondForfeited {
            /// Dispute id.
            dispute: DisputeId,
            /// Challenger's account.
            challenger: T::AccountId,
            /// Account of the defender, which got a part of it.
            defender: T::AccountId,
            /// Part of the defender, in plancks.
            awarded: T::Balance,
            /// Part that was burned, in plancks.
            burned: T::Balance,
        },
        /// A challenger got its bond back, or what is left of it.
        BondReturned {
            /// Dispute id.
            dispute: DisputeId,
            /// Challenger's account.
            challenger: T::AccountId,
            /// Amount, in plancks.
            amount: T::Balance,
        },
        /// Verifiers are called together about a cell that no block can compute again.
        CommitteeConvened {
            /// Dispute id.
            dispute: DisputeId,
            /// What they are asked: their seals name it.
            question: H256,
            /// Whether all are asked at once, because they are few.
            all_at_once: bool,
        },
        /// It is known what members of a committee draw themselves with. The time for taking seats begins.
        SeatsSeeded {
            /// Dispute id.
            dispute: DisputeId,
            /// [`surety_audit_economics::seat_seed`].
            seed: H256,
        },
        /// A verifier took a seat and sealed its answer. It keeps the seat unless others draw better.
        SeatTaken {
            /// Dispute id.
            dispute: DisputeId,
            /// Ballots before this one.
            ballot: u32,
            /// Verifier's stash.
            verifier: T::AccountId,
            /// What it will have to open.
            seal: H256,
            /// Who lost the seat by it.
            instead_of: Option<T::AccountId>,
        },
        /// Seats are filled; answers are opened from now on.
        BallotOpened {
            /// Dispute id.
            dispute: DisputeId,
            /// Ballots before this one.
            ballot: u32,
            /// How many sealed an answer.
            members: u32,
        },
        /// A member opened its answer.
        VoteRevealed {
            /// Dispute id.
            dispute: DisputeId,
            /// Verifier's stash.
            verifier: T::AccountId,
            /// Hash of the value that it computed.
            value: H256,
        },
        /// A ballot is over, or too few came for it.
        BallotEnded {
            /// Dispute id.
            dispute: DisputeId,
            /// Rounds so far.
            rounds: u32,
            /// The value that rounds had a quorum for, if any had.
            leader: Option<H256>,
            /// How many in a row up to the last one.
            streak: u32,
        },
        /// A committee is over.
        CommitteeEnded {
            /// Dispute id.
            dispute: DisputeId,
            /// What it decided, if it did.
            decision: Decision,
            /// Who was right. Nobody knows when nothing was decided: the dispute waits a while for others to
            /// decide.
            winner: Option<Side>,
        },
        /// A dispute was decided while its committee sat. Whoever has sealed an answer still opens it.
        CommitteeDismissed {
            /// Dispute id.
            dispute: DisputeId,
        },
        /// There is something to pay the members of a committee with.
        CommitteeFunded {
            /// Dispute id.
            dispute: DisputeId,
            /// Stash or account of whoever lost the dispute.
            payer: T::AccountId,
            /// Most that all members together get, in plancks.
            pot: T::Balance,
        },
        /// Members of a committee were paid that had given the right answer.
        MembersPaid {
            /// Dispute id.
            dispute: DisputeId,
            /// How many.
            members: u32,
            /// What each of them got, in plancks.
            each: T::Balance,
        },
    }

    /// Why calls do nothing.
    #[pallet::error]
    pub enum Error<T> {
        /// The provider's result has no trace that can be played over, or nobody stands by it any more.
        /// Challenge a result that still counts, of a model on the exact tier.
        NotDisputable,
        /// The task has all the challenges that are played at once. Try again when one of them is over: there
        /// is the whole window again then.
        TooManyDisputes,
        /// There is no such dispute, or it is over. Check its number; how it ended is in its events.
        UnknownDispute,
        /// The signer plays on neither side of the dispute. Sign with the agent of a party, or the account
        /// that challenged.
        NotPlayer,
        /// A party of the dispute lost elsewhere. Play no more: it only waits to be ended, by
        /// `advance_dispute` or by itself.
        Moot,
        /// The other side is to move, or this cannot be done now. Read the dispute's state again, and act
        /// when it is your turn.
        NotNow,
        /// The dispute has another number of moves: this one was made for an earlier state. Read it again
        /// before you move.
        StaleMove,
        /// What was posted or shown is not what is in dispute. Make the move again from the dispute's present
        /// state.
        WrongMove,
        /// The opening does not prove the cell's inputs. Make it again from the task's input, the model's
        /// weights and the trace in dispute.
        Unproven,
        /// The time for it has not run out, and nothing else is due. Wait for its deadline on the running
        /// clock.
        NotDue,
        /// The dispute has not been referred to a committee. Let its players go on: they can still decide it.
        NotReferred,
        /// No committee sits about the dispute. Check its number, or wait until one has been called together.
        NoCommittee,
        /// The stash was at fault, or missed a deadline, and gets no work for a while. Wait until its term is
        /// over.
        InJail,
        /// The proof does not show that the verifier drew itself, or it did not. Draw with the agent's key
        /// and this committee's seed; otherwise the seat is not yours to take.
        NotDrawn,
        /// The committee has come to another ballot: this seal was made for an earlier one. Seal the answer
        /// again for the present one.
        StaleBallot,
        /// The verifier gains or loses by the dispute. Leave it to others.
        IsParty,
        /// The verifier has taken a seat already. Wait for the ballot to open, and reveal then.
        AlreadySeated,
        /// The verifier had a seat of this committee before and did not open its answer. It can take no other
        /// one here.
        WasAbsent,
        /// All seats are taken by verifiers that drew better, or have more stake. Try the next ballot, if
        /// there is one.
        Outranked,
        /// The verifier's stake or key is newer than what it draws itself with. Wait: it can take seats in
        /// later disputes.
        Unsettled,
        /// The verifier has no seat in this ballot. Reveal nothing; a seat has to be taken before it begins.
        NotSeated,
        /// The verifier has opened its answer before. Nothing more has to be done.
        AlreadyRevealed,
        /// Claim and salt do not open the seal. Give those that it was made of.
        SealMismatch,
        /// The account challenges this claim already. Try again when that is over.
        AlreadyChallenging,
    }

    #[pallet::call]
    impl<T: Config> Pallet<T> {
        /// Says that a provider's result is wrong. Anybody may, while the verdict can be challenged; the bond
        /// is put on hold. The challenger plays whoever stands by the result, one after the other: providers,
        /// and when no provider answers for it any more, auditors that confirmed it. The bond is returned
        /// when nobody is left, unless the challenger loses: then half goes to the defender and half is
        /// burned. An account has one challenge of a claim at a time.
        ///
        /// # Errors
        /// `UnknownRound`, `WrongPhase`, `NotMember`, `NotDisputable`, `AlreadyChallenging`,
        /// `TooManyDisputes`; the currency's own.
        #[pallet::call_index(0)]
        #[pallet::weight(<T as Config>::WeightInfo::challenge())]
        pub fn challenge(origin: OriginFor<T>, task: TaskId, provider: T::AccountId) -> DispatchResult {
            let challenger = ensure_signed(origin)?;
            Self::do_challenge(challenger, task, &provider)
        }

        /// Plays move `number` of a dispute, counted from 0. For the agents of providers and auditors, and
        /// for challengers that are neither.
        ///
        /// A challenger that has not got the input or the claimed output may ask for it, once, and puts the
        /// price on hold; its opponent then shows it, in its own time. Who wins bears nothing of that. What
        /// can be read on chain already is asked for in vain, and free of charge. What a committee needs the
        /// defender shows as well, before it is called together, and for nothing.
        ///
        /// With its number a move that is sent twice, because it seemed lost, is refused the second time: two
        /// moves later it might be a legal one, and a wrong one.
        ///
        /// # Errors
        /// `UnknownDispute`, `NotPlayer`, `Moot`, `StaleMove`, `NotNow`, `WrongMove`, `Unproven`; the
        /// currency's own.
        #[pallet::call_index(1)]
        #[pallet::weight((<T as Config>::WeightInfo::play(), DispatchClass::Operational))]
        pub fn play(origin: OriginFor<T>, dispute: DisputeId, number: u32, played: Move) -> DispatchResult {
            let player = ensure_signed(origin)?;
            Self::do_play(&player, dispute, number, played)
        }

        /// Ends a dispute whose time is over, or in which a party has lost elsewhere. Anybody may; the agenda
        /// does it as well.
        ///
        /// # Errors
        /// `UnknownDispute`, `NotDue`.
        #[pallet::call_index(2)]
        #[pallet::weight(<T as Config>::WeightInfo::poll())]
        pub fn advance_dispute(origin: OriginFor<T>, dispute: DisputeId) -> DispatchResult {
            ensure_signed(origin)?;
            Self::do_advance_dispute(dispute)
        }

        /// Decides a dispute about a cell that no block can compute again: the last resort, beside and after
        /// its committee.
        ///
        /// # Errors
        /// `UnknownDispute`, `Moot`, `NotReferred`.
        #[pallet::call_index(3)]
        #[pallet::weight(<T as Config>::WeightInfo::play())]
        pub fn decide_dispute(origin: OriginFor<T>, dispute: DisputeId, winner: Side) -> DispatchResult {
            T::DecideOrigin::ensure_origin(origin)?;
            Self::do_decide_dispute(dispute, winner)
        }

        /// Takes, for the signer's stash, a seat in the ballot of a dispute's committee that comes after
        /// `ballot` others, and seals what it computed itself. While a round is drawn with a proof of the VRF
        /// of the signer's key over [`surety_audit_economics::SeatInput`], whose output has to be below the
        /// threshold for the stash's stake; the best draws are seated when the time is over. Without one when
        /// all are summoned.
        ///
        /// `seal` is [`surety_dispute_game::quorum_streak::seal`] of the committee's question, `ballot`, the
        /// **stash**, [`surety_dispute_game::committee::value_hash`] and a salt. A seat that is taken costs
        /// no fee.
        ///
        /// # Errors
        /// `NotVerifierAgent`, `InJail`, `UnknownDispute`, `Moot`, `NoCommittee`, `IsParty`, `StaleBallot`,
        /// `NotNow`, `AlreadySeated`, `WasAbsent`, `Unsettled`, `NotDrawn`, `Outranked`.
        #[pallet::call_index(4)]
        #[pallet::weight((<T as Config>::WeightInfo::join_committee(), DispatchClass::Operational))]
        pub fn join_committee(
            origin: OriginFor<T>,
            dispute: DisputeId,
            ballot: u32,
            proof: Option<AuditProof>,
            seal: H256,
        ) -> DispatchResultWithPostInfo {
            let agent = ensure_signed(origin)?;
            Self::do_join_committee(&agent, dispute, ballot, proof, seal)?;
            Ok(Pays::No.into())
        }

        /// Opens the answer that the stash `verifier` has sealed. Without signature and fee, like
        /// `Results.reveal`. The last one ends the ballot.
        ///
        /// # Errors
        /// `UnknownDispute`, `Moot`, `NoCommittee`, `NotNow`, `NotSeated`, `AlreadyRevealed`, `SealMismatch`;
        /// `BadOrigin` when it is signed. Pools refuse it instead, as they do `Results.reveal`.
        #[pallet::call_index(5)]
        #[pallet::weight((<T as Config>::WeightInfo::reveal_vote(), DispatchClass::Operational))]
        #[pallet::authorize(Self::authorize_reveal_vote)]
        #[pallet::weight_of_authorize(<T as Config>::WeightInfo::authorize_reveal_vote())]
        pub fn reveal_vote(
            origin: OriginFor<T>,
            dispute: DisputeId,
            verifier: T::AccountId,
            value: H256,
            salt: H256,
        ) -> DispatchResult {
            ensure_authorized(origin)?;
            Self::do_reveal_vote(dispute, verifier, value, salt)
        }

        /// Has a committee go on whose time for what it does is over. Anybody may; the agenda does it as
        /// well.
        ///
        /// # Errors
        /// `UnknownDispute`, `Moot`, `NoCommittee`, `NotDue`.
        #[pallet::call_index(6)]
        #[pallet::weight(<T as Config>::WeightInfo::run_committee())]
        pub fn advance_committee(origin: OriginFor<T>, dispute: DisputeId) -> DispatchResult {
            ensure_signed(origin)?;
            Self::do_advance_committee(dispute)
        }
    }
}
