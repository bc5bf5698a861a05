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

pub use limits::*;
pub use pallet::*;
pub use pool::Pool;
pub use surety_channels::view::Wanted;
pub use types::{
    BatchRecord, Channel, ClaimedReceipt, Convictions, Demand, DemandsOf, Disputed, Faults, Offer, Payer,
    PointsAudit, PointsState, PoolId, Provider, ReceiptDisputes, ReceiptKey, ReceiptReferee, ReceiptSource,
    SignedBytes, Since,
};
pub use weights::WeightInfo;

mod asset;
#[cfg(feature = "runtime-benchmarks")]
mod benchmarking;
mod calls;
mod hooks;
mod limits;
#[cfg(test)]
mod mock;
mod pool;
#[cfg(test)]
mod tests;
#[cfg(any(feature = "std", feature = "try-runtime"))]
mod try_state;
mod types;
mod views;
mod weights;

/// The pallet itself; see the crate's documentation.
// The pallet macro turns its own attributes into paths that this lint finds too long.
#[allow(unused_qualifications)]
#[frame_support::pallet]
pub mod pallet {
    use alloc::boxed::Box;

    use frame_support::{PalletId, pallet_prelude::*, traits::fungible};
    use frame_system::pallet_prelude::*;
    use sp_core::H256;
    use sp_runtime::{FixedU128, traits::BlockNumberProvider};
    use surety_audit_economics::{AuditPay, AuditPolicy, channels::PointRates};
    use surety_channels::{
        BatchEvidence, BatchNumber, BatchRoot, Batched, ChannelId, ChannelOpening, Equivocation, Nonce,
        PointsFound, REDEEMED_MAX, Region, Request, SignedChunkStatement, SignedVoucher, Time,
    };
    use surety_proofs::SegmentOpening;
    use surety_types::{
        ModelId, TaskId,
        model::Operation,
        traits::{AbleVerifiers, BlockEntropy, DrawVerifier, Jail, SoldModels, StakeLedger},
        trust::{AuditProof, FaultKind, ItemLeaves},
    };

    use super::*;

    const STORAGE_VERSION: StorageVersion = StorageVersion::new(1);

    /// Batches with what a channel has in each, in the order of its requests.
    pub type Openings = BoundedVec<(BatchNumber, ChannelOpening), ConstU32<REDEEMED_MAX>>;

    /// The pallet.
    #[pallet::pallet]
    #[pallet::storage_version(STORAGE_VERSION)]
    pub struct Pallet<T>(_);

    /// What the pallet needs of a runtime.
    #[pallet::config]
    pub trait Config: frame_system::Config {
        /// What channels pay in.
        type Currency: fungible::Mutate<Self::AccountId, Balance = u128>;

        /// Where standing locks are.
        type Stake: StakeLedger<Self::AccountId, u128>;

        /// Has providers lose standing locks, and verifiers bonds.
        type Convictions: Convictions<Self::AccountId>;

        /// Who stands behind no offer for a while.
        type Jail: Jail<Self::AccountId>;

        /// The clock of every time here. It stands still while finality does.
        type Clock: BlockNumberProvider<BlockNumber = BlockNumberFor<Self>>;

        /// Says what a payer's key has signed.
        type Signatures: SignedBytes<Self::AccountId>;

        /// Hash of block 0, which vouchers name.
        type Genesis: Get<H256>;

        /// How many points there are for a SURE.
        type Rates: Get<PointRates>;

        /// How likely a wrong receipt is found, and what is burned.
        type Policy: Get<AuditPolicy>;

        /// What a wrong answer may be worth elsewhere, as a multiple of its price.
        type AtRisk: Get<FixedU128>;

        /// What points are paid.
        type Pay: Get<AuditPay>;

        /// Expected cost of a point's audit, in plancks.
        type PointCost: Get<u128>;

        /// Checks that verifiers drew themselves.
        type Draws: DrawVerifier<Self::AccountId>;

        /// Randomness of the present epoch.
        type EpochRandomness: Get<H256>;

        /// What the author of a block after a commitment adds to it.
        type Entropy: BlockEntropy<BlockNumberFor<Self>>;

        /// Blocks before a commitment in which a verifier's stake must not have grown and its agent not have
        /// changed.
        type VerifierSeasoning: Get<u32>;

        /// Which models can be sold, kept for as long as they are.
        type Models: SoldModels;

        /// Says how much of the verifiers' stake can audit a model. Places are offered of those alone that
        /// as much can audit as `Policy` counts on.
        type Verifiers: AbleVerifiers;

        /// What a second of a model's reference machine is worth at least, in plancks. No unit is offered for
        /// less than a token's time is worth.
        type WorkPrice: Get<u128>;

