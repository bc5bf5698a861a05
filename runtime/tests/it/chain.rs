//! A chain in memory. Blocks are executed as the node has them executed; extrinsics are signed and pay fees.

use codec::Encode;
use frame_support::{dispatch::DispatchClass, storage::with_transaction, weights::Weight};
use serde_json::Value;
use sp_consensus_babe::{
    Slot,
    digests::{CompatibleDigestItem, PreDigest, SecondaryVRFPreDigest},
    make_vrf_sign_data,
};
use sp_core::{
    Pair,
    crypto::VrfSecret,
    traits::{ReadRuntimeVersion, ReadRuntimeVersionExt},
};
use sp_genesis_builder::PresetId;
use sp_io::TestExternalities;
use sp_keyring::Sr25519Keyring;
use sp_runtime::{
    BuildStorage, DispatchError, MultiSignature, TransactionOutcome,
    generic::{Digest, DigestItem, Era},
    traits::Header as _,
    transaction_validity::{TransactionSource, TransactionValidity, TransactionValidityError},
};
use surety_runtime::{
    AccountId, Babe, Balance, Balances, BlockNumber, Executive, Hash, Header, Nonce, Runtime, RuntimeCall,
    RuntimeEvent, RuntimeGenesisConfig, Session, SessionKeys, SignedPayload, System, TrustLock, TxExtension,
    UncheckedExtrinsic, genesis_config_presets,
    units::{EPOCH_SLOTS, SLOT_MS},
};

/// Any slot will do for the first block.
const FIRST_SLOT: u64 = 1_000;

/// The account of a well-known key.
pub fn account(key: Sr25519Keyring) -> AccountId {
    key.to_account_id()
}

/// RFC 7386, as chain specifications apply patches.
fn merge(target: &mut Value, patch: Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    target.remove(&key);
                } else {
                    merge(target.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (target, patch) => *target = patch,
    }
}

/// The whole genesis configuration of a preset.
pub fn genesis(preset: &str) -> RuntimeGenesisConfig {
    let mut config = serde_json::to_value(RuntimeGenesisConfig::default()).unwrap();
    let patch = genesis_config_presets::get_preset(&PresetId::from(preset)).unwrap();
    merge(&mut config, serde_json::from_slice(&patch).unwrap());
    serde_json::from_value(config).unwrap()
}

/// A chain of its own.
pub struct Chain {
    ext: TestExternalities,
    number: BlockNumber,
    slot: u64,
    parent: Hash,
    /// Validators make blocks in turn, however many slots are left out.
    turn: usize,
    author: Option<Sr25519Keyring>,
    /// Validators whose nodes are off.
    pub absent: Vec<Sr25519Keyring>,
    /// Whether blocks become final, two blocks later. The clock stands still otherwise.
    pub finalizes: bool,
    /// What authors have seen final last.
    finalized: BlockNumber,
}

impl Chain {
    /// The chain of a preset whose validators are well-known keys.
    pub fn new(preset: &str) -> Self {
        Self::with_genesis(genesis(preset))
    }

    /// The `local` chain with other validators.
    pub fn with_validators(validators: &[Sr25519Keyring]) -> Self {
        let mut config = genesis(sp_genesis_builder::LOCAL_TESTNET_RUNTIME_PRESET);
        let operators = || validators.iter().map(|key| account(*key));
        let (_, bond, commission) = config.delegation.pools[0];
        config.delegation.pools = operators().map(|operator| (operator, bond, commission)).collect();
        config.validators.candidates = operators().collect();
        let keys = config.session.keys[0].2.clone();
        config.session.keys = validators
            .iter()
            .map(|key| {
                let keys = SessionKeys {
                    babe: key.public().into(),
                    grandpa: sp_keyring::Ed25519Keyring::iter()
                        .nth(*key as usize)
                        .map_or_else(|| keys.grandpa.clone(), |key| key.public().into()),
                    authority_discovery: key.public().into(),
                };
                (account(*key), account(*key), keys)
            })
            .collect();
        Self::with_genesis(config)
    }

    /// The chain of a genesis whose validators are well-known keys.
    pub fn with_genesis(config: RuntimeGenesisConfig) -> Self {
        Self {
            ext: TestExternalities::new(config.build_storage().unwrap()),
            number: 0,
            slot: FIRST_SLOT,
            parent: Hash::zero(),
            turn: 0,
            author: None,
            absent: Vec::new(),
            finalizes: true,
            finalized: 0,
        }
    }

