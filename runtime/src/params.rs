//! Windows and prices that governance changes without an upgrade.
//!
//! Blocks are those of the running clock, unless it says otherwise: it stands still while finality does, or
//! while blocks have no room for answers. A window that somebody loses money by missing has ten minutes at
//! least in production.
//!
//! The values here are production's. Genesis presets override some of them through
//! [`genesis_parameters`](crate::genesis_parameters); ADR 0003 says why.

#![allow(clippy::arithmetic_side_effects, reason = "constants of the configuration")]

use core::marker::PhantomData;

use frame_support::{
    dynamic_params::{dynamic_pallet_params, dynamic_params},
    traits::Get,
};
use sp_runtime::{FixedU128, Permill};
use surety_types::limits;

use crate::{
    Balance, BlockNumber, Runtime,
    units::{DAYS, EPOCH_SLOTS, HOURS, MILLI_SURE, MINUTES, SURE},
};

/// A window as it is set, but a block at least, and so long at most: what is opened while it is set to
/// something absurd ends all the same, and with it what is locked for it.
pub struct UpTo<const MOST: BlockNumber, Window>(PhantomData<Window>);

impl<const MOST: BlockNumber, Window: Get<BlockNumber>> Get<BlockNumber> for UpTo<MOST, Window> {
    fn get() -> BlockNumber {
        Window::get().clamp(1, MOST)
    }
}

/// The same for a day.
pub type UpToADay<Window> = UpTo<DAYS, Window>;

/// Names an asset beside SURE.
pub type AssetId = u32;

#[dynamic_params(RuntimeParameters, pallet_parameters::Parameters::<Runtime>)]
pub mod dynamic {
    use super::*;

    /// Parameters of staking.
    #[dynamic_pallet_params]
    #[codec(index = 0)]
    pub mod staking {
        /// Least stake of a stash, in plancks.
        #[codec(index = 0)]
        pub static MinBond: Balance = 1_000 * SURE;

        /// Blocks from unbonding to withdrawal. Longer than a task's result can be challenged, opened late
        /// and disputed; 30 at least, whatever this says.
        #[codec(index = 1)]
        pub static UnbondingPeriod: BlockNumber = 7 * DAYS;

        /// An asset, and how much of it in its smallest unit each provider that bonds has to put on hold
        /// beside its stake: nothing unless governance says so.
        #[codec(index = 2)]
        pub static Collateral: Option<(AssetId, Balance)> = None;
    }

    /// Parameters of provider-registry.
    #[dynamic_pallet_params]
    #[codec(index = 1)]
    pub mod provider_registry {
        /// Blocks of the chain since its last heartbeat for which a provider counts as available.
        #[codec(index = 0)]
        pub static HeartbeatWindow: BlockNumber = 10 * MINUTES;

        /// Whether only those provide whose identity a registrar has judged to be right. Where it is set,
        /// those that provide without get no tasks from then on. Over channels it is asked for as stake is
        /// bonded alone: who is bonded already goes on to sell there.
        #[codec(index = 1)]
        pub static IdentityRequired: bool = false;
    }

    /// Parameters of model-registry.
    #[dynamic_pallet_params]
    #[codec(index = 2)]
    pub mod model_registry {
        /// Held while a model is registered, in plancks.
        #[codec(index = 0)]
        pub static ModelDeposit: Balance = 10 * SURE;
    }

    /// Parameters of task-auction.
    #[dynamic_pallet_params]
    #[codec(index = 3)]
    pub mod auction {
        /// Blocks for sealed bids.
        #[codec(index = 0)]
        pub static BidWindow: BlockNumber = 15;

        /// Blocks for opening bids. The draw is held when they are over and all bids are open.
        #[codec(index = 1)]
        pub static RevealWindow: BlockNumber = 15;

        /// Stake that a sealed bid locks and an unopened one loses, in plancks.
        #[codec(index = 2)]
        pub static BidDeposit: Balance = SURE;

        /// Most units of a task: as many vectors as fit into one output blob of 64 MiB.
        #[codec(index = 3)]
        pub static UnitsMax: u32 = 40_000;

        /// Largest input of a task, in bytes: at most what one demand can have shown, whatever this says.
        #[codec(index = 4)]
        pub static InputBytesMax: u32 = limits::INPUT_BYTES_MAX;

        /// Most providers of a task.
        #[codec(index = 5)]
        pub static RedundancyMax: u32 = 16;

        /// Blocks of the chain for which a finished task can be read.
        #[codec(index = 6)]
        pub static FinishedRetention: BlockNumber = 7 * DAYS;

        /// Blocks beyond them for bids that are still sealed. Who does not open its bid loses a deposit: a
        /// worker that restarts, or a line that fails, has to have the time.
        #[codec(index = 7)]
        pub static LateRevealWindow: BlockNumber = 10 * MINUTES;
    }