        /// What a provider's cap has to be for each place that it offers, in plancks. So nobody has more
        /// weight in a pool than it has locked for.
        #[pallet::constant]
        type PlaceCap: Get<u128>;

        /// Time for which a pool has one price.
        #[pallet::constant]
        type PoolPeriod: Get<Time>;

        /// A pool's price is at most so many times the least.
        #[pallet::constant]
        type PoolCeiling: Get<u32>;

        /// Has receipts disputed.
        type Disputes: ReceiptDisputes<Self::AccountId>;

        /// Knows how results of models are laid out.
        type Referee: ReceiptReferee;

        /// What it costs to have a receipt shown, in plancks: half of it is less than showing the shortest.
        type DemandPrice: Get<u128>;

        /// Time in which a provider shows what was demanded.
        type SupplyWindow: Get<Time>;

        /// What a verifier locks for each of its points, in plancks.
        type PointBond: Get<u128>;

        /// Where deposits and the prices of demands are. The runtime sees to it that its account exists.
        #[pallet::constant]
        type PotId: Get<PalletId>;

        /// Keeps levies, and pays points. The runtime sees to it that the account exists.
        type LevyPot: Get<Self::AccountId>;

        /// Least deposit of a channel, in plancks: what keeps storage from being filled.
        #[pallet::constant]
        type MinDeposit: Get<u128>;

        /// Time for which a batch can be disputed.
        type BatchWindowLength: Get<Time>;

        /// Time that a payee has after a payer wants to close.
        type ClosingPeriod: Get<Time>;

        /// Time in which verifiers announce what they have found of a batch. The rest of its window is for
        /// opening that, and for disputes.
        type AnnounceWindow: Get<Time>;

        /// Time for which a batch can be disputed again when as many receipts were disputed as may be: others
        /// could not come in.
        type DisputeWindow: Get<Time>;

        /// Time after a batch's window in which what was opened can be refuted.
        type RefuteWindow: Get<Time>;

        /// Time for which a final batch is kept. It is redeemed from until four `SupplyWindow`s before that,
        /// and demanded from until one.
        type RedeemBy: Get<Time>;

        /// Longest time from now to a channel's expiry.
        type MaxLife: Get<Time>;

        /// Channels that each block looks at to end those that are over.
        #[pallet::constant]
        type SweptPerBlock: Get<u32>;

        /// Weights of the calls.
        type WeightInfo: WeightInfo;
    }

    /// Each channel that was not ended.
    #[pallet::storage]
    pub type Channels<T: Config> = StorageMap<_, Twox64Concat, ChannelId, Channel<T::AccountId>>;

    /// The numbers of those that pay a provider, by its stash.
    #[pallet::storage]
    pub type ChannelsOf<T: Config> =
        StorageDoubleMap<_, Blake2_128Concat, T::AccountId, Twox64Concat, ChannelId, ()>;

    /// The numbers of those of a payer.
    #[pallet::storage]
    pub type ChannelsBy<T: Config> =
        StorageDoubleMap<_, Blake2_128Concat, T::AccountId, Twox64Concat, ChannelId, ()>;

    /// Number of the next channel.
    #[pallet::storage]
    pub type NextChannel<T: Config> = StorageValue<_, ChannelId, ValueQuery>;

    /// What payers have in channels; nobody who has none.
    #[pallet::storage]
    pub type Payers<T: Config> = StorageMap<_, Blake2_128Concat, T::AccountId, Payer, ValueQuery>;

    /// Each provider that ever stood behind an offer: batches go on being numbered when it stands again.
    #[pallet::storage]
    pub type Standings<T: Config> = StorageMap<_, Blake2_128Concat, T::AccountId, Provider<T::AccountId>>;

    /// Batches that can be redeemed from, or will be.
    #[pallet::storage]
    pub type Batches<T: Config> = StorageDoubleMap<
        _,
        Blake2_128Concat,
        T::AccountId,
        Twox64Concat,
        BatchNumber,
        BatchRecord<BlockNumberFor<T>>,
    >;

    /// Rounds about receipts, by their number.
    #[pallet::storage]
    pub type DisputedReceipts<T: Config> = StorageMap<_, Twox64Concat, TaskId, Disputed<T::AccountId>>;

    /// The rounds that there are about a provider's receipts.
    #[pallet::storage]
    pub type DisputeRounds<T: Config> =
        StorageDoubleMap<_, Blake2_128Concat, T::AccountId, Twox64Concat, ReceiptKey, TaskId>;

    /// What is demanded of providers, by provider and who demands it.
    #[pallet::storage]
    pub type Demands<T: Config> = StorageDoubleMap<
        _,
        Blake2_128Concat,
        T::AccountId,
        Blake2_128Concat,
        T::AccountId,
        DemandsOf<T::AccountId>,
    >;

