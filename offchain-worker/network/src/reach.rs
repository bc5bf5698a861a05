//! Whether others reach this node.

use std::{collections::BTreeMap, net::Ipv4Addr};

use futures::future::join_all;
use libp2p::multiaddr::Protocol;
use surety_types::multiaddr::Endpoint;

use crate::{
    address::{endpoint_text, parse_endpoint, resolve, split_endpoint},
    event_loop::Question,
    node::Node,
    plane::{DataPlane, PeerError},
    wire::{ReachRequest, ReachResponse},
};

/// Peers that are asked.
const ASKED_MAX: usize = 8;

/// Whether others reach an address of ours.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reachability {
    /// They do.
    Reachable,
    /// They do at this other address, where they see us.
    At(Endpoint),
    /// They do not.
    Unreachable,
    /// Nobody could tell.
    Unknown,
}

impl Node {
    /// Has peers dial each of this node's endpoints, and says what most of those found that could tell: one
    /// alone may lie, or have lost its own connection.
    pub async fn reachability(&self, peers: &[Endpoint]) -> Vec<(Endpoint, Reachability)> {
        let mut peers: Vec<&Endpoint> = peers.iter().take(ASKED_MAX).collect();
        let mut all = Vec::new();
        for endpoint in self.endpoints() {
            let asked = peers.iter().map(|peer| self.dialled_by(peer, &endpoint));
            let answers = join_all(asked).await;
            let mut votes: BTreeMap<Reachability, usize> = BTreeMap::new();
            let mut answering = Vec::new();
            for (peer, answer) in peers.into_iter().zip(answers) {
                match answer {
                    Ok(found) => {
                        answering.push(peer);
                        *votes.entry(found).or_default() += 1;
                    }
                    // Of the next address it need not be asked.
                    Err(error) => {
                        tracing::debug!(peer = endpoint_text(peer), %error, "cannot be asked");
                    }
                }
            }
            peers = answering;
            votes.remove(&Reachability::Unknown);
            let most = votes.values().max().copied();
            let found = votes.into_iter().find(|(_, count)| Some(*count) == most);
            all.push((endpoint, found.map_or(Reachability::Unknown, |(found, _)| found)));
        }
        all
    }

    /// Has one peer dial an endpoint, or the same port where the peer sees us.
    async fn dialled_by(&self, peer: &Endpoint, endpoint: &Endpoint) -> Result<Reachability, PeerError> {
        let Ok(addresses) = dialled_at(endpoint).await else {
            // A name that leads nowhere.
            return Ok(Reachability::Unreachable);
        };
        let mut found = Reachability::Unknown;
        for address in addresses {
            let seen = match self.dial_back(peer, &address).await? {
                ReachResponse::Reached => return Ok(Reachability::Reachable),
                ReachResponse::Unreached => {
                    found = Reachability::Unreachable;
                    None
                }
                ReachResponse::Elsewhere(seen) => seen.and_then(|ip| moved(&address, ip.into())),
                ReachResponse::Busy => None,
            };
            let Some(seen) = seen else { continue };
            match self.dial_back(peer, &seen).await? {
                ReachResponse::Reached => return Ok(Reachability::At(seen)),
                ReachResponse::Unreached => found = Reachability::Unreachable,
                ReachResponse::Elsewhere(_) | ReachResponse::Busy => {}
            }
        }
        Ok(found)
    }

    async fn dial_back(&self, peer: &Endpoint, address: &Endpoint) -> Result<ReachResponse, PeerError> {
        let ask = |reply| {
            let address = address.clone();
            Question::Reach(ReachRequest { address }, reply)
        };
        match self.put(peer, ask).await {
            // It went over the connection that the peer made for the last one, and has closed since.
            Err(PeerError::Unreachable(_)) => self.put(peer, ask).await,
            answer => answer,
        }
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
