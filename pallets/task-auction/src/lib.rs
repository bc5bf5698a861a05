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

mod assign;
#[cfg(feature = "runtime-benchmarks")]
mod benchmarking;
mod calls;
pub mod draw;
#[cfg(test)]
mod mock;
mod outcome;
mod places;
mod step;
#[cfg(test)]
mod tests;
mod tick;
#[cfg(any(feature = "std", feature = "try-runtime"))]
mod try_state;
mod types;
mod view;
pub mod weights;

pub use pallet::*;
pub use types::{BidCount, BidRecord, Place, Ranking};
pub use weights::WeightInfo;

use frame_system::pallet_prelude::BlockNumberFor;
use surety_types::task::{Assignment, Task, TaskState};

/// Plancks of SURE.
pub type Balance = u128;

/// A task in this runtime.
pub type TaskOf<T> = Task<<T as frame_system::Config>::AccountId, Balance, BlockNumberFor<T>>;

/// Where a task is in this runtime.
pub type TaskStateOf<T> = TaskState<<T as frame_system::Config>::AccountId, Balance, BlockNumberFor<T>>;

/// A provider that has been given a task in this runtime.
pub type AssignmentOf<T> = Assignment<<T as frame_system::Config>::AccountId, Balance>;

#[frame_support::pallet]
#[allow(missing_docs, unused_qualifications)] // The macro's own items.
pub mod pallet {
    use super::*;
    use frame_support::pallet_prelude::*;
    use frame_system::pallet_prelude::*;
    use sp_core::H256;
    use sp_runtime::traits::BlockNumberProvider;
    use surety_types::{
        TaskId, limits,
        task::{Bid, FailureReason, PerBid, PerMember, ResultClaim, TaskSpec},
        traits::{BlockEntropy, Escrow, ModelCatalog, ProviderDirectory, StakeLedger, TaskTrust},
        view::{AuctionView, BidTerms, Quote},
    };

    const STORAGE_VERSION: StorageVersion = StorageVersion::new(1);

    /// Tasks, their bids, and the agenda of deadlines.
    #[pallet::pallet]
    #[pallet::storage_version(STORAGE_VERSION)]
    pub struct Pallet<T>(_);

    /// What the runtime provides.
    #[pallet::config]
    pub trait Config: frame_system::Config<RuntimeEvent: From<Event<Self>>> {
        /// What the work here costs.
        type WeightInfo: WeightInfo;

        /// The clock that bids, their openings and rounds are timed with. It stands still while finality
        /// does, and may move on by several blocks in one.
        type BlockNumberProvider: BlockNumberProvider<BlockNumber = BlockNumberFor<Self>>;

        /// Entropy for the draw, and for who keeps a place for a bid, each of one block that is fixed
        /// beforehand; `docs/adr/0004` says who can bias it.
        type Entropy: BlockEntropy<BlockNumberFor<Self>>;

        /// Who acts for whom, and the stake that backs bids.
        type Stake: StakeLedger<Self::AccountId, Balance>;

        /// Which providers may be given work.
        type Providers: ProviderDirectory<Self::AccountId>;

        /// Which models can be asked for.
        type Models: ModelCatalog;

        /// The clients' money.
        type Escrow: Escrow<Self::AccountId, Balance>;

        /// Decides who was right.
        type Trust: TaskTrust<Self::AccountId, Balance, BlockNumberFor<Self>>;

        /// Most that one `TaskTrust::advance` costs, without what it asks of this pallet
        /// ([`Pallet::outcome_weight`]).
        type TrustWeight: Get<Weight>;

        /// Blocks of the clock in which bids are taken.
        type BidWindow: Get<BlockNumberFor<Self>>;

        /// Blocks of the clock in which bids are opened.
        type RevealWindow: Get<BlockNumberFor<Self>>;

        /// Blocks of the clock that bids get beyond [`Config::RevealWindow`] that are still sealed then: who
        /// does not open its bid loses a deposit, and a worker that restarts or a line that fails has to have
        /// the time.
        type LateRevealWindow: Get<BlockNumberFor<Self>>;

        /// Stake that a bid locks until it is opened, in plancks. Lost when it is not.
        type BidDeposit: Get<Balance>;

        /// Blocks (of the chain) before a task is posted in which a provider's stake must not have grown, nor
        /// its agent have changed, for its stake to count where there are more bidders than places.
        type BidderSeasoning: Get<u32>;

        /// Most units one task may ask for.
        type UnitsMax: Get<u32>;

        /// Largest input, in bytes.
        type InputBytesMax: Get<u32>;

        /// Highest redundancy; [`limits::REDUNDANCY_MAX`] binds as well.
        type RedundancyMax: Get<u32>;

        /// Blocks for which a finished task can still be read: of the chain, as nothing is lost by it.
        type FinishedRetention: Get<BlockNumberFor<Self>>;
    }

