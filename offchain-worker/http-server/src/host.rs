//! Whom a browser believes it talks to.

use std::net::IpAddr;

use axum::{
    extract::Request,
    http::{StatusCode, header::HOST},
    middleware::Next,
    response::{IntoResponse, Response},
};

/// Refuses requests to a name of the internet. For servers that are known by their addresses: a page whose
/// own name leads to this machine by now reads what is answered to it.
pub async fn by_address_only(request: Request, next: Next) -> Response {
    let host = request.headers().get(HOST);
    let is_taken = host.is_none_or(|host| host.to_str().is_ok_and(is_of_no_domain));
    match is_taken {
        true => next.run(request).await,
        false => {
            let told = "ask by address, as in http://127.0.0.1, or by a name without a domain\n";
            (StatusCode::MISDIRECTED_REQUEST, told).into_response()
        }
    }
}

/// Whether a host is an address, or a name that no page of the internet has: one of this machine or network.
fn is_of_no_domain(host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    host.starts_with('[') || !name.contains('.') || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_of_this_network_are_taken_and_names_of_the_internet_are_not() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:9616",
            "[::1]:9616",
            "localhost:9616",
            "provider",
        ] {
            assert!(is_of_no_domain(host), "{host}");
        }
        for host in [
            "example.org",
            "example.org:9616",
            "127.0.0.1.example.org",
            "a.localhost.",
        ] {
            assert!(!is_of_no_domain(host), "{host}");
        }
    }
}