    /// Parameters of trust-lock.
    #[dynamic_pallet_params]
    #[codec(index = 4)]
    pub mod trust_lock {
        /// Clean tasks in a row after which a provider is audited like anybody else.
        #[codec(index = 0)]
        pub static ProbationTasks: u32 = 200;

        /// Blocks for which a slash can be vetoed before it is carried out: at least 15, and 30 days of them
        /// or half of staking's `UnbondingPeriod` at most, whatever this says. A veto takes two thirds of it,
        /// and slashes that wait keep theirs: raise it by half at a time.
        #[codec(index = 1)]
        pub static SlashDeferral: BlockNumber = DAYS;

        /// Part of its other stake that a provider loses with its lock when its fault stands alone.
        #[codec(index = 2)]
        pub static StakePart: Permill = Permill::from_percent(5);

        /// Part of a slash for whoever proved the fault.
        #[codec(index = 3)]
        pub static FinderShare: Permill = Permill::from_percent(30);

        /// Part of a slash for the client, or the insurance pool. What is left of a slash is burned.
        #[codec(index = 4)]
        pub static ClientShare: Permill = Permill::from_percent(20);

        /// Blocks within which faults make each other dearer.
        #[codec(index = 5)]
        pub static CorrelationWindow: BlockNumber = DAYS;

        /// Blocks for which an offender gets no work.
        #[codec(index = 6)]
        pub static JailPeriod: BlockNumber = 7 * DAYS;

        /// Blocks for which whoever misses one deadline gets no work and cannot unbond.
        #[codec(index = 7)]
        pub static SuspensionPeriod: BlockNumber = 10 * MINUTES;
    }

    /// Parameters of billing.
    #[dynamic_pallet_params]
    #[codec(index = 5)]
    pub mod billing {
        /// Protocol fee, as a part of what providers are paid.
        #[codec(index = 0)]
        pub static FeeRate: Permill = Permill::from_percent(5);

        /// Smallest protocol fee of a settled task, in plancks.
        #[codec(index = 1)]
        pub static FeeMin: Balance = 10 * MILLI_SURE;

        /// The treasury's part of the fee.
        #[codec(index = 2)]
        pub static TreasuryShare: Permill = Permill::from_percent(40);

        /// The validators' part of the fee. What is left is burned.
        #[codec(index = 3)]
        pub static ValidatorShare: Permill = Permill::from_percent(40);

        /// Part of its task's cap that a client locks beside it.
        #[codec(index = 4)]
        pub static ClientLock: Permill = Permill::from_percent(25);
    }

    /// Parameters of results.
    #[dynamic_pallet_params]
    #[codec(index = 6)]
    pub mod results {
        /// Blocks for computing and committing.
        #[codec(index = 0)]
        pub static CommitWindow: BlockNumber = 10 * MINUTES;

        /// Blocks for auditors, from when they can draw themselves until the first reveal: more where the
        /// work takes longer.
        #[codec(index = 1)]
        pub static AuditWindow: BlockNumber = 10 * MINUTES;

        /// Blocks for opening commitments. Over as soon as all are open. Who is late is not paid.
        #[codec(index = 2)]
        pub static RevealWindow: BlockNumber = 10 * MINUTES;

        /// Blocks for challenging a verdict.
        #[codec(index = 3)]
        pub static ChallengeWindow: BlockNumber = HOURS;

        /// Stake locked for a task, as a multiple of its price.
        #[codec(index = 4)]
        pub static LockMultiple: u32 = 40;

        /// Auditors expected for a provider's result in a task at the standard level.
        #[codec(index = 5)]
        pub static AuditorsExpected: FixedU128 = FixedU128::from_u32(1);

        /// Auditors expected for the result of a provider that has no clean task yet, or was at fault.
        #[codec(index = 6)]
        pub static AuditorsNewcomer: FixedU128 = FixedU128::from_u32(3);

        /// Stake that an auditor locks, as a multiple of the provider's price.
        #[codec(index = 7)]
        pub static AuditBondMultiple: u32 = 20;

        /// What 1 KiB costs that is shown on chain because it was demanded, in plancks: about its fee, so
        /// that who is paid half of it to show something loses by not having served it.
        #[codec(index = 8)]
        pub static SupplyPrice: Balance = MILLI_SURE;

        /// Blocks in which a provider has to show what was demanded: the long clock, since it loses its lock.
        #[codec(index = 9)]
        pub static SupplyWindow: BlockNumber = 6 * HOURS;

        /// Blocks in which a client has to supply a piece of its input that was demanded. The round's
        /// deadline moves on by as much.
        #[codec(index = 10)]
        pub static InputWindow: BlockNumber = 10 * MINUTES;

