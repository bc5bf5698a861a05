//! A whole node.

use std::{path::PathBuf, sync::Arc, time::Duration};

use futures::FutureExt;
use jsonrpsee::RpcModule;
use sc_client_api::{Backend as _, BlockBackend};
use sc_consensus_grandpa as grandpa;
use sc_network::{
    NetworkBackend, NotificationService,
    config::{FullNetworkConfiguration, ProtocolName},
    service::traits::NetworkService,
};
use sc_network_sync::{SyncingService, WarpSyncConfig};
use sc_rpc::SubscriptionTaskExecutor;
use sc_service::{Configuration, TaskManager, config::Role, error::Error as ServiceError};
use sc_storage_monitor::{StorageMonitorParams, StorageMonitorService};
use sc_transaction_pool_api::OffchainTransactionPoolFactory;
use sc_utils::mpsc::TracingUnboundedSender;
use substrate_prometheus_endpoint::Registry;
use surety_runtime::{Hash, opaque::Block};

use super::{
    PartialNode, best_block,
    consensus::{self, Authoring, Finality, Shared},
};
use crate::rpc;

/// What is still needed when the configuration has been handed to the service's tasks.
struct Settings {
    role: Role,
    force_authoring: bool,
    grandpa_enabled: bool,
    offchain_enabled: bool,
    node_name: String,
    prometheus: Option<Registry>,
    database_path: Option<PathBuf>,
    discovery: sc_authority_discovery::WorkerConfig,
}

impl Settings {
    fn of(config: &Configuration) -> Self {
        Self {
            role: config.role,
            force_authoring: config.force_authoring,
            grandpa_enabled: !config.disable_grandpa,
            offchain_enabled: config.offchain_worker.enabled,
            node_name: config.network.node_name.clone(),
            prometheus: config.prometheus_registry().cloned(),
            database_path: config.database.path().map(|path| path.to_path_buf()),
            discovery: sc_authority_discovery::WorkerConfig {
                publish_non_global_ips: config.network.allow_non_globals_in_dht,
                public_addresses: config.network.public_addresses.clone(),
                persisted_cache_directory: config.network.net_config_path.clone(),
                // There are no old nodes whose records are not signed.
                strict_record_validation: true,
                ..Default::default()
            },
        }
    }
}

/// The network, and what the service's tasks talk to it with.
struct Network {
    service: Arc<dyn NetworkService>,
    sync: Arc<SyncingService<Block>>,
    system_rpc: TracingUnboundedSender<sc_rpc::system::Request<Block>>,
    transactions: sc_network_transactions::TransactionsHandlerController<Hash>,
    grandpa_protocol: ProtocolName,
    grandpa_notifications: Box<dyn NotificationService>,
}

fn start_network<N: NetworkBackend<Block, Hash>>(
    config: &Configuration,
    node: &PartialNode,
    import_queue: super::ImportQueue,
) -> Result<Network, ServiceError> {
    let metrics = N::register_notification_metrics(config.prometheus_registry());
    let mut net_config =
        FullNetworkConfiguration::<_, _, N>::new(&config.network, config.prometheus_registry().cloned());
    let genesis_hash = node
        .client
        .block_hash(0)?
        .ok_or_else(|| ServiceError::Other("the database has no genesis block".into()))?;
    let grandpa_protocol = grandpa::protocol_standard_name(&genesis_hash, &config.chain_spec);
    let (grandpa_peers, grandpa_notifications) = grandpa::grandpa_peers_set_config::<_, N>(
        grandpa_protocol.clone(),
        metrics.clone(),
        net_config.peer_store_handle(),
    );
    // A protocol that nobody serves ends every connection.
    if !config.disable_grandpa {
        net_config.add_notification_protocol(grandpa_peers);
    }
    let warp_sync = Arc::new(grandpa::warp_proof::NetworkProvider::new(
        node.backend.clone(),
        node.grandpa_link.shared_authority_set().clone(),
        Vec::new(),
    ));

    let (service, system_rpc, transactions, sync, _bitswap) =
        sc_service::build_network(sc_service::BuildNetworkParams {
            config,
            net_config,
            client: node.client.clone(),
            transaction_pool: node.transaction_pool.clone(),
            spawn_handle: node.task_manager.spawn_handle(),
            spawn_essential_handle: node.task_manager.spawn_essential_handle(),
            import_queue,
            block_announce_validator_builder: None,
            warp_sync_config: Some(WarpSyncConfig::WithProvider(warp_sync)),
            block_relay: None,
            metrics,
            gap_sync_body_policy: None,
        })?;
    let pause = || tokio::time::sleep(Duration::from_secs(1));
    let best_block = best_block::follow_finality(node.client.clone(), sync.clone(), pause);
    node.task_manager
        .spawn_handle()
        .spawn("best-block", Some("networking"), best_block);
    Ok(Network {
        service,
        sync,
        system_rpc,
        transactions,
        grandpa_protocol,
        grandpa_notifications,
    })
}