    /// What verifiers have announced of batches, by provider and batch, and the verifier's stash.
    #[pallet::storage]
    pub type PointsAudits<T: Config> = StorageDoubleMap<
        _,
        Blake2_128Concat,
        (T::AccountId, BatchNumber),
        Blake2_128Concat,
        T::AccountId,
        PointsAudit,
    >;

    /// What providers sell. Each stands behind it: none has an offer and no lock.
    #[pallet::storage]
    pub type Offers<T: Config> =
        StorageDoubleMap<_, Blake2_128Concat, T::AccountId, Blake2_128Concat, PoolId, Offer>;

    /// What each operation of a model that somebody offers costs at least.
    #[pallet::storage]
    pub type Pools<T: Config> = StorageMap<_, Blake2_128Concat, PoolId, Pool>;

    /// Where the sweep for channels that are over goes on.
    #[pallet::storage]
    pub type Cursor<T: Config> = StorageValue<_, ChannelId>;

    /// The provider whose batches were looked at last.
    #[pallet::storage]
    pub type BatchCursor<T: Config> = StorageValue<_, T::AccountId>;

    /// What happened.
    #[pallet::event]
    #[pallet::generate_deposit(pub(crate) fn deposit_event)]
    pub enum Event<T: Config> {
        /// A channel was opened.
        Opened {
            /// Channel id.
            channel: ChannelId,
            /// Who deposits.
            payer: T::AccountId,
            /// Whom it pays.
            payee: T::AccountId,
        },
        /// More was deposited, or the expiry is later.
        Changed {
            /// Channel id.
            channel: ChannelId,
        },
        /// The payer wants to close.
        Closing {
            /// Channel id.
            channel: ChannelId,
            /// The payee's last time.
            until: Time,
            /// What went back to the payer at once, in plancks: all that there is once the payee was
            /// convicted.
            refund: u128,
        },
        /// Nothing goes back to the payer until a late batch is final.
        Held {
            /// Channel id.
            channel: ChannelId,
            /// Until then at least.
            until: Time,
        },
        /// The payee wants nothing more: the payer has its money back, but for `MinDeposit`, which it has
        /// when the channel ends. What was signed for the channel can be disputed and demanded until then.
        ClosedByPayee {
            /// Channel id.
            channel: ChannelId,
            /// What went back to the payer now, in plancks: nothing where it is burned, too little for an
            /// account that is gone.
            refund: u128,
            /// The payee's last time.
            until: Time,
        },
        /// A channel ended.
        Ended {
            /// Channel id.
            channel: ChannelId,
            /// What went back to the payer now, in plancks: nothing where it is burned, too little for an
            /// account that is gone.
            refund: u128,
        },
        /// A provider stands behind its offer with this, or no longer (0).
        Stands {
            /// Provider's stash.
            provider: T::AccountId,
            /// Its lock, in plancks.
            lock: u128,
        },
        /// A provider takes no new channels, and keeps its lock until those that there are are over.
        Leaves {
            /// Provider's stash.
            provider: T::AccountId,
        },
        /// A batch was committed.
        BatchCommitted {
            /// Provider's stash.
            provider: T::AccountId,
            /// Which of its batches.
            batch: BatchNumber,
            /// What it has paid for its audits, in plancks.
            levy: u128,
        },
        /// A voucher was redeemed, or a demand was met that had held back its pay.
        Redeemed {
            /// Channel id.
            channel: ChannelId,
            /// What the payee got, in plancks: nothing of what is not due yet, or held back by a demand.
            paid: u128,
        },
        /// A receipt is disputed.
        Disputed {
            /// Number of the round about it.
            round: TaskId,
            /// Provider's stash.
            provider: T::AccountId,
            /// The batch that it is in; nothing where it was only signed.
            batch: Option<BatchNumber>,
            /// Channel id.
            channel: ChannelId,
            /// Number of the request.
            nonce: Nonce,
        },
        /// A dispute about a receipt is over.
        DisputeOver {
            /// Number of the round about it.
            round: TaskId,
            /// Whether it stands. Otherwise it is not paid.
            stands: bool,
        },
        /// A provider has to show something, or it has withheld it.
        Demanded {
            /// Provider's stash.
            provider: T::AccountId,
            /// The payer or its key, or the verifier's stash.
            demander: T::AccountId,
            /// What it is.
            wanted: Wanted,
            /// Its last time.
            until: Time,
        },
        /// It was shown, or is not owed any more.
        DemandOver {
            /// Provider's stash.
            provider: T::AccountId,
            /// The payer or its key, or the verifier's stash.
            demander: T::AccountId,
            /// What it is.
            wanted: Wanted,
        },
        /// A verifier has points on a batch, and has sealed what it found there.
        PointsAnnounced {
            /// Provider's stash.
            provider: T::AccountId,
            /// Which of its batches.
            batch: BatchNumber,
            /// Verifier's stash.
            verifier: T::AccountId,
            /// How many points.
            points: u32,
        },
        /// A verifier has opened what it had sealed.
        PointsOpened {
            /// Provider's stash.
            provider: T::AccountId,
            /// Which of its batches.
            batch: BatchNumber,
            /// Verifier's stash.
            verifier: T::AccountId,
        },
        /// A verifier's audit is over.
        PointsEnded {
            /// Provider's stash.
            provider: T::AccountId,
            /// Which of its batches.
            batch: BatchNumber,
            /// Verifier's stash.
            verifier: T::AccountId,
            /// What it was paid, in plancks. Nothing where it was at fault.
            paid: u128,
        },
        /// What this agent signs binds the provider.
        SignerAdded {
            /// Provider's stash.
            provider: T::AccountId,
            /// The agent.
            signer: T::AccountId,
        },
        /// A provider sells this, or sells it otherwise than before.
        Offered {
            /// Provider's stash.
            provider: T::AccountId,
            /// Model id.
            model: ModelId,
            /// What it does with it.
            operation: Operation,
            /// Least price of a unit, in plancks.
            unit_price: u128,
            /// Requests that it answers at once. With 0 it takes nothing new.
            places: u32,
            /// Where it says that it is.
            region: Option<Region>,
        },
        /// A provider sells this no longer.
        OfferWithdrawn {
            /// Provider's stash.
            provider: T::AccountId,
            /// Model id.
            model: ModelId,
            /// What it did with it.
            operation: Operation,
        },
        /// A provider said how many of its places are taken.
        BusyReported {
            /// Provider's stash.
            provider: T::AccountId,
            /// Model id.
            model: ModelId,
            /// What it does with it.
            operation: Operation,
            /// Places that are taken.
            busy: u32,
        },
        /// This is what a unit costs at least from now on.
        PoolPriced {
            /// Model id.
            model: ModelId,
            /// What is done with it.
            operation: Operation,
            /// Price of a unit, in plancks.
            price: u128,
        },
        /// A provider was shown to be at fault: its standing lock is lost, and its channels pay nothing more.
        /// Or a verifier: its bond is.
        Convicted {
            /// Stash.
            offender: T::AccountId,
            /// What it has done.
            kind: FaultKind,
            /// Who has shown it.
            by: Option<T::AccountId>,
        },
    }