    /// The id of the next task.
    #[pallet::storage]
    pub type NextTaskId<T: Config> = StorageValue<_, TaskId, ValueQuery>;

    /// All tasks, until some time after they finish.
    ///
    /// Ids are given out in order by the chain, so that nobody can choose keys that collide; here and below.
    #[pallet::storage]
    pub type Tasks<T: Config> = StorageMap<_, Twox64Concat, TaskId, TaskOf<T>>;

    /// Tasks that are not finished, so that workers need not read those that are. From being posted until
    /// settled, failed or cancelled.
    #[pallet::storage]
    pub type OpenTasks<T: Config> = StorageMap<_, Twox64Concat, TaskId, ()>;

    /// Bids by task and stash: at most [`limits::BIDS_MAX`] a task; who loses its place loses its bid. They
    /// stay as long as the task, for whoever wants to recompute its draw.
    #[pallet::storage]
    pub type Bids<T: Config> =
        StorageDoubleMap<_, Twox64Concat, TaskId, Blake2_128Concat, T::AccountId, BidRecord>;

    /// How many bids a task has. Absent means none.
    #[pallet::storage]
    pub type BidCounts<T: Config> = StorageMap<_, Twox64Concat, TaskId, BidCount, ValueQuery>;

    /// Who has the places of tasks that more have bid for than there are. Made when the first of its bidders
    /// loses its place; stays as long as the bids.
    #[pallet::storage]
    pub type Rankings<T: Config> = StorageMap<_, Twox64Concat, TaskId, Ranking<T::AccountId>>;

    /// Reserves that were called in while the task was running, and what they are paid.
    #[pallet::storage]
    pub type Substitutes<T: Config> =
        StorageMap<_, Twox64Concat, TaskId, PerBid<AssignmentOf<T>>, ValueQuery>;

    /// Which task is to be looked at at which time of the clock. An entry may be out of date: looking is
    /// harmless.
    #[pallet::storage]
    pub type Agenda<T: Config> =
        StorageDoubleMap<_, Twox64Concat, BlockNumberFor<T>, Twox64Concat, TaskId, ()>;

    /// Tasks that wait for entropy younger than this block: those whose bids are closed, and those whose
    /// auditors are to draw themselves. That takes blocks, not time, while finality stands still as well:
    /// once the block that counts is forgotten, whoever calls would choose another.
    #[pallet::storage]
    pub type AwaitingEntropy<T: Config> = StorageMap<_, Twox64Concat, TaskId, BlockNumberFor<T>>;

    /// The agenda is empty up to and including this time.
    #[pallet::storage]
    pub type AgendaSweptTo<T: Config> = StorageValue<_, BlockNumberFor<T>, ValueQuery>;

    /// What happened to a task.
    #[pallet::event]
    #[pallet::generate_deposit(pub(super) fn deposit_event)]
    pub enum Event<T: Config> {
        /// A task was posted and its money is in escrow.
        TaskPosted {
            /// Task id.
            task: TaskId,
            /// Client's account, which pays.
            client: T::AccountId,
            /// The most it pays in all, fee included.
            cap: Balance,
        },
        /// A sealed bid was placed.
        BidPlaced {
            /// Task id.
            task: TaskId,
            /// Bidder's stash.
            provider: T::AccountId,
        },
        /// A bid lost its place to one that ranks better, and its deposit was unlocked. The task is none of
        /// its bidder's any more.
        BidDisplaced {
            /// Task id.
            task: TaskId,
            /// Stash of the bidder that lost its place.
            provider: T::AccountId,
            /// Stash of the bidder that has it now.
            by: T::AccountId,
        },
        /// A bid was opened and its deposit unlocked.
        BidOpened {
            /// Task id.
            task: TaskId,
            /// Bidder's stash.
            provider: T::AccountId,
            /// Price it asks, in plancks.
            price: Balance,
            /// Seconds within which it expects to commit.
            seconds: u32,
            /// Its part of the draw's seed.
            salt: H256,
        },
        /// A bid was not opened in time.
        BidForfeited {
            /// Task id.
            task: TaskId,
            /// Bidder's stash.
            provider: T::AccountId,
            /// Deposit that it lost, in plancks.
            amount: Balance,
        },
        /// Providers were drawn. With [`draw::draw`] anybody can check it: `candidates`, the redundancy,
        /// `limit` and `seed` give `assignments`; the salts of all opened bids and `entropy` give `seed`
        /// ([`draw::seed`]).
        TaskAssigned {
            /// Task id.
            task: TaskId,
            /// Who got it, at which price.
            assignments: PerMember<AssignmentOf<T>>,
            /// The draw's seed.
            seed: H256,
            /// What went into the seed beside the salts: a block author's VRF output.
            entropy: H256,
            /// The block whose author gave it.
            entropy_block: BlockNumberFor<T>,
            /// The most one provider may be paid.
            limit: Balance,
            /// The eligible bids, in the order of their stashes. Who asked less than its work is worth at
            /// least asks that.
            candidates: PerBid<draw::Candidate<T::AccountId>>,
        },
        /// No draw could be held for long after the reveals closed, so the task is cancelled.
        DrawAbandoned {
            /// Task id.
            task: TaskId,
        },
        /// Providers were paid.
        TaskSettled {
            /// Task id.
            task: TaskId,
            /// The accepted result.
            claim: ResultClaim,
            /// Who was paid how much.
            payments: PerMember<AssignmentOf<T>>,
            /// Protocol fee, in plancks.
            fee: Balance,
            /// Amount that went back to the client, in plancks.
            refund: Balance,
        },
        /// Nobody was paid and the client has its money back.
        TaskFailed {
            /// Task id.
            task: TaskId,
            /// Why it failed.
            reason: FailureReason,
        },
        /// The task ended before it was assigned, and the client has its money back; of one that it withdrew
        /// once somebody had bid, all but the least fee.
        TaskCancelled {
            /// Task id.
            task: TaskId,
        },
        /// A finished task was removed.
        TaskRemoved {
            /// Task id.
            task: TaskId,
        },
        /// What was due for a task failed; it is tried again later.
        AdvancePostponed {
            /// Task id.
            task: TaskId,
            /// Why it failed.
            error: DispatchError,
            /// After which time of the clock it is tried again.
            until: BlockNumberFor<T>,
        },
    }

