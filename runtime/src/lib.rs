//! The Surety runtime: the pallet list. What each pallet is configured with is under [`configs`], the answers
//! to the node under [`apis`], the numbers that governance may change under [`params`].

#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::unwrap_used
    )
)]
// The runtime macros generate hundreds of match arms in one expression.
#![recursion_limit = "512"]
// They document nothing that they make either. The modules that are written by hand ask for docs themselves.
#![allow(missing_docs)]

extern crate alloc;

#[cfg(all(feature = "std", not(feature = "next-version")))]
include!(concat!(env!("OUT_DIR"), "/wasm_binary.rs"));
#[cfg(all(feature = "std", feature = "next-version"))]
include!(concat!(env!("OUT_DIR"), "/next_version"));

pub mod apis;
#[cfg(feature = "runtime-benchmarks")]
mod benchmarks;
pub mod configs;
pub mod genesis_config_presets;
pub mod genesis_parameters;
pub mod next_version;
pub mod params;
pub mod pots;
pub mod units;
pub mod weights;

use alloc::vec::Vec;
use pallet_session::historical as pallet_session_historical;
use sp_runtime::{
    MultiAddress, MultiSignature, generic, impl_opaque_keys,
    traits::{BlakeTwo256, IdentifyAccount, Verify},
};
use sp_version::RuntimeVersion;

pub use params::RuntimeParameters;

/// Signatures of all three schemes.
pub type Signature = MultiSignature;
/// A 32-byte account.
pub type AccountId = <<Signature as Verify>::Signer as IdentifyAccount>::AccountId;
/// What extrinsics are addressed to.
pub type Address = MultiAddress<AccountId, ()>;
/// An amount in plancks.
pub type Balance = u128;
/// A block's number.
pub type BlockNumber = u32;
/// How many extrinsics an account has signed.
pub type Nonce = u32;
/// A block's hash.
pub type Hash = sp_core::H256;
/// A block's header.
pub type Header = generic::Header<BlockNumber, BlakeTwo256>;
/// A block with decoded extrinsics.
pub type Block = generic::Block<Header, UncheckedExtrinsic>;

/// Types for the node, which does not decode extrinsics.
pub mod opaque {
    use super::{Header, generic};
    pub use sp_runtime::OpaqueExtrinsic as UncheckedExtrinsic;

    /// A block whose extrinsics are bytes.
    pub type Block = generic::Block<Header, UncheckedExtrinsic>;
}

impl_opaque_keys! {
    /// The keys that a validator's node works with.
    pub struct SessionKeys {
        /// Authors blocks.
        pub babe: Babe,
        /// Votes for finality.
        pub grandpa: Grandpa,
        /// Signs the validator's network addresses.
        pub authority_discovery: AuthorityDiscovery,
    }
}

// A macro, as `runtime_version` takes nothing but literals.
macro_rules! version {
    ($spec_version:tt) => {
        /// What this runtime is.
        #[sp_version::runtime_version]
        pub const VERSION: RuntimeVersion = RuntimeVersion {
            spec_name: alloc::borrow::Cow::Borrowed("surety"),
            impl_name: alloc::borrow::Cow::Borrowed("surety"),
            authoring_version: 1,
            spec_version: $spec_version,
            impl_version: 1,
            apis: apis::RUNTIME_API_VERSIONS,
            transaction_version: 1,
            system_version: 1,
        };
    };
}

#[cfg(not(feature = "next-version"))]
version!(101);
// Later than any that is released.
#[cfg(feature = "next-version")]
version!(1_000_000);

/// What an extrinsic carries and is checked by, in order.
pub type TxExtension = (
    frame_system::AuthorizeCall<Runtime>,
    frame_system::CheckNonZeroSender<Runtime>,
    frame_system::CheckSpecVersion<Runtime>,
    frame_system::CheckTxVersion<Runtime>,
    frame_system::CheckGenesis<Runtime>,
    frame_system::CheckEra<Runtime>,
    frame_system::CheckNonce<Runtime>,
    frame_system::CheckWeight<Runtime>,
    pallet_transaction_payment::ChargeTransactionPayment<Runtime>,
    frame_metadata_hash_extension::CheckMetadataHash<Runtime>,
    frame_system::WeightReclaim<Runtime>,
);

/// An extrinsic as it arrives.
pub type UncheckedExtrinsic = generic::UncheckedExtrinsic<Address, RuntimeCall, Signature, TxExtension>;

/// What a signer signs.
pub type SignedPayload = generic::SignedPayload<RuntimeCall, TxExtension>;

/// Executes blocks.
pub type Executive = frame_executive::Executive<
    Runtime,
    Block,
    frame_system::ChainContext<Runtime>,
    Runtime,
    AllPalletsWithSystem,
>;

