//! The routes.

use std::{
    collections::BTreeMap,
    future::Future,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use axum::{
    Router,
    extract::{FromRequestParts, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    middleware::{from_fn, map_response_with_state},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get, post},
};
use surety_http_server::{BodyFault, Limits, by_address_only, read_body};
use tokio::{
    net::TcpListener,
    sync::{Notify, watch},
    task::JoinSet,
    time::timeout,
};

use crate::{
    batch::{Batches, routes as batches},
    drive::ATTEMPTS_MAX,
    embed,
    error::ApiError,
    files, generate,
    ledger::{Key, KeyTerms, Ledger, LedgerError, OpenCall},
    metrics::Metrics,
    models, openapi,
    places::{Admission, Place},
    rate::{Left, Rates},
    receipts,
    runner::BatchRunner,
    text::ModelText,
    upstream::{Upstream, UpstreamError, Verdict},
};

/// Longest body.
const BODY_BYTES_MAX: usize = 4 << 20;
/// Files that are being given at once: each is in memory, twice, until it is kept.
const UPLOADS_MAX: usize = 4;
/// Of these, of one key.
const UPLOADS_OF_KEY_MAX: usize = 1;
/// Who reads what is asked and answered: it leaves this machine as ids, and a model's tokenizer is public.
pub(crate) const PRIVACY: &str = "providers-and-auditors-read";
pub(crate) const PRIVACY_HEADER: &str = "x-surety-privacy";

/// How it is served.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What a request without a key may do; without it, every request needs one.
    pub without_key: Option<KeyTerms>,
    /// Generations and embeddings at once. Where requests need keys, one has three quarters of them at most.
    pub calls: usize,
    /// Connections at once.
    pub connections: u32,
    /// Of these, from one address (IPv4, or a /64 of IPv6).
    pub connections_per_address: u32,
    /// Addresses that have the connections of many, and no limit of their own.
    pub proxies: Vec<IpAddr>,
    /// Longest time of a connection.
    pub time: Duration,
    /// Longest time until a provider says something, or a client reads on.
    pub token_time: Duration,
    /// Longest time that proofs of a call's receipts are waited for, of all of them together.
    pub proof_time: Duration,
    /// How batches are computed.
    pub batches: BatchSettings,
}

impl Settings {
    /// Whether an address can be served so.
    ///
    /// # Errors
    /// [`Exposed`] where it is not loopback and requests need no key.
    pub fn check(&self, address: SocketAddr) -> Result<(), Exposed> {
        match self.without_key.is_some() && !address.ip().is_loopback() {
            true => Err(Exposed(address.ip())),
            false => Ok(()),
        }
    }
}

/// How batches are computed.
#[derive(Clone, Copy, Debug)]
pub struct BatchSettings {
    /// Tasks that are on the chain at once, of all batches.
    pub tasks: usize,
    /// After so long no more tasks of a batch are posted. Clients are told that it is a day.
    pub window: Duration,
    /// Before something that did not work is tried again.
    pub pause: Duration,
}

impl Default for BatchSettings {
    fn default() -> Self {
        Self {
            tasks: 8,
            window: Duration::from_secs(24 * 3600),
            pause: Duration::from_secs(5),
        }
    }
}

/// Why an address is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} can be reached from other machines, so that requests need keys: create one, or listen on 127.0.0.1"
)]
pub struct Exposed(pub IpAddr);

/// All routes, which `openapi` describes.
pub(crate) fn table() -> Vec<(&'static str, MethodRouter<Arc<Shared>>)> {
    vec![
        ("/openapi.json", get(openapi::description)),
        ("/metrics", get(metrics)),
        ("/v1/models", get(models::models)),
        // Names of models may have slashes in them.
        ("/v1/models/{*name}", get(models::model)),
        ("/v1/chat/completions", post(generate::chat)),
        ("/v1/completions", post(generate::completions)),
        ("/v1/embeddings", post(embed::embeddings)),
        ("/v1/receipts/{id}", get(receipts::receipt)),
        ("/v1/receipts/{id}/proof", get(receipts::proof)),
        ("/v1/files", get(files::list).post(files::create)),
        ("/v1/files/{id}", get(files::show).delete(files::remove)),
        ("/v1/files/{id}/content", get(files::content)),
        ("/v1/batches", get(batches::list).post(batches::create)),
        ("/v1/batches/{id}", get(batches::show)),
        ("/v1/batches/{id}/cancel", post(batches::cancel)),
    ]
}

pub(crate) struct Shared {
    pub upstream: Arc<dyn Upstream>,
    pub runner: Arc<dyn BatchRunner>,
    pub settings: Settings,
    pub metrics: Metrics,
    pub texts: BTreeMap<String, Arc<dyn ModelText>>,
    /// Places of files that are given.
    pub uploads: Admission,
    /// Places of tasks that are posted, or about to be.
    pub tasks: Admission,
    /// There is a batch that nobody works on.
    pub new_batch: Notify,
    /// Changes when a batch is cancelled.
    pub cancelled: watch::Sender<u64>,
    ledger: Arc<Ledger>,
    places: Admission,
    rates: Rates,
}

