//! The node of a client, or of who keeps inputs for clients: who may read from it.

use std::sync::Arc;

use surety_access::{Gate, KeptInputs};
use surety_chain_client::{Chain, When};
use surety_network::{DataPlane, Node};
use surety_types::multiaddr::Endpoint;

use crate::error::Result;

/// Has the node of whoever keeps these inputs judge tickets, and keep places for providers.
///
/// # Errors
/// When the chain cannot be asked, or the node has stopped.
pub async fn welcome(chain: &Arc<dyn Chain>, node: &Node, inputs: Arc<dyn KeptInputs>) -> Result<()> {
    node.set_gate(Arc::new(Gate::of_inputs(chain.clone(), inputs)));
    name_providers(&**chain, node).await
}

/// Keeps places for the providers that there are now.
pub(crate) async fn name_providers(chain: &dyn Chain, plane: &dyn DataPlane) -> Result<()> {
    let providers = chain.providers(When::Best).await?;
    let endpoints: Vec<Endpoint> = providers
        .into_iter()
        .flat_map(|(_, record)| record.endpoints)
        .collect();
    Ok(plane.set_named_peers(&endpoints).await?)
}