/// Runs pallets' off-chain workers after every block. Ours have none; a later runtime may.
fn spawn_offchain_workers(
    node: &PartialNode,
    network: Arc<dyn NetworkService>,
    is_validator: bool,
) -> Result<(), ServiceError> {
    let workers = sc_offchain::OffchainWorkers::new(sc_offchain::OffchainWorkerOptions {
        runtime_api_provider: node.client.clone(),
        keystore: Some(node.keystore.keystore()),
        offchain_db: node.backend.offchain_storage(),
        transaction_pool: Some(OffchainTransactionPoolFactory::new(node.transaction_pool.clone())),
        network_provider: Arc::new(network),
        is_validator,
        // A runtime has no business on the web.
        enable_http_requests: false,
        custom_extensions: |_| Vec::new(),
    })?;
    let spawner = node.task_manager.spawn_handle();
    spawner.clone().spawn(
        "offchain-workers-runner",
        "offchain-worker",
        workers.run(node.client.clone(), spawner).boxed(),
    );
    Ok(())
}

/// Makes the RPC extensions, once for each server.
fn rpc_builder(
    node: &PartialNode,
    config: &Configuration,
    voter_state: grandpa::SharedVoterState,
) -> impl Fn(SubscriptionTaskExecutor) -> Result<RpcModule<()>, ServiceError> + use<> {
    let client = node.client.clone();
    let pool = node.transaction_pool.clone();
    let select_chain = node.select_chain.clone();
    let keystore = node.keystore.keystore();
    let chain_spec = config.chain_spec.cloned_box();
    let babe = node.babe_handle.clone();
    let authority_set = node.grandpa_link.shared_authority_set().clone();
    let justifications = node.grandpa_link.justification_stream();
    let finality_proofs =
        grandpa::FinalityProofProvider::new_for_service(node.backend.clone(), Some(authority_set.clone()));
    move |executor| {
        let deps = rpc::Deps {
            client: client.clone(),
            pool: pool.clone(),
            select_chain: select_chain.clone(),
            keystore: keystore.clone(),
            chain_spec: chain_spec.cloned_box(),
            babe: babe.clone(),
            authority_set: authority_set.clone(),
            voter_state: voter_state.clone(),
            justifications: justifications.clone(),
            finality_proofs: finality_proofs.clone(),
        };
        rpc::create(deps, executor).map_err(Into::into)
    }
}

/// Starts a node on the network backend `N`.
///
/// # Errors
/// When a part cannot be started: a port is taken, a key is missing, the database is another chain's.
pub fn new_full<N: NetworkBackend<Block, Hash>>(
    config: Configuration,
    storage_monitor: StorageMonitorParams,
) -> Result<TaskManager, ServiceError> {
    let (mut node, import_queue) = super::new_partial(&config)?;
    let settings = Settings::of(&config);
    let network = start_network::<N>(&config, &node, import_queue)?;
    if settings.offchain_enabled {
        spawn_offchain_workers(&node, network.service.clone(), settings.role.is_authority())?;
    }

    let voter_state = grandpa::SharedVoterState::empty();
    let rpc_builder = rpc_builder(&node, &config, voter_state.clone());
    sc_service::spawn_tasks(sc_service::SpawnTasksParams {
        config,
        client: node.client.clone(),
        backend: node.backend.clone(),
        task_manager: &mut node.task_manager,
        keystore: node.keystore.keystore(),
        transaction_pool: node.transaction_pool.clone(),
        rpc_builder: Box::new(rpc_builder),
        network: network.service.clone(),
        system_rpc_tx: network.system_rpc,
        tx_handler_controller: network.transactions,
        sync_service: network.sync.clone(),
        telemetry: node.telemetry.as_mut(),
        tracing_execute_block: None,
    })?;

    let shared = Shared {
        client: node.client,
        transaction_pool: node.transaction_pool,
        sync: network.sync,
        network: network.service,
        keystore: node.keystore.keystore(),
        prometheus: settings.prometheus,
        telemetry: node.telemetry.as_ref().map(|telemetry| telemetry.handle()),
    };
    if settings.role.is_authority() {
        let authoring = Authoring {
            select_chain: node.select_chain,
            block_import: node.block_import,
            create_inherent_data: node.create_inherent_data,
            babe_link: node.babe_link,
            force: settings.force_authoring,
        };
        consensus::spawn_authoring(&node.task_manager, &shared, authoring)?;
        consensus::spawn_authority_discovery(&node.task_manager, &shared, settings.discovery);
    }
    if settings.grandpa_enabled {
        let finality = Finality {
            link: node.grandpa_link,
            voter_state,
            notifications: network.grandpa_notifications,
            protocol_name: network.grandpa_protocol,
            node_name: settings.node_name,
            role: settings.role,
        };
        consensus::spawn_finality(&node.task_manager, &shared, finality)?;
    }
    if let Some(path) = settings.database_path {
        let spawner = node.task_manager.spawn_essential_handle();
        StorageMonitorService::try_spawn(storage_monitor, path, &spawner)
            .map_err(|error| ServiceError::Application(error.into()))?;
    }
    Ok(node.task_manager)
}
