//! Endpoint texts to what libp2p dials, and back.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr},
};

use libp2p::{
    PeerId,
    multiaddr::{Multiaddr, Protocol},
};
use surety_types::{
    limits,
    multiaddr::{Endpoint, MultiaddrFault, check},
};

use crate::places::ip_of;

/// Why a text is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not of the form that the chain accepts.
    #[error("malformed address {text:?}: {}", fault_text(*fault))]
    Malformed {
        /// The text.
        text: String,
        /// What is wrong with it.
        fault: MultiaddrFault,
    },
    /// Longer than the chain accepts.
    #[error("address {text:?} is longer than {max} bytes", max = limits::MULTIADDR_BYTES_MAX)]
    TooLong {
        /// The text.
        text: String,
    },
    /// Not something one can listen on.
    #[error(
        "cannot listen on {text:?}: expected /ip4/ADDRESS/udp/PORT/quic-v1 or /ip4/ADDRESS/tcp/PORT (or ip6)"
    )]
    NotListenable {
        /// The text.
        text: String,
    },
    /// The name has no address.
    #[error("cannot resolve {name}: {reason}")]
    Unresolved {
        /// The host name.
        name: String,
        /// What the resolver said.
        reason: String,
    },
}

fn fault_text(fault: MultiaddrFault) -> &'static str {
    match fault {
        MultiaddrFault::Syntax => "expected /HOST/TRANSPORT/p2p/PEER-ID",
        MultiaddrFault::Host => "the host must be /ip4, /ip6, /dns, /dns4 or /dns6 with a value of that kind",
        MultiaddrFault::Transport => "the transport must be /tcp/PORT or /udp/PORT/quic-v1",
        MultiaddrFault::PeerId => "it must end in /p2p/PEER-ID",
    }
}

/// Checks an endpoint as the chain does.
///
/// # Errors
/// When the chain would refuse it.
pub fn parse_endpoint(text: &str) -> Result<Endpoint, AddressError> {
    check(text).map_err(|fault| AddressError::Malformed {
        text: text.into(),
        fault,
    })?;
    Endpoint::try_from(text).map_err(|_| AddressError::TooLong { text: text.into() })
}

/// Checks that a text is an address to listen on, or one at which others reach this peer: no peer id, no host
/// name.
///
/// # Errors
/// When it is neither `/ip4|ip6/ADDRESS/udp/PORT/quic-v1` nor `/ip4|ip6/ADDRESS/tcp/PORT`.
pub fn check_listen(text: &str) -> Result<(), AddressError> {
    parse_listen(text).map(drop)
}

/// What to dial: an address without peer id, and who must answer.
pub(crate) fn split_endpoint(endpoint: &Endpoint) -> Result<(Multiaddr, PeerId), AddressError> {
    let text = endpoint_text(endpoint);
    let malformed = |fault| AddressError::Malformed {
        text: text.clone(),
        fault,
    };
    check(endpoint).map_err(malformed)?;
    let mut address: Multiaddr = text.parse().map_err(|_| malformed(MultiaddrFault::PeerId))?;
    match address.pop() {
        Some(Protocol::P2p(peer)) => Ok((address, peer)),
        _ => Err(malformed(MultiaddrFault::PeerId)),
    }
}

/// The text of an endpoint, for people.
pub(crate) fn endpoint_text(endpoint: &Endpoint) -> String {
    endpoint.to_string()
}

/// An address to listen on.
pub(crate) fn parse_listen(text: &str) -> Result<Multiaddr, AddressError> {
    let error = || AddressError::NotListenable { text: text.into() };
    let address: Multiaddr = text.parse().map_err(|_| error())?;
    let parts: Vec<_> = address.iter().collect();
    match parts.as_slice() {
        [Protocol::Ip4(_) | Protocol::Ip6(_), Protocol::Tcp(_)]
        | [
            Protocol::Ip4(_) | Protocol::Ip6(_),
            Protocol::Udp(_),
            Protocol::QuicV1,
        ] => Ok(address),
        _ => Err(error()),
    }
}

/// `address` with its host name replaced by what the system's resolver says, one address per answer.
pub(crate) async fn resolve(address: &Multiaddr) -> Result<Vec<Multiaddr>, AddressError> {
    let (name, wants): (String, fn(&IpAddr) -> bool) = match address.iter().next() {
        Some(Protocol::Dns(name)) => (name.into_owned(), |_| true),
        Some(Protocol::Dns4(name)) => (name.into_owned(), IpAddr::is_ipv4),
        Some(Protocol::Dns6(name)) => (name.into_owned(), IpAddr::is_ipv6),
        _ => return Ok(vec![address.clone()]),
    };
    let unresolved = |reason: String| AddressError::Unresolved {
        name: name.clone(),
        reason,
    };
    let answers = tokio::net::lookup_host((name.as_str(), 0))
        .await
        .map_err(|e| unresolved(e.to_string()))?;
    let found: Vec<Multiaddr> = answers
        .map(|socket| socket.ip())
        .filter(wants)
        .take(4) // More would only lengthen the wait for a dead peer.
        .filter_map(|ip| address.replace(0, |_| Some(ip.into())))
        .collect();
    if found.is_empty() {
        return Err(unresolved("no address of that kind".into()));
    }
    Ok(found)
}