impl Shared {
    /// Uses the ledger, which blocks, on a thread for that.
    pub async fn ledger<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Ledger) -> Result<T, LedgerError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let ledger = self.ledger.clone();
        blocking(move || act(&ledger)).await?.map_err(ApiError::from)
    }

    /// Counts a request of a key, before anything is done for it.
    pub fn take_request(&self, key: &Key) -> Result<(), ApiError> {
        self.counted_limit(self.rates.request(key))
    }

    /// Counts tokens of a request that was counted.
    pub fn take_tokens(&self, key: &Key, tokens: u32) -> Result<Left, ApiError> {
        self.counted_limit(self.rates.tokens(key, tokens))
    }

    fn counted_limit<T>(&self, taken: Result<T, ApiError>) -> Result<T, ApiError> {
        if taken.is_err() {
            Metrics::count(&self.metrics.limited);
        }
        taken
    }

    /// A place for a call. Nobody waits longer for one than for a provider.
    pub async fn place(&self, key: &Key) -> Result<Place, ApiError> {
        self.places.place(&key.id, self.settings.token_time).await
    }
}

/// The door.
pub struct Gateway(Arc<Shared>);

impl Gateway {
    /// In front of an upstream for those who wait, and of a runner for batches. Models without a text of
    /// their own in `texts` are not offered.
    pub fn new(
        upstream: Arc<dyn Upstream>,
        runner: Arc<dyn BatchRunner>,
        texts: BTreeMap<String, Arc<dyn ModelText>>,
        ledger: Arc<Ledger>,
        settings: Settings,
    ) -> Self {
        let calls_of_key = match settings.without_key {
            // There is one key, and nobody else to leave any to.
            Some(_) => settings.calls,
            None => settings.calls.saturating_sub(settings.calls / 4),
        };
        Self(Arc::new(Shared {
            places: Admission::shared(settings.calls, calls_of_key),
            uploads: Admission::shared(UPLOADS_MAX, UPLOADS_OF_KEY_MAX),
            tasks: Admission::new(settings.batches.tasks),
            upstream,
            runner,
            settings,
            metrics: Metrics::default(),
            texts,
            new_batch: Notify::new(),
            cancelled: watch::Sender::default(),
            ledger,
            rates: Rates::default(),
        }))
    }

    /// Its routes.
    pub fn routes(&self) -> Router {
        let routes = table()
            .into_iter()
            .fold(Router::new(), |routes, (path, methods)| {
                routes.route(path, methods)
            });
        let routes = routes
            .fallback(async || {
                ApiError::new(
                    StatusCode::NOT_FOUND,
                    "unknown_url",
                    "there is nothing at this address",
                )
            })
            .with_state(self.0.clone());
        let routes = routes.layer(map_response_with_state(self.0.clone(), count_refusals));
        match self.0.settings.without_key {
            // A web page whose name leads to this machine by now would spend what is its owner's.
            Some(_) => routes.layer(from_fn(by_address_only)),
            None => routes,
        }
    }

    /// Answers, and has batches computed, until `stop`; then ends what is being answered. Batches go on when
    /// it is called again.
    ///
    /// # Errors
    /// [`Exposed`] where the address is not loopback and requests need no key.
    pub async fn serve(
        &self,
        listener: &TcpListener,
        address: SocketAddr,
        stop: impl Future<Output = ()>,
    ) -> Result<(), Exposed> {
        self.0.settings.check(address)?;
        let settings = &self.0.settings;
        let limits = Limits {
            connections_per_address: settings.connections_per_address,
            ..Limits::new(settings.connections, settings.time)
        };
        let batches = Arc::new(Batches::new(self.0.clone(), self.0.runner.clone()));
        // Ends with this function, however that ends.
        let mut beside = JoinSet::new();
        beside.spawn(batches.run());
        surety_http_server::serve(listener, self.routes(), limits, &settings.proxies, stop).await;
        beside.shutdown().await;
        // Streams that nobody reads any more still settle.
        if timeout(self.0.settings.token_time, self.0.places.idle())
            .await
            .is_err()
        {
            tracing::warn!(
                "some calls are not settled: what was signed for them is counted at the next start"
            );
        }
        Ok(())
    }
}

async fn count_refusals(State(shared): State<Arc<Shared>>, response: Response) -> Response {
    if !response.status().is_success() {
        Metrics::count(&shared.metrics.refused);
    }
    response
}

pub(crate) type Answer = Result<Response, ApiError>;

