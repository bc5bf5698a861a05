//! Endpoint addresses in libp2p's text form, checked without `libp2p` so that the runtime can do it.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::ConstU32;
use sp_runtime::BoundedVec;

use crate::{limits, text::Text};

/// An address, for example `/ip4/127.0.0.1/udp/4001/quic-v1/p2p/12D3KooW...`.
pub type Endpoint = Text<{ limits::MULTIADDR_BYTES_MAX }>;

/// The addresses of one peer.
pub type Endpoints = BoundedVec<Endpoint, ConstU32<{ limits::ENDPOINTS_MAX }>>;

/// Why a text is not an endpoint address.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum MultiaddrFault {
    /// Not `/`-separated printable ASCII.
    Syntax,
    /// The host part is not `ip4`, `ip6`, `dns`, `dns4` or `dns6` with a value of that kind.
    Host,
    /// The transport part is not `tcp/PORT` or `udp/PORT/quic-v1`.
    Transport,
    /// It does not end in `p2p/PEER-ID`, so whoever answers could not be authenticated.
    PeerId,
}

/// Checks that `text` is `/HOST/TRANSPORT/p2p/PEER-ID`.
///
/// The peer id is only checked for its alphabet and length: the data plane checks it against the key that the
/// peer proves to hold.
pub fn check(text: &str) -> Result<(), MultiaddrFault> {
    if !text.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(MultiaddrFault::Syntax);
    }
    let mut parts = text.strip_prefix('/').ok_or(MultiaddrFault::Syntax)?.split('/');
    let mut next = || parts.next().unwrap_or_default();

    let (kind, value) = (next(), next());
    let host_ok = match kind {
        "ip4" => value.parse::<core::net::Ipv4Addr>().is_ok(),
        "ip6" => value.parse::<core::net::Ipv6Addr>().is_ok(),
        "dns" | "dns4" | "dns6" => is_host_name(value),
        _ => false,
    };
    if !host_ok {
        return Err(MultiaddrFault::Host);
    }
    let (transport, port) = (next(), next());
    let transport_ok = port.parse::<u16>().is_ok_and(|port| port != 0)
        && match transport {
            "tcp" => true,
            "udp" => next() == "quic-v1",
            _ => false,
        };
    if !transport_ok {
        return Err(MultiaddrFault::Transport);
    }
    if next() != "p2p" || !is_peer_id(next()) || parts.next().is_some() {
        return Err(MultiaddrFault::PeerId);
    }
    Ok(())
}

fn is_host_name(value: &str) -> bool {
    !value.is_empty()
        && value
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.')
}

/// Base58 (Bitcoin alphabet) of an identity or sha2-256 multihash: 46 to 60 characters.
fn is_peer_id(value: &str) -> bool {
    let base58 = |b: u8| b.is_ascii_alphanumeric() && !matches!(b, b'0' | b'O' | b'I' | b'l');
    (46..=60).contains(&value.len()) && value.bytes().all(base58)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: &str = "12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp";

    #[test]
    fn every_supported_form_is_accepted() {
        for front in [
            "/ip4/127.0.0.1/tcp/1",
            "/ip6/::1/udp/65535/quic-v1",
            "/dns4/a-b.example/tcp/30333",
        ] {
            let text = alloc::format!("{front}/p2p/{PEER}");
            assert_eq!(check(&text), Ok(()), "{text}");
        }
    }

    #[test]
    fn each_fault_is_named() {
        let cases = [
            ("", MultiaddrFault::Syntax),
            ("ip4/127.0.0.1", MultiaddrFault::Syntax),
            ("/ip4/127.0.0.1 /tcp/1", MultiaddrFault::Syntax),
            ("/ip4/300.0.0.1/tcp/1", MultiaddrFault::Host),
            ("/onion3/abc/tcp/1", MultiaddrFault::Host),
            ("/ip4/127.0.0.1/tcp/0", MultiaddrFault::Transport),
            ("/ip4/127.0.0.1/udp/1/quic", MultiaddrFault::Transport),
            ("/ip4/127.0.0.1/tcp/1", MultiaddrFault::PeerId),
            ("/ip4/127.0.0.1/tcp/1/p2p/short", MultiaddrFault::PeerId),
        ];
        for (text, fault) in cases {
            assert_eq!(check(text), Err(fault), "{text}");
        }
        let trailing = alloc::format!("/ip4/127.0.0.1/tcp/1/p2p/{PEER}/p2p-circuit");
        assert_eq!(check(&trailing), Err(MultiaddrFault::PeerId));
    }
}
