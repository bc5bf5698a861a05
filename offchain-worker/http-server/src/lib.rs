//! HTTP to a bounded number of connections, each for a bounded time.

mod body;
mod host;
mod places;

use std::{
    future::Future,
    net::{IpAddr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use axum::{Extension, Router, extract::ConnectInfo};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
};

pub use body::{BodyFault, Pace, read_at_pace, read_body};
pub use host::by_address_only;
use places::Places;

/// After the system refused a connection: too many open files, most likely, which a moment may mend.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);

/// What nobody gets more of.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at once; more wait.
    pub connections: u32,
    /// Of these, from one address (IPv4, or a /64 of IPv6); more are hung up on. Proxies do not count.
    pub connections_per_address: u32,
    /// For the head of a request to come.
    pub head_time: Duration,
    /// How long one may last, its request and its answer included: nobody holds a place by being slow.
    pub time: Duration,
    /// How long those that wait for their answer are waited for after the stop.
    pub stop_time: Duration,
}

impl Limits {
    /// The usual ones, for so many connections of so long.
    pub const fn new(connections: u32, time: Duration) -> Self {
        Self {
            connections,
            connections_per_address: 16,
            head_time: Duration::from_secs(10),
            time,
            stop_time: Duration::from_secs(30),
        }
    }
}

/// Answers until `stop`, and then for a while those that wait for their answer. Each of `proxies` has the
/// connections of many. Routes can ask for `ConnectInfo<SocketAddr>`.
pub async fn serve(
    listener: &TcpListener,
    routes: Router,
    limits: Limits,
    proxies: &[IpAddr],
    stop: impl Future<Output = ()>,
) {
    let places = Arc::new(Semaphore::new(limits.connections as usize));
    let of_address = Places::new(limits.connections_per_address, proxies);
    let (ending, ended) = watch::channel(());
    let mut stop = pin!(stop);
    loop {
        let next = async {
            let place = places.clone().acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            () = &mut stop => break,
            next = next => next,
        };
        match accepted {
            Ok((stream, peer)) => {
                let Some(of_address) = of_address.take(peer.ip()) else {
                    tracing::debug!(%peer, "too many HTTP connections from there");
                    continue;
                };
                let talk = talk(stream, peer, routes.clone(), limits, ended.clone());
                tokio::spawn(async move {
                    if tokio::time::timeout(limits.time, talk).await.is_err() {
                        tracing::debug!(%peer, "an HTTP connection took too long");
                    }
                    drop((place, of_address));
                });
            }
            Err(e) => {
                tracing::warn!(error = %e, "cannot accept an HTTP connection");
                tokio::time::sleep(REFUSED_PAUSE).await;
            }
        }
    }
    drop(ending);
    // All of them are back once every connection has ended. The semaphore is never closed.
    let all = places.acquire_many(limits.connections);
    if tokio::time::timeout(limits.stop_time, all).await.is_err() {
        tracing::warn!("some HTTP requests are not answered: stopping all the same");
    }
}