    /// Why a call was refused.
    #[pallet::error]
    pub enum Error<T> {
        /// There is no such task, or not any more: finished ones are removed after a while. See which are
        /// open, and check the number.
        UnknownTask,
        /// The redundancy is 0, so that nobody would compute the task. Ask for at least 1.
        ZeroRedundancy,
        /// The redundancy is higher than this chain allows. Ask for fewer providers.
        RedundancyTooHigh,
        /// The input has no bytes. Give the size of the input that is to be computed.
        InputEmpty,
        /// The input has more bytes than can be shown on chain when nobody serves it. Split it into several
        /// tasks.
        InputTooLarge,
        /// The client pays for 0 units, so that nothing could be computed. Ask for at least 1.
        ZeroUnits,
        /// The task asks for more units than this chain allows in one. Split it into several tasks.
        TooManyUnits,
        /// There is no address to fetch the input from. Name at least one where it is served.
        NoSources,
        /// An address for the input is not one that can be dialled. Write it like
        /// /ip4/203.0.113.5/tcp/4001/p2p/12D3KooW..., the peer's identity last.
        InvalidSource,
        /// The task is not in the phase for this: bids are taken first, then opened, and only until then it
        /// can be withdrawn. See how far it is.
        WrongPhase,
        /// The signer acts for no provider. Sign with the agent that a provider's stash has named and that
        /// has confirmed.
        NotAgent,
        /// The provider gets no work now: it is not registered, was not heard of lately, or is suspended or
        /// in jail. Register it, keep its worker running, or wait until its term is over.
        ProviderUnavailable,
        /// The provider has less free stake than this task would lock. Bond more, or bid when other tasks
        /// have set theirs free.
        NotBacked,
        /// The provider has bid on this task already, and a bid cannot be changed. Open it when bids are
        /// opened.
        AlreadyBid,
        /// All places for bids on this task are taken, and who keeps them is drawn with a block that is not
        /// there yet. Bid again in a few seconds.
        PlacesUndecided,
        /// All places for bids on this task are taken by providers that drew a better rank. Bid on other
        /// tasks: the more stake was bonded long before a task is posted, the better the rank.
        Outranked,
        /// The provider has no bid on this task: it has made none, or has lost its place to one that ranks
        /// better and has its deposit back. There is nothing to open.
        UnknownBid,
        /// The bid has been opened already. There is nothing left to do until the draw.
        AlreadyOpened,
        /// This is not the bid that was sealed. Open it with the price, the seconds and the salt that the
        /// seal was made of.
        SealMismatch,
        /// Only the task's client may withdraw it. Sign with the account that posted it.
        NotClient,
        /// Nothing is due for the task now: it goes on by itself when its time has come. Wait, or see until
        /// when it has.
        NotDue,
        /// Somebody who was not given the task is to be paid for it. This is a fault of the chain: report it.
        NotAssigned,
        /// A block number or a task id is too large to go on. This is a fault of the chain: report it.
        Overflow,
        /// The task asks for a tier or for memory that the chain has not measured of the provider, or that
        /// counts no more, or for a region that its provider has not registered. Pass a round of the
        /// benchmark, register where the machine is, or bid on other tasks.
        RequirementsUnmet,
    }