    /// Why a call was refused.
    #[pallet::error]
    pub enum Error<T> {
        /// There is no such channel: it was never opened, or has ended. Check its number, or open one.
        NoChannel,
        /// The provider does not stand behind an offer. It has to call `stand` first.
        NotStanding,
        /// The caller is not the channel's payer. Sign with the account that opened it.
        NotPayer,
        /// The caller is neither the payee nor its agent. Sign with the stash that the channel pays, or its
        /// agent.
        NotPayee,
        /// The caller is not the agent of a bonded provider. Bond a stash as a provider, and confirm this key
        /// as its agent.
        NotAgent,
        /// A channel cannot pay its own payer. Open it from another account.
        OwnChannel,
        /// The deposit is below `MinDeposit`. Deposit more.
        DepositTooSmall,
        /// The payer has as many channels as it may. End one first.
        TooManyChannels,
        /// As many channels pay the provider as may. Wait until some have ended, or open one to another.
        PayeeFull,
        /// The provider takes no new channels, nor more time or money for old ones, and offers nothing new:
        /// its stash wants its lock back. Choose another, or have it call `stand` with its lock again.
        Leaving,
        /// The expiry is not later than the present one, or is past or beyond `MaxLife`. Choose one between
        /// those.
        BadExpiry,
        /// The channel is being closed. Open another one.
        Closing,
        /// The provider stands by terms that are no longer those of the chain: its lock is below what its cap
        /// needs now. It has to call `stand` with a larger lock, or with a lower cap.
        OldTerms,
        /// The lock is below what the cap needs. Lock more, or take a lower cap.
        LockTooSmall,
        /// No lock would do now: too few verifiers are able to audit, or audits cost more than is sold for.
        /// Wait for more verifiers, or for other parameters.
        NotInsurable,
        /// The lock and the cap can only grow while channels, batches, disputes or demands are open. Wait
        /// until they are over. A lock of 0 keeps new ones away.
        InUse,
        /// There can be no such batch: of no receipts, or of more than there may be. Make it again from the
        /// receipts.
        ImpossibleBatch,
        /// A batch was committed in this block. Wait for the next one.
        OneABlock,
        /// The batch would cost more than the standing lock covers. Wait until earlier ones are final.
        BeyondCap,
        /// As many batches as may be are not final. Wait.
        TooManyBatches,
        /// There is no such batch, or its time to be redeemed from is over. Check its number.
        NoBatch,
        /// An opening does not fit the batch's root. Make it again from the batch of that number.
        BadOpening,
        /// The batch is not final, is not the channel's next one, is of another channel, or may be removed
        /// within four supply windows. Count batches in their order, when they are final, and in time.
        NotCounted,
        /// The batch holds nothing back: it is final, was counted, is of another channel, or was committed
        /// when this one was over. Redeem it if it is final.
        NotHeld,
        /// The voucher is not one of this channel, has expired, or is above the deposit. Redeem the latest
        /// one that the payer has signed for it.
        BadVoucher,
        /// The key has not signed this: the channel's a voucher, the provider's agent a statement. Check the
        /// key and the chain that it was signed for.
        BadSignature,
        /// The provider's stash cannot pay for the batch's audits. Send it what they cost.
        CannotPayLevy,
        /// The batch is too dear for its audits to be drawn. Split it.
        TooDear,
        /// The payee's account cannot take what it earned. Give it the existential deposit first.
        PayeeCannotTake,
        /// The channel is not over. Wait, or let the payee agree.
        NotOver,
        /// The provider is in jail. Wait until its term is over.
        InJail,
        /// No unit costs less than a token's time on the model's reference machine is worth. Ask more.
        PriceTooLow,
        /// The offer has more places than an offer may have. Offer fewer.
        TooManyPlaces,
        /// The cap does not cover the places of all offers. Stand with a larger cap, offer fewer places, or
        /// withdraw offers first.
        PlacesNotCovered,
        /// The provider has as many offers as it may. Withdraw one first.
        TooManyOffers,
        /// As many providers offer that as may. Offer another model.
        PoolFull,
        /// The provider does not offer that. It has to call `offer` first.
        NoOffer,
        /// The provider has channels, batches, disputes, demands or audits that are not over. Offer 0 places,
        /// so that nothing new comes, and withdraw when they are.
        OfferInUse,
        /// No more places can be taken than are offered. Report fewer, or offer more.
        TooBusy,
        /// It was said in this period how many places are taken. Wait for the next one.
        ReportedAlready,
        /// As many agents have signed for the provider as may. Close its channels, and stand again.
        TooManySigners,
        /// The evidence does not show a fault. Check it against the statements and roots that it is made of.
        NoFault,
        /// The key that signed is none whose statements bind the provider. Take statements only of keys that
        /// it has added.
        UnknownSigner,
        /// It is about what the provider was convicted for, about a channel from before that, about an offer
        /// that it no longer stands behind, about what is final, or about what may be gone before it can be
        /// shown: there is nothing to lose or to get for it. Nothing can be done.
        TooLate,
        /// The receipt cannot be disputed: it says nothing, is not paid any more, or does not follow from its
        /// request. Report it in the last case.
        NotDisputable,
        /// The receipt is disputed. Challenge it in its round.
        AlreadyDisputed,
        /// As many receipts of the provider are disputed as may be. Wait: the time for it goes on.
        TooManyDisputed,
        /// The caller is not the payer or its key. Sign with one of them.
        MayNotDemand,
        /// The caller has demanded that of the provider. Wait until it was shown.
        AlreadyDemanded,
        /// The caller has demanded as much of the provider as may be at once. Wait until some was shown.
        TooManyDemands,
        /// Batches that were counted have a receipt of that number: it cannot be disputed any more, or they
        /// may be gone before they can be shown. Nothing has to be.
        AlreadyCounted,
        /// Nobody has demanded that, or it is something else. Show what the demand names.
        NotDemanded,
        /// The receipt says more than the payer holds, and it is not shown that it goes on from there. Show
        /// the segment of its output in which that ends.
        BeginningNotShown,
        /// The receipt's number was counted, and this batch is not final, or void. Show it in the one that
        /// was counted.
        NotSettled,
        /// The caller is not the agent of a verifier. Bond a stash as a verifier, and confirm this key as its
        /// agent.
        NotVerifierAgent,
        /// It is too early or too late for that: points are announced, then opened, then ended. Look at the
        /// times of the batch, or of the demand.
        WrongTime,
        /// The verifier's stake or agent is too new for this batch. Wait for later ones.
        Unsettled,
        /// The proof is not one, or draws no point. Announce points of batches that the key has drawn.
        NotDrawn,
        /// The verifier has announced its points. Open them when that is due.
        AlreadyAnnounced,
        /// As many verifiers audit the batch as may. Audit another one.
        TooManyAnnounced,
        /// The pot has less than the verifier is to be paid. Wait for the levies of later batches: a
        /// `ClosingPeriod` after the time for refuting it is paid what there is.
        PotLacksPay,
        /// The verifier has announced nothing of the batch, or its audit was ended. Check the batch and the
        /// verifier.
        NothingAnnounced,
        /// The points were opened. Nothing has to be done.
        AlreadyOpened,
        /// This is not what was sealed. Open with the same findings and salt.
        SealMismatch,
        /// The receipt says what the verifier found, or the point is not in it; or the batch is not paid.
        /// Refute a point that differs.
        NothingRefuted,
        /// Verifiers that said that they audit this model, and have a point's bond free, have less stake than
        /// standing locks count on: wrong answers would be found too seldom. Wait until more of them offer
        /// audits of it, or offer another model.
        NobodyAudits,
        /// A slash has taken of the provider's stake, which is less by now than what it has locked. It has to
        /// bond what is missing, or lock less.
        NotCovered,
    }