/// From where an address can be dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// From anywhere.
    Global,
    /// From its own network.
    Network,
    /// From its own machine.
    Machine,
}

impl Scope {
    pub(crate) fn of_ip(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            ip if ip.is_loopback() => Self::Machine,
            IpAddr::V4(ip) if ip.is_private() || ip.is_link_local() || is_shared(ip) => Self::Network,
            IpAddr::V6(ip) if ip.is_unique_local() || ip.is_unicast_link_local() => Self::Network,
            _ => Self::Global,
        }
    }

    /// Of an address; nothing of one that begins with a name.
    pub(crate) fn of(address: &Multiaddr) -> Option<Self> {
        match address.iter().next()? {
            Protocol::Ip4(ip) => Some(Self::of_ip(ip.into())),
            Protocol::Ip6(ip) => Some(Self::of_ip(ip.into())),
            _ => None,
        }
    }

    /// Of an endpoint; nothing of one that begins with a name, or is none.
    pub fn of_endpoint(endpoint: &Endpoint) -> Option<Self> {
        Self::of(&split_endpoint(endpoint).ok()?.0)
    }
}

/// Whether an address is one that a carrier's customers share (RFC 6598).
fn is_shared(ip: Ipv4Addr) -> bool {
    let [a, b, ..] = ip.octets();
    a == 100 && b & 0xc0 == 64
}

