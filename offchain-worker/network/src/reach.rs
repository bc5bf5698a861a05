//! Whether others reach this node.

use std::net::Ipv4Addr;

use libp2p::multiaddr::Protocol;
use surety_types::multiaddr::Endpoint;

use crate::{
    address::{endpoint_text, parse_endpoint, resolve, split_endpoint},
    event_loop::Question,
    node::Node,
    plane::{DataPlane, PeerError},
    wire::{ReachRequest, ReachResponse},
};

/// Peers that are asked about one address.
const ASKED_MAX: usize = 8;
/// So many that did not get through are believed: one may have lost its own connection.
const UNREACHED_MAX: usize = 2;

/// Whether others reach an address of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reachability {
    /// One did.
    Reachable,
    /// One did at this other address, where it sees us.
    At(Endpoint),
    /// Those that tried did not.
    Unreachable,
    /// Nobody could tell.
    Unknown,
}

impl Node {
    /// Has peers dial each of this node's endpoints, and says what came of it.
    pub async fn reachability(&self, peers: &[Endpoint]) -> Vec<(Endpoint, Reachability)> {
        let mut all = Vec::new();
        for endpoint in self.endpoints() {
            let found = self.reachability_of(&endpoint, peers).await;
            all.push((endpoint, found));
        }
        all
    }

    async fn reachability_of(&self, endpoint: &Endpoint, peers: &[Endpoint]) -> Reachability {
        let addresses = match dialled_at(endpoint).await {
            Ok(addresses) => addresses,
            Err(error) => {
                tracing::debug!(endpoint = endpoint_text(endpoint), %error, "no address to be dialled at");
                return Reachability::Unreachable;
            }
        };
        let mut unreached = 0;
        for peer in peers.iter().take(ASKED_MAX) {
            for address in &addresses {
                match self.dialled_by(peer, address).await {
                    Ok(Reachability::Unreachable) => unreached += 1,
                    Ok(Reachability::Unknown) => {}
                    Ok(reached) => return reached,
                    Err(error) => {
                        tracing::debug!(peer = endpoint_text(peer), %error, "cannot be asked");
                        break;
                    }
                }
            }
            if unreached >= UNREACHED_MAX {
                break;
            }
        }
        match unreached {
            0 => Reachability::Unknown,
            _ => Reachability::Unreachable,
        }
    }

    /// Has one peer dial one address, or the same port where the peer sees us.
    async fn dialled_by(&self, peer: &Endpoint, address: &Endpoint) -> Result<Reachability, PeerError> {
        let seen = match self.dial_back(peer, address).await? {
            ReachResponse::Reached => return Ok(Reachability::Reachable),
            ReachResponse::Unreached => return Ok(Reachability::Unreachable),
            ReachResponse::Elsewhere(seen) => seen.and_then(|ip| moved(address, ip.into())),
            ReachResponse::Busy => None,
        };
        let Some(seen) = seen else {
            return Ok(Reachability::Unknown);
        };
        Ok(match self.dial_back(peer, &seen).await? {
            ReachResponse::Reached => Reachability::At(seen),
            ReachResponse::Unreached => Reachability::Unreachable,
            ReachResponse::Elsewhere(_) | ReachResponse::Busy => Reachability::Unknown,
        })
    }

    async fn dial_back(&self, peer: &Endpoint, address: &Endpoint) -> Result<ReachResponse, PeerError> {
        let address = address.clone();
        let ask = |reply| Question::Reach(ReachRequest { address }, reply);
        self.put(peer, ask).await
    }
}

/// The addresses that others dial for an endpoint.
async fn dialled_at(endpoint: &Endpoint) -> Result<Vec<Endpoint>, PeerError> {
    let (address, peer) = split_endpoint(endpoint).map_err(PeerError::Address)?;
    let resolved = resolve(&address).await.map_err(PeerError::Address)?;
    let endpoints = resolved
        .iter()
        .map(|address| parse_endpoint(&format!("{address}/p2p/{peer}")));
    endpoints.collect::<Result<_, _>>().map_err(PeerError::Address)
}

/// The same port at another address of IPv4.
fn moved(endpoint: &Endpoint, ip: Ipv4Addr) -> Option<Endpoint> {
    let (address, peer) = split_endpoint(endpoint).ok()?;
    let Some(Protocol::Ip4(_)) = address.iter().next() else {
        return None;
    };
    let moved = address.replace(0, |_| Some(ip.into()))?;
    parse_endpoint(&format!("{moved}/p2p/{peer}")).ok()
}
