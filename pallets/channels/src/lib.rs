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

pub use pallet::*;
pub use types::{Channel, Payer, Provider, SignedBytes};
pub use weights::WeightInfo;

mod calls;
mod hooks;
#[cfg(test)]
mod mock;
#[cfg(test)]
mod tests;
#[cfg(any(feature = "std", feature = "try-runtime"))]
mod try_state;
mod types;
mod weights;

/// Most channels of a payer.
pub const CHANNELS_MAX: u32 = 128;

/// Most batches of a provider that are not final.
pub const UNFINISHED_MAX: u32 = 64;

/// Most batches that one call redeems from.
pub const REDEEMED_MAX: u32 = 8;

/// The pallet itself; see the crate's documentation.
// The pallet macro turns its own attributes into paths that this lint finds too long.
#[allow(unused_qualifications)]
#[frame_support::pallet]
pub mod pallet {
    use frame_support::{pallet_prelude::*, traits::fungible};
    use frame_system::pallet_prelude::*;
    use sp_runtime::{FixedU128, traits::BlockNumberProvider};
    use surety_audit_economics::{AuditPay, AuditPolicy, channels::PointRates};
    use surety_channels::{
        BatchNumber, BatchRoot, BatchWindow, ChannelId, ChannelOpening, SignedVoucher, Time,
    };
    use surety_types::traits::StakeLedger;

    use super::*;

    const STORAGE_VERSION: StorageVersion = StorageVersion::new(0);

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
        type Currency: fungible::Mutate<Self::AccountId, Balance = u128>
            + fungible::hold::Mutate<Self::AccountId, Reason = Self::RuntimeHoldReason>;

        /// The runtime's reasons for holds.
        type RuntimeHoldReason: From<HoldReason>;

        /// Where standing locks are.
        type Stake: StakeLedger<Self::AccountId, u128>;

        /// The clock of every time here. It stands still while finality does.
        type Clock: BlockNumberProvider<BlockNumber = BlockNumberFor<Self>>;

        /// Says what a payer's key has signed.
        type Signatures: SignedBytes<Self::AccountId>;

        /// Hash of block 0, which vouchers name.
        type Genesis: Get<sp_core::H256>;

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

        /// Who keeps levies. The runtime sees to it that the account exists: what it cannot take stays the
        /// payee's.
        type LevyPot: Get<Self::AccountId>;

        /// Least deposit of a channel, in plancks: what keeps storage from being filled.
        #[pallet::constant]
        type MinDeposit: Get<u128>;

        /// Time for which a batch can be disputed.
        #[pallet::constant]
        type BatchWindowLength: Get<Time>;

        /// Time that a payee has after a payer wants to close.
        #[pallet::constant]
        type ClosingPeriod: Get<Time>;

        /// Time for which a final batch is kept to be redeemed from.
        #[pallet::constant]
        type RedeemBy: Get<Time>;

        /// Longest time from now to a channel's expiry.
        #[pallet::constant]
        type MaxLife: Get<Time>;

        /// Channels that each block looks at to end those that are over.
        #[pallet::constant]
        type SweptPerBlock: Get<u32>;