    #[pallet::hooks]
    impl<T: Config> Hooks<BlockNumberFor<T>> for Pallet<T> {
        fn on_initialize(_now: BlockNumberFor<T>) -> Weight {
            Self::sweep().saturating_add(Self::sweep_batches())
        }

        #[cfg(feature = "try-runtime")]
        fn try_state(_now: BlockNumberFor<T>) -> Result<(), sp_runtime::TryRuntimeError> {
            Self::do_try_state()
        }
    }

    /// Calls; each is an origin check and a `do_*`.
    #[pallet::call(weight = <T as Config>::WeightInfo)]
    impl<T: Config> Pallet<T> {
        /// Opens a channel to a provider; `key` signs its vouchers.
        #[pallet::call_index(0)]
        pub fn open(
            origin: OriginFor<T>,
            payee: T::AccountId,
            key: T::AccountId,
            deposit: u128,
            expiry: Time,
        ) -> DispatchResult {
            Self::do_open(ensure_signed(origin)?, payee, key, deposit, expiry)
        }

        /// Deposits more in the caller's channel.
        #[pallet::call_index(1)]
        pub fn top_up(origin: OriginFor<T>, channel: ChannelId, amount: u128) -> DispatchResult {
            Self::do_top_up(ensure_signed(origin)?, channel, amount)
        }

