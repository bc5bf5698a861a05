//! Tasks of a validator: making blocks, voting for them, being found by other validators.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use sc_consensus_babe::{BabeLink, SlotProportion};
use sc_consensus_grandpa as grandpa;
use sc_network::{
    NetworkEventStream, NotificationService, config::ProtocolName, event::Event,
    service::traits::NetworkService,
};
use sc_network_sync::SyncingService;
use sc_service::{TaskManager, error::Error as ServiceError};
use sc_telemetry::TelemetryHandle;
use sc_transaction_pool_api::OffchainTransactionPoolFactory;
use sp_keystore::KeystorePtr;
use substrate_prometheus_endpoint::Registry;
use surety_runtime::opaque::Block;

use super::{
    BlockImport, Client, CreateInherentData, GrandpaLink, JUSTIFICATION_PERIOD_BLOCKS, SelectChain,
    TransactionPool, voting,
};

/// Part of a slot in which a block may be built. The rest is for its way to the others, who execute it again.
const PROPOSAL_SLOT_PORTION: f32 = 0.5;

/// How long a vote is expected to travel. GRANDPA waits for a few of these in each round.
const GOSSIP_DURATION: Duration = Duration::from_millis(333);

/// What the tasks share.
pub(super) struct Shared {
    pub client: Arc<Client>,
    pub transaction_pool: Arc<TransactionPool>,
    pub sync: Arc<SyncingService<Block>>,
    pub network: Arc<dyn NetworkService>,
    pub keystore: KeystorePtr,
    pub prometheus: Option<Registry>,
    pub telemetry: Option<TelemetryHandle>,
}

/// What making blocks needs besides.
pub(super) struct Authoring {
    pub select_chain: SelectChain,
    pub block_import: BlockImport,
    pub create_inherent_data: CreateInherentData,
    pub babe_link: BabeLink<Block>,
    pub force: bool,
}

/// Makes blocks when it is this node's turn.
pub(super) fn spawn_authoring(
    task_manager: &TaskManager,
    shared: &Shared,
    authoring: Authoring,
) -> Result<(), ServiceError> {
    let proposer = sc_basic_authorship::ProposerFactory::new(
        task_manager.spawn_handle(),
        shared.client.clone(),
        shared.transaction_pool.clone(),
        shared.prometheus.as_ref(),
        shared.telemetry.clone(),
    );
    let babe = sc_consensus_babe::start_babe(sc_consensus_babe::BabeParams {
        keystore: shared.keystore.clone(),
        client: shared.client.clone(),
        select_chain: authoring.select_chain,
        env: proposer,
        block_import: authoring.block_import,
        sync_oracle: shared.sync.clone(),
        justification_sync_link: shared.sync.clone(),
        create_inherent_data_providers: authoring.create_inherent_data,
        force_authoring: authoring.force,
        // Blocks go on at their pace while finality stands still: what mends that, a referendum, is timed in
        // blocks. Who waits for finality with blocks waits for the referendum, too.
        backoff_authoring_blocks: None::<()>,
        babe_link: authoring.babe_link,
        block_proposal_slot_portion: SlotProportion::new(PROPOSAL_SLOT_PORTION),
        max_block_proposal_slot_portion: None,
        telemetry: shared.telemetry.clone(),
    })?;
    // Without it a validator is none: its end is the node's.
    task_manager
        .spawn_essential_handle()
        .spawn_blocking("babe-proposer", Some("block-authoring"), babe);
    Ok(())
}

/// Publishes this validator's addresses under its key, and looks up the others'.
pub(super) fn spawn_authority_discovery(
    task_manager: &TaskManager,
    shared: &Shared,
    config: sc_authority_discovery::WorkerConfig,
) {
    let events = shared
        .network
        .event_stream("authority-discovery")
        .filter_map(|event| async move {
            match event {
                Event::Dht(event) => Some(event),
                _ => None,
            }
        });
    let (worker, _service) = sc_authority_discovery::new_worker_and_service_with_config(
        config,
        shared.client.clone(),
        Arc::new(shared.network.clone()),
        Box::pin(events),
        sc_authority_discovery::Role::PublishAndDiscover(shared.keystore.clone()),
        shared.prometheus.clone(),
        task_manager.spawn_handle(),
    );
    task_manager
        .spawn_handle()
        .spawn("authority-discovery-worker", Some("networking"), worker.run());
}

/// What voting needs besides.
pub(super) struct Finality {
    pub link: GrandpaLink,
    pub voter_state: grandpa::SharedVoterState,
    pub notifications: Box<dyn NotificationService>,
    pub protocol_name: ProtocolName,
    pub node_name: String,
    pub role: sc_service::config::Role,
}

/// Votes when this node is a validator, and follows the votes when it is not.
pub(super) fn spawn_finality(
    task_manager: &TaskManager,
    shared: &Shared,
    finality: Finality,
) -> Result<(), ServiceError> {
    let keystore = finality.role.is_authority().then(|| shared.keystore.clone());
    let voter = grandpa::run_grandpa_voter(grandpa::GrandpaParams {
        config: grandpa::Config {
            gossip_duration: GOSSIP_DURATION,
            justification_generation_period: JUSTIFICATION_PERIOD_BLOCKS,
            name: Some(finality.node_name),
            observer_enabled: false,
            keystore,
            local_role: finality.role,
            telemetry: shared.telemetry.clone(),
            protocol_name: finality.protocol_name,
        },
        link: finality.link,
        network: shared.network.clone(),
        sync: shared.sync.clone(),
        notification_service: finality.notifications,
        telemetry: shared.telemetry.clone(),
        voting_rule: voting::rule(),
        prometheus_registry: shared.prometheus.clone(),
        shared_voter_state: finality.voter_state,
        offchain_tx_pool_factory: OffchainTransactionPoolFactory::new(shared.transaction_pool.clone()),
    })?;
    task_manager
        .spawn_essential_handle()
        .spawn_blocking("grandpa-voter", None, voter);
    Ok(())
}