    /// Reads the state.
    pub fn query<R>(&mut self, read: impl FnOnce() -> R) -> R {
        self.ext.execute_with(read)
    }

    /// The number of the last block.
    pub fn number(&self) -> BlockNumber {
        self.number
    }

    /// A block of calls, signed where they have to be. Returns how each of them went. The first block of a
    /// session has no room for any: it passes before that.
    pub fn block(&mut self, calls: Vec<(Sr25519Keyring, RuntimeCall)>) -> Vec<Result<(), DispatchError>> {
        let slot = self.slot + 1;
        let begins_session = |chain: &mut Self| {
            chain.number > 0 && slot >= chain.query(|| *Babe::current_epoch_start()) + EPOCH_SLOTS
        };
        if !calls.is_empty() && begins_session(self) {
            self.block_with(|| ());
        }
        self.block_with(|| {
            calls
                .into_iter()
                .map(|(signer, call)| apply(extrinsic(signer, call)).expect("the extrinsic is valid"))
                .collect()
        })
    }

    /// A block of calls, of which its author leaves out what is not valid. Returns how each of them went.
    pub fn any_block(
        &mut self,
        calls: Vec<(Sr25519Keyring, RuntimeCall)>,
    ) -> Vec<Result<Result<(), DispatchError>, TransactionValidityError>> {
        self.block_with(|| {
            calls
                .into_iter()
                .map(|(signer, call)| apply(extrinsic(signer, call)))
                .collect()
        })
    }

    /// A block of what `fill` applies between its inherents and its end.
    fn block_with<R>(&mut self, fill: impl FnOnce() -> R) -> R {
        self.slot += 1;
        self.number += 1;
        let header = self.header();
        let timestamp = self.slot * SLOT_MS;
        if self.finalizes {
            self.finalized = self.number.saturating_sub(2);
        }
        let finalized = self.finalized;
        let (parent, results) = self.ext.execute_with(|| {
            Executive::initialize_block(&header);
            let inherent = pallet_timestamp::Call::set { now: timestamp };
            apply(UncheckedExtrinsic::new_bare(inherent.into()))
                .unwrap()
                .unwrap();
            let note = surety_pallet_finality_clock::Call::note { finalized };
            apply(UncheckedExtrinsic::new_bare(note.into())).unwrap().unwrap();
            let results = fill();
            (Executive::finalize_block().hash(), results)
        });
        self.parent = parent;
        self.check_state();
        results
    }

    /// A block that `used` has been taken of for calls of this class, and then one call. Returns how that
    /// went.
    pub fn busy_block(
        &mut self,
        (used, class): (Weight, DispatchClass),
        signer: Sr25519Keyring,
        call: impl Into<RuntimeCall>,
    ) -> Result<Result<(), DispatchError>, TransactionValidityError> {
        let call = call.into();
        self.block_with(|| {
            System::register_extra_weight_unchecked(used, class);
            apply(extrinsic(signer, call))
        })
    }

    /// What the pool makes of an extrinsic on top of the last block.
    pub fn validity(&mut self, extrinsic: UncheckedExtrinsic) -> TransactionValidity {
        let parent = self.parent;
        self.ext.execute_with(|| {
            // It makes the beginnings of a block.
            with_transaction(|| {
                let external = TransactionSource::External;
                let validity = Executive::validate_transaction(external, extrinsic, parent);
                TransactionOutcome::Rollback(Ok::<_, DispatchError>(validity))
            })
            .unwrap()
        })
    }

    /// A block with one extrinsic. Returns what its author makes of it, and how it went.
    pub fn try_extrinsic(
        &mut self,
        extrinsic: UncheckedExtrinsic,
    ) -> Result<Result<(), DispatchError>, TransactionValidityError> {
        let [result] = self.try_extrinsics([extrinsic]);
        result
    }

    /// The same with several.
    pub fn try_extrinsics<const N: usize>(
        &mut self,
        extrinsics: [UncheckedExtrinsic; N],
    ) -> [Result<Result<(), DispatchError>, TransactionValidityError>; N] {
        self.block_with(|| extrinsics.map(apply))
    }