pub(crate) async fn key_of(shared: &Shared, headers: &HeaderMap) -> Result<Key, ApiError> {
    let given = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let secret = given
        .and_then(|given| given.strip_prefix("Bearer "))
        .map(String::from);
    match (secret, shared.settings.without_key) {
        // A browser sends what a page of anybody asks it to, without asking first, and names that page.
        (_, Some(_)) if headers.contains_key(header::ORIGIN) => Err(ApiError::new(
            StatusCode::FORBIDDEN,
            "foreign_origin",
            "web pages may not use a gateway that needs no key",
        )),
        // Clients send something even where nothing is needed.
        (_, Some(terms)) => shared.ledger(move |ledger| ledger.local_key(terms)).await,
        (Some(secret), None) => shared.ledger(move |ledger| ledger.authenticate(&secret)).await,
        (None, None) => Err(ApiError::new(
            StatusCode::UNAUTHORIZED,
            "invalid_api_key",
            "this gateway wants an API key: Authorization: Bearer sk-surety-..",
        )),
    }
}

/// Whoever asks for what is its own.
pub(crate) struct Asker {
    pub shared: Arc<Shared>,
    pub key: Key,
}

impl FromRequestParts<Arc<Shared>> for Asker {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, ApiError> {
        Ok(Self {
            key: key_of(shared, &parts.headers).await?,
            shared: shared.clone(),
        })
    }
}

/// What has happened
///
/// Since the start of the gateway, as Prometheus reads it.
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "readMetrics",
    tag = "gateway",
    security(()),
    responses((status = 200, description = "Counts.", body = String, content_type = "text/plain"))
)]
pub(crate) async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4")];
    let places = [&shared.places, &shared.uploads, &shared.tasks].map(Admission::counts);
    (kind, shared.metrics.text(places)).into_response()
}

pub(crate) async fn whole_body(request: Request) -> Result<Vec<u8>, ApiError> {
    let read = read_body(request, BODY_BYTES_MAX).await;
    let request = read.map_err(|fault| match fault {
        BodyFault::NotWhole => {
            let told = format!("the body broke off, or is longer than {BODY_BYTES_MAX} bytes");
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "body", told)
        }
        BodyFault::TooSlow => ApiError::new(StatusCode::REQUEST_TIMEOUT, "body", "the body came too slowly"),
    })?;
    let body = axum::body::to_bytes(request.into_body(), BODY_BYTES_MAX).await;
    body.map(Into::into)
        .map_err(|e| ApiError::invalid("body", e.to_string()))
}

pub(crate) fn broke() -> ApiError {
    ApiError::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal",
        "the answer broke off: its reason is in the log",
    )
}

/// Reserves the most that a call may cost. For tasks that close it whatever happens.
pub(crate) async fn open(shared: &Shared, key: &Key, model: &str, most: u128) -> Result<OpenCall, ApiError> {
    let (key, model) = (key.id.clone(), model.to_owned());
    shared
        .ledger(move |ledger| ledger.open_call(&key, &model, most))
        .await
}

pub(crate) fn label(headers: &mut HeaderMap, receipt: &str, left: &Left) {
    left.write(headers);
    headers.insert(PRIVACY_HEADER, HeaderValue::from_static(PRIVACY));
    // What was signed just now is in no batch.
    tell_receipt(headers, receipt, Some(Verdict::Unbatched));
}

/// What has become of an answer, and where more is told of it.
pub(crate) fn tell_receipt(headers: &mut HeaderMap, receipt: &str, verdict: Option<Verdict>) {
    if let Some(verdict) = verdict {
        headers.insert("x-surety-verdict", HeaderValue::from_static(verdict.name()));
    }
    if let Ok(receipt) = HeaderValue::from_str(receipt) {
        headers.insert("x-surety-receipt", receipt);
    }
}

/// What is asked of a model, as far as its price goes.
#[derive(Clone, Debug)]
pub(crate) struct Priced {
    pub model: String,
    pub generates: bool,
    pub units: u32,
}

impl Priced {
    /// Most that it may cost now, in plancks, where none of the providers in `avoid` answers it.
    pub fn now(&self, shared: &Shared, avoid: &[String]) -> Result<u128, ApiError> {
        let upstream = &shared.upstream;
        let unit_price = upstream.unit_price_max(&self.model, self.generates, self.units, avoid);
        let unit_price = unit_price.ok_or(UpstreamError::NoProvider)?;
        let price = u128::from(self.units).checked_mul(unit_price);
        price.ok_or_else(|| ApiError::invalid("model", "the model's price is no sum that can be paid"))
    }

    /// The same, where nobody has taken it for what it may cost `before`, so often by now: another may for
    /// more. Nothing where none is to be asked again.
    pub fn raised(
        &self,
        shared: &Shared,
        avoid: &[String],
        (before, untaken): (u128, &mut usize),
    ) -> Option<u128> {
        *untaken = untaken.saturating_add(1);
        let now = self.now(shared, avoid).ok()?;
        (now > before && *untaken < ATTEMPTS_MAX).then_some(now)
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

pub(crate) async fn blocking<T: Send + 'static>(
    act: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(act).await.map_err(|_| broke())
}
