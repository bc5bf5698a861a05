//! Who may do what for whom, and what root alone may do.

#![allow(clippy::arithmetic_side_effects, reason = "constants of the configuration")]

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use frame_support::{
    parameter_types,
    traits::{
        ConstU32, ConstU128, EqualPrivilegeOnly, InstanceFilter, LinearStoragePrice,
        fungible::HoldConsideration,
    },
    weights::Weight,
};
use frame_system::EnsureRoot;
use scale_info::TypeInfo;
use sp_runtime::{
    Perbill,
    traits::{BlakeTwo256, Verify},
};

use super::{agendas::SCHEDULED_MAX, origins::ParameterOrigin, system::RuntimeBlockWeights};
use crate::{
    AccountId, Balance, Balances, OriginCaller, Preimage, Runtime, RuntimeCall, RuntimeEvent,
    RuntimeHoldReason, RuntimeOrigin, RuntimeParameters, Signature, System,
    units::{DAYS, MILLI_SURE, SURE, deposit},
};

impl pallet_utility::Config for Runtime {
    type RuntimeEvent = RuntimeEvent;
    type RuntimeCall = RuntimeCall;
    type PalletsOrigin = OriginCaller;
    type WeightInfo = pallet_utility::weights::SubstrateWeight<Runtime>;
}

impl pallet_multisig::Config for Runtime {
    type RuntimeEvent = RuntimeEvent;
    type RuntimeCall = RuntimeCall;
    type Currency = Balances;
    type DepositBase = ConstU128<{ deposit(1, 88) }>;
    type DepositFactor = ConstU128<{ deposit(0, 32) }>;
    type MaxSignatories = ConstU32<100>;
    type WeightInfo = pallet_multisig::weights::SubstrateWeight<Runtime>;
    type BlockNumberProvider = System;
}

/// What a proxy may do.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Encode,
    Decode,
    DecodeWithMemTracking,
    MaxEncodedLen,
    TypeInfo,
)]
pub enum ProxyType {
    /// Everything.
    #[default]
    Any,
    /// What gives no money away: no transfers, and no tasks, which pay others. Nor votes, which lock it for
    /// months, and referenda, which cost some.
    NonTransfer,
    /// Working on tasks and over channels, and offering models, for a machine that holds no other key.
    Compute,
    /// Referenda and votes, for a stash whose key is kept offline.
    Governance,
}

impl InstanceFilter<RuntimeCall> for ProxyType {
    fn filter(&self, call: &RuntimeCall) -> bool {
        use surety_pallet_channels::Call as Channels;
        use surety_pallet_task_auction::Call as Auction;
        match self {
            ProxyType::Any => true,
            ProxyType::NonTransfer => matches!(
                call,
                RuntimeCall::System(..)
                    | RuntimeCall::Session(..)
                    | RuntimeCall::Utility(..)
                    | RuntimeCall::Proxy(..)
                    | RuntimeCall::Multisig(..)
                    | RuntimeCall::Identity(..)
                    | RuntimeCall::Preimage(..)
                    | RuntimeCall::Staking(..)
                    | RuntimeCall::Delegation(..)
                    | RuntimeCall::Validators(..)
                    | RuntimeCall::ProviderRegistry(..)
                    | RuntimeCall::ModelRegistry(..)
            ),
            // Deposits in channels are for others.
            ProxyType::Compute => match call {
                RuntimeCall::Channels(call) => !matches!(
                    call,
                    Channels::open { .. } | Channels::top_up { .. } | Channels::extend { .. }
                ),
                _ => matches!(
                    call,
                    RuntimeCall::Utility(..)
                        | RuntimeCall::ProviderRegistry(..)
                        | RuntimeCall::ModelRegistry(..)
                        | RuntimeCall::Results(..)
                        | RuntimeCall::Disputes(..)
                        | RuntimeCall::TrustLock(..)
                        | RuntimeCall::GpuProofs(..)
                        | RuntimeCall::TaskAuction(Auction::bid { .. } | Auction::advance { .. })
                ),
            },
            ProxyType::Governance => matches!(
                call,
                RuntimeCall::Utility(..)
                    | RuntimeCall::Preimage(..)
                    | RuntimeCall::Referenda(..)
                    | RuntimeCall::ConvictionVoting(..)
                    | RuntimeCall::TechnicalCommittee(..)
                    | RuntimeCall::Whitelist(..)
            ),
        }
    }

    fn is_superset(&self, other: &Self) -> bool {
        self == other || *self == ProxyType::Any
    }
}