    /// A block with one call, which has to succeed.
    pub fn call(&mut self, signer: Sr25519Keyring, call: impl Into<RuntimeCall>) {
        assert_eq!(self.block(vec![(signer, call.into())]), [Ok(())]);
    }

    /// A block with one call. Returns how it went.
    pub fn try_call(
        &mut self,
        signer: Sr25519Keyring,
        call: impl Into<RuntimeCall>,
    ) -> Result<(), DispatchError> {
        self.block(vec![(signer, call.into())]).remove(0)
    }

    /// Blocks without calls, up to and including `number`.
    pub fn run_to(&mut self, number: BlockNumber) {
        while self.number < number {
            self.block(Vec::new());
        }
    }

    /// Blocks without calls, at most `limit`, until `done` holds.
    pub fn run_until(&mut self, limit: BlockNumber, mut done: impl FnMut() -> bool) {
        for _ in 0..limit {
            if self.ext.execute_with(&mut done) {
                return;
            }
            self.block(Vec::new());
        }
        panic!("nothing came of it within {limit} blocks");
    }

    /// Has the host read this way which version a code is of.
    pub fn read_versions(&mut self, how: impl ReadRuntimeVersion + 'static) {
        self.ext.register_extension(ReadRuntimeVersionExt::new(how));
    }

    /// What happened in the last block.
    pub fn events(&mut self) -> Vec<RuntimeEvent> {
        self.query(|| {
            System::read_events_no_consensus()
                .map(|record| record.event)
                .collect()
        })
    }

    /// What an account can spend.
    pub fn free(&mut self, who: &AccountId) -> Balance {
        self.query(|| Balances::free_balance(who))
    }

    /// The first block of the next session, after slots without any.
    pub fn next_session(&mut self) {
        let next = self.query(|| Babe::current_epoch_start() + EPOCH_SLOTS);
        self.slot = u64::from(next) - 1;
        self.block(Vec::new());
    }

    /// Who made the last block.
    pub fn author(&self) -> AccountId {
        account(self.author.expect("there is a block"))
    }

    /// Whose turn it is. The slot of a validator that is disabled, or off, stays empty.
    fn next_author(&mut self) -> (u32, Sr25519Keyring) {
        loop {
            let slot = Slot::from(self.slot);
            let (authorities, disabled) = self.query(|| authorities(slot));
            let place = self.turn % authorities.len();
            self.turn += 1;
            let (author, index) = (authorities[place], place as u32);
            if !disabled.contains(&index) && !self.absent.contains(&author) {
                self.author = Some(author);
                return (index, author);
            }
            self.slot += 1;
        }
    }

    fn header(&mut self) -> Header {
        let (author, key) = self.next_author();
        let slot = Slot::from(self.slot);
        let randomness = self.query(pallet_babe::Randomness::<Runtime>::get);
        let epoch = self.query(pallet_babe::EpochIndex::<Runtime>::get);
        let pre_digest = PreDigest::SecondaryVRF(SecondaryVRFPreDigest {
            authority_index: author,
            slot,
            vrf_signature: key.pair().vrf_sign(&make_vrf_sign_data(&randomness, slot, epoch)),
        });
        Header::new(
            self.number,
            Default::default(),
            Default::default(),
            self.parent,
            Digest {
                logs: vec![DigestItem::babe_pre_digest(pre_digest)],
            },
        )
    }

    /// The invariants of our pallets; of all pallets where the build has them.
    fn check_state(&mut self) {
        self.ext.execute_with(|| {
            #[cfg(feature = "try-runtime")]
            {
                use frame_support::traits::{TryState, TryStateSelect};
                surety_runtime::AllPalletsWithSystem::try_state(System::block_number(), TryStateSelect::All)
                    .unwrap();
            }
            surety_runtime::Staking::do_try_state().unwrap();
            surety_runtime::ProviderRegistry::do_try_state().unwrap();
            surety_runtime::ModelRegistry::do_try_state().unwrap();
            surety_runtime::TaskAuction::do_try_state().unwrap();
            TrustLock::do_try_state().unwrap();
            surety_runtime::Results::do_try_state().unwrap();
            surety_runtime::Disputes::do_try_state().unwrap();
            surety_runtime::Billing::do_try_state().unwrap();
            surety_runtime::FinalityClock::do_try_state().unwrap();
            surety_runtime::BlockEntropy::do_try_state().unwrap();
            surety_runtime::GpuProofs::do_try_state().unwrap();
            surety_runtime::Channels::do_try_state().unwrap();
            surety_runtime::Delegation::do_try_state().unwrap();
            surety_runtime::Validators::do_try_state().unwrap();
            surety_runtime::Emission::do_try_state().unwrap();
            crate::locks::assert_add_up();
        });
    }
}

