//! Connections of pages: how many there are, and how long each may take.

use std::{sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};

/// Connections at once; more wait. A browser opens six to one server.
const CONNECTIONS_MAX: usize = 256;

/// How long one may last, its request and its answer included: nobody holds a place by being slow. An output
/// of 64 MiB takes that long at 4 Mbit/s.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(120);

/// Answers for as long as it is polled.
pub async fn serve(listener: TcpListener, routes: Router) {
    serve_within(listener, routes, CONNECTIONS_MAX, CONNECTION_TIME_MAX).await;
}

pub(super) async fn serve_within(
    listener: TcpListener,
    routes: Router,
    connections_max: usize,
    time_max: Duration,
) {
    let places = Arc::new(Semaphore::new(connections_max));
    // The semaphore is never closed.
    while let Ok(place) = places.clone().acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let talk = talk(stream, routes.clone());
                tokio::spawn(async move {
                    if tokio::time::timeout(time_max, talk).await.is_err() {
                        tracing::debug!("a connection of a page took too long");
                    }
                    drop(place);
                });
            }
            Err(e) => {
                tracing::warn!(error = %e, "cannot accept a connection of a page");
                // Too many open files, most likely: trying again at once would not help.
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

async fn talk(stream: TcpStream, routes: Router) {
    // One request is one connection: its time is that of the request.
    let connection = http1::Builder::new()
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    if let Err(e) = connection.await {
        tracing::debug!(error = %e, "a connection of a page broke");
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use axum::{body::Bytes, routing::post};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Says how many bytes it was sent, by a server with two places.
    async fn served(time_max: Duration) -> std::net::SocketAddr {
        let routes = Router::new().route("/", post(async |body: Bytes| body.len().to_string()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve_within(listener, routes, 2, time_max));
        address
    }

    async fn asked(address: std::net::SocketAddr, sent: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut answer = String::new();
        // Until the server has ended it.
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn who_says_nothing_or_never_comes_to_an_end_is_left_and_others_are_answered() {
        let address = served(Duration::from_millis(200)).await;
        let head = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n";
        let silent = TcpStream::connect(address).await.unwrap();
        let [unfinished, finished] = ["a", "abc"].map(|body| format!("{head}\r\n{body}"));
        let (left, half, whole) = tokio::join!(
            asked(address, head),
            asked(address, &unfinished),
            asked(address, &finished),
        );
        assert_eq!((left.as_str(), half.as_str()), ("", ""));
        assert!(whole.starts_with("HTTP/1.1 200"), "{whole}");
        assert!(whole.ends_with("\r\n\r\n3"), "{whole}");
        drop(silent);
    }
}