        /// Lets the caller's channel expire later.
        #[pallet::call_index(2)]
        pub fn extend(origin: OriginFor<T>, channel: ChannelId, expiry: Time) -> DispatchResult {
            Self::do_extend(ensure_signed(origin)?, channel, expiry)
        }

        /// The caller, a provider's stash, stands behind what it sells with `lock`, for up to `cap` plancks
        /// of batches that are not final. A lock of 0 ends that: while channels, batches, disputes or demands
        /// are open it is kept, and only nothing new comes; say so again when they are over. All offers have
        /// no places from then on: who stays after all, by a lock, offers again.
        #[pallet::call_index(3)]
        pub fn stand(origin: OriginFor<T>, lock: u128, cap: u128) -> DispatchResult {
            Self::do_stand(ensure_signed(origin)?, lock, cap)
        }

        /// Commits a batch of receipts of the provider that the caller is the agent of.
        #[pallet::call_index(4)]
        pub fn commit_batch(origin: OriginFor<T>, root: BatchRoot) -> DispatchResult {
            Self::do_commit_batch(ensure_signed(origin)?, root)
        }

        /// Counts batches, and pays the payee what they and the voucher cover and is due: what was counted a
        /// quarter of a `SupplyWindow` ago, or seven of them while a receipt of the channel is demanded. What
        /// comes later is paid by a call without batches. Anybody may.
        #[pallet::call_index(5)]
        pub fn redeem(
            origin: OriginFor<T>,
            voucher: SignedVoucher<T::AccountId>,
            batches: Openings,
        ) -> DispatchResult {
            ensure_signed(origin)?;
            Self::do_redeem(voucher, batches)
        }

        /// Keeps the payer's money until a batch that is late has become final. By the payee or its agent.
        #[pallet::call_index(6)]
        pub fn hold(
            origin: OriginFor<T>,
            channel: ChannelId,
            batch: BatchNumber,
            opening: ChannelOpening,
        ) -> DispatchResult {
            Self::do_hold(ensure_signed(origin)?, channel, batch, opening)
        }

        /// The payer wants its money back: the payee has `ClosingPeriod` from now. One that was convicted
        /// gets nothing more: all of it goes back at once.
        #[pallet::call_index(7)]
        pub fn close(origin: OriginFor<T>, channel: ChannelId) -> DispatchResult {
            Self::do_close(ensure_signed(origin)?, channel)
        }

        /// The payee, or its agent, wants nothing more: what it has not got goes back to the payer at once,
        /// but for `MinDeposit`, which stays until the channel ends. It answers for what it has signed as
        /// long as if the payer had closed the channel.
        #[pallet::call_index(8)]
        pub fn close_agreed(origin: OriginFor<T>, channel: ChannelId) -> DispatchResult {
            Self::do_close_agreed(ensure_signed(origin)?, channel)
        }

