//! The faucet over HTTP.

use std::{
    future::Future,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::{
    Json, Router,
    extract::{ConnectInfo, DefaultBodyLimit, Request, State, rejection::JsonRejection},
    http::{HeaderMap, StatusCode, header},
    middleware::{Next, from_fn},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::{Deserialize, Serialize};
use surety_chain_client::{address, parse_address};
use surety_http_server::{BodyFault, Limits, read_body};
use tokio::net::TcpListener;
use tower::limit::GlobalConcurrencyLimitLayer;

use crate::{ClaimError, Faucet, Origin};

/// Largest body that is taken, in bytes: an address has some fifty.
const BODY_BYTES_MAX: usize = 1 << 10;

/// Requests that are answered at once; more wait. Each may wait for a block.
const REQUESTS_MAX: usize = 64;

/// Who asks waits for 200 s at most ([`crate::ask`]).
const LIMITS: Limits = Limits::new(256, Duration::from_secs(220));

/// What the server works with.
#[derive(Clone)]
pub struct Site {
    /// Who pays.
    pub faucet: Arc<Faucet>,
    /// Whose `X-Forwarded-For` is believed.
    pub proxies: Arc<[IpAddr]>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimRequest {
    account: String,
}

/// Amounts are in plancks.
#[derive(Serialize)]
struct ClaimAnswer {
    amount: String,
    hash: String,
}

/// Why a request is refused. Its body says so as `{"error": {"code": .., "message": ..}}`.
enum HttpError {
    NoSuchRoute,
    BadRequest(String),
    TooLarge(String),
    Claim(ClaimError),
}

impl From<ClaimError> for HttpError {
    fn from(error: ClaimError) -> Self {
        Self::Claim(error)
    }
}

impl From<JsonRejection> for HttpError {
    fn from(rejection: JsonRejection) -> Self {
        match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => Self::TooLarge(rejection.body_text()),
            _ => Self::BadRequest(rejection.body_text()),
        }
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let (status, code) = match &self {
            Self::NoSuchRoute => (StatusCode::NOT_FOUND, "no_such_route"),
            Self::BadRequest(_) => (StatusCode::BAD_REQUEST, "bad_request"),
            Self::TooLarge(_) => (StatusCode::PAYLOAD_TOO_LARGE, "too_large"),
            Self::Claim(ClaimError::TooSoon(_)) => (StatusCode::TOO_MANY_REQUESTS, "too_soon"),
            Self::Claim(ClaimError::Empty) => (StatusCode::SERVICE_UNAVAILABLE, "empty"),
            Self::Claim(ClaimError::Chain(_)) => (StatusCode::SERVICE_UNAVAILABLE, "chain"),
            Self::Claim(ClaimError::Unknown(_)) => (StatusCode::GATEWAY_TIMEOUT, "unknown"),
            Self::Claim(ClaimError::Store(_) | ClaimError::Internal(_)) => {
                (StatusCode::INTERNAL_SERVER_ERROR, "internal")
            }
        };
        let (message, wait_s) = match self {
            Self::NoSuchRoute => (
                "there is no such route; claims go to POST /v1/claims".into(),
                None,
            ),
            Self::BadRequest(message) | Self::TooLarge(message) => (message, None),
            Self::Claim(ClaimError::TooSoon(refused)) => (refused.to_string(), Some(refused.wait_s)),
            // Paths and defects of this machine are for its operator.
            Self::Claim(ClaimError::Store(_) | ClaimError::Internal(_)) => (
                "the faucet has a fault; its operator finds it in the log".into(),
                None,
            ),
            Self::Claim(error) => (error.to_string(), None),
        };
        let body = serde_json::json!({ "error": { "code": code, "message": message } });
        let response = (status, Json(body)).into_response();
        match wait_s {
            Some(wait_s) => ([(header::RETRY_AFTER, wait_s.to_string())], response).into_response(),
            None => response,
        }
    }
}

/// The routes. They need to be told whom they talk to: [`serve`] does.
pub fn router(site: Site) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/v1/claims", post(claim))
        .fallback(async || HttpError::NoSuchRoute)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(GlobalConcurrencyLimitLayer::new(REQUESTS_MAX))
        .layer(from_fn(body_first))
        .with_state(site)
}

/// Who sends slowly keeps nobody from being answered.
async fn body_first(request: Request, next: Next) -> Result<Response, HttpError> {
    let read = read_body(request, BODY_BYTES_MAX).await;
    let request = read.map_err(|fault| match fault {
        BodyFault::NotWhole => HttpError::TooLarge(format!("send {BODY_BYTES_MAX} bytes at most")),
        BodyFault::TooSlow => HttpError::BadRequest("the request did not come in time".into()),
    })?;
    Ok(next.run(request).await)
}

/// Answers until `stop`, and then those that wait for their answer.
pub async fn serve(listener: &TcpListener, site: Site, stop: impl Future<Output = ()>) {
    let proxies = site.proxies.clone();
    surety_http_server::serve(listener, router(site), LIMITS, &proxies, stop).await;
}

async fn claim(
    State(site): State<Site>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    request: Result<Json<ClaimRequest>, JsonRejection>,
) -> Result<Json<ClaimAnswer>, HttpError> {
    let Json(request) = request?;
    let account = parse_address(&request.account).ok_or_else(|| {
        let text = format!("{:?} is no address (SS58, such as 5Grwva…)", request.account);
        HttpError::BadRequest(text)
    })?;
    let origin = Origin::from(client(peer.ip(), &headers, &site.proxies));
    let paid = site.faucet.claim(account, origin).await?;
    Ok(Json(ClaimAnswer {
        amount: paid.amount.to_string(),
        hash: format!("{:?}", paid.extrinsic),
    }))
}

async fn health(State(site): State<Site>) -> Result<Json<serde_json::Value>, HttpError> {
    let free = site.faucet.funds().await?;
    let account = address(site.faucet.purse.signer.account());
    Ok(Json(serde_json::json!({
        "status": "ok",
        "account": account,
        "free": free.to_string(),
    })))
}

/// Whose request it is. Proxies append whom they talk to: what stands before the last that is no proxy of
/// ours may be made up.
fn client(peer: IpAddr, headers: &HeaderMap, proxies: &[IpAddr]) -> IpAddr {
    let is_proxy = |address: &IpAddr| proxies.contains(&address.to_canonical());
    if !is_proxy(&peer) {
        return peer;
    }
    let values = headers.get_all("x-forwarded-for").iter();
    let named: Vec<&str> = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .collect();
    let mut parsed = named.iter().rev().map_while(|text| {
        let text = text.trim();
        let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
        text.parse().ok().or_else(with_port)
    });
    parsed.find(|address| !is_proxy(address)).unwrap_or(peer)
}