/// The keys of those who may make a block in `slot`, in the order of the authorities, and who of them is
/// disabled. Has to run with the state of the block before it.
fn authorities(slot: Slot) -> (Vec<Sr25519Keyring>, Vec<u32>) {
    let begins_session = slot >= Babe::current_epoch_start() + EPOCH_SLOTS;
    let (authorities, disabled) = if begins_session {
        let queued = (0..).zip(Session::queued_keys());
        let jailed = queued.filter(|(_, (validator, _))| TrustLock::is_in_jail(validator));
        let authorities = pallet_babe::NextAuthorities::<Runtime>::get();
        (authorities, jailed.map(|(index, _)| index).collect())
    } else {
        let authorities = pallet_babe::Authorities::<Runtime>::get();
        (authorities, Session::disabled_validators())
    };
    let key = |authority: &sp_consensus_babe::AuthorityId| {
        let known = Sr25519Keyring::iter().find(|key| key.public() == authority.clone().into_inner());
        known.expect("validators have well-known keys")
    };
    (
        authorities.iter().map(|(authority, _)| key(authority)).collect(),
        disabled,
    )
}

fn apply(extrinsic: UncheckedExtrinsic) -> Result<Result<(), DispatchError>, TransactionValidityError> {
    Executive::apply_extrinsic(extrinsic)
}

/// Signs like a wallet, unless the call proves itself. Has to run with a state.
fn extrinsic(signer: Sr25519Keyring, call: RuntimeCall) -> UncheckedExtrinsic {
    match call {
        RuntimeCall::TaskAuction(surety_pallet_task_auction::Call::reveal_bid { .. })
        | RuntimeCall::Results(
            surety_pallet_results::Call::reveal { .. }
            | surety_pallet_results::Call::reveal_audit { .. }
            | surety_pallet_results::Call::reveal_items { .. },
        )
        | RuntimeCall::Disputes(surety_pallet_disputes::Call::reveal_vote { .. })
        | RuntimeCall::Channels(surety_pallet_channels::Call::open_points { .. }) => general(call, 0),
        _ => signed(signer, call),
    }
}

/// A general transaction: nobody signs it, and nobody counts its nonce.
pub fn general(call: impl Into<RuntimeCall>, nonce: Nonce) -> UncheckedExtrinsic {
    UncheckedExtrinsic::new_transaction(call.into(), extension(nonce, 0))
}

/// Signs like a wallet. Has to run with a state.
pub fn signed(signer: Sr25519Keyring, call: RuntimeCall) -> UncheckedExtrinsic {
    tipped(signer, call, 0)
}

/// The same with a tip.
pub fn tipped(signer: Sr25519Keyring, call: impl Into<RuntimeCall>, tip: Balance) -> UncheckedExtrinsic {
    let (who, call) = (account(signer), call.into());
    let extension = extension(System::account_nonce(&who), tip);
    let payload = SignedPayload::new(call.clone(), extension.clone()).expect("the era has begun");
    let signature = payload.using_encoded(|bytes| signer.pair().sign(bytes));
    UncheckedExtrinsic::new_signed(call, who.into(), MultiSignature::Sr25519(signature), extension)
}

fn extension(nonce: Nonce, tip: Balance) -> TxExtension {
    (
        frame_system::AuthorizeCall::new(),
        frame_system::CheckNonZeroSender::new(),
        frame_system::CheckSpecVersion::new(),
        frame_system::CheckTxVersion::new(),
        frame_system::CheckGenesis::new(),
        frame_system::CheckEra::from(Era::Immortal),
        frame_system::CheckNonce::from(nonce),
        frame_system::CheckWeight::new(),
        pallet_transaction_payment::ChargeTransactionPayment::from(tip),
        frame_metadata_hash_extension::CheckMetadataHash::new(false),
        frame_system::WeightReclaim::new(),
    )
}