/// Endpoints that others can use, best first: public before private before loopback, and at each address QUIC
/// before TCP, which is there for whoever finds no place over QUIC. Where there is no room for both at each,
/// there is TCP of the first alone: what others reach may come after the bridges of containers.
pub(crate) fn announceable(addresses: &[Multiaddr], peer: PeerId) -> Vec<Endpoint> {
    let mut ranked: Vec<(Scope, Option<IpAddr>, u8, String)> = addresses
        .iter()
        .filter_map(|address| {
            match address.iter().next()? {
                Protocol::Ip4(ip) if ip.is_unspecified() => return None,
                Protocol::Ip6(ip) if ip.is_unspecified() || ip.is_unicast_link_local() => return None,
                _ => {}
            }
            let reach = Scope::of(address).unwrap_or(Scope::Global);
            let transport = u8::from(!address.iter().any(|p| p == Protocol::QuicV1));
            Some((reach, ip_of(address), transport, format!("{address}/p2p/{peer}")))
        })
        .collect();
    ranked.sort();
    ranked.dedup();
    // Loopback is of no use to others, unless it is all there is (a devnet on one machine).
    let best = ranked.first().map_or(Scope::Global, |(reach, ..)| *reach);
    let room = limits::ENDPOINTS_MAX as usize;
    let of_best = ranked.iter().filter(|(reach, ..)| *reach == best);
    let hosts: BTreeSet<Option<IpAddr>> = of_best.map(|(_, ip, ..)| *ip).collect();
    if hosts.len().saturating_mul(2) > room {
        ranked.sort_by_key(|(reach, _, transport, _)| (*reach, *transport));
        let is_tcp = |(reach, _, transport, _): &(Scope, _, u8, _)| *reach == best && *transport > 0;
        let (last, first_tcp) = (room.saturating_sub(1), ranked.iter().position(is_tcp));
        if let Some(tcp) = first_tcp.filter(|at| *at > last) {
            let tcp = ranked.remove(tcp);
            ranked.insert(last, tcp);
        }
    }
    ranked
        .into_iter()
        .filter(|(reach, ..)| *reach < Scope::Machine || best == Scope::Machine)
        .filter_map(|(.., text)| parse_endpoint(&text).ok())
        .take(room)
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::{collection::vec, prelude::*, sample::select};

    use super::*;

    const PEER: &str = "12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp";

    #[test]
    fn a_malformed_address_says_what_is_wrong() {
        let error = parse_endpoint("/ip4/127.0.0.1/tcp/4001").unwrap_err();
        assert_eq!(
            error.to_string(),
            "malformed address \"/ip4/127.0.0.1/tcp/4001\": it must end in /p2p/PEER-ID"
        );
        let long = format!("/dns4/{}/tcp/1/p2p/{PEER}", "a".repeat(200));
        assert!(matches!(parse_endpoint(&long), Err(AddressError::TooLong { .. })));
    }

    #[test]
    fn a_peer_id_with_a_wrong_digest_is_malformed() {
        // Right alphabet and length, so the chain takes it; but no multihash.
        let text = format!("/ip4/127.0.0.1/tcp/1/p2p/{}", "1".repeat(52));
        let endpoint = parse_endpoint(&text).unwrap();
        assert!(matches!(
            split_endpoint(&endpoint),
            Err(AddressError::Malformed {
                fault: MultiaddrFault::PeerId,
                ..
            })
        ));
    }

    #[test]
    fn only_ip_addresses_can_be_listened_on() {
        parse_listen("/ip4/0.0.0.0/udp/4001/quic-v1").unwrap();
        parse_listen("/ip6/::/tcp/0").unwrap();
        for text in ["0.0.0.0:4001", "/dns4/localhost/tcp/1", "/ip4/0.0.0.0/udp/1"] {
            assert!(
                matches!(parse_listen(text), Err(AddressError::NotListenable { .. })),
                "{text}"
            );
        }
    }

    #[test]
    fn loopback_is_announced_only_when_there_is_nothing_better() {
        let peer = PEER.parse().unwrap();
        let parse = |texts: &[&str]| texts.iter().map(|t| t.parse().unwrap()).collect::<Vec<_>>();
        let both = parse(&[
            "/ip4/127.0.0.1/tcp/1",
            "/ip4/192.168.1.2/tcp/1",
            "/ip4/192.168.1.2/udp/1/quic-v1",
        ]);
        let texts: Vec<_> = announceable(&both, peer).iter().map(endpoint_text).collect();
        assert_eq!(
            texts,
            [
                format!("/ip4/192.168.1.2/udp/1/quic-v1/p2p/{PEER}"),
                format!("/ip4/192.168.1.2/tcp/1/p2p/{PEER}"),
            ]
        );
        assert_eq!(announceable(&both[..1], peer).len(), 1);
        assert!(announceable(&parse(&["/ip4/0.0.0.0/tcp/1"]), peer).is_empty());
    }

    #[test]
    fn both_transports_are_announced_where_there_is_room_and_else_quic_of_three_addresses_and_tcp_of_one() {
        const QUIC: &str = "udp/1/quic-v1";
        const TCP: &str = "tcp/1";
        let at = |host: &str, transport: &str| format!("/ip4/{host}/{transport}");
        let announced = |hosts: &[&str]| -> Vec<String> {
            let all = hosts.iter().flat_map(|host| [at(host, TCP), at(host, QUIC)]);
            let all: Vec<Multiaddr> = all.map(|text| text.parse().unwrap()).collect();
            let announced = announceable(&all, PEER.parse().unwrap());
            announced.iter().map(endpoint_text).collect()
        };
        let texts = |expected: [(&str, &str); 4]| {
            expected.map(|(host, transport)| format!("{}/p2p/{PEER}", at(host, transport)))
        };
        let [one, other] = ["192.168.1.2", "192.168.1.3"];
        let both = [(one, QUIC), (one, TCP), (other, QUIC), (other, TCP)];
        assert_eq!(announced(&[other, one]), texts(both));
        // docker0, a bridge of compose, and the only one of them that others reach.
        let [docker, compose] = ["172.17.0.1", "172.18.0.1"];
        let all = [(docker, QUIC), (compose, QUIC), (one, QUIC), (docker, TCP)];
        assert_eq!(announced(&[one, docker, compose]), texts(all));
        assert_eq!(announced(&[other, one, docker, compose]), texts(all));
    }

    /// Parts of which some endpoints are made, and much that is none.
    const PARTS: [&str; 20] = [
        "/ip4/",
        "/ip6/",
        "/dns/",
        "/dns4/",
        "127.0.0.1",
        "::1",
        "a.example",
        "-",
        "/tcp/",
        "/udp/",
        "0",
        "80",
        "65536",
        "/quic-v1",
        "/p2p/",
        PEER,
        "Qm",
        "/",
        "",
        "é",
    ];

    proptest! {
        #[test]
        fn what_the_chain_takes_is_taken_apart_and_put_together_again(
            host in select(vec!["/ip4/127.0.0.1", "/ip6/::1", "/dns/a.example", "/dns6/b"]),
            transport in select(vec!["/tcp/80", "/udp/443/quic-v1"]),
            parts in vec(select(&PARTS[..]), 0..9),
        ) {
            let right = format!("{host}{transport}/p2p/{PEER}");
            let endpoint = parse_endpoint(&right).unwrap();
            let (address, peer) = split_endpoint(&endpoint).unwrap();
            prop_assert_eq!(format!("{address}/p2p/{peer}"), right);
            // Anything else is an error, or an endpoint like that.
            let text = parts.concat();
            prop_assert_eq!(parse_endpoint(&text).is_ok(), check(&text).is_ok());
            if let Ok((address, peer)) = Endpoint::try_from(text.clone().into_bytes())
                .map_err(drop)
                .and_then(|endpoint| split_endpoint(&endpoint).map_err(drop))
            {
                prop_assert_eq!(format!("{address}/p2p/{peer}"), text);
            }
        }
    }

    #[tokio::test]
    async fn names_are_resolved_by_the_system() {
        let address: Multiaddr = "/dns4/localhost/tcp/1".parse().unwrap();
        let found = resolve(&address).await.unwrap();
        assert_eq!(found, ["/ip4/127.0.0.1/tcp/1".parse().unwrap()]);
    }
}