        /// Blocks after a verdict in which whatever was sealed for it has to be opened: audits, and
        /// commitments that were not opened in time. Only silence beyond it costs stake.
        #[codec(index = 11)]
        pub static OpeningWindow: BlockNumber = 6 * HOURS;

        /// Auditors expected for a provider's result in a task at the basic level.
        #[codec(index = 12)]
        pub static AuditorsBasic: FixedU128 = FixedU128::from_rational(15, 100);

        /// Auditors expected for a provider's result in a task at the high level.
        #[codec(index = 13)]
        pub static AuditorsHigh: FixedU128 = FixedU128::from_u32(3);

        /// Part of the verifiers' stake that may be corrupt: a third, rounded up.
        #[codec(index = 14)]
        pub static VerifiersCorrupt: Permill = Permill::from_parts(333_334);

        /// How likely an honest audit of a wrong result is to end in a conviction.
        #[codec(index = 15)]
        pub static AuditAccuracy: Permill = Permill::from_percent(95);

        /// Most blocks for auditors: what takes longer is not taken.
        #[codec(index = 16)]
        pub static AuditWindowMax: BlockNumber = 6 * HOURS;

        /// What an audit is paid in the mean, as a multiple of what it costs.
        #[codec(index = 17)]
        pub static AuditPremium: FixedU128 = FixedU128::from_rational(5, 4);

        /// What one pass over tokens at once costs, as a part of what it costs to generate as many.
        #[codec(index = 18)]
        pub static GenerationAuditCost: Permill = Permill::from_percent(25);

        /// Part of the verifiers' stake that is taken to be able to audit any model, whoever has said so.
        #[codec(index = 19)]
        pub static VerifiersAble: Permill = Permill::zero();

        /// What a second of the reference machine is worth at least, in plancks: a tenth of what providers
        /// ask for a token of 10^9 weights, of which it does ten in one.
        #[codec(index = 20)]
        pub static WorkPrice: Balance = MILLI_SURE / 10;
    }

    /// Parameters of disputes.
    #[dynamic_pallet_params]
    #[codec(index = 7)]
    pub mod disputes {
        /// What a challenger puts on hold at least, as a multiple of the provider's price.
        #[codec(index = 0)]
        pub static ChallengeBondMultiple: u32 = 5;

        /// What it costs to defend a result, in plancks. A challenger puts at least twice that on hold.
        #[codec(index = 1)]
        pub static DefenseCost: Balance = 100 * MILLI_SURE;

        /// Blocks that each side of a dispute has in all.
        #[codec(index = 2)]
        pub static DisputeClock: u32 = 30 * MINUTES;

        /// Blocks for which a dispute about a cell that no block can compute waits to be decided.
        #[codec(index = 3)]
        pub static DecisionWindow: BlockNumber = 6 * HOURS;

        /// Blocks in which seats of a committee are taken. Its members compute meanwhile.
        #[codec(index = 4)]
        pub static SeatWindow: u32 = 20 * MINUTES;

        /// Blocks in which the members of a committee open their answers.
        #[codec(index = 5)]
        pub static VoteWindow: u32 = 10 * MINUTES;

        /// Blocks of the chain, not of the clock, before a draw for seats or audits in which a verifier's
        /// stake must not have grown and its agent not have changed. An epoch's randomness is made in the one
        /// before the last: three epochs.
        #[codec(index = 6)]
        pub static SeatSeasoning: u32 = 3 * EPOCH_SLOTS as u32;
    }

    /// Parameters of channels.
    #[dynamic_pallet_params]
    #[codec(index = 8)]
    pub mod channels {
        /// Points that verifiers draw for each SURE of a batch (a). A batch of more than 16 of them is
        /// refused.
        #[codec(index = 0)]
        pub static PointRate: FixedU128 = FixedU128::from_u32(1);

        /// What a wrong answer may be worth to somebody, as a multiple of its price (v).
        #[codec(index = 1)]
        pub static AtRisk: FixedU128 = FixedU128::from_u32(1);

        /// Part of the verifiers' stake that can audit what is sold (w). Standing locks rest on it, whatever
        /// the model: it is set to what has declared itself able for the models on offer, or less. Nothing is
        /// insured, and so nothing sold, until governance has said how much that is.
        #[codec(index = 2)]
        pub static VerifiersAble: Permill = Permill::zero();

        /// Expected cost of a point's audit, in plancks: one pass over the longest answers that are sold.
        #[codec(index = 3)]
        pub static PointCost: Balance = 10 * MILLI_SURE;

        /// Stake that a verifier locks for each of its points, in plancks.
        #[codec(index = 4)]
        pub static PointBond: Balance = SURE;

        /// What it costs to have a receipt shown, in plancks: half of it is less than the fee for showing the
        /// shortest, so that nobody lives on being asked, and the other half than that for a segment more.
        #[codec(index = 5)]
        pub static DemandPrice: Balance = MILLI_SURE;

