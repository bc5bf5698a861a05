//! The port on which an operator's tools ask how a worker is.
//!
//! It tells whoever asks, and changes nothing. What it tells is nobody's secret, but an address and a port
//! more on the internet are no good: it is off unless asked for, and belongs on loopback or a private
//! network.

use std::{future::pending, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Json, Router,
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    middleware::from_fn,
    response::{IntoResponse, Response},
    routing::get,
};
use surety_http_server::{Limits, by_address_only};
use tokio::{net::TcpListener, time::Instant};

use super::Vitals;
use crate::error::{HostError, Result};

/// Prometheus and a health check need a connection each, for a moment.
const LIMITS: Limits = Limits::new(16, Duration::from_secs(10));

/// Starts to listen.
///
/// # Errors
/// When the address is taken, or is not this machine's.
pub async fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .map_err(|source| HostError::Metrics { address, source })
}

/// Answers for as long as it is polled.
pub async fn serve(listener: Arc<TcpListener>, vitals: Arc<Vitals>) {
    let routes = Router::new()
        .route("/metrics", get(metrics))
        .route("/health", get(health))
        .fallback(async || (StatusCode::NOT_FOUND, "there is /metrics and /health\n"))
        .layer(from_fn(by_address_only))
        .with_state(vitals);
    surety_http_server::serve(&listener, routes, LIMITS, &[], pending()).await;
}

async fn metrics(State(vitals): State<Arc<Vitals>>) -> Response {
    match vitals.metrics.text() {
        Ok((text, media_type)) => ([(CONTENT_TYPE, media_type)], text).into_response(),
        Err(e) => (StatusCode::INTERNAL_SERVER_ERROR, e.to_string()).into_response(),
    }
}

async fn health(State(vitals): State<Arc<Vitals>>) -> Response {
    let report = vitals.health.report(Instant::now());
    let status = match report.healthy {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, Json(report)).into_response()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
    };

    use super::{super::Seen, *};

    async fn served(vitals: &Arc<Vitals>) -> SocketAddr {
        let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(Arc::new(listener), vitals.clone()));
        address
    }

    async fn ask(address: SocketAddr, request: &str) -> (u16, String) {
        ask_of("x", address, request).await
    }

    async fn ask_of(host: &str, address: SocketAddr, request: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream
            .write_all(format!("{request} HTTP/1.1\r\nhost: {host}\r\n\r\n").as_bytes())
            .await
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.into())
    }

    #[tokio::test]
    async fn health_is_a_status_and_reasons() {
        let vitals = Arc::new(Vitals::new().unwrap());
        let address = served(&vitals).await;
        let (status, body) = ask(address, "GET /health").await;
        assert_eq!(status, 503);
        assert!(body.contains("no block was seen yet"), "{body}");

        vitals.block(Seen::Finalized, 3);
        let (status, body) = ask(address, "GET /health").await;
        let report: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, &report["chain"]), (200, &"live".into()));

        vitals.part_died("follower", "it panicked");
        let (status, body) = ask(address, "GET /health").await;
        assert_eq!(status, 503);
        assert!(body.contains("follower does not run: it panicked"), "{body}");
    }

    #[tokio::test]
    async fn metrics_are_text_and_nothing_else_is_answered() {
        let vitals = Arc::new(Vitals::new().unwrap());
        let address = served(&vitals).await;
        vitals.block(Seen::Best, 9);
        let (status, body) = ask(address, "GET /metrics").await;
        assert_eq!(status, 200);
        assert!(body.contains("surety_block_height{status=\"best\"} 9"), "{body}");
        assert_eq!(ask(address, "POST /metrics").await.0, 405);
        assert_eq!(ask(address, "GET /").await.0, 404);
    }

    #[tokio::test]
    async fn a_page_whose_name_was_made_to_lead_here_reads_nothing() {
        let vitals = Arc::new(Vitals::new().unwrap());
        let address = served(&vitals).await;
        let (status, body) = ask_of("rebound.example:9616", address, "GET /metrics").await;
        assert_eq!(status, 421, "{body}");
        assert_eq!(ask_of(&address.to_string(), address, "GET /metrics").await.0, 200);
    }

    #[tokio::test]
    async fn connections_that_say_nothing_are_bounded_and_an_address_is_taken_once() {
        let vitals = Arc::new(Vitals::new().unwrap());
        let address = served(&vitals).await;
        let mut silent = Vec::new();
        for _ in 0..LIMITS.connections / 2 {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        assert_eq!(ask(address, "GET /metrics").await.0, 200);
        assert!(matches!(bind(address).await, Err(HostError::Metrics { .. })));
    }
}
