//! Metadata of a chain like ours.

#![allow(non_camel_case_types, dead_code)]

use std::sync::Arc;

use codec::{Compact, Encode};
use scale_info::{MetaType, TypeInfo, meta_type};
use sp_core::{H256, crypto::AccountId32};
use sp_runtime::{FixedU128, MultiAddress, MultiSignature, generic::Era};
use subxt::{
    ext::frame_metadata::{RuntimeMetadataPrefixed, v14, v15},
    metadata::Metadata,
};
use surety_types::{model::ModelManifest, task::Bid};

pub use super::calls::*;
use super::{channels, gpu_proofs, stake};
use crate::runtime::Runtime;
use surety_chain_client::{
    ChainError, CommitRecord, CommitteeRecord, DemandRecord, DisputeRecord, ProviderRecord, RoundRecord,
    SlashRecord, StakeInfo, TaskInfo, TaskRecord, TrustInfo,
};

#[derive(TypeInfo, Encode)]
pub enum AuctionEvent {
    #[codec(index = 2)]
    TaskPosted {
        task: u64,
        client: AccountId32,
        cap: u128,
    },
}

#[derive(TypeInfo)]
#[scale_info(capture_docs = "always")]
enum AuctionError {
    UnknownModel,
    /// The cap does not cover
    /// the fee.
    CapBelowFee,
}

#[derive(TypeInfo, Encode)]
pub struct BidWindow;

#[derive(TypeInfo, Encode)]
pub enum AuctionParametersKey {
    BidWindow(BidWindow),
}

#[derive(TypeInfo, Encode)]
pub enum ParametersKey {
    Auction(AuctionParametersKey),
}

#[derive(TypeInfo, Encode)]
pub enum AuctionParametersValue {
    BidWindow(u32),
}

#[derive(TypeInfo, Encode)]
pub enum ParametersValue {
    Auction(AuctionParametersValue),
}

#[derive(TypeInfo)]
enum MetadataHashMode {
    Disabled,
    Enabled,
}

pub type Map = (Vec<v14::StorageHasher>, MetaType, MetaType);

pub fn pallet(
    index: u8,
    name: &'static str,
    call: MetaType,
    maps: Vec<(&'static str, Map)>,
) -> v15::PalletMetadata {
    let entry = |(name, (hashers, key, value)): (&'static str, Map)| v14::StorageEntryMetadata {
        name,
        modifier: v14::StorageEntryModifier::Optional,
        ty: match hashers.is_empty() {
            true => v14::StorageEntryType::Plain(value),
            false => v14::StorageEntryType::Map { hashers, key, value },
        },
        default: vec![0],
        docs: Vec::new(),
    };
    v15::PalletMetadata {
        name,
        storage: Some(v14::PalletStorageMetadata {
            prefix: name,
            entries: maps.into_iter().map(entry).collect(),
        }),
        calls: Some(v14::PalletCallMetadata { ty: call }),
        event: None,
        constants: Vec::new(),
        error: None,
        index,
        docs: Vec::new(),
    }
}

pub fn blake<K: TypeInfo + 'static, V: TypeInfo + 'static>() -> Map {
    let hashers = vec![v14::StorageHasher::Blake2_128Concat];
    (hashers, meta_type::<K>(), meta_type::<V>())
}

fn by_task<V: TypeInfo + 'static>() -> Map {
    let hashers = vec![v14::StorageHasher::Twox64Concat];
    (hashers, meta_type::<u64>(), meta_type::<V>())
}

fn constant<T: TypeInfo + Encode + 'static>(name: &'static str, value: &T) -> v14::PalletConstantMetadata {
    v14::PalletConstantMetadata {
        name,
        ty: meta_type::<T>(),
        value: value.encode(),
        docs: Vec::new(),
    }
}

pub fn plain<V: TypeInfo + 'static>() -> Map {
    (Vec::new(), meta_type::<()>(), meta_type::<V>())
}

fn by_task_and_place() -> Map {
    let hashers = vec![
        v14::StorageHasher::Twox64Concat,
        v14::StorageHasher::Blake2_128Concat,
    ];
    let key = meta_type::<(u64, (H256, u32, u32))>();
    (hashers, key, meta_type::<Vec<u8>>())
}

fn by_task_and_stash<V: TypeInfo + 'static>() -> Map {
    let hashers = vec![
        v14::StorageHasher::Twox64Concat,
        v14::StorageHasher::Blake2_128Concat,
    ];
    (hashers, meta_type::<(u64, AccountId32)>(), meta_type::<V>())
}

