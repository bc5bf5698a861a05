//! A runtime as its metadata describes it: whether it fits this crate, storage keys, records, and call data.

use std::marker::PhantomData;

use codec::{Compact, Decode, DecodeAll, Encode};
use scale_decode::visitor::{IgnoreVisitor, decode_with_visitor};
use scale_info::{Field, TypeDef, TypeInfo, Variant, form::PortableForm};
use sp_core::crypto::AccountId32;
use sp_crypto_hashing::{blake2_128, blake2_256, twox_64, twox_128, twox_256};
use subxt::{
    ext::frame_decode::storage::StorageHasher,
    metadata::{ArcMetadata, StorageEntryMetadata},
};
use surety_types::ContentHash;

use super::{
    entries::{Entry, STAKE},
    transcode::{End, Shape, fits, transcode},
};
use surety_chain_client::{Balance, Call, CallName, ChainError, TaskInfo, sample};

/// The pallet of payment channels.
const CHANNELS: &str = "Channels";
/// The pallet of the benchmark.
const GPU_PROOFS: &str = "GpuProofs";

/// Reads values of an entry as `T`, however the runtime writes them.
pub(super) struct Reader<'a, T> {
    from: End<'a>,
    to: Shape,
    what: String,
    read_as: PhantomData<T>,
}

impl<T: Decode> Reader<'_, T> {
    /// A value that must be a `T` and nothing more.
    pub fn read(&self, mut bytes: &[u8]) -> Result<T, ChainError> {
        let bad = |reason: String| ChainError::Decode {
            what: self.what.clone(),
            reason,
        };
        let ours = transcode(&mut bytes, self.from, self.to.end()).map_err(bad)?;
        if !bytes.is_empty() {
            return Err(bad(format!("{} bytes are left over", bytes.len())));
        }
        T::decode_all(&mut ours.as_slice()).map_err(|error| bad(error.to_string()))
    }
}

/// A runtime by its metadata, and where this program does not fit it.
pub(super) struct Runtime {
    spec_version: u32,
    transaction_version: u32,
    metadata: ArcMetadata,
    misfits: Vec<String>,
}

impl Runtime {
    /// Looks at everything we rely on. What does not fit is listed, and an error when it is used.
    pub fn new(spec_version: u32, transaction_version: u32, metadata: ArcMetadata) -> Self {
        let mut runtime = Self {
            spec_version,
            transaction_version,
            metadata,
            misfits: Vec::new(),
        };
        let entries = Entry::ALL.into_iter().map(|entry| runtime.check_entry(entry));
        let calls = sample::calls();
        let is_expected = |pallet| {
            let is_optional = [CHANNELS, GPU_PROOFS].contains(&pallet) || STAKE.contains(&pallet);
            !is_optional || runtime.has_pallet(pallet)
        };
        let calls = calls
            .iter()
            .filter(|call| is_expected(call.name().pallet))
            .map(|call| runtime.encoded(call).map(|_| ()));
        let all = entries.chain(calls).chain(runtime.check_api());
        let misfits = all.filter_map(|checked| match checked {
            Err(ChainError::Outgrown { what, .. }) => Some(what),
            Err(other) => Some(other.to_string()),
            Ok(()) => None,
        });
        runtime.misfits = misfits.collect();
        runtime
    }

    /// What this program relies on and this runtime does not have in a shape that it can use.
    pub fn misfits(&self) -> &[String] {
        &self.misfits
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
        ChainError::Outgrown {
            spec_version: self.spec_version,
            what,
        }
    }