        /// Ends a channel that is over, without waiting for the sweep. Anybody may.
        #[pallet::call_index(9)]
        pub fn end(origin: OriginFor<T>, channel: ChannelId) -> DispatchResult {
            ensure_signed(origin)?;
            Self::do_end(channel)
        }

        /// From now on what the caller signs binds the provider that it is the agent of. Payers take
        /// statements of no other key.
        #[pallet::call_index(10)]
        pub fn add_signer(origin: OriginFor<T>) -> DispatchResult {
            Self::do_add_signer(ensure_signed(origin)?)
        }

        /// Shows that a provider has said two things in answer to one request. Anybody may.
        #[pallet::call_index(11)]
        pub fn report_equivocation(
            origin: OriginFor<T>,
            equivocation: Box<Equivocation<T::AccountId>>,
        ) -> DispatchResult {
            Self::do_report_equivocation(&ensure_signed(origin)?, &equivocation)
        }

        /// Shows that a provider has committed to what is none of its receipts. `other` is the batch that
        /// the evidence holds against it, where it does. Anybody may.
        #[pallet::call_index(12)]
        pub fn report_batch(
            origin: OriginFor<T>,
            provider: T::AccountId,
            batch: BatchNumber,
            other: Option<BatchNumber>,
            evidence: Box<BatchEvidence<T::AccountId>>,
        ) -> DispatchResult {
            Self::do_report_batch(&ensure_signed(origin)?, &provider, batch, other, &evidence)
        }

        /// Disputes a receipt: opens a round about it in which the caller challenges it, with a bond. `head`
        /// is the first segment of what was said, of a generation that a stop id has ended. Anybody may.
        #[pallet::call_index(17)]
        pub fn dispute(
            origin: OriginFor<T>,
            receipt: Box<ReceiptSource<T::AccountId>>,
            request: Box<Request>,
            head: Option<SegmentOpening>,
        ) -> DispatchResult {
            Self::do_dispute(&ensure_signed(origin)?, *receipt, *request, head.as_ref())
        }

        /// Demands a batch with the receipt of a request of which the caller, the channel's payer or its key,
        /// holds a signed statement. Until it is shown the channel pays nothing that was counted lately. The
        /// price is paid now; when it is shown half of it is the provider's (`Wanted::borne`: more, up to all
        /// of it, of an answer that broke off), and the rest comes back. Over a channel of which much was
        /// demanded it costs more (`Demanded`), and all of that is the provider's then.
        #[pallet::call_index(18)]
        pub fn demand_receipt(
            origin: OriginFor<T>,
            held: Box<SignedChunkStatement<T::AccountId>>,
        ) -> DispatchResult {
            Self::do_demand_receipt(ensure_signed(origin)?, &held)
        }

        /// Demands the receipt that a point is in, for the signer's stash, which has drawn it: its number
        /// `place` in ascending order. `proof` is that of [`Pallet::announce_points`]. It costs more than a
        /// receipt (`Wanted::price`).
        #[pallet::call_index(19)]
        #[pallet::weight((<T as Config>::WeightInfo::demand_point(), DispatchClass::Operational))]
        pub fn demand_point(
            origin: OriginFor<T>,
            provider: T::AccountId,
            batch: BatchNumber,
            place: u32,
            proof: AuditProof,
        ) -> DispatchResult {
            Self::do_demand_point(ensure_signed(origin)?, &provider, batch, place, &proof)
        }

        /// Shows the receipt that a payer has demanded, in one of the batches of the provider that the caller
        /// is the agent of: a final one where its number was counted. Of an answer of which the payer holds a
        /// part the receipt goes on from that: where it says more, `shown` is the segment of its output in
        /// which what the payer holds ends. With the last that is demanded of the channel what that has held
        /// back is paid.
        #[pallet::call_index(20)]
        #[pallet::weight((<T as Config>::WeightInfo::show_receipt(), DispatchClass::Operational))]
        pub fn show_receipt(
            origin: OriginFor<T>,
            demander: T::AccountId,
            batch: BatchNumber,
            receipt: Box<Batched<T::AccountId>>,
            shown: Option<SegmentOpening>,
        ) -> DispatchResult {
            let agent = ensure_signed(origin)?;
            Self::do_show_receipt(&agent, &demander, (batch, &receipt), shown.as_ref())
        }

        /// Shows the receipt that points are in which a verifier has demanded, and what was asked for. A
        /// round about it is opened in which the verifier can demand input and output, as a client does. Paid
        /// once, for however many points.
        #[pallet::call_index(21)]
        #[pallet::weight((<T as Config>::WeightInfo::show_point(), DispatchClass::Operational))]
        pub fn show_point(
            origin: OriginFor<T>,
            demander: T::AccountId,
            batch: BatchNumber,
            receipt: Box<Batched<T::AccountId>>,
            request: Box<Request>,
            head: Option<SegmentOpening>,
        ) -> DispatchResult {
            let agent = ensure_signed(origin)?;
            Self::do_show_point(&agent, &demander, (batch, *receipt), *request, head.as_ref())
        }