        /// Weights of the calls.
        type WeightInfo: WeightInfo;
    }

    /// Why funds are on hold.
    #[pallet::composite_enum]
    pub enum HoldReason {
        /// They are deposited in channels.
        Channel,
    }

    /// Each channel that was not ended.
    #[pallet::storage]
    pub type Channels<T: Config> = StorageMap<_, Twox64Concat, ChannelId, Channel<T::AccountId>>;

    /// Number of the next channel.
    #[pallet::storage]
    pub type NextChannel<T: Config> = StorageValue<_, ChannelId, ValueQuery>;

    /// What payers have in channels; nobody who has none.
    #[pallet::storage]
    pub type Payers<T: Config> = StorageMap<_, Blake2_128Concat, T::AccountId, Payer, ValueQuery>;

    /// Each provider that ever stood behind an offer: batches go on being numbered when it stands again.
    #[pallet::storage]
    pub type Standings<T: Config> = StorageMap<_, Blake2_128Concat, T::AccountId, Provider>;

    /// Batches that can be redeemed from, or will be.
    #[pallet::storage]
    pub type Batches<T: Config> =
        StorageDoubleMap<_, Blake2_128Concat, T::AccountId, Twox64Concat, BatchNumber, BatchWindow>;

    /// Where the sweep for channels that are over goes on.
    #[pallet::storage]
    pub type Cursor<T: Config> = StorageValue<_, ChannelId>;

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
        },
        /// Nothing goes back to the payer until a late batch is final.
        Held {
            /// Channel id.
            channel: ChannelId,
            /// Until then at least.
            until: Time,
        },
        /// A channel ended.
        Ended {
            /// Channel id.
            channel: ChannelId,
            /// What went back to the payer, in plancks.
            refund: u128,
        },
        /// A provider stands behind its offer with this, or no longer (0).
        Stands {
            /// Provider's stash.
            provider: T::AccountId,
            /// Its lock, in plancks.
            lock: u128,
        },
        /// A batch was committed.
        BatchCommitted {
            /// Provider's stash.
            provider: T::AccountId,
            /// Which of its batches.
            batch: BatchNumber,
        },
        /// A voucher was redeemed.
        Redeemed {
            /// Channel id.
            channel: ChannelId,
            /// What the payee got, in plancks.
            paid: u128,
            /// What went to the pot for audits, in plancks.
            levy: u128,
        },
    }

    /// Why a call was refused.
    #[pallet::error]
    pub enum Error<T> {
        /// There is no such channel: it was never opened, or has ended.
        NoChannel,
        /// The provider does not stand behind an offer. It has to call `stand` first.
        NotStanding,
        /// The caller is not the channel's payer.
        NotPayer,
        /// The caller is neither the payee nor its agent.
        NotPayee,
        /// The caller is not the agent of a bonded provider.
        NotAgent,
        /// A channel cannot pay its own payer.
        OwnChannel,
        /// The deposit is below `MinDeposit`.
        DepositTooSmall,
        /// The payer has as many channels as it may. End one first.
        TooManyChannels,
        /// The expiry is not later than the present one, or is past or beyond `MaxLife`.
        BadExpiry,
        /// The channel is being closed. Open another one.
        Closing,
        /// The lock is below what the cap needs. Lock more, or take a lower cap.
        LockTooSmall,
        /// No lock would do now: too few verifiers are able to audit, or audits cost more than is sold for.
        NotInsurable,
        /// The lock and the cap can only grow while channels or batches are open.
        InUse,
        /// There can be no such batch.
        ImpossibleBatch,
        /// A batch was committed in this block. Wait for the next one.
        OneABlock,
        /// The batch would cost more than the standing lock covers. Wait until earlier ones are final.
        BeyondCap,
        /// As many batches as may be are not final. Wait.
        TooManyBatches,
        /// There is no such batch, or its time to be redeemed from is over.
        NoBatch,
        /// An opening does not fit the batch's root.
        BadOpening,
        /// The batch is not final, is not the channel's next one, or is of another channel.
        NotCounted,
        /// The batch holds nothing back: it is final, was counted, or is of another channel.
        NotHeld,
        /// The voucher is not one of this channel, has expired, or is above the deposit.
        BadVoucher,
        /// The channel's key has not signed the voucher.
        BadSignature,
        /// The payee's account cannot take what it earned. Give it the existential deposit first.
        PayeeCannotTake,
        /// The channel is not over. Wait, or let the payee agree.
        NotOver,
    }

    #[pallet::hooks]
    impl<T: Config> Hooks<BlockNumberFor<T>> for Pallet<T> {
        fn on_initialize(_now: BlockNumberFor<T>) -> Weight {
            Self::sweep()
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
        /// of batches that are not final. A lock of 0 ends that.
        #[pallet::call_index(3)]
        pub fn stand(origin: OriginFor<T>, lock: u128, cap: u128) -> DispatchResult {
            Self::do_stand(ensure_signed(origin)?, lock, cap)
        }

        /// Commits a batch of receipts of the provider that the caller is the agent of.
        #[pallet::call_index(4)]
        pub fn commit_batch(origin: OriginFor<T>, root: BatchRoot) -> DispatchResult {
            Self::do_commit_batch(ensure_signed(origin)?, root)
        }

        /// Counts batches, and pays the payee what they and the voucher cover. Anybody may.
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

        /// The payer wants its money back: the payee has `ClosingPeriod` from now.
        #[pallet::call_index(7)]
        pub fn close(origin: OriginFor<T>, channel: ChannelId) -> DispatchResult {
            Self::do_close(ensure_signed(origin)?, channel)
        }

        /// The payee, or its agent, wants nothing more: the channel ends at once.
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
    }
}