    #[pallet::hooks]
    impl<T: Config> Hooks<BlockNumberFor<T>> for Pallet<T> {
        fn on_idle(_now: BlockNumberFor<T>, remaining_weight: Weight) -> Weight {
            Self::sweep(remaining_weight)
        }

        #[cfg(feature = "std")]
        fn integrity_test() {
            Self::check_configuration();
        }

        #[cfg(feature = "try-runtime")]
        fn try_state(_now: BlockNumberFor<T>) -> Result<(), sp_runtime::TryRuntimeError> {
            Self::do_try_state()
        }
    }

    #[pallet::view_functions]
    impl<T: Config> Pallet<T> {
        /// A task with its bids counted, its escrow and what a bid for it can come to, or nothing when it is
        /// unknown or long finished.
        pub fn task(id: TaskId) -> Option<AuctionView<T::AccountId, Balance, BlockNumberFor<T>>> {
            Self::auction_view(id)
        }

        /// What a task would come to that is posted now with this cap, in plancks, or why it would be
        /// refused, whoever posts it: its level of security, how it would be audited, the most that each
        /// provider can be paid and what it would lock.
        pub fn quote(spec: TaskSpec, cap: Balance) -> Result<Quote<Balance>, DispatchError> {
            Self::quote_of(spec, cap)
        }

        /// What a bid for a task can come to, or nothing when the task is unknown or its cap below the fee.
        pub fn bid_terms(id: TaskId) -> Option<BidTerms<Balance>> {
            Self::terms_of(&Tasks::<T>::get(id)?)
        }
    }

    #[pallet::call]
    impl<T: Config> Pallet<T> {
        /// Posts a task and puts `cap` into escrow. Anybody may; the signer is the client.
        #[pallet::call_index(0)]
        #[pallet::weight(T::WeightInfo::post())]
        pub fn post(origin: OriginFor<T>, spec: TaskSpec, cap: Balance) -> DispatchResult {
            let client = ensure_signed(origin)?;
            Self::do_post(client, spec, cap)
        }

        /// Places a sealed bid, which locks a small deposit of the provider's stake. For agents of available
        /// providers, while bidding is open.
        ///
        /// Where all places are taken it displaces the bid that ranks worst, if it ranks better. Ranks are
        /// drawn by stake that was bonded long before the task was posted, so that it is of no use to be
        /// first, to have many names or new ones. What that costs more is given back where there is a place.
        #[pallet::call_index(1)]
        #[pallet::weight(T::WeightInfo::bid().max(T::WeightInfo::displace_bid()))]
        pub fn bid(origin: OriginFor<T>, task: TaskId, seal: H256) -> DispatchResultWithPostInfo {
            let agent = ensure_signed(origin)?;
            Self::do_bid(agent, task, seal)
        }

        /// Opens the bid of the stash `provider`, which unlocks its deposit. While reveals are open. Without
        /// signature and fee, as a general transaction: the opening proves itself, and anybody may pass it
        /// on. One that would fail enters no block, so that there is at most one for each bid, which was paid
        /// for.
        ///
        /// Pools refuse it as `Future` or `Stale` by its time, as `Stale` the second time, as `BadProof` when
        /// it is not the bid that was sealed, as `Call` when there is none.
        #[pallet::call_index(2)]
        #[pallet::weight((T::WeightInfo::reveal_bid(), DispatchClass::Operational))]
        #[pallet::authorize(Self::authorize_reveal_bid)]
        #[pallet::weight_of_authorize(T::WeightInfo::authorize_reveal_bid())]
        pub fn reveal_bid(
            origin: OriginFor<T>,
            task: TaskId,
            provider: T::AccountId,
            bid: Bid<Balance>,
        ) -> DispatchResult {
            ensure_authorized(origin)?;
            Self::do_reveal_bid(task, provider, bid)
        }

        /// Withdraws a task before the reveals close; escrow and deposits go back. For its client, who pays
        /// the least fee of a task once somebody has bid.
        #[pallet::call_index(3)]
        #[pallet::weight(T::WeightInfo::cancel(limits::BIDS_MAX))]
        pub fn cancel(origin: OriginFor<T>, task: TaskId) -> DispatchResultWithPostInfo {
            let client = ensure_signed(origin)?;
            let deposits = Self::do_cancel(client, task)?;
            Ok(Some(T::WeightInfo::cancel(deposits)).into())
        }

        /// Carries out what is due for a task by time. Anybody may; the sweep does it as well, when blocks
        /// have room.
        #[pallet::call_index(4)]
        #[pallet::weight(Pallet::<T>::step_weight_max())]
        pub fn advance(origin: OriginFor<T>, task: TaskId) -> DispatchResultWithPostInfo {
            ensure_signed(origin)?;
            Self::do_advance(task)
        }
    }
}
