//! A client's node: who may read from it.

use std::sync::Arc;

use surety_access::Gate;
use surety_chain_client::{AccountId, Chain, When};
use surety_network::{DataPlane, Node};
use surety_types::multiaddr::Endpoint;

use crate::error::Result;

/// Has a client's node judge the passes of auditors, and keep places for providers. Of the tasks of others
/// it serves none, but where it keeps inputs for whoever posts them.
///
/// # Errors
/// When the chain cannot be asked, or the node has stopped.
pub async fn welcome(chain: &Arc<dyn Chain>, node: &Node, client: Option<AccountId>) -> Result<()> {
    let gate = match client {
        Some(client) => Gate::of_client(chain.clone(), client),
        None => Gate::of_inputs(chain.clone()),
    };
    node.set_gate(Arc::new(gate));
    let providers = chain.providers(When::Best).await?;
    let endpoints: Vec<Endpoint> = providers
        .into_iter()
        .flat_map(|(_, record)| record.endpoints)
        .collect();
    Ok(node.set_named_peers(&endpoints).await?)
}