        /// Ends what somebody demands whose time is over: what was not shown was withheld. Anybody may.
        #[pallet::call_index(22)]
        pub fn end_demand(
            origin: OriginFor<T>,
            provider: T::AccountId,
            demander: T::AccountId,
        ) -> DispatchResult {
            ensure_signed(origin)?;
            Self::do_end_demand(provider, &demander)
        }

        /// Announces, for the signer's stash, the points that it has drawn on a batch, and seals what it has
        /// found there. `proof` is of the VRF of the signer's key over
        /// [`surety_audit_economics::channels::ReceiptsInput`]. Locks the bond. Costs no fee, unless it is
        /// refused.
        #[pallet::call_index(13)]
        #[pallet::weight((<T as Config>::WeightInfo::announce_points(), DispatchClass::Operational))]
        pub fn announce_points(
            origin: OriginFor<T>,
            provider: T::AccountId,
            batch: BatchNumber,
            proof: AuditProof,
            seal: H256,
        ) -> DispatchResultWithPostInfo {
            Self::do_announce_points(&ensure_signed(origin)?, &provider, batch, &proof, seal)?;
            Ok(Pays::No.into())
        }

        /// Opens what a verifier has sealed. Needs neither signature nor fee.
        #[pallet::call_index(14)]
        #[pallet::weight((<T as Config>::WeightInfo::open_points(), DispatchClass::Operational))]
        #[pallet::authorize(Self::authorize_open_points)]
        #[pallet::weight_of_authorize(<T as Config>::WeightInfo::authorize_open_points())]
        pub fn open_points(
            origin: OriginFor<T>,
            provider: T::AccountId,
            batch: BatchNumber,
            verifier: T::AccountId,
            found: PointsFound,
            salt: H256,
        ) -> DispatchResult {
            ensure_authorized(origin)?;
            Self::do_open_points(provider, batch, verifier, found, &salt)
        }

        /// Shows that a verifier found something else at its point at `place`, in ascending order, than the
        /// receipt there says, and left it at that. It loses its bond. Anybody may.
        #[pallet::call_index(15)]
        pub fn refute_points(
            origin: OriginFor<T>,
            provider: T::AccountId,
            batch: BatchNumber,
            verifier: T::AccountId,
            place: u32,
            receipt: Box<(Batched<T::AccountId>, Request, Option<ItemLeaves>)>,
        ) -> DispatchResult {
            let finder = ensure_signed(origin)?;
            Self::do_refute_points(&finder, (provider, batch), verifier, place, &receipt)
        }

        /// Ends a verifier's audit of a batch that is over: it gets its bond back, and is paid. Waits for the
        /// pot where that lacks the pay, while the batch is kept. Anybody may.
        #[pallet::call_index(16)]
        pub fn end_points(
            origin: OriginFor<T>,
            provider: T::AccountId,
            batch: BatchNumber,
            verifier: T::AccountId,
        ) -> DispatchResult {
            ensure_signed(origin)?;
            Self::do_end_points(&provider, batch, &verifier)
        }

        /// The caller, a provider's stash, sells an operation of a model: for `unit_price` plancks a unit at
        /// least, or what its pool costs where that is more, to as many at once as there are `places`. Nobody
        /// checks the `region`. Says something else of an offer that there is; with 0 places it takes nothing
        /// new.
        #[pallet::call_index(23)]
        pub fn offer(
            origin: OriginFor<T>,
            model: ModelId,
            operation: Operation,
            unit_price: u128,
            places: u32,
            region: Option<Region>,
        ) -> DispatchResult {
            let stash = ensure_signed(origin)?;
            Self::do_offer(stash, (model, operation), (unit_price, places), region)
        }

        /// The caller, a provider's stash, sells something no longer. Refused while anything that it has sold
        /// may have to be looked at: its model has to stay for that.
        #[pallet::call_index(24)]
        pub fn withdraw_offer(origin: OriginFor<T>, model: ModelId, operation: Operation) -> DispatchResult {
            Self::do_withdraw_offer(ensure_signed(origin)?, (model, operation))
        }

        /// Says how many places of an offer are taken now, of the provider that the caller is the agent of:
        /// once in a period of its pool, whose price goes by that.
        #[pallet::call_index(25)]
        pub fn report_busy(
            origin: OriginFor<T>,
            model: ModelId,
            operation: Operation,
            busy: u32,
        ) -> DispatchResult {
            Self::do_report_busy(&ensure_signed(origin)?, (model, operation), busy)
        }
    }
}
