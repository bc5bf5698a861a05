//! The node's parts, from the database up to the import queue. [`full`] adds the network and what runs on it.

mod best_block;
mod consensus;
mod equivocations;
mod full;
mod voting;

use std::sync::Arc;

use sc_consensus::{DefaultImportQueue, LongestChain};
use sc_consensus_babe::{BabeBlockImport, BabeLink, BabeWorkerHandle};
use sc_consensus_grandpa::GrandpaBlockImport;
use sc_service::{Configuration, KeystoreContainer, TaskManager, error::Error as ServiceError};
use sc_telemetry::{Telemetry, TelemetryWorker};
use sc_transaction_pool::TransactionPoolHandle;
use sc_transaction_pool_api::OffchainTransactionPoolFactory;
use sp_blockchain::HeaderBackend;
use sp_inherents::CreateInherentDataProviders;
use surety_runtime::{BlockNumber, apis::RuntimeApi, opaque::Block};

pub use full::new_full;

/// What the Wasm runtime may ask of the node.
#[cfg(not(feature = "runtime-benchmarks"))]
pub type HostFunctions = sp_io::SubstrateHostFunctions;
/// What the Wasm runtime may ask of the node.
#[cfg(feature = "runtime-benchmarks")]
pub type HostFunctions = (
    sp_io::SubstrateHostFunctions,
    frame_benchmarking::benchmarking::HostFunctions,
);

/// Runs the runtime.
pub type Executor = sc_executor::WasmExecutor<HostFunctions>;
/// The chain's state and blocks, and the runtime to read them with.
pub type Client = sc_service::TFullClient<Block, RuntimeApi, Executor>;
/// The database.
pub type Backend = sc_service::TFullBackend<Block>;
/// Which fork to build on.
pub type SelectChain = LongestChain<Backend, Block>;
/// Blocks that wait to be imported.
pub type ImportQueue = DefaultImportQueue<Block>;
/// Transactions that wait for a block.
pub type TransactionPool = TransactionPoolHandle<Block, Client>;

type GrandpaImport = GrandpaBlockImport<Backend, Block, Client, SelectChain>;
type GrandpaLink = sc_consensus_grandpa::LinkHalf<Block, Client, SelectChain>;
/// What every block's inherents are made from: first the slot, then the time, then how far finality has come.
type InherentData = (
    sp_consensus_babe::inherents::InherentDataProvider,
    sp_timestamp::InherentDataProvider,
    surety_pallet_finality_clock::inherent::InherentDataProvider<BlockNumber>,
);
type CreateInherentData =
    Arc<dyn CreateInherentDataProviders<Block, (), InherentDataProviders = InherentData>>;
type BlockImport = BabeBlockImport<Block, Client, GrandpaImport, CreateInherentData, SelectChain>;

/// Blocks between justifications that are stored for good: a light client follows them, and each costs disk.
const JUSTIFICATION_PERIOD_BLOCKS: u32 = 512;

/// Telemetry messages that may wait to be sent. More are dropped.
const TELEMETRY_BUFFER: usize = 16;

/// A node without a network.
pub struct PartialNode {
    pub client: Arc<Client>,
    pub backend: Arc<Backend>,
    pub task_manager: TaskManager,
    pub keystore: KeystoreContainer,
    pub select_chain: SelectChain,
    pub transaction_pool: Arc<TransactionPool>,
    block_import: BlockImport,
    create_inherent_data: CreateInherentData,
    grandpa_link: GrandpaLink,
    babe_link: BabeLink<Block>,
    babe_handle: BabeWorkerHandle<Block>,
    telemetry: Option<Telemetry>,
}

/// The slot that the clock says it is, the time, and what this node has seen finalised.
fn inherent_data(client: Arc<Client>, slot_duration: sp_consensus_babe::SlotDuration) -> CreateInherentData {
    Arc::new(move |_parent, ()| {
        let finalized = client.info().finalized_number;
        async move {
            let timestamp = sp_timestamp::InherentDataProvider::from_system_time();
            let slot = sp_consensus_babe::inherents::InherentDataProvider::from_timestamp_and_slot_duration(
                *timestamp,
                slot_duration,
            );
            let finality = surety_pallet_finality_clock::inherent::InherentDataProvider::new(finalized);
            Ok((slot, timestamp, finality))
        }
    })
}

