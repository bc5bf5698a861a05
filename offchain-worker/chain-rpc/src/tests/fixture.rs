//! Metadata of a chain like ours.

#![allow(non_camel_case_types, dead_code)]

use std::sync::Arc;

use codec::{Compact, Encode};
use scale_info::{MetaType, TypeInfo, meta_type};
use sp_core::{H256, crypto::AccountId32};
use sp_runtime::{MultiAddress, MultiSignature};
use subxt::{
    ext::frame_metadata::{RuntimeMetadataPrefixed, v14, v15},
    metadata::Metadata,
};
use surety_types::{model::ModelManifest, task::Bid};

pub use super::calls::*;
use crate::runtime::Runtime;
use surety_chain_client::{
    ChainError, CommitteeRecord, DemandRecord, DisputeRecord, ProviderRecord, RoundRecord, SlashRecord,
    StakeInfo, TaskInfo, TaskRecord, TrustInfo,
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

type Map = (Vec<v14::StorageHasher>, MetaType, MetaType);

fn pallet(
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

fn blake<K: TypeInfo + 'static, V: TypeInfo + 'static>() -> Map {
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

fn plain<V: TypeInfo + 'static>() -> Map {
    (Vec::new(), meta_type::<()>(), meta_type::<V>())
}

pub fn pallets(auction_call: MetaType) -> Vec<v15::PalletMetadata> {
    let nothing = meta_type::<Nothing>;
    let account = blake::<AccountId32, AccountInfo>();
    let events = plain::<Vec<u8>>();
    let by_stash = blake::<AccountId32, AccountId32>;
    // Rust's types stand in for the chain's: they are the same ones, apart from these three of ours.
    let model = blake::<H256, (AccountId32, ModelManifest, u128)>();
    let bid_hashers = vec![
        v14::StorageHasher::Twox64Concat,
        v14::StorageHasher::Blake2_128Concat,
    ];
    let demands = (
        bid_hashers.clone(),
        meta_type::<(u64, AccountId32)>(),
        meta_type::<DemandRecord>(),
    );
    let bids = (
        bid_hashers,
        meta_type::<(u64, AccountId32)>(),
        meta_type::<(H256, Option<Bid<u128>>, u128)>(),
    );
    let mut auction = pallet(
        53,
        "TaskAuction",
        auction_call,
        vec![
            ("Tasks", by_task::<TaskRecord>()),
            ("Bids", bids),
            ("OpenTasks", by_task::<()>()),
            ("NextTaskId", plain::<u64>()),
        ],
    );
    auction.event = Some(v14::PalletEventMetadata {
        ty: meta_type::<AuctionEvent>(),
    });
    auction.error = Some(v14::PalletErrorMetadata {
        ty: meta_type::<AuctionError>(),
    });
    let mut balances = pallet(4, "Balances", meta_type::<BalancesCall>(), Vec::new());
    balances.constants.push(constant("ExistentialDeposit", &5u128));
    let entries = vec![
        ("Account", account),
        ("Events", events),
        ("Number", plain::<u32>()),
    ];
    let mut system = pallet(0, "System", meta_type::<SystemCall>(), entries);
    system.constants.push(constant("BlockHashCount", &4096u32));
    vec![
        system,
        balances,
        pallet(
            17,
            "Parameters",
            nothing(),
            vec![("Parameters", blake::<ParametersKey, ParametersValue>())],
        ),
        pallet(
            50,
            "Staking",
            meta_type::<StakingCall>(),
            vec![
                ("Ledgers", blake::<AccountId32, StakeInfo>()),
                ("Agents", by_stash()),
                ("PendingAgents", by_stash()),
            ],
        ),
        pallet(
            51,
            "ProviderRegistry",
            meta_type::<ProviderCall>(),
            vec![("Providers", blake::<AccountId32, ProviderRecord>())],
        ),
        pallet(
            52,
            "ModelRegistry",
            meta_type::<ModelCall>(),
            vec![("Models", model)],
        ),
        auction,
        pallet(55, "FinalityClock", nothing(), vec![("Elapsed", plain::<u32>())]),
        pallet(
            56,
            "Results",
            meta_type::<ResultsCall>(),
            vec![("Rounds", by_task::<RoundRecord>()), ("Demands", demands)],
        ),
        pallet(
            57,
            "Disputes",
            meta_type::<DisputesCall>(),
            vec![
                ("Disputes", blake::<u32, DisputeRecord>()),
                ("Committees", blake::<u32, CommitteeRecord>()),
            ],
        ),
        pallet(
            54,
            "TrustLock",
            meta_type::<TrustLockCall>(),
            vec![
                ("Slashes", blake::<u32, SlashRecord>()),
                ("Records", blake::<AccountId32, TrustInfo>()),
            ],
        ),
    ]
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
            extension("CheckMortality", meta_type::<[u8; 2]>(), meta_type::<H256>()),
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

fn apis() -> Vec<v15::RuntimeApiMetadata> {
    let input = |name, ty| v15::RuntimeApiMethodParamMetadata { name, ty };
    let method = |name, inputs, output| v15::RuntimeApiMethodMetadata {
        name,
        inputs,
        output,
        docs: Vec::new(),
    };
    let api = |name, methods| v15::RuntimeApiMetadata {
        name,
        methods,
        docs: Vec::new(),
    };
    let expected = method(
        "auditors_expected",
        vec![
            input("task", meta_type::<u64>()),
            input("provider", meta_type::<AccountId32>()),
        ],
        meta_type::<u128>(),
    );
    let task = vec![
        method(
            "task",
            vec![input("id", meta_type::<u64>())],
            meta_type::<Option<TaskInfo>>(),
        ),
        method(
            "price_limit",
            vec![
                input("cap", meta_type::<u128>()),
                input("redundancy", meta_type::<u32>()),
            ],
            meta_type::<Option<u128>>(),
        ),
    ];
    vec![api("TaskApi", task), api("TrustApi", vec![expected])]
}

pub const SPEC_VERSION: u32 = 7;
pub const TRANSACTION_VERSION: u32 = 3;

pub fn metadata(pallets: Vec<v15::PalletMetadata>) -> Vec<u8> {
    let outer = v15::OuterEnums {
        call_enum_ty: meta_type::<Nothing>(),
        event_enum_ty: meta_type::<Nothing>(),
        error_enum_ty: meta_type::<Nothing>(),
    };
    let custom = v15::CustomMetadata {
        map: Default::default(),
    };
    let nothing = meta_type::<Nothing>();
    let metadata = v15::RuntimeMetadataV15::new(pallets, extrinsic(), nothing, apis(), outer, custom);
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
