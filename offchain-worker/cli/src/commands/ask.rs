//! What one node says of itself, and whether it is on this machine.

use std::net::IpAddr;

use async_trait::async_trait;
use serde_json::Value;
use surety_chain_rpc::{NodeFault, NodeRpc};

/// Who is asked.
#[async_trait]
pub(super) trait Ask: Sync {
    async fn ask(&self, method: &str, params: Vec<Value>) -> Result<Value, NodeFault>;
}

#[async_trait]
impl Ask for NodeRpc {
    async fn ask(&self, method: &str, params: Vec<Value>) -> Result<Value, NodeFault> {
        NodeRpc::ask(self, method, params).await
    }
}

/// Host and port of a WebSocket address.
pub(super) fn host_and_port(url: &str) -> Option<(&str, u16)> {
    let (scheme, rest) = url.split_once("://")?;
    let at = rest.split(['/', '?']).next()?;
    match at.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => Some((host, port.parse().ok()?)),
        _ => Some((at, if scheme == "wss" { 443 } else { 80 })),
    }
}

/// Whether a host is this machine, by a name or address that leads nowhere else.
pub(super) fn is_loopback(host: &str) -> bool {
    let ip = host.trim_matches(['[', ']']).parse();
    host == "localhost" || ip.is_ok_and(|ip: IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_alone_are_loopback() {
        let is_own = |url| host_and_port(url).is_some_and(|(host, _)| is_loopback(host));
        for url in ["ws://127.0.0.1:9944", "ws://localhost:9944/", "ws://[::1]:9944"] {
            assert!(is_own(url), "{url}");
        }
        for url in [
            "ws://192.0.2.7:9944",
            "wss://rpc.example",
            "ws://localhost.example:9944",
            "ws://127.0.0.1@rpc.example:9944",
            "no address",
        ] {
            assert!(!is_own(url), "{url}");
        }
    }
}
