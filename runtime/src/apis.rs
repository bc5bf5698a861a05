//! What the runtime answers to the node and to clients.

#[cfg(feature = "runtime-benchmarks")]
use alloc::string::String;
use alloc::vec::Vec;
use codec::Encode;
use frame_support::{
    genesis_builder_helper::{build_state, get_preset},
    weights::Weight,
};
use pallet_grandpa::AuthorityId as GrandpaId;
use pallet_transaction_payment::{FeeDetails, RuntimeDispatchInfo};
use sp_api::impl_runtime_apis;
use sp_authority_discovery::AuthorityId as AuthorityDiscoveryId;
use sp_consensus_babe::AuthorityId as BabeId;
use sp_core::{OpaqueMetadata, crypto::KeyTypeId};
use sp_inherents::{CheckInherentsResult, InherentData};
use sp_runtime::{
    ApplyExtrinsicResult, ExtrinsicInclusionMode, FixedU128,
    traits::{Block as BlockT, NumberFor},
    transaction_validity::{TransactionSource, TransactionValidity},
};
use sp_session::OpaqueGeneratedSessionKeys;
use sp_version::RuntimeVersion;
use surety_channels::{
    BatchNumber, ChannelId, Time,
    view::{
        BatchView, ChannelRules, ChannelView, DemandView, DisputedView, OfferView, PointsView, PoolView,
        StandingView,
    },
};
use surety_dispute_game::{
    committee::DisputeCommittee,
    dispute::{Dispute, DisputeView},
};
use surety_gpu_proofs::{GpuRoundView, MeasuredView, RunView};
use surety_pallet_validators::KeyOwners;
use surety_types::{
    ContentHash, TaskId,
    trust::{DisputeId, Slash, SlashId},
    view::{BidTerms, ProviderTerms, TaskView},
};

use crate::{
    AccountId, AuthorityDiscovery, Babe, Balance, Block, BlockNumber, Channels, Executive, GpuProofs,
    Grandpa, InherentDataExt, Nonce, Runtime, RuntimeCall, RuntimeGenesisConfig, SessionKeys, System,
    TransactionPayment, TrustLock, VERSION,
    configs::consensus::{BABE_GENESIS_EPOCH_CONFIG, session_of},
};

