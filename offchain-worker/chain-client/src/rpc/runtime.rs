//! A runtime as its metadata describes it: whether it fits this crate, storage keys, and call data.

use codec::{Decode, DecodeAll, Encode};
use scale_decode::visitor::{decode_with_visitor, IgnoreVisitor};
use scale_encode::{EncodeAsFields, FieldIter, TypeResolver};
use sp_crypto_hashing::{blake2_128, blake2_256, twox_128, twox_256, twox_64};
use subxt::{
    ext::frame_decode::storage::StorageHasher,
    metadata::{ArcMetadata, StorageEntryMetadata},
    tx::Payload,
};

use crate::{sample, Call, ChainError};

/// The storage entries that we read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Account,
    Events,
    Parameters,
    Ledgers,
    Agents,
    PendingAgents,
    Providers,
    Models,
    Tasks,
    Bids,
    Rounds,
    Disputes,
    Demands,
    Slashes,
    Records,
    Committees,
}

impl Entry {
    const ALL: [Self; 16] = [
        Self::Account,
        Self::Events,
        Self::Parameters,
        Self::Ledgers,
        Self::Agents,
        Self::PendingAgents,
        Self::Providers,
        Self::Models,
        Self::Tasks,
        Self::Bids,
        Self::Rounds,
        Self::Disputes,
        Self::Demands,
        Self::Slashes,
        Self::Records,
        Self::Committees,
    ];

    /// Pallet, entry, number of keys.
    pub fn name(self) -> (&'static str, &'static str, usize) {
        match self {
            Self::Account => ("System", "Account", 1),
            Self::Events => ("System", "Events", 0),
            Self::Parameters => ("Parameters", "Parameters", 1),
            Self::Ledgers => ("Staking", "Ledgers", 1),
            Self::Agents => ("Staking", "Agents", 1),
            Self::PendingAgents => ("Staking", "PendingAgents", 1),
            Self::Providers => ("ProviderRegistry", "Providers", 1),
            Self::Models => ("ModelRegistry", "Models", 1),
            Self::Tasks => ("TaskAuction", "Tasks", 1),
            Self::Bids => ("TaskAuction", "Bids", 2),
            Self::Rounds => ("TrustLock", "Rounds", 1),
            Self::Disputes => ("TrustLock", "Disputes", 1),
            Self::Demands => ("TrustLock", "Demands", 2),
            Self::Slashes => ("TrustLock", "Slashes", 1),
            Self::Records => ("TrustLock", "Records", 1),
            Self::Committees => ("TrustLock", "Committees", 1),
        }
    }

    /// Values in SCALE, as we expect them.
    fn samples(self) -> Vec<Vec<u8>> {
        match self {
            // Counters and balances: `AccountInfo` with `AccountData`.
            Self::Account => vec![([0u32; 4], [0u128; 4]).encode()],
            // Read with the metadata's own types.
            Self::Events | Self::Parameters => Vec::new(),
            Self::Ledgers => vec![sample::stake().encode()],
            Self::Agents | Self::PendingAgents => vec![sample::account_bytes()],
            Self::Providers => vec![sample::provider().encode()],
            Self::Models => vec![sample::model().encode()],
            Self::Tasks => sample::tasks().iter().map(Encode::encode).collect(),
            Self::Bids => vec![sample::bid_record().encode()],
            Self::Rounds => sample::rounds().iter().map(Encode::encode).collect(),
            Self::Disputes => sample::trust::disputes().iter().map(Encode::encode).collect(),
            Self::Demands => vec![sample::trust::demand().encode()],
            Self::Slashes => vec![sample::trust::slash().encode()],
            Self::Records => vec![sample::trust::record().encode()],
            Self::Committees => sample::committee::committees()
                .iter()
                .map(Encode::encode)
                .collect(),
        }
    }
}

/// Reads a value that must be a `T` and nothing more.
pub(super) fn decode<T: Decode>(entry: Entry, bytes: &[u8]) -> Result<T, ChainError> {
    T::decode_all(&mut &*bytes).map_err(|error| {
        let (pallet, name, _) = entry.name();
        ChainError::Decode {
            what: format!("{pallet}.{name}"),
            reason: error.to_string(),
        }
    })
}

