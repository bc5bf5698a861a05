//! Putting the swarm together, and making it listen.

use std::time::Duration;

use futures::StreamExt;
use libp2p::{
    Swarm, SwarmBuilder,
    identity::Keypair,
    multiaddr::Multiaddr,
    noise, ping,
    request_response::{self, ProtocolSupport},
    swarm::SwarmEvent,
    tcp, yamux,
};

use crate::{
    address::parse_listen,
    call::behaviour::Calls,
    event_loop::{Behaviour, root_cause},
    limits::Limits,
    places::Places,
    plane::PlaneError,
    shared::Shared,
    wire::{BLOBS, REACH, STREAMS},
};

pub(crate) fn build(key: Keypair, limits: &Limits, shared: &Shared) -> Result<Swarm<Behaviour>, PlaneError> {
    let transport_error = |reason: String| PlaneError::Listen {
        address: "any address".into(),
        reason,
    };
    let request_timeout = limits.request_timeout;
    let blobs_config = request_response::Config::default()
        .with_request_timeout(request_timeout)
        // Of one connection, in both directions; the event loop's own limits are what others notice.
        .with_max_concurrent_streams(limits.inbound_per_peer_max + limits.outbound_requests_max);
    let streams_config = request_response::Config::default()
        .with_request_timeout(request_timeout)
        .with_max_concurrent_streams(limits.polls_per_peer_max + limits.outbound_requests_max);
    let reach_config = request_response::Config::default()
        .with_request_timeout(request_timeout)
        .with_max_concurrent_streams(limits.dial_backs_max + limits.outbound_requests_max);
    let places = Places::new(limits, shared.tally.clone());
    let swarm = SwarmBuilder::with_existing_identity(key)
        .with_tokio()
        .with_tcp(
            tcp::Config::default().nodelay(true),
            noise::Config::new,
            yamux::Config::default,
        )
        .map_err(|e| transport_error(e.to_string()))?
        .with_quic_config(|mut config| {
            config.handshake_timeout = limits.quic_handshake_timeout;
            config
        })
        .with_behaviour(|_| Behaviour {
            places,
            blobs: request_response::Behaviour::new([(BLOBS, ProtocolSupport::Full)], blobs_config),
            streams: request_response::Behaviour::new([(STREAMS, ProtocolSupport::Full)], streams_config),
            reach: request_response::Behaviour::new([(REACH, ProtocolSupport::Full)], reach_config),
            calls: Calls::new(request_timeout),
            ping: ping::Behaviour::new(ping::Config::new().with_timeout(request_timeout)),
        })
        .map_err(|e| transport_error(e.to_string()))?
        // Long enough for the next chunk or task, short enough not to collect peers.
        .with_swarm_config(|config| config.with_idle_connection_timeout(Duration::from_secs(30)))
        .with_connection_timeout(limits.dial_timeout)
        .build();
    Ok(swarm)
}

/// Listens, and waits until the system has said at which addresses.
pub(crate) async fn listen(
    swarm: &mut Swarm<Behaviour>,
    texts: &[String],
) -> Result<Vec<Multiaddr>, PlaneError> {
    let mut waiting = Vec::new();
    for text in texts {
        let address = parse_listen(text)?;
        let id = swarm.listen_on(address).map_err(|e| PlaneError::Listen {
            address: text.clone(),
            reason: root_cause(&e),
        })?;
        waiting.push((id, text.clone()));
    }
    if waiting.is_empty() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    // Interfaces of one listener arrive one by one: the last of them may come a moment after the first.
    let mut patience = Duration::from_secs(5);
    while let Ok(event) = tokio::time::timeout(patience, swarm.select_next_some()).await {
        match event {
            SwarmEvent::NewListenAddr { listener_id, address } => {
                found.push(address);
                waiting.retain(|(id, _)| *id != listener_id);
            }
            SwarmEvent::ListenerClosed {
                listener_id,
                reason: Err(e),
                ..
            } => {
                let address = waiting.iter().find(|(id, _)| *id == listener_id);
                return Err(PlaneError::Listen {
                    address: address.map_or_else(String::new, |(_, text)| text.clone()),
                    reason: root_cause(&e),
                });
            }
            _ => {}
        }
        if waiting.is_empty() {
            patience = Duration::from_millis(50);
        }
    }
    match waiting.first() {
        Some((_, text)) => Err(PlaneError::Listen {
            address: text.clone(),
            reason: "the system did not answer in 5 s".into(),
        }),
        None => Ok(found),
    }
}