/// Until the connection ends, or has answered what was asked when all are `ended`.
async fn talk(
    stream: TcpStream,
    peer: SocketAddr,
    routes: Router,
    limits: Limits,
    mut ended: watch::Receiver<()>,
) {
    let routes = routes.layer(Extension(ConnectInfo(peer)));
    // One request is one connection: its time is that of the request.
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head_time)
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes))
    );
    let served = tokio::select! {
        served = &mut connection => served,
        // Its sender never sends: this is its end.
        _ = ended.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(e) = served {
        tracing::debug!(%peer, error = %e, "an HTTP connection broke");
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::future::pending;

    use axum::{
        body::Bytes,
        routing::{get, post},
    };
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        sync::{Notify, oneshot},
        task::JoinHandle,
    };

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// A server with two places.
    async fn served(
        routes: Router,
        time: Duration,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> (SocketAddr, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let limits = Limits {
            stop_time: Duration::from_millis(500),
            ..Limits::new(2, time)
        };
        let serving = tokio::spawn(async move { serve(&listener, routes, limits, &[], stop).await });
        (address, serving)
    }

    async fn asked(address: SocketAddr, sent: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut answer = String::new();
        // Until the server has ended it.
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn who_says_nothing_or_never_comes_to_an_end_is_left_and_others_are_answered() {
        let routes = Router::new().route("/", post(async |body: Bytes| body.len().to_string()));
        let (address, _) = served(routes, Duration::from_millis(200), pending()).await;
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

    #[tokio::test]
    async fn who_waits_for_an_answer_gets_it_after_the_stop_and_who_has_not_asked_is_hung_up_on() {
        let [begun, go_on] = [(); 2].map(|()| Arc::new(Notify::new()));
        let slow = {
            let (begun, go_on) = (begun.clone(), go_on.clone());
            move || {
                let (begun, go_on) = (begun.clone(), go_on.clone());
                async move {
                    begun.notify_one();
                    go_on.notified().await;
                    "done"
                }
            }
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async { drop(stopped.await) };
        let (address, serving) = served(Router::new().route("/", get(slow)), LONG, stopped).await;
        let silent = tokio::spawn(asked(address, ""));
        let waiting = tokio::spawn(async move { asked(address, "GET / HTTP/1.1\r\nhost: x\r\n\r\n").await });
        begun.notified().await;
        stop.send(()).unwrap();
        assert_eq!(silent.await.unwrap(), "");
        assert!(!serving.is_finished());
        go_on.notify_one();
        assert!(waiting.await.unwrap().ends_with("done"));
        serving.await.unwrap();
        assert!(TcpStream::connect(address).await.is_err());
    }

    #[tokio::test]
    async fn a_route_is_told_whom_it_talks_to() {
        let routes = Router::new().route(
            "/",
            get(async |ConnectInfo(peer): ConnectInfo<SocketAddr>| peer.ip().to_string()),
        );
        let (address, _) = served(routes, LONG, pending()).await;
        let said = asked(address, "GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
        assert!(said.ends_with("127.0.0.1"), "{said}");
    }
    #[tokio::test]
    async fn a_stop_does_not_wait_for_ever_for_an_answer() {
        let begun = Arc::new(Notify::new());
        let never = {
            let begun = begun.clone();
            move || {
                let begun = begun.clone();
                async move {
                    begun.notify_one();
                    pending::<&str>().await
                }
            }
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async { drop(stopped.await) };
        let (address, serving) = served(Router::new().route("/", get(never)), LONG, stopped).await;
        tokio::spawn(async move { asked(address, "GET / HTTP/1.1\r\nhost: x\r\n\r\n").await });
        begun.notified().await;
        stop.send(()).unwrap();
        assert!(tokio::time::timeout(LONG / 2, serving).await.is_ok());
    }

    #[tokio::test]
    async fn who_has_as_many_connections_as_an_address_may_have_is_hung_up_on_unless_it_is_a_proxy() {
        for (proxies, is_answered) in [(vec![], false), (vec![IpAddr::from([127, 0, 0, 1])], true)] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let limits = Limits {
                connections_per_address: 1,
                ..Limits::new(8, LONG)
            };
            let routes = Router::new().route("/", get(async || "here"));
            tokio::spawn(async move { serve(&listener, routes, limits, &proxies, pending()).await });
            let mut first = TcpStream::connect(address).await.unwrap();
            first.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
            let mut second = TcpStream::connect(address).await.unwrap();
            // It may be hung up on before it has said anything.
            second.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.ok();
            let mut answer = String::new();
            second.read_to_string(&mut answer).await.ok();
            assert_eq!(answer.ends_with("here"), is_answered, "{answer}");
        }
    }

    #[tokio::test]
    async fn who_does_not_send_the_head_of_a_request_is_left_long_before_others() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let limits = Limits {
            head_time: Duration::from_millis(100),
            ..Limits::new(2, LONG)
        };
        tokio::spawn(async move { serve(&listener, Router::new(), limits, &[], pending()).await });
        let left = tokio::time::timeout(LONG / 2, asked(address, "GET / HTTP/1.1\r\n")).await;
        assert!(left.is_ok());
    }
}
