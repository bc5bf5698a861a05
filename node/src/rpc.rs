//! RPC beyond what every node answers (`system`, `chain`, `state`, `author` and the new `chainHead`,
//! `archive`, `chainSpec`, `transaction` families come with the service).

use std::sync::Arc;

use jsonrpsee::RpcModule;
use sc_consensus_babe::BabeWorkerHandle;
use sc_consensus_babe_rpc::{Babe, BabeApiServer};
use sc_consensus_grandpa::{
    FinalityProofProvider, GrandpaJustificationStream, SharedAuthoritySet, SharedVoterState,
};
use sc_consensus_grandpa_rpc::{Grandpa, GrandpaApiServer};
use sc_rpc::SubscriptionTaskExecutor;
use sc_sync_state_rpc::{SyncState, SyncStateApiServer};
use sp_keystore::KeystorePtr;
use surety_runtime::{BlockNumber, Hash, opaque::Block};

use crate::service::{Backend, Client, SelectChain, TransactionPool};

/// What the extensions ask.
pub struct Deps {
    pub client: Arc<Client>,
    pub pool: Arc<TransactionPool>,
    pub select_chain: SelectChain,
    pub keystore: KeystorePtr,
    pub chain_spec: Box<dyn sc_chain_spec::ChainSpec>,
    pub babe: BabeWorkerHandle<Block>,
    pub authority_set: SharedAuthoritySet<Hash, BlockNumber>,
    pub voter_state: SharedVoterState,
    pub justifications: GrandpaJustificationStream<Block>,
    pub finality_proofs: Arc<FinalityProofProvider<Backend, Block>>,
}

/// Makes the extensions.
///
/// # Errors
/// When the chain specification leaves no room for a light client's starting point.
pub fn create(
    deps: Deps,
    executor: SubscriptionTaskExecutor,
) -> Result<RpcModule<()>, Box<dyn std::error::Error + Send + Sync>> {
    use pallet_transaction_payment_rpc::{TransactionPayment, TransactionPaymentApiServer};
    use substrate_frame_rpc_system::{System, SystemApiServer};

    let Deps {
        client,
        pool,
        select_chain,
        keystore,
        chain_spec,
        babe,
        authority_set,
        voter_state,
        justifications,
        finality_proofs,
    } = deps;
    let mut module = RpcModule::new(());
    module.merge(System::new(client.clone(), pool).into_rpc())?;
    module.merge(TransactionPayment::new(client.clone()).into_rpc())?;
    module.merge(Babe::new(client.clone(), babe.clone(), keystore, select_chain).into_rpc())?;
    module.merge(
        Grandpa::new(
            executor,
            authority_set.clone(),
            voter_state,
            justifications,
            finality_proofs,
        )
        .into_rpc(),
    )?;
    module.merge(SyncState::new(chain_spec, client, authority_set, babe)?.into_rpc())?;
    Ok(module)
}
