//! Opening a call with a peer.

use codec::{DecodeAll, Encode};
use libp2p::{PeerId, multiaddr::Multiaddr};
use surety_types::multiaddr::Endpoint;
use tokio::sync::oneshot;

use crate::{
    address::{resolve, split_endpoint},
    call::{CallError, CallStream, Patience, behaviour::Opening},
    event_loop::Command,
    node::Node,
    plane::PeerError,
    wire::{CALL_GREETING_BYTES_MAX, CallGreeting, CallHello},
};

/// Endpoints that are looked at: a provider has four at most.
const ENDPOINTS_MAX: usize = 16;

impl Node {
    /// Opens a call with the first peer at these endpoints that takes it.
    pub(crate) async fn call(&self, endpoints: &[Endpoint]) -> Result<CallStream, CallError> {
        let mut peers: Vec<(PeerId, Vec<Multiaddr>)> = Vec::new();
        let mut fault = CallError::NoEndpoint;
        for endpoint in endpoints.iter().take(ENDPOINTS_MAX) {
            match addresses(endpoint).await {
                Ok((peer, found)) => match peers.iter_mut().find(|(known, _)| *known == peer) {
                    Some((_, addresses)) => addresses.extend(found),
                    None => peers.push((peer, found)),
                },
                Err(error) => fault = CallError::Unreachable(error),
            }
        }
        for (peer, addresses) in peers {
            match self.call_peer(peer, addresses).await {
                Ok(call) => {
                    self.shared().tally.calls_opened.one();
                    return Ok(call);
                }
                Err(error) => fault = error,
            }
        }
        self.shared().tally.calls_failed.one();
        Err(fault)
    }

    async fn call_peer(&self, peer: PeerId, addresses: Vec<Multiaddr>) -> Result<CallStream, CallError> {
        let place = self.shared().desk.own_place().ok_or(CallError::OwnFull)?;
        let (reply, opened) = oneshot::channel();
        let command = Command::Call {
            peer,
            addresses,
            opening: Opening { place, reply },
        };
        self.send(command).await.map_err(|_| CallError::Stopped)?;
        let closed = |_| CallError::Lost("the connection was closed".into());
        let (stream, place) = opened.await.map_err(closed)??;
        let patience = Patience::of(self.limits());
        let call = CallStream::new(stream, &peer.to_base58(), patience, std::sync::Arc::new(place));
        let time = self.limits().request_timeout;
        let hello = CallHello {
            genesis: self.genesis(),
        };
        let late = CallError::Silent {
            seconds: time.as_secs(),
        };
        tokio::time::timeout(time, introduce(call, hello))
            .await
            .unwrap_or(Err(late))
    }
}

/// Says which chain is meant, and hears whether the call is taken.
async fn introduce(mut call: CallStream, hello: CallHello) -> Result<CallStream, CallError> {
    call.send(&hello.encode()).await?;
    let answer = call.recv(CALL_GREETING_BYTES_MAX).await?;
    let answer = answer.ok_or_else(|| CallError::Protocol("it ended the call before it took it".into()))?;
    let greeting = CallGreeting::decode_all(&mut answer.as_slice());
    match greeting.map_err(|error| CallError::Protocol(error.to_string()))? {
        CallGreeting::Taken => Ok(call),
        CallGreeting::NotServed => Err(CallError::NotServed),
        CallGreeting::OtherChain => Err(CallError::OtherChain),
        CallGreeting::Full => Err(CallError::Full),
        CallGreeting::TooMany => Err(CallError::TooMany),
    }
}

async fn addresses(endpoint: &Endpoint) -> Result<(PeerId, Vec<Multiaddr>), PeerError> {
    let (address, peer) = split_endpoint(endpoint).map_err(PeerError::Address)?;
    let found = resolve(&address).await.map_err(PeerError::Address)?;
    Ok((peer, found))
}