/// Rust's types stand in for the chain's: they are the same ones, apart from a few of ours.
pub fn pallets(auction_call: MetaType) -> Vec<v15::PalletMetadata> {
    let mut pallets = base_pallets().to_vec();
    pallets.extend(provider_pallets());
    pallets.push(auction_pallet(auction_call));
    pallets.extend(trust_pallets());
    pallets.push(pallet(11, "Utility", meta_type::<UtilityCall>(), Vec::new()));
    let channels = meta_type::<channels::ChannelsCall>();
    pallets.push(pallet(58, "Channels", channels, Vec::new()));
    pallets.extend(stake::stake_pallets());
    let gpu_proofs = meta_type::<gpu_proofs::GpuProofsCall>();
    pallets.push(pallet(23, "GpuProofs", gpu_proofs, Vec::new()));
    let entries = vec![("NextFeeMultiplier", plain::<FixedU128>())];
    pallets.push(pallet(6, "TransactionPayment", meta_type::<Nothing>(), entries));
    pallets
}

fn base_pallets() -> [v15::PalletMetadata; 3] {
    let entries = vec![
        ("Account", blake::<AccountId32, AccountInfo>()),
        ("Events", plain::<Vec<u8>>()),
        ("Number", plain::<u32>()),
    ];
    let mut system = pallet(0, "System", meta_type::<SystemCall>(), entries);
    system.constants.push(constant("BlockHashCount", &4096u32));
    let mut balances = pallet(4, "Balances", meta_type::<BalancesCall>(), Vec::new());
    balances.constants.push(constant("ExistentialDeposit", &5u128));
    let entries = vec![("Parameters", blake::<ParametersKey, ParametersValue>())];
    let parameters = pallet(17, "Parameters", meta_type::<Nothing>(), entries);
    [system, balances, parameters]
}

fn provider_pallets() -> [v15::PalletMetadata; 3] {
    let by_stash = blake::<AccountId32, AccountId32>;
    let entries = vec![
        ("Ledgers", blake::<AccountId32, StakeInfo>()),
        ("Agents", by_stash()),
        ("PendingAgents", by_stash()),
    ];
    let staking = pallet(50, "Staking", meta_type::<StakingCall>(), entries);
    let entries = vec![("Providers", blake::<AccountId32, ProviderRecord>())];
    let providers = pallet(51, "ProviderRegistry", meta_type::<ProviderCall>(), entries);
    let entries = vec![
        ("Models", blake::<H256, (AccountId32, ModelManifest, u128)>()),
        ("Auditors", blake::<H256, Vec<AccountId32>>()),
        ("AuditSpeeds", blake::<H256, u32>()),
    ];
    let models = pallet(52, "ModelRegistry", meta_type::<ModelCall>(), entries);
    [staking, providers, models]
}

fn auction_pallet(call: MetaType) -> v15::PalletMetadata {
    let entries = vec![
        ("Tasks", by_task::<TaskRecord>()),
        ("Bids", by_task_and_stash::<(H256, Option<Bid<u128>>, u128)>()),
        ("OpenTasks", by_task::<()>()),
        ("NextTaskId", plain::<u64>()),
    ];
    let mut auction = pallet(53, "TaskAuction", call, entries);
    auction.event = Some(v14::PalletEventMetadata {
        ty: meta_type::<AuctionEvent>(),
    });
    auction.error = Some(v14::PalletErrorMetadata {
        ty: meta_type::<AuctionError>(),
    });
    auction
}

fn trust_pallets() -> [v15::PalletMetadata; 4] {
    let entries = vec![("Elapsed", plain::<u32>())];
    let clock = pallet(55, "FinalityClock", meta_type::<Nothing>(), entries);
    let entries = vec![
        ("Rounds", by_task::<RoundRecord>()),
        ("Demands", by_task_and_stash::<Vec<DemandRecord>>()),
        ("CommitNotes", by_task_and_stash::<CommitRecord>()),
        ("Shown", by_task_and_place()),
    ];
    let results = pallet(56, "Results", meta_type::<ResultsCall>(), entries);
    let entries = vec![
        ("Disputes", blake::<u32, DisputeRecord>()),
        ("Committees", blake::<u32, CommitteeRecord>()),
    ];
    let disputes = pallet(57, "Disputes", meta_type::<DisputesCall>(), entries);
    let entries = vec![
        ("Slashes", blake::<u32, SlashRecord>()),
        ("Records", blake::<AccountId32, TrustInfo>()),
    ];
    let lock = pallet(54, "TrustLock", meta_type::<TrustLockCall>(), entries);
    [clock, results, disputes, lock]
}