        /// Blocks in which a receipt, or a batch with it, has to be shown: the long clock, since a provider
        /// loses its standing lock.
        #[codec(index = 6)]
        pub static SupplyWindow: BlockNumber = 6 * HOURS;

        /// Blocks in which verifiers announce what they have found of a batch.
        #[codec(index = 7)]
        pub static AnnounceWindow: BlockNumber = 30 * MINUTES;

        /// Blocks for which a batch can be disputed, the time for announcements included. What is after that
        /// is for opening them, and for disputing what was found.
        #[codec(index = 8)]
        pub static BatchWindow: BlockNumber = HOURS;

        /// Blocks for which batches can be disputed again when as many receipts were disputed as may be.
        #[codec(index = 9)]
        pub static DisputeWindow: BlockNumber = HOURS;

        /// Blocks after a batch's window in which verifiers can be refuted.
        #[codec(index = 10)]
        pub static RefuteWindow: BlockNumber = HOURS;

        /// Blocks that a payee has when a payer wants its money back: to batch what it has, and until that is
        /// final, the longest dispute included.
        #[codec(index = 11)]
        pub static ClosingPeriod: BlockNumber = DAYS;

        /// Longest time from now to a channel's expiry, in blocks.
        #[codec(index = 12)]
        pub static MaxLife: BlockNumber = 7 * DAYS;

        /// Blocks for which a final batch is kept. It is counted for four supply windows less: longer than a
        /// channel lives that is not extended, and closes.
        #[codec(index = 13)]
        pub static RedeemBy: BlockNumber = 9 * DAYS;
    }

    /// Parameters of delegation.
    #[dynamic_pallet_params]
    #[codec(index = 9)]
    pub mod delegation {
        /// Least that an operator of a validator has in its own pool, in plancks.
        #[codec(index = 0)]
        pub static MinSelfBond: Balance = 10_000 * SURE;

        /// Least that anybody else puts behind an operator, in plancks.
        #[codec(index = 1)]
        pub static MinDelegation: Balance = 10 * SURE;

        /// Blocks until stake that has left a pool can be withdrawn. Longer than what a validator signed can
        /// be reported, and the slash for it be vetoed; 315 at least, whatever this says: two sessions, in
        /// which it still works, and the shortest time for a veto.
        #[codec(index = 2)]
        pub static UnbondingPeriod: BlockNumber = 7 * DAYS;
    }

    /// Parameters of validators.
    #[dynamic_pallet_params]
    #[codec(index = 10)]
    pub mod validators {
        /// Where fewer candidates are elected, they come beside those that validate already, of whom a third
        /// at most goes. One at least.
        #[codec(index = 0)]
        pub static ValidatorsMin: u32 = 4;

        /// Most validators. 1,000 at most, whatever this says.
        #[codec(index = 1)]
        pub static ValidatorsMax: u32 = 100;
    }

    /// Parameters of emission.
    #[dynamic_pallet_params]
    #[codec(index = 11)]
    pub mod emission {
        /// Sessions after which validators' pools are paid: a day. One at least.
        #[codec(index = 0)]
        pub static RewardSessions: u32 = DAYS / EPOCH_SLOTS as u32;
    }

    /// Parameters of governance.
    #[dynamic_pallet_params]
    #[codec(index = 12)]
    pub mod governance {
        /// What periods of referenda are parts and multiples of, in blocks of the chain: at least 10, and 7
        /// days of them at most, whatever this says, or nobody could soon set it again. Referenda and votes
        /// that there are count by it, too: with one seven times as long they are locked for seven times as
        /// long.
        #[codec(index = 0)]
        pub static GovernanceUnit: BlockNumber = DAYS;
    }

    /// Parameters of gpu-proofs.
    #[dynamic_pallet_params]
    #[codec(index = 13)]
    pub mod gpu_proofs {
        /// Blocks of the chain without a round of the benchmark until one begins, on average. No round begins
        /// while it is 0.
        #[codec(index = 0)]
        pub static RoundEvery: u32 = 6 * HOURS;

        /// Blocks in which providers show what was drawn of their runs: a day at most, whatever this says.
        /// Whoever does not loses what it has shown before, and no money.
        #[codec(index = 1)]
        pub static OpenWindow: BlockNumber = 20 * MINUTES;
    }
}

/// What `set_parameter` is benchmarked with: the longest key and value.
#[cfg(feature = "runtime-benchmarks")]
impl Default for RuntimeParameters {
    fn default() -> Self {
        RuntimeParameters::Staking(dynamic::staking::Parameters::Collateral(
            dynamic::staking::Collateral,
            Some(Some((1, 1_000))),
        ))
    }
}