    fn end(&self, ty: u32) -> End<'_> {
        End {
            types: self.metadata.types(),
            ty,
        }
    }

    fn found(&self, entry: Entry) -> Option<&StorageEntryMetadata> {
        let (pallet, name, _) = entry.name();
        self.metadata
            .pallet_by_name(pallet)
            .and_then(|pallet| pallet.storage()?.entry_by_name(name))
    }

    /// Whether the runtime has an entry that others lack.
    pub fn has(&self, entry: Entry) -> bool {
        self.found(entry).is_some()
    }

    pub(super) fn entry(&self, entry: Entry) -> Result<&StorageEntryMetadata, ChainError> {
        let (pallet, name, keys) = entry.name();
        let found = self
            .found(entry)
            .ok_or_else(|| self.unfit(format!("it has no storage {pallet}.{name}")))?;
        if found.keys().len() != keys {
            let what = format!("{pallet}.{name} has {} keys, not {keys}", found.keys().len());
            return Err(self.unfit(what));
        }
        Ok(found)
    }

    fn check_entry(&self, entry: Entry) -> Result<(), ChainError> {
        if entry.is_optional() && !self.has(entry) {
            return Ok(());
        }
        let value_type = self.entry(entry)?.value_ty();
        let Some(shape) = entry.shape() else {
            return Ok(());
        };
        let (pallet, name, _) = entry.name();
        fits(self.end(value_type), shape.end())
            .map_err(|what| self.unfit(format!("{pallet}.{name} holds other records: {what}")))
    }

    /// What reads the values of an entry.
    pub fn reader<T: Decode + TypeInfo + 'static>(&self, entry: Entry) -> Result<Reader<'_, T>, ChainError> {
        let (pallet, name, _) = entry.name();
        Ok(Reader {
            from: self.end(self.entry(entry)?.value_ty()),
            to: Shape::of::<T>(),
            what: format!("{pallet}.{name}"),
            read_as: PhantomData,
        })
    }

    /// What reads the answer of a runtime API.
    pub fn answer<T: Decode + TypeInfo + 'static>(
        &self,
        api: &str,
        method: &str,
    ) -> Result<Reader<'_, T>, ChainError> {
        let found = self.metadata.runtime_api_trait_by_name(api);
        let found = found.as_ref().and_then(|api| api.method_by_name(method));
        let found = found.ok_or_else(|| self.unfit(format!("it has no runtime API {api}.{method}")))?;
        Ok(Reader {
            from: self.end(found.output_ty()),
            to: Shape::of::<T>(),
            what: format!("the answer of {api}.{method}"),
            read_as: PhantomData,
        })
    }

    /// What reads values of one of this runtime's types.
    pub fn reader_of<T: Decode + TypeInfo + 'static>(&self, ty: u32, what: &str) -> Reader<'_, T> {
        Reader {
            from: self.end(ty),
            to: Shape::of::<T>(),
            what: what.into(),
            read_as: PhantomData,
        }
    }

    /// Pallet index, call index and arguments of a call, as this runtime takes them.
    ///
    /// Arguments are found by name; one that we do not know of must be an `Option`, and is none.
    pub fn encoded(&self, call: &Call) -> Result<Vec<u8>, ChainError> {
        let name = call.name();
        let title = format!("{}.{}", name.pallet, name.call);
        let (pallet, variant) = self.variant(&name)?;
        let taken = |wanted: &&str| {
            let mut fields = variant.fields.iter();
            fields.any(|field| field.name.as_deref() == Some(*wanted))
        };
        if let Some(missing) = name.arguments.iter().find(|argument| !taken(argument)) {
            return Err(self.unfit(format!("{title} takes no {missing}")));
        }
        if let Call::Batch(calls) = call {
            return self.encoded_batch((pallet, variant), calls);
        }
        let arguments = call.arguments();
        let mut out = vec![pallet, variant.index];
        for field in &variant.fields {
            let known = name
                .arguments
                .iter()
                .zip(&arguments)
                .find(|(name, _)| field.name.as_deref() == Some(*name));
            let to = self.end(field.ty.id);
            let Some((argument, value)) = known else {
                if !to.is_option() {
                    let what = format!("{title} wants {}", field.name.as_deref().unwrap_or_default());
                    return Err(self.unfit(what));
                }
                out.push(0);
                continue;
            };
            let from = Shape::of_type(&value.ty);
            let written = fits(from.end(), to)
                .and_then(|()| transcode(&mut value.bytes.as_slice(), from.end(), to))
                .map_err(|what| self.unfit(format!("{title} takes another {argument}: {what}")))?;
            out.extend(written);
        }
        Ok(out)
    }

    /// A call's pallet index, and the call as the runtime describes it.
    fn variant(&self, name: &CallName) -> Result<(u8, &Variant<PortableForm>), ChainError> {
        let missing = || self.unfit(format!("it has no call {}.{}", name.pallet, name.call));
        let pallet = self.metadata.pallet_by_name(name.pallet).ok_or_else(missing)?;
        let variant = pallet.call_variant_by_name(name.call).ok_or_else(missing)?;
        Ok((pallet.call_index(), variant))
    }

    /// A batch takes a list of the runtime's own calls, whose indices only the runtime knows.
    fn encoded_batch(
        &self,
        (pallet, variant): (u8, &Variant<PortableForm>),
        calls: &[Call],
    ) -> Result<Vec<u8>, ChainError> {
        let takes_calls = |field: &Field<PortableForm>| {
            let ty = self.metadata.types().resolve(field.ty.id);
            let own = self.metadata.outer_enums().call_enum_ty();
            ty.is_some_and(|ty| matches!(&ty.type_def, TypeDef::Sequence(list) if list.type_param.id == own))
        };
        match variant.fields.as_slice() {
            [only] if takes_calls(only) => {}
            _ => return Err(self.unfit("Utility.batch_all takes something else than calls".into())),
        }
        let mut out = vec![pallet, variant.index];
        let count = u32::try_from(calls.len()).map_err(|_| self.unfit("it takes fewer calls".into()))?;
        Compact(count).encode_to(&mut out);
        for call in calls {
            out.extend(self.encoded(call)?);
        }
        Ok(out)
    }

    /// The runtime APIs that we call.
    fn check_api(&self) -> Vec<Result<(), ChainError>> {
        let (id, account) = (Shape::of::<u64>, Shape::of::<AccountId32>);
        let amount = Shape::of::<Balance>;
        let mut checked = vec![
            self.check_function(("TaskApi", "task"), &[id()], &Shape::of::<Option<TaskInfo>>()),
            self.check_function(
                ("TaskApi", "price_limit"),
                &[amount(), Shape::of::<u32>()],
                &Shape::of::<Option<Balance>>(),
            ),
            self.check_function(("TrustApi", "auditors_expected"), &[id(), account()], &amount()),
            self.check_function(
                ("TrustApi", "shown"),
                &[id(), Shape::of::<ContentHash>()],
                &Shape::of::<Vec<u8>>(),
            ),
        ];
        checked.extend(self.check_channels());
        checked.extend(self.check_gpu_proofs());
        checked
    }

    /// Whether a function takes what we give it, and answers what we read.
    pub(super) fn check_function(
        &self,
        (api, name): (&str, &str),
        inputs: &[Shape],
        output: &Shape,
    ) -> Result<(), ChainError> {
        let found = self.metadata.runtime_api_trait_by_name(api);
        let method = found.as_ref().and_then(|api| api.method_by_name(name));
        let method = method.ok_or_else(|| self.unfit(format!("it has no runtime API {api}.{name}")))?;
        let taken: Vec<_> = method.inputs().map(|input| input.id).collect();
        let mut pairs = inputs.iter().zip(&taken);
        let all = taken.len() == inputs.len();
        let all = all && pairs.all(|(ours, theirs)| fits(ours.end(), self.end(*theirs)).is_ok());
        match all {
            true => fits(self.end(method.output_ty()), output.end()),
            false => Err("it takes other arguments".into()),
        }
        .map_err(|what| {
            self.unfit(format!(
                "its runtime API {api}.{name} is not as we know it: {what}"
            ))
        })
    }

    /// Whether it has payment channels. Runtimes before it have none, and fit all the same.
    pub(super) fn has_channels(&self) -> bool {
        self.has_pallet(CHANNELS)
    }

    /// Whether it has rounds of the benchmark. Runtimes before it have none, and fit all the same.
    pub(super) fn has_gpu_proofs(&self) -> bool {
        self.has_pallet(GPU_PROOFS)
    }

    fn has_pallet(&self, name: &str) -> bool {
        self.metadata.pallet_by_name(name).is_some()
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

    /// The last part of a key, as it was before hashing; `prefix` are the parts before it.
    pub fn last_key(&self, entry: Entry, prefix: &[u8], full: &[u8]) -> Result<Vec<u8>, ChainError> {
        let (pallet, name, _) = entry.name();
        let hasher = self.entry(entry)?.keys().last().map(|key| key.hasher);
        let skipped = match hasher {
            Some(StorageHasher::Blake2_128Concat) => 16,
            Some(StorageHasher::Twox64Concat) => 8,
            Some(StorageHasher::Identity) => 0,
            _ => return Err(self.unfit(format!("the keys of {pallet}.{name} cannot be listed"))),
        };
        let start = prefix.len().saturating_add(skipped);
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