#[frame_support::runtime]
mod runtime {
    /// The runtime.
    #[runtime::runtime]
    #[runtime::derive(
        RuntimeCall,
        RuntimeEvent,
        RuntimeError,
        RuntimeOrigin,
        RuntimeFreezeReason,
        RuntimeHoldReason,
        RuntimeSlashReason,
        RuntimeLockId,
        RuntimeTask,
        RuntimeViewFunction
    )]
    pub struct Runtime;

    #[runtime::pallet_index(0)]
    pub type System = frame_system;
    #[runtime::pallet_index(1)]
    pub type Timestamp = pallet_timestamp;
    // Before Session, which asks it whether the session ends.
    #[runtime::pallet_index(2)]
    pub type Babe = pallet_babe;
    #[runtime::pallet_index(4)]
    pub type Balances = pallet_balances;
    #[runtime::pallet_index(5)]
    pub type TransactionPayment = pallet_transaction_payment;
    #[runtime::pallet_index(6)]
    pub type Session = pallet_session;
    #[runtime::pallet_index(7)]
    pub type Historical = pallet_session_historical;
    #[runtime::pallet_index(8)]
    pub type Offences = pallet_offences;
    #[runtime::pallet_index(9)]
    pub type Grandpa = pallet_grandpa;
    #[runtime::pallet_index(10)]
    pub type AuthorityDiscovery = pallet_authority_discovery;

    #[runtime::pallet_index(11)]
    pub type Utility = pallet_utility;
    #[runtime::pallet_index(12)]
    pub type Proxy = pallet_proxy;
    #[runtime::pallet_index(13)]
    pub type Multisig = pallet_multisig;
    #[runtime::pallet_index(14)]
    pub type Identity = pallet_identity;
    #[runtime::pallet_index(15)]
    pub type Preimage = pallet_preimage;
    #[runtime::pallet_index(16)]
    pub type Scheduler = pallet_scheduler;
    #[runtime::pallet_index(17)]
    pub type Parameters = pallet_parameters;
    // Has a key in the dev preset alone.
    #[runtime::pallet_index(18)]
    pub type Sudo = pallet_sudo;
    // Works at genesis alone: pallet-parameters has no genesis configuration of its own.
    #[runtime::pallet_index(19)]
    pub type GenesisParameters = crate::genesis_parameters;

    #[runtime::pallet_index(20)]
    pub type FinalityClock = surety_pallet_finality_clock;
    #[runtime::pallet_index(21)]
    pub type BlockEntropy = surety_pallet_block_entropy;
    // After Session: before it, the author of a session's first block would be looked up in the set that has
    // just gone.
    #[runtime::pallet_index(22)]
    pub type Authorship = pallet_authorship;
    // After BlockEntropy: it looks for what the author of the last block has given.
    #[runtime::pallet_index(23)]
    pub type GpuProofs = surety_pallet_gpu_proofs;

    // Who decides, and what is paid out of the treasury.
    #[runtime::pallet_index(30)]
    pub type Origins = crate::configs::origins;
    #[runtime::pallet_index(31)]
    pub type Referenda = pallet_referenda;
    #[runtime::pallet_index(32)]
    pub type ConvictionVoting = pallet_conviction_voting;
    #[runtime::pallet_index(33)]
    pub type TechnicalCommittee = pallet_collective;
    #[runtime::pallet_index(34)]
    pub type Whitelist = pallet_whitelist;
    #[runtime::pallet_index(35)]
    pub type Treasury = pallet_treasury;
    // At genesis after balances, and before anything of them is put on hold.
    #[runtime::pallet_index(36)]
    pub type Vesting = pallet_vesting;

    // What providers may have to put on hold beside SURE.
    #[runtime::pallet_index(37)]
    pub type Assets = pallet_assets;
    #[runtime::pallet_index(38)]
    pub type AssetsHolder = pallet_assets_holder;

    #[runtime::pallet_index(50)]
    pub type Staking = surety_pallet_staking;
    #[runtime::pallet_index(51)]
    pub type ProviderRegistry = surety_pallet_provider_registry;
    #[runtime::pallet_index(52)]
    pub type ModelRegistry = surety_pallet_model_registry;
    #[runtime::pallet_index(53)]
    pub type TaskAuction = surety_pallet_task_auction;
    #[runtime::pallet_index(54)]
    pub type TrustLock = surety_pallet_trust_lock;
    #[runtime::pallet_index(55)]
    pub type Billing = surety_pallet_billing;
    #[runtime::pallet_index(56)]
    pub type Results = surety_pallet_results;
    #[runtime::pallet_index(57)]
    pub type Disputes = surety_pallet_disputes;
    #[runtime::pallet_index(58)]
    pub type Channels = surety_pallet_channels;

    // At genesis in this order: pools, then who is elected by them, then what there is of SURE by then.
    #[runtime::pallet_index(60)]
    pub type Delegation = surety_pallet_delegation;
    #[runtime::pallet_index(61)]
    pub type Validators = surety_pallet_validators;
    #[runtime::pallet_index(62)]
    pub type Emission = surety_pallet_emission;
}