impl_runtime_apis! {
    impl sp_api::Core<Block> for Runtime {
        fn version() -> RuntimeVersion {
            VERSION
        }

        fn execute_block(block: <Block as BlockT>::LazyBlock) {
            Executive::execute_block(block);
        }

        fn initialize_block(header: &<Block as BlockT>::Header) -> ExtrinsicInclusionMode {
            Executive::initialize_block(header)
        }
    }

    impl sp_api::Metadata<Block> for Runtime {
        fn metadata() -> OpaqueMetadata {
            OpaqueMetadata::new(Runtime::metadata().into())
        }

        fn metadata_at_version(version: u32) -> Option<OpaqueMetadata> {
            Runtime::metadata_at_version(version)
        }

        fn metadata_versions() -> Vec<u32> {
            Runtime::metadata_versions()
        }
    }

    impl frame_support::view_functions::runtime_api::RuntimeViewFunction<Block> for Runtime {
        fn execute_view_function(
            id: frame_support::view_functions::ViewFunctionId,
            input: Vec<u8>,
        ) -> Result<Vec<u8>, frame_support::view_functions::ViewFunctionDispatchError> {
            Runtime::execute_view_function(id, input)
        }
    }

    impl sp_block_builder::BlockBuilder<Block> for Runtime {
        fn apply_extrinsic(extrinsic: <Block as BlockT>::Extrinsic) -> ApplyExtrinsicResult {
            Executive::apply_extrinsic(extrinsic)
        }

        fn finalize_block() -> <Block as BlockT>::Header {
            Executive::finalize_block()
        }

        fn inherent_extrinsics(data: InherentData) -> Vec<<Block as BlockT>::Extrinsic> {
            data.create_extrinsics()
        }

        fn check_inherents(
            block: <Block as BlockT>::LazyBlock,
            data: InherentData,
        ) -> CheckInherentsResult {
            data.check_extrinsics(&block)
        }
    }

    impl sp_transaction_pool::runtime_api::TaggedTransactionQueue<Block> for Runtime {
        fn validate_transaction(
            source: TransactionSource,
            tx: <Block as BlockT>::Extrinsic,
            block_hash: <Block as BlockT>::Hash,
        ) -> TransactionValidity {
            Executive::validate_transaction(source, tx, block_hash)
        }
    }

    impl sp_offchain::OffchainWorkerApi<Block> for Runtime {
        fn offchain_worker(header: &<Block as BlockT>::Header) {
            Executive::offchain_worker(header)
        }
    }

    impl sp_consensus_babe::BabeApi<Block> for Runtime {
        fn configuration() -> sp_consensus_babe::BabeConfiguration {
            let epoch_config = Babe::epoch_config().unwrap_or(BABE_GENESIS_EPOCH_CONFIG);
            sp_consensus_babe::BabeConfiguration {
                slot_duration: Babe::slot_duration(),
                epoch_length: crate::units::EPOCH_SLOTS,
                c: epoch_config.c,
                authorities: pallet_babe::Authorities::<Runtime>::get().to_vec(),
                randomness: pallet_babe::Randomness::<Runtime>::get(),
                allowed_slots: epoch_config.allowed_slots,
            }
        }

        fn current_epoch_start() -> sp_consensus_babe::Slot {
            Babe::current_epoch_start()
        }

        fn current_epoch() -> sp_consensus_babe::Epoch {
            Babe::current_epoch()
        }

        fn next_epoch() -> sp_consensus_babe::Epoch {
            Babe::next_epoch()
        }

        fn generate_key_ownership_proof(
            slot: sp_consensus_babe::Slot,
            authority_id: BabeId,
        ) -> Option<sp_consensus_babe::OpaqueKeyOwnershipProof> {
            let session = session_of(slot)?;
            KeyOwners::<Runtime>::prove_in(session, sp_consensus_babe::KEY_TYPE, authority_id.as_ref())
                .map(|proof| proof.encode())
                .map(sp_consensus_babe::OpaqueKeyOwnershipProof::new)
        }

        fn submit_report_equivocation_unsigned_extrinsic(
            equivocation_proof: sp_consensus_babe::EquivocationProof<<Block as BlockT>::Header>,
            key_owner_proof: sp_consensus_babe::OpaqueKeyOwnershipProof,
        ) -> Option<()> {
            // The SDK's node makes some of headers without their seals: they would fail in their blocks.
            if !sp_consensus_babe::check_equivocation_proof(equivocation_proof.clone()) {
                return None;
            }
            Babe::submit_unsigned_equivocation_report(equivocation_proof, key_owner_proof.decode()?)
        }
    }

    impl sp_consensus_grandpa::GrandpaApi<Block> for Runtime {
        fn grandpa_authorities() -> sp_consensus_grandpa::AuthorityList {
            Grandpa::grandpa_authorities()
        }

        fn current_set_id() -> sp_consensus_grandpa::SetId {
            pallet_grandpa::CurrentSetId::<Runtime>::get()
        }

        fn generate_key_ownership_proof(
            _set_id: sp_consensus_grandpa::SetId,
            authority_id: GrandpaId,
        ) -> Option<sp_consensus_grandpa::OpaqueKeyOwnershipProof> {
            use frame_support::traits::KeyOwnerProofSystem;
            KeyOwners::<Runtime>::prove((sp_consensus_grandpa::KEY_TYPE, authority_id))
                .map(|proof| proof.encode())
                .map(sp_consensus_grandpa::OpaqueKeyOwnershipProof::new)
        }

        fn submit_report_equivocation_unsigned_extrinsic(
            equivocation_proof: sp_consensus_grandpa::EquivocationProof<
                <Block as BlockT>::Hash,
                NumberFor<Block>,
            >,
            key_owner_proof: sp_consensus_grandpa::OpaqueKeyOwnershipProof,
        ) -> Option<()> {
            Grandpa::submit_unsigned_equivocation_report(equivocation_proof, key_owner_proof.decode()?)
        }
    }

    impl sp_authority_discovery::AuthorityDiscoveryApi<Block> for Runtime {
        fn authorities() -> Vec<AuthorityDiscoveryId> {
            AuthorityDiscovery::authorities()
        }
    }

    impl sp_session::SessionKeys<Block> for Runtime {
        fn generate_session_keys(owner: Vec<u8>, seed: Option<Vec<u8>>) -> OpaqueGeneratedSessionKeys {
            SessionKeys::generate(&owner, seed).into()
        }

        fn decode_session_keys(encoded: Vec<u8>) -> Option<Vec<(Vec<u8>, KeyTypeId)>> {
            SessionKeys::decode_into_raw_public_keys(&encoded)
        }
    }

    impl frame_system_rpc_runtime_api::AccountNonceApi<Block, AccountId, Nonce> for Runtime {
        fn account_nonce(account: AccountId) -> Nonce {
            System::account_nonce(account)
        }
    }

    impl pallet_transaction_payment_rpc_runtime_api::TransactionPaymentApi<Block, Balance> for Runtime {
        fn query_info(uxt: <Block as BlockT>::Extrinsic, len: u32) -> RuntimeDispatchInfo<Balance> {
            TransactionPayment::query_info(uxt, len)
        }

        fn query_fee_details(uxt: <Block as BlockT>::Extrinsic, len: u32) -> FeeDetails<Balance> {
            TransactionPayment::query_fee_details(uxt, len)
        }

        fn query_weight_to_fee(weight: Weight) -> Balance {
            TransactionPayment::weight_to_fee(weight)
        }

        fn query_length_to_fee(length: u32) -> Balance {
            TransactionPayment::length_to_fee(length)
        }
    }

    impl pallet_transaction_payment_rpc_runtime_api::TransactionPaymentCallApi<Block, Balance, RuntimeCall>
        for Runtime
    {
        fn query_call_info(call: RuntimeCall, len: u32) -> RuntimeDispatchInfo<Balance> {
            TransactionPayment::query_call_info(call, len)
        }

        fn query_call_fee_details(call: RuntimeCall, len: u32) -> FeeDetails<Balance> {
            TransactionPayment::query_call_fee_details(call, len)
        }

        fn query_weight_to_fee(weight: Weight) -> Balance {
            TransactionPayment::weight_to_fee(weight)
        }

        fn query_length_to_fee(length: u32) -> Balance {
            TransactionPayment::length_to_fee(length)
        }
    }

    impl surety_runtime_api::TaskApi<Block, AccountId, Balance, BlockNumber> for Runtime {
        fn task(id: TaskId) -> Option<TaskView<AccountId, Balance, BlockNumber>> {
            crate::configs::compute::task_view(id)
        }

        fn price_limit(cap: Balance, redundancy: u32) -> Option<Balance> {
            crate::configs::compute::price_limit(cap, redundancy)
        }

        fn bid_terms(id: TaskId) -> Option<BidTerms<Balance>> {
            crate::TaskAuction::bid_terms(id)
        }

        fn provider_terms() -> ProviderTerms<BlockNumber> {
            crate::configs::compute::provider_terms()
        }
    }

    impl surety_runtime_api::TrustApi<Block, AccountId, Balance, BlockNumber> for Runtime {
        fn dispute(id: DisputeId) -> Option<Dispute<AccountId, Balance, BlockNumber>> {
            crate::Disputes::dispute(id)
        }

        fn disputes(task: TaskId) -> Vec<DisputeView<AccountId, Balance, BlockNumber>> {
            crate::Disputes::disputes_of(task)
        }

        fn slash(id: SlashId) -> Option<Slash<AccountId, Balance, BlockNumber>> {
            surety_pallet_trust_lock::Slashes::<Runtime>::get(id)
        }

        fn auditors_expected(task: TaskId, provider: AccountId) -> FixedU128 {
            crate::configs::trust::auditors_expected(task, &provider)
        }

        fn challenge_bond(task: TaskId, provider: AccountId) -> Option<Balance> {
            crate::configs::trust::challenge_bond(task, &provider)
        }

        fn is_jailed(stash: AccountId) -> bool {
            <TrustLock as surety_types::traits::Jail<AccountId>>::is_jailed(&stash)
        }

        fn shown(task: TaskId, content: ContentHash) -> Vec<u8> {
            crate::Results::shown(task, content).unwrap_or_default()
        }

        fn committee(dispute: DisputeId) -> Option<DisputeCommittee<AccountId, Balance, BlockNumber>> {
            crate::Disputes::committee(dispute)
        }
    }

    impl surety_runtime_api::ChannelApi<Block, AccountId, BlockNumber> for Runtime {
        fn channel(id: ChannelId) -> Option<ChannelView<AccountId>> {
            Channels::channel(id)
        }

        fn channels_of(payee: AccountId) -> Vec<ChannelView<AccountId>> {
            Channels::channels_of(&payee)
        }

        fn channels_by(payer: AccountId) -> Vec<ChannelView<AccountId>> {
            Channels::channels_by(&payer)
        }

        fn offers() -> Vec<OfferView<AccountId>> {
            Channels::offers()
        }

        fn pools() -> Vec<PoolView> {
            Channels::pools()
        }

        fn standing(provider: AccountId) -> Option<StandingView<AccountId>> {
            Channels::standing_view(&provider)
        }

        fn batches(provider: AccountId) -> Vec<BatchView<AccountId, BlockNumber>> {
            Channels::batches(&provider)
        }

        fn open_batches() -> Vec<BatchView<AccountId, BlockNumber>> {
            Channels::open_batches()
        }

        fn demands(provider: AccountId) -> Vec<DemandView<AccountId>> {
            Channels::demands(&provider)
        }

        fn disputed(provider: AccountId) -> Vec<DisputedView> {
            Channels::disputed(&provider)
        }

        fn points(provider: AccountId, batch: BatchNumber) -> Vec<PointsView<AccountId>> {
            Channels::points(&provider, batch)
        }

        fn rules() -> ChannelRules {
            Channels::rules()
        }

        fn least_lock(_provider: AccountId, cap: u128) -> Option<u128> {
            // Everybody's is the same, as long as nobody is known.
            Channels::least_lock(cap)
        }

        fn dispute_bond() -> u128 {
            crate::configs::channels::dispute_bond()
        }

        fn time() -> Time {
            Channels::time()
        }
    }

    impl surety_runtime_api::GpuProofsApi<Block, AccountId, BlockNumber> for Runtime {
        fn round() -> Option<GpuRoundView<BlockNumber>> {
            GpuProofs::round_view()
        }

        fn run(provider: AccountId) -> Option<RunView> {
            GpuProofs::run_view(&provider)
        }

        fn measured(provider: AccountId) -> Option<MeasuredView> {
            GpuProofs::measured_view(&provider)
        }
    }

    impl sp_genesis_builder::GenesisBuilder<Block> for Runtime {
        fn build_state(config: Vec<u8>) -> sp_genesis_builder::Result {
            build_state::<RuntimeGenesisConfig>(config)?;
            crate::genesis_config_presets::check()
        }

        fn get_preset(id: &Option<sp_genesis_builder::PresetId>) -> Option<Vec<u8>> {
            get_preset::<RuntimeGenesisConfig>(id, crate::genesis_config_presets::get_preset)
        }

        fn preset_names() -> Vec<sp_genesis_builder::PresetId> {
            crate::genesis_config_presets::preset_names()
        }
    }

    #[cfg(feature = "runtime-benchmarks")]
    impl frame_benchmarking::Benchmark<Block> for Runtime {
        fn benchmark_metadata(
            extra: bool,
        ) -> (Vec<frame_benchmarking::BenchmarkList>, Vec<frame_support::traits::StorageInfo>) {
            use crate::*;
            use frame_benchmarking::BenchmarkList;
            use frame_support::traits::StorageInfoTrait;
            use frame_system_benchmarking::Pallet as SystemBench;

            let mut list = Vec::<BenchmarkList>::new();
            list_benchmarks!(list, extra);
            (list, AllPalletsWithSystem::storage_info())
        }

        #[allow(non_local_definitions)]
        fn dispatch_benchmark(
            config: frame_benchmarking::BenchmarkConfig,
        ) -> Result<Vec<frame_benchmarking::BenchmarkBatch>, String> {
            use crate::*;
            use frame_benchmarking::BenchmarkBatch;
            use frame_support::traits::WhitelistedStorageKeys;
            use frame_system_benchmarking::Pallet as SystemBench;

            impl frame_system_benchmarking::Config for Runtime {}

            let whitelist = AllPalletsWithSystem::whitelisted_storage_keys();
            let mut batches = Vec::<BenchmarkBatch>::new();
            let params = (&config, &whitelist);
            add_benchmarks!(params, batches);
            Ok(batches)
        }
    }

    #[cfg(feature = "try-runtime")]
    impl frame_try_runtime::TryRuntime<Block> for Runtime {
        fn on_runtime_upgrade(checks: frame_try_runtime::UpgradeCheckSelect) -> (Weight, Weight) {
            // A failed check has to stop the try-out where it failed.
            #[allow(clippy::unwrap_used)]
            let weight = Executive::try_runtime_upgrade(checks).unwrap();
            (weight, crate::configs::system::RuntimeBlockWeights::get().max_block)
        }

        fn execute_block(
            block: <Block as BlockT>::LazyBlock,
            state_root_check: bool,
            signature_check: bool,
            select: frame_try_runtime::TryStateSelect,
        ) -> Weight {
            Executive::try_execute_block(block, state_root_check, signature_check, select)
                .expect("a block under trial has to execute")
        }
    }
}