fn extrinsic() -> v15::ExtrinsicMetadata {
    let nothing = meta_type::<()>;
    let extension = |identifier, ty, additional_signed| v15::SignedExtensionMetadata {
        identifier,
        ty,
        additional_signed,
    };
    v15::ExtrinsicMetadata {
        version: 4,
        address_ty: meta_type::<MultiAddress<AccountId32, ()>>(),
        call_ty: meta_type::<Nothing>(),
        signature_ty: meta_type::<MultiSignature>(),
        extra_ty: nothing(),
        signed_extensions: vec![
            extension("CheckNonZeroSender", nothing(), nothing()),
            extension("CheckSpecVersion", nothing(), meta_type::<u32>()),
            extension("CheckTxVersion", nothing(), meta_type::<u32>()),
            extension("CheckGenesis", nothing(), meta_type::<H256>()),
            extension("CheckMortality", meta_type::<Era>(), meta_type::<H256>()),
            extension("CheckNonce", meta_type::<Compact<u32>>(), nothing()),
            extension("CheckWeight", nothing(), nothing()),
            extension(
                "ChargeTransactionPayment",
                meta_type::<Compact<u128>>(),
                nothing(),
            ),
            extension(
                "CheckMetadataHash",
                meta_type::<MetadataHashMode>(),
                meta_type::<Option<[u8; 32]>>(),
            ),
        ],
    }
}

/// A function of the runtime, with the names and types of its arguments.
pub fn function(
    name: &'static str,
    arguments: Vec<(&'static str, MetaType)>,
    output: MetaType,
) -> v15::RuntimeApiMethodMetadata {
    let input = |(name, ty)| v15::RuntimeApiMethodParamMetadata { name, ty };
    v15::RuntimeApiMethodMetadata {
        name,
        inputs: arguments.into_iter().map(input).collect(),
        output,
        docs: Vec::new(),
    }
}

fn apis() -> Vec<v15::RuntimeApiMetadata> {
    let (id, account, amount) = (meta_type::<u64>, meta_type::<AccountId32>, meta_type::<u128>);
    let task = vec![
        function("task", vec![("id", id())], meta_type::<Option<TaskInfo>>()),
        function(
            "price_limit",
            vec![("cap", amount()), ("redundancy", meta_type::<u32>())],
            meta_type::<Option<u128>>(),
        ),
    ];
    let trust = vec![
        function(
            "auditors_expected",
            vec![("task", id()), ("provider", account())],
            amount(),
        ),
        function(
            "shown",
            vec![("task", id()), ("content", meta_type::<H256>())],
            meta_type::<Vec<u8>>(),
        ),
    ];
    let apis = [
        ("TaskApi", task),
        ("TrustApi", trust),
        ("ChannelApi", channels::functions()),
        ("GpuProofsApi", gpu_proofs::functions()),
    ];
    let api = |(name, methods)| v15::RuntimeApiMetadata {
        name,
        methods,
        docs: Vec::new(),
    };
    apis.into_iter().map(api).collect()
}

pub const SPEC_VERSION: u32 = 7;
pub const TRANSACTION_VERSION: u32 = 3;

pub fn metadata(pallets: Vec<v15::PalletMetadata>) -> Vec<u8> {
    metadata_of(pallets, apis())
}

/// Metadata of a runtime without channels.
pub fn metadata_without_channels() -> Vec<u8> {
    metadata_without("Channels", "ChannelApi")
}

/// Metadata of a runtime without a pallet and the functions that ask it.
pub fn metadata_without(pallet: &str, api: &str) -> Vec<u8> {
    let mut pallets = pallets(meta_type::<AuctionCall>());
    pallets.retain(|other| other.name != pallet);
    let mut apis = apis();
    apis.retain(|other| other.name != api);
    metadata_of(pallets, apis)
}

/// Metadata of a runtime that has no functions for us.
pub fn metadata_without_apis() -> Vec<u8> {
    metadata_of(pallets(meta_type::<AuctionCall>()), Vec::new())
}

fn metadata_of(pallets: Vec<v15::PalletMetadata>, apis: Vec<v15::RuntimeApiMetadata>) -> Vec<u8> {
    let outer = v15::OuterEnums {
        call_enum_ty: meta_type::<Nothing>(),
        event_enum_ty: meta_type::<Nothing>(),
        error_enum_ty: meta_type::<Nothing>(),
    };
    let custom = v15::CustomMetadata {
        map: Default::default(),
    };
    let nothing = meta_type::<Nothing>();
    let metadata = v15::RuntimeMetadataV15::new(pallets, extrinsic(), nothing, apis, outer, custom);
    RuntimeMetadataPrefixed::from(metadata).encode()
}

pub fn runtime_with(pallets: Vec<v15::PalletMetadata>) -> Result<Runtime, ChainError> {
    let metadata = Metadata::decode_from(&metadata(pallets)).unwrap();
    let runtime = Runtime::new(SPEC_VERSION, TRANSACTION_VERSION, Arc::new(metadata));
    match runtime.misfits().first() {
        None => Ok(runtime),
        Some(what) => Err(ChainError::Incompatible {
            spec_version: SPEC_VERSION,
            what: what.clone(),
        }),
    }
}

pub fn runtime() -> Runtime {
    runtime_with(pallets(meta_type::<AuctionCall>())).unwrap()
}
