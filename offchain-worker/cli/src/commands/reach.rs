//! Whether others reach this machine: peers of the chain are asked to try.

use std::{cmp::Reverse, sync::Arc, time::Duration};

use serde::Serialize;
use surety_chain_client::{Chain, ChainError, When};
use surety_network::{BlobStore, DataPlane, Limits, NetworkConfig, Node, Reachability, Scope, StoreLimits};
use surety_types::multiaddr::Endpoint;

use crate::{
    config::DataConfig,
    error::{CliError, Result},
};

/// Providers that are asked, those first that were heard of last.
const PEERS_MAX: usize = 8;
/// After an attempt that says nothing.
const PAUSE: Duration = Duration::from_secs(600);

/// What was found of one address.
#[derive(Debug, Serialize)]
pub(super) struct Reach {
    endpoint: String,
    found: Found,
    /// Where it is reached, if not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    reached_at: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Found {
    Reachable,
    /// Within its own network or machine.
    Nearby,
    Elsewhere,
    Unreachable,
    Unknown,
}

impl Reach {
    fn new((endpoint, found): (Endpoint, Reachability)) -> Self {
        let text = |endpoint: &Endpoint| endpoint.to_string();
        let (found, reached_at) = match &found {
            Reachability::Reachable => match Scope::of_endpoint(&endpoint) {
                Some(Scope::Network | Scope::Machine) => (Found::Nearby, None),
                Some(Scope::Global) | None => (Found::Reachable, None),
            },
            Reachability::At(seen) => (Found::Elsewhere, Some(text(seen))),
            Reachability::Unreachable => (Found::Unreachable, None),
            Reachability::Unknown => (Found::Unknown, None),
        };
        Self {
            endpoint: text(&endpoint),
            found,
            reached_at,
        }
    }
}

/// What was found of all addresses: the best of it, and what to do.
pub(super) fn summary(all: &[Reach]) -> (Found, String) {
    let those = |wanted| {
        let of = all.iter().filter(move |reach| reach.found == wanted);
        let shown = of.map(|reach| reach.reached_at.as_ref().unwrap_or(&reach.endpoint).as_str());
        // Whose address it is need not be said.
        let shown = shown.map(|endpoint| endpoint.split("/p2p/").next().unwrap_or(endpoint));
        shown.collect::<Vec<_>>().join(", ")
    };
    let kinds = [
        Found::Reachable,
        Found::Elsewhere,
        Found::Nearby,
        Found::Unreachable,
    ];
    let best = kinds
        .into_iter()
        .find(|kind| all.iter().any(|reach| reach.found == *kind));
    let best = best.unwrap_or(Found::Unknown);
    let text = match best {
        Found::Reachable => format!("peers of this chain have connected to {}", those(best)),
        Found::Nearby => format!(
            "peers of this chain have connected to {}, which others than those of this machine or network cannot: for them \
             forward a port, and name its address with --external",
            those(best)
        ),
        Found::Elsewhere => format!(
            "peers of this chain see this machine at another address, and have connected to {}: name that one with --external",
            those(best)
        ),
        Found::Unreachable => format!(
            "peers of this chain cannot connect to {}: forward the port to this machine, open it in the firewall, or name \
             the address at which others reach it with --external",
            those(best)
        ),
        Found::Unknown => {
            "no peer of this chain could tell whether it reaches this machine: none answers, or they see it at another address \
             than it names, which --external can change"
                .into()
        }
    };
    (best, text)
}

/// Has providers of the chain connect to what would be listened on here: by a node that is there for that
/// alone, and leaves nothing.
pub(super) async fn try_out(chain: &dyn Chain, data: &DataConfig) -> Result<Vec<Reach>> {
    let folder = tempfile::tempdir().map_err(CliError::file("a temporary folder"))?;
    let limits = StoreLimits {
        blob_bytes_max: 0,
        total_bytes_max: 0,
    };
    let store = BlobStore::open(folder.path().join("blobs"), limits)?;
    let config = NetworkConfig {
        key_file: folder.path().join("network.key"),
        listen: data.listen.clone(),
        external: data.external.clone(),
        genesis: chain.info().genesis,
        limits: Limits::default(),
    };
    let node = Node::start(config, Arc::new(store)).await?;
    let all = reach(chain, &node).await;
    node.stop().await;
    Ok(all?)
}

/// Has providers of the chain connect to this node.
async fn reach(chain: &dyn Chain, node: &Node) -> std::result::Result<Vec<Reach>, ChainError> {
    let mut providers = chain.providers(When::Best).await?;
    providers.sort_by_key(|(_, record)| Reverse(record.last_heartbeat));
    let own = node.peer_id();
    let is_other = |endpoint: &Endpoint| !endpoint.ends_with(own.as_str());
    let peers: Vec<Endpoint> = providers
        .into_iter()
        .filter_map(|(_, record)| record.endpoints.into_iter().find(is_other))
        .take(PEERS_MAX)
        .collect();
    Ok(node
        .reachability(&peers)
        .await
        .into_iter()
        .map(Reach::new)
        .collect())
}

/// Says in the log whether others reach this node, as soon as somebody can tell.
pub(super) async fn tell(chain: Arc<dyn Chain>, node: Arc<Node>) {
    loop {
        match reach(&*chain, &node).await.map(|all| summary(&all)) {
            Ok((Found::Reachable | Found::Nearby, text)) => return tracing::info!("{text}"),
            Ok((Found::Elsewhere | Found::Unreachable, text)) => tracing::warn!("{text}"),
            Ok((Found::Unknown, text)) => tracing::debug!("{text}"),
            Err(error) => tracing::debug!(%error, "who could be asked is not known"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}