impl pallet_proxy::Config for Runtime {
    type RuntimeEvent = RuntimeEvent;
    type RuntimeCall = RuntimeCall;
    type Currency = Balances;
    type ProxyType = ProxyType;
    type ProxyDepositBase = ConstU128<{ deposit(1, 8) }>;
    type ProxyDepositFactor = ConstU128<{ deposit(0, 37) }>;
    type MaxProxies = ConstU32<32>;
    type WeightInfo = pallet_proxy::weights::SubstrateWeight<Runtime>;
    type MaxPending = ConstU32<32>;
    type CallHasher = BlakeTwo256;
    type AnnouncementDepositBase = ConstU128<{ deposit(1, 8) }>;
    type AnnouncementDepositFactor = ConstU128<{ deposit(0, 68) }>;
    type BlockNumberProvider = System;
}

/// Most sub-accounts of an identity.
const SUB_ACCOUNTS_MAX: u32 = 32;

impl pallet_identity::Config for Runtime {
    type RuntimeEvent = RuntimeEvent;
    type Currency = Balances;
    // With that of all sub-accounts: one of their own would be given away, past what votes and vesting have
    // locked, to a sub-account that leaves.
    type BasicDeposit = ConstU128<{ deposit(1 + SUB_ACCOUNTS_MAX, 258 + 53 * SUB_ACCOUNTS_MAX) }>;
    type ByteDeposit = ConstU128<{ deposit(0, 1) }>;
    type UsernameDeposit = ConstU128<{ deposit(1, 32) }>;
    type SubAccountDeposit = ConstU128<0>;
    type MaxSubAccounts = ConstU32<SUB_ACCOUNTS_MAX>;
    type IdentityInformation = pallet_identity::legacy::IdentityInfo<ConstU32<16>>;
    type MaxRegistrars = ConstU32<20>;
    // Burned.
    type Slashed = ();
    type ForceOrigin = EnsureRoot<AccountId>;
    type RegistrarOrigin = EnsureRoot<AccountId>;
    type OffchainSignature = Signature;
    type SigningPublicKey = <Signature as Verify>::Signer;
    type UsernameAuthorityOrigin = EnsureRoot<AccountId>;
    type PendingUsernameExpiration = ConstU32<{ 7 * DAYS }>;
    type UsernameGracePeriod = ConstU32<{ 30 * DAYS }>;
    type MaxSuffixLength = ConstU32<7>;
    type MaxUsernameLength = ConstU32<32>;
    #[cfg(feature = "runtime-benchmarks")]
    type BenchmarkHelper = ();
    type WeightInfo = pallet_identity::weights::SubstrateWeight<Runtime>;
}

parameter_types! {
    /// Why money of those who store preimages is held.
    pub const PreimageHoldReason: RuntimeHoldReason =
        RuntimeHoldReason::Preimage(pallet_preimage::HoldReason::Preimage);
    /// Deposit for a preimage,
    pub const PreimageBaseDeposit: Balance = 2 * SURE;
    /// and for each of its bytes.
    pub const PreimageByteDeposit: Balance = MILLI_SURE;
    /// What scheduled calls may take of a block.
    pub SchedulerWeight: Weight = Perbill::from_percent(80) * RuntimeBlockWeights::get().max_block;
}

impl pallet_preimage::Config for Runtime {
    type RuntimeEvent = RuntimeEvent;
    type WeightInfo = pallet_preimage::weights::SubstrateWeight<Runtime>;
    type Currency = Balances;
    type ManagerOrigin = EnsureRoot<AccountId>;
    type Consideration = HoldConsideration<
        AccountId,
        Balances,
        PreimageHoldReason,
        LinearStoragePrice<PreimageBaseDeposit, PreimageByteDeposit, Balance>,
    >;
}

impl pallet_scheduler::Config for Runtime {
    type RuntimeEvent = RuntimeEvent;
    type RuntimeOrigin = RuntimeOrigin;
    type PalletsOrigin = OriginCaller;
    type RuntimeCall = RuntimeCall;
    type MaximumWeight = SchedulerWeight;
    type ScheduleOrigin = EnsureRoot<AccountId>;
    type OriginPrivilegeCmp = EqualPrivilegeOnly;
    // Whoever fills agendas delays referenda: see `FirstRoom`.
    type MaxScheduledPerBlock = ConstU32<SCHEDULED_MAX>;
    type WeightInfo = pallet_scheduler::weights::SubstrateWeight<Runtime>;
    type Preimages = Preimage;
    type BlockNumberProvider = System;
}

impl pallet_parameters::Config for Runtime {
    type RuntimeEvent = RuntimeEvent;
    type RuntimeParameters = RuntimeParameters;
    type AdminOrigin = ParameterOrigin;
    type WeightInfo = ();
}

impl crate::genesis_parameters::Config for Runtime {}

impl pallet_sudo::Config for Runtime {
    type RuntimeEvent = RuntimeEvent;
    type RuntimeCall = RuntimeCall;
    type WeightInfo = pallet_sudo::weights::SubstrateWeight<Runtime>;
}