/// A runtime that has been found to fit.
pub(super) struct Runtime {
    spec_version: u32,
    transaction_version: u32,
    metadata: ArcMetadata,
}

impl Runtime {
    /// Checks everything we rely on.
    pub fn new(
        spec_version: u32,
        transaction_version: u32,
        metadata: ArcMetadata,
    ) -> Result<Self, ChainError> {
        let runtime = Self {
            spec_version,
            transaction_version,
            metadata,
        };
        for entry in Entry::ALL {
            runtime.check_entry(entry)?;
        }
        for call in sample::calls() {
            runtime.check_call(&call)?;
        }
        runtime.check_api()?;
        Ok(runtime)
    }

    pub fn spec_version(&self) -> u32 {
        self.spec_version
    }

    pub fn transaction_version(&self) -> u32 {
        self.transaction_version
    }

    pub fn metadata(&self) -> &ArcMetadata {
        &self.metadata
    }

    fn unfit(&self, what: String) -> ChainError {
        ChainError::Incompatible {
            spec_version: self.spec_version,
            what,
        }
    }

    pub(super) fn entry(&self, entry: Entry) -> Result<&StorageEntryMetadata, ChainError> {
        let (pallet, name, keys) = entry.name();
        let found = self
            .metadata
            .pallet_by_name(pallet)
            .and_then(|pallet| pallet.storage()?.entry_by_name(name))
            .ok_or_else(|| self.unfit(format!("it has no storage {pallet}.{name}")))?;
        if found.keys().len() != keys {
            let what = format!("{pallet}.{name} has {} keys, not {keys}", found.keys().len());
            return Err(self.unfit(what));
        }
        Ok(found)
    }

    fn check_entry(&self, entry: Entry) -> Result<(), ChainError> {
        let value_type = self.entry(entry)?.value_ty();
        for sample in entry.samples() {
            if !self.reads(&sample, [value_type]) {
                let (pallet, name, _) = entry.name();
                return Err(self.unfit(format!("{pallet}.{name} holds other records")));
            }
        }
        Ok(())
    }

    /// Whether the bytes are values of these types, one after the other, and nothing more.
    fn reads(&self, mut bytes: &[u8], types: impl IntoIterator<Item = u32>) -> bool {
        let mut types = types.into_iter();
        types.all(|ty| self.skip(&mut bytes, ty).is_ok()) && bytes.is_empty()
    }

    fn check_call(&self, call: &Call) -> Result<(), ChainError> {
        let name = call.name();
        let title = format!("{}.{}", name.pallet, name.call);
        let pallet = self.metadata.pallet_by_name(name.pallet);
        let found = pallet
            .as_ref()
            .and_then(|pallet| pallet.call_variant_by_name(name.call))
            .ok_or_else(|| self.unfit(format!("it has no call {title}")))?;
        let arguments: Vec<_> = found
            .fields
            .iter()
            .map(|field| field.name.as_deref().unwrap_or_default())
            .collect();
        if arguments != name.arguments {
            let what = format!("{title} takes {arguments:?}, not {:?}", name.arguments);
            return Err(self.unfit(what));
        }
        let types = found.fields.iter().map(|field| field.ty.id);
        if !self.reads(&call.encode_arguments(), types) {
            return Err(self.unfit(format!("{title} takes other types of arguments")));
        }
        Ok(())
    }

    /// The runtime APIs that we call.
    fn check_api(&self) -> Result<(), ChainError> {
        let (task, cap_and_k) = (0u64.encode(), (0u128, 0u32).encode());
        let methods = [
            ("TaskApi", "task", task, sample::task_view().encode()),
            ("TaskApi", "price_limit", cap_and_k, Some(0u128).encode()),
            (
                "TrustApi",
                "auditors_expected",
                [0u64.encode(), sample::account_bytes()].concat(),
                0u128.encode(),
            ),
        ];
        for (api, name, arguments, answer) in methods {
            let api_found = self.metadata.runtime_api_trait_by_name(api);
            let method = api_found.as_ref().and_then(|api| api.method_by_name(name));
            let fits = method.is_some_and(|method| {
                self.reads(&arguments, method.inputs().map(|input| input.id))
                    && self.reads(&answer, [method.output_ty()])
            });
            if !fits {
                return Err(self.unfit(format!("it has no runtime API {api}.{name} as we know it")));
            }
        }
        Ok(())
    }

