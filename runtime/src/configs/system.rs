//! Blocks, accounts, money and fees.

#![allow(clippy::arithmetic_side_effects, reason = "constants of the configuration")]

use frame_support::{
    derive_impl,
    dispatch::DispatchClass,
    parameter_types,
    traits::{
        ConstU8, ConstU16, ConstU32, ConstU64, ConstU128, Contains, OnUnbalanced, VariantCountOf,
        fungible::{Balanced, Credit},
    },
    weights::{
        ConstantMultiplier, Weight, WeightToFeeCoefficient, WeightToFeeCoefficients, WeightToFeePolynomial,
        constants::{BlockExecutionWeight, ExtrinsicBaseWeight, ParityDbWeight, WEIGHT_REF_TIME_PER_SECOND},
    },
};
use frame_system::limits::{BlockLength, BlockWeights};
use pallet_transaction_payment::{Multiplier, TargetedFeeAdjustment};
use sp_runtime::{
    FixedPointNumber, Perbill, Perquintill,
    traits::{AccountIdLookup, BlakeTwo256, Bounded},
};
use sp_version::RuntimeVersion;

use super::referenda::is_veto;
use crate::{
    AccountId, Authorship, Babe, Balance, Balances, Block, Hash, Nonce, PalletInfo, Runtime, RuntimeCall,
    RuntimeEvent, RuntimeFreezeReason, RuntimeHoldReason, RuntimeOrigin, RuntimeTask, System, VERSION,
    units::{EXISTENTIAL_DEPOSIT, MICRO_SURE, MILLI_SURE, SLOT_MS, SS58_PREFIX},
};

/// What users' extrinsics may fill of a block. The rest is kept for operational calls and for hooks, so that
/// a flood of transactions stops neither an equivocation report nor the tasks' agenda.
const NORMAL_RATIO: Perbill = Perbill::from_percent(75);

/// A third of a slot: a block is built in that time by its author and executed again by everybody else before
/// the next slot, on machines a good deal slower than the one that the weights were measured on.
const BLOCK_COMPUTE: Weight = Weight::from_parts(WEIGHT_REF_TIME_PER_SECOND.saturating_mul(2) / 3, u64::MAX);

/// Hooks that run before the first extrinsic, in the estimate that pallets' limits are checked against.
const INITIALIZATION_RATIO: Perbill = Perbill::from_percent(10);

const BLOCK_BYTES: u32 = 5 * 1024 * 1024;

parameter_types! {
    /// This runtime's version.
    pub const Version: RuntimeVersion = VERSION;

    /// How much work fits into a block.
    pub RuntimeBlockWeights: BlockWeights = BlockWeights::builder()
        .base_block(BlockExecutionWeight::get())
        .for_class(DispatchClass::all(), |weights| weights.base_extrinsic = ExtrinsicBaseWeight::get())
        .for_class(DispatchClass::Normal, |weights| {
            weights.max_total = Some(NORMAL_RATIO * BLOCK_COMPUTE);
        })
        .for_class(DispatchClass::Operational, |weights| {
            weights.max_total = Some(BLOCK_COMPUTE);
            // Operational calls get in even when normal ones have filled their part.
            weights.reserved = Some(BLOCK_COMPUTE - NORMAL_RATIO * BLOCK_COMPUTE);
        })
        .avg_block_initialization(INITIALIZATION_RATIO)
        .build_or_panic();

    /// How many bytes fit into a block.
    pub RuntimeBlockLength: BlockLength = BlockLength::builder()
        .max_length(BLOCK_BYTES)
        .modify_max_length_for_class(DispatchClass::Normal, |max| *max = NORMAL_RATIO * BLOCK_BYTES)
        .build();
}

/// Blocks whose hashes are kept, and so the longest life of a mortal extrinsic: a little over two hours.
pub const BLOCK_HASH_COUNT: u32 = 4_096;

/// All calls but these, which root alone may make:
///
/// - Signed reports of what validators signed twice. They are free when they are valid, and who has been
///   convicted could make any number of them, each kept for good. Nodes send unsigned ones, which get into a
///   block only by the node of its author.
/// - Ending a referendum on a veto. Who wants it would have a few hours to see that and vote against it; who
///   does not can vote against the veto.
pub struct CallFilter;

impl Contains<RuntimeCall> for CallFilter {
    fn contains(call: &RuntimeCall) -> bool {
        match call {
            RuntimeCall::Babe(pallet_babe::Call::report_equivocation { .. })
            | RuntimeCall::Grandpa(pallet_grandpa::Call::report_equivocation { .. }) => false,
            RuntimeCall::Referenda(pallet_referenda::Call::cancel { index }) => !is_veto(*index),
            _ => true,
        }
    }
}

