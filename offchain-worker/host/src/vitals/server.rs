//! The port on which an operator's tools ask how a worker is.
//!
//! It tells whoever asks, and changes nothing. What it tells is nobody's secret, but an address and a port
//! more on the internet are no good: it is off unless asked for, and belongs on loopback or a private
//! network.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::CONTENT_TYPE,
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::Instant,
};

use super::Vitals;
use crate::error::{HostError, Result};

/// Connections at once; more wait. Prometheus and a health check need one each.
const CONNECTIONS_MAX: usize = 16;

/// How long one connection may last: nobody holds a place by sending nothing.
const CONNECTION_SECONDS_MAX: Duration = Duration::from_secs(10);

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
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    // The semaphore is never closed.
    while let Ok(place) = places.clone().acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let vitals = vitals.clone();
                tokio::spawn(async move {
                    if tokio::time::timeout(CONNECTION_SECONDS_MAX, talk(stream, vitals))
                        .await
                        .is_err()
                    {
                        tracing::debug!("a connection for metrics took too long");
                    }
                    drop(place);
                });
            }
            Err(e) => {
                tracing::warn!(error = %e, "cannot accept a connection for metrics");
                // Too many open files, most likely: trying again at once would not help.
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

async fn talk(stream: TcpStream, vitals: Arc<Vitals>) {
    let service = service_fn(move |request| {
        let answer = answer(&request, &vitals);
        async { Ok::<_, Infallible>(answer) }
    });
    // One request is one connection: a scraper every few seconds needs no more.
    let connection = http1::Builder::new()
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(e) = connection.await {
        tracing::debug!(error = %e, "a connection for metrics broke");
    }
}

fn answer(request: &Request<Incoming>, vitals: &Vitals) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return response(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "only GET\n".into());
    }
    match request.uri().path() {
        "/metrics" => match vitals.metrics.text() {
            Ok((text, media_type)) => response(StatusCode::OK, &media_type, text),
            Err(e) => response(
                StatusCode::INTERNAL_SERVER_ERROR,
                "text/plain",
                e.to_string().into(),
            ),
        },
        "/health" => {
            let report = vitals.health.report(Instant::now());
            let status = match report.healthy {
                true => StatusCode::OK,
                false => StatusCode::SERVICE_UNAVAILABLE,
            };
            // Texts and numbers alone: nothing that could fail to serialise.
            let body = serde_json::to_vec(&report).unwrap_or_default();
            response(status, "application/json", body)
        }
        _ => response(
            StatusCode::NOT_FOUND,
            "text/plain",
            "there is /metrics and /health\n".into(),
        ),
    }
}

fn response(status: StatusCode, media_type: &str, body: Vec<u8>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    if let Ok(value) = media_type.parse() {
        response.headers_mut().insert(CONTENT_TYPE, value);
    }
    response
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::{super::Seen, *};

    async fn served(vitals: &Arc<Vitals>) -> SocketAddr {
        let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(Arc::new(listener), vitals.clone()));
        address
    }

    async fn ask(address: SocketAddr, request: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream
            .write_all(format!("{request} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes())
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
    async fn connections_that_say_nothing_are_bounded_and_an_address_is_taken_once() {
        let vitals = Arc::new(Vitals::new().unwrap());
        let address = served(&vitals).await;
        let mut silent = Vec::new();
        for _ in 0..CONNECTIONS_MAX / 2 {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        assert_eq!(ask(address, "GET /metrics").await.0, 200);
        assert!(matches!(bind(address).await, Err(HostError::Metrics { .. })));
    }
}