    pub(super) fn skip(&self, input: &mut &[u8], ty: u32) -> Result<(), scale_decode::visitor::DecodeError> {
        decode_with_visitor(input, ty, self.metadata.types(), IgnoreVisitor::new()).map(|_| ())
    }

    /// The first part of all keys of an entry.
    pub fn prefix(&self, entry: Entry) -> Vec<u8> {
        let (pallet, name, _) = entry.name();
        // Pallets of this chain keep their storage under their own name.
        [twox_128(pallet.as_bytes()), twox_128(name.as_bytes())].concat()
    }

    /// The key of one value. `keys` are in SCALE.
    pub fn key(&self, entry: Entry, keys: &[&[u8]]) -> Result<Vec<u8>, ChainError> {
        let hashers = self.entry(entry)?.keys().map(|key| key.hasher);
        let mut full = self.prefix(entry);
        for (hasher, key) in hashers.zip(keys) {
            full.extend(hashed(hasher, key));
        }
        Ok(full)
    }

    /// The last part of a key, as it was before hashing.
    pub fn last_key(&self, entry: Entry, full: &[u8]) -> Result<Vec<u8>, ChainError> {
        let (pallet, name, _) = entry.name();
        let hasher = self.entry(entry)?.keys().last().map(|key| key.hasher);
        let skipped = match hasher {
            Some(StorageHasher::Blake2_128Concat) => 16,
            Some(StorageHasher::Twox64Concat) => 8,
            Some(StorageHasher::Identity) => 0,
            _ => return Err(self.unfit(format!("the keys of {pallet}.{name} cannot be listed"))),
        };
        let start = self.prefix(entry).len().saturating_add(skipped);
        let key = full.get(start..).ok_or_else(|| ChainError::Decode {
            what: format!("a key of {pallet}.{name}"),
            reason: "it is too short".into(),
        })?;
        Ok(key.to_vec())
    }

    /// A constant of a pallet.
    pub fn constant<T: Decode>(&self, pallet: &str, name: &str) -> Result<T, ChainError> {
        self.metadata
            .pallet_by_name(pallet)
            .and_then(|pallet| pallet.constant_by_name(name))
            .and_then(|constant| T::decode_all(&mut constant.value()).ok())
            .ok_or_else(|| self.unfit(format!("it has no constant {pallet}.{name} as we know it")))
    }

    /// A call as subxt wants it.
    pub fn payload(&self, call: &Call) -> RawCall {
        let name = call.name();
        RawCall {
            pallet: name.pallet,
            call: name.call,
            arguments: RawArguments(call.encode_arguments()),
        }
    }
}

fn hashed(hasher: StorageHasher, key: &[u8]) -> Vec<u8> {
    match hasher {
        StorageHasher::Blake2_128 => blake2_128(key).to_vec(),
        StorageHasher::Blake2_256 => blake2_256(key).to_vec(),
        StorageHasher::Blake2_128Concat => [&blake2_128(key), key].concat(),
        StorageHasher::Twox128 => twox_128(key).to_vec(),
        StorageHasher::Twox256 => twox_256(key).to_vec(),
        StorageHasher::Twox64Concat => [&twox_64(key), key].concat(),
        StorageHasher::Identity => key.to_vec(),
    }
}

/// A call whose arguments are in SCALE already.
pub(super) struct RawCall {
    pallet: &'static str,
    call: &'static str,
    arguments: RawArguments,
}

pub(super) struct RawArguments(Vec<u8>);

impl EncodeAsFields for RawArguments {
    /// Their types have been held against the metadata by [`Runtime::new`].
    fn encode_as_fields_to<R: TypeResolver>(
        &self,
        _fields: &mut dyn FieldIter<'_, R::TypeId>,
        _types: &R,
        out: &mut Vec<u8>,
    ) -> Result<(), scale_encode::Error> {
        out.extend_from_slice(&self.0);
        Ok(())
    }
}

impl Payload for RawCall {
    type CallData = RawArguments;

    fn pallet_name(&self) -> &str {
        self.pallet
    }

    fn call_name(&self) -> &str {
        self.call
    }

    fn call_data(&self) -> &RawArguments {
        &self.arguments
    }
}