#[derive_impl(frame_system::config_preludes::SolochainDefaultConfig)]
impl frame_system::Config for Runtime {
    type BaseCallFilter = CallFilter;
    type AccountId = AccountId;
    type Lookup = AccountIdLookup<AccountId, ()>;
    type Nonce = Nonce;
    type Hash = Hash;
    type Hashing = BlakeTwo256;
    type Block = Block;
    type BlockHashCount = ConstU32<BLOCK_HASH_COUNT>;
    type BlockWeights = RuntimeBlockWeights;
    type BlockLength = RuntimeBlockLength;
    type DbWeight = ParityDbWeight;
    type Version = Version;
    type AccountData = pallet_balances::AccountData<Balance>;
    type SystemWeightInfo = frame_system::weights::SubstrateWeight<Runtime>;
    type ExtensionsWeightInfo = frame_system::SubstrateExtensionsWeight<Runtime>;
    type SS58Prefix = ConstU16<SS58_PREFIX>;
    type MaxConsumers = ConstU32<16>;
    type SingleBlockMigrations = Migrations;
}

/// What an upgrade changes of the state, in order.
#[cfg(not(feature = "next-version"))]
pub type Migrations = Released;
/// What an upgrade changes of the state, in order.
#[cfg(feature = "next-version")]
pub type Migrations = (Released, crate::next_version::WriteAnew);

/// No migrations before the first release, of which there is none yet: those that there are show how it is
/// done. From then on each change of a layout comes with a version, a migration and a test with old bytes,
/// and those of all releases stay here.
pub type Released = (
    crate::pots::Endow,
    surety_pallet_trust_lock::migrations::CauseOfSlashes<Runtime>,
    surety_pallet_billing::migrations::EscrowIntoPot<Runtime>,
);

impl pallet_timestamp::Config for Runtime {
    type Moment = u64;
    type OnTimestampSet = Babe;
    // Half a slot, as BABE's documentation asks for.
    type MinimumPeriod = ConstU64<{ SLOT_MS / 2 }>;
    type WeightInfo = pallet_timestamp::weights::SubstrateWeight<Runtime>;
}

impl pallet_balances::Config for Runtime {
    type RuntimeEvent = RuntimeEvent;
    type RuntimeHoldReason = RuntimeHoldReason;
    type RuntimeFreezeReason = RuntimeFreezeReason;
    type WeightInfo = pallet_balances::weights::SubstrateWeight<Runtime>;
    type Balance = Balance;
    type DustRemoval = ();
    type ExistentialDeposit = ConstU128<EXISTENTIAL_DEPOSIT>;
    type AccountStore = System;
    // Identity, multisig and proxy still reserve.
    type ReserveIdentifier = [u8; 8];
    type FreezeIdentifier = RuntimeFreezeReason;
    type MaxLocks = ConstU32<50>;
    type MaxReserves = ConstU32<50>;
    type MaxFreezes = VariantCountOf<RuntimeFreezeReason>;
    type DoneSlashHandler = ();
}

/// A tenth of a milli-SURE for the time of an empty extrinsic, and in proportion.
pub struct WeightToFee;

impl WeightToFeePolynomial for WeightToFee {
    type Balance = Balance;
    fn polynomial() -> WeightToFeeCoefficients<Self::Balance> {
        let numerator = MILLI_SURE / 10;
        let denominator = Balance::from(ExtrinsicBaseWeight::get().ref_time());
        [WeightToFeeCoefficient {
            degree: 1,
            negative: false,
            coeff_frac: Perbill::from_rational(numerator % denominator, denominator),
            coeff_integer: numerator / denominator,
        }]
        .into_iter()
        .collect()
    }
}

parameter_types! {
    /// Blocks a quarter full leave the price as it is.
    pub const TargetBlockFullness: Perquintill = Perquintill::from_percent(25);
    /// How fast the price moves: when blocks stay full, about 40 % a day.
    pub AdjustmentVariable: Multiplier = Multiplier::saturating_from_rational(1, 100_000);
    /// An idle chain stays dear enough to be no free storage.
    pub MinimumMultiplier: Multiplier = Multiplier::saturating_from_rational(1, 10);
    /// No limit upwards: it is what keeps a flood out.
    pub MaximumMultiplier: Multiplier = Bounded::max_value();
}

/// Gives fees and tips of transactions to the author of the block, whole: no parameter shares them. What the
/// author's account cannot take is burned.
pub struct ToAuthor;

impl OnUnbalanced<Credit<AccountId, Balances>> for ToAuthor {
    fn on_nonzero_unbalanced(credit: Credit<AccountId, Balances>) {
        if let Some(author) = Authorship::author() {
            // An author whose account is gone and whose fee is below the existential deposit gets nothing.
            drop(Balances::resolve(&author, credit));
        }
    }
}

impl pallet_transaction_payment::Config for Runtime {
    type RuntimeEvent = RuntimeEvent;
    type OnChargeTransaction = super::fees::SignerOrStash;
    type OperationalFeeMultiplier = ConstU8<5>;
    type WeightToFee = WeightToFee;
    type LengthToFee = ConstantMultiplier<Balance, ConstU128<MICRO_SURE>>;
    type FeeMultiplierUpdate = TargetedFeeAdjustment<
        Runtime,
        TargetBlockFullness,
        AdjustmentVariable,
        MinimumMultiplier,
        MaximumMultiplier,
    >;
    type WeightInfo = super::fees::FeeWeight;
}