fn start_telemetry(
    config: &Configuration,
) -> Result<Option<(TelemetryWorker, Telemetry)>, sc_telemetry::Error> {
    config
        .telemetry_endpoints
        .clone()
        .filter(|endpoints| !endpoints.is_empty())
        .map(|endpoints| {
            let worker = TelemetryWorker::new(TELEMETRY_BUFFER)?;
            let telemetry = worker.handle().new_telemetry(endpoints);
            Ok((worker, telemetry))
        })
        .transpose()
}

fn transaction_pool(
    config: &Configuration,
    task_manager: &TaskManager,
    client: Arc<Client>,
) -> Arc<TransactionPool> {
    let pool = sc_transaction_pool::Builder::new(
        task_manager.spawn_essential_handle(),
        client,
        config.role.is_authority().into(),
    );
    let pool = pool.with_options(config.transaction_pool.clone());
    Arc::new(pool.with_prometheus(config.prometheus_registry()).build())
}

/// Opens the database and makes everything that needs no network.
///
/// # Errors
/// When the database or the keystore cannot be opened, or holds another chain.
pub fn new_partial(config: &Configuration) -> Result<(PartialNode, ImportQueue), ServiceError> {
    let telemetry = start_telemetry(config)?;
    let executor = sc_service::new_wasm_executor(&config.executor);
    let (client, backend, keystore, task_manager) = sc_service::new_full_parts::<Block, RuntimeApi, _>(
        config,
        telemetry.as_ref().map(|(_, telemetry)| telemetry.handle()),
        executor,
        Vec::new(),
    )?;
    let client = Arc::new(client);
    let telemetry = telemetry.map(|(worker, telemetry)| {
        task_manager.spawn_handle().spawn("telemetry", None, worker.run());
        telemetry
    });
    let telemetry_handle = telemetry.as_ref().map(|telemetry| telemetry.handle());

    let select_chain = LongestChain::new(backend.clone());
    let transaction_pool = transaction_pool(config, &task_manager, client.clone());
    let (grandpa_import, grandpa_link) = sc_consensus_grandpa::block_import(
        client.clone(),
        JUSTIFICATION_PERIOD_BLOCKS,
        &(client.clone() as Arc<_>),
        select_chain.clone(),
        telemetry_handle.clone(),
    )?;
    let babe_config = sc_consensus_babe::configuration(&*client)?;
    let slot_duration = babe_config.slot_duration();
    let create_inherent_data = inherent_data(client.clone(), slot_duration);
    let (block_import, babe_link) = sc_consensus_babe::block_import(
        babe_config,
        grandpa_import.clone(),
        client.clone(),
        create_inherent_data.clone(),
        select_chain.clone(),
        OffchainTransactionPoolFactory::new(transaction_pool.clone()),
    )?;
    let (import_queue, babe_handle) =
        sc_consensus_babe::import_queue(sc_consensus_babe::ImportQueueParams {
            link: babe_link.clone(),
            block_import: equivocations::ReportingImport::new(
                block_import.clone(),
                client.clone(),
                OffchainTransactionPoolFactory::new(transaction_pool.clone()),
            ),
            justification_import: Some(Box::new(grandpa_import)),
            client: client.clone(),
            slot_duration,
            spawner: &task_manager.spawn_essential_handle(),
            registry: config.prometheus_registry(),
            telemetry: telemetry_handle,
        })?;

    let node = PartialNode {
        client,
        backend,
        task_manager,
        keystore,
        select_chain,
        transaction_pool,
        block_import,
        create_inherent_data,
        grandpa_link,
        babe_link,
        babe_handle,
        telemetry,
    };
    Ok((node, import_queue))
}
