//! The routes.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    future::Future,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use axum::{
    Json, Router,
    body::Body,
    extract::{FromRequestParts, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    middleware::from_fn,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures::stream;
use serde_json::Value;
use surety_http_server::{BodyFault, Limits, by_address_only, read_body};
use tokio::{
    net::TcpListener,
    sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch},
    task::JoinSet,
    time::timeout,
};

use crate::{
    answer::{Head, receipt_id},
    batch::{Batches, routes as batches},
    drive::{Event, Job, drive},
    embed::embedded,
    error::ApiError,
    files,
    ledger::{Key, KeyTerms, Ledger, LedgerError},
    metrics::Metrics,
    models::{model, models, offered},
    prompt::encoded,
    rate::{Left, Rates},
    receipts::receipt,
    request::Generate,
    runner::BatchRunner,
    text::ModelText,
    upstream::{GenerationAsk, Offered, Upstream},
};

/// Longest body.
const BODY_BYTES_MAX: usize = 4 << 20;
/// Parts of an answer that wait for a client to read them.
const EVENTS_MAX: usize = 4;
/// Files that are being given at once.
const UPLOADS_MAX: usize = 2;

/// How it is served.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What a request without a key may do; without it, every request needs one.
    pub without_key: Option<KeyTerms>,
    /// Generations and embeddings at once.
    pub calls: usize,
    /// Connections at once.
    pub connections: u32,
    /// Longest time of a connection.
    pub time: Duration,
    /// Longest time until a provider says something.
    pub token_time: Duration,
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

pub(crate) struct Shared {
    pub upstream: Arc<dyn Upstream>,
    pub runner: Arc<dyn BatchRunner>,
    pub settings: Settings,
    pub metrics: Metrics,
    pub rates: Rates,
    pub texts: BTreeMap<String, Arc<dyn ModelText>>,
    pub uploads: Semaphore,
    /// There is a batch that nobody works on.
    pub new_batch: Notify,
    /// Changes when a batch is cancelled.
    pub cancelled: watch::Sender<u64>,
    ledger: Arc<Ledger>,
    places: Arc<Semaphore>,
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
        Self(Arc::new(Shared {
            places: Arc::new(Semaphore::new(settings.calls)),
            upstream,
            runner,
            settings,
            metrics: Metrics::default(),
            texts,
            uploads: Semaphore::new(UPLOADS_MAX),
            new_batch: Notify::new(),
            cancelled: watch::Sender::default(),
            ledger,
            rates: Rates::default(),
        }))
    }

    /// Its routes.
    pub fn routes(&self) -> Router {
        let routes = Router::new()
            .route("/v1/models", get(models))
            .route("/v1/models/{*name}", get(model))
            .route("/v1/chat/completions", post(chat))
            .route("/v1/completions", post(completions))
            .route("/v1/embeddings", post(embed))
            .route("/v1/receipts/{id}", get(receipt))
            .route("/v1/files", get(files::list).post(files::create))
            .route("/v1/files/{id}", get(files::show).delete(files::remove))
            .route("/v1/files/{id}/content", get(files::content))
            .route("/v1/batches", get(batches::list).post(batches::create))
            .route("/v1/batches/{id}", get(batches::show))
            .route("/v1/batches/{id}/cancel", post(batches::cancel))
            .route("/metrics", get(metrics))
            .fallback(async || {
                ApiError::new(
                    StatusCode::NOT_FOUND,
                    "unknown_url",
                    "there is nothing at this address",
                )
            })
            .with_state(self.0.clone());
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
        let limits = Limits {
            connections_per_address: self.0.settings.connections,
            ..Limits::new(self.0.settings.connections, self.0.settings.time)
        };
        let batches = Arc::new(Batches::new(self.0.clone(), self.0.runner.clone()));
        // Ends with this function, however that ends.
        let mut beside = JoinSet::new();
        beside.spawn(batches.run());
        surety_http_server::serve(listener, self.routes(), limits, &[], stop).await;
        beside.shutdown().await;
        // Streams that nobody reads any more still settle.
        let all = u32::try_from(self.0.settings.calls).unwrap_or(u32::MAX);
        if timeout(self.0.settings.token_time, self.0.places.acquire_many(all))
            .await
            .is_err()
        {
            tracing::warn!("some calls are not settled: they count as spent at the next start");
        }
        Ok(())
    }
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

async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4")];
    (kind, shared.metrics.text()).into_response()
}

async fn chat(State(shared): State<Arc<Shared>>, request: Request) -> Answer {
    counted(&shared.clone(), generate(shared, request, true).await)
}

async fn completions(State(shared): State<Arc<Shared>>, request: Request) -> Answer {
    counted(&shared.clone(), generate(shared, request, false).await)
}

async fn embed(State(shared): State<Arc<Shared>>, request: Request) -> Answer {
    counted(&shared.clone(), embedded(shared, request).await)
}

fn counted(shared: &Shared, answer: Answer) -> Answer {
    if answer.is_err() {
        Metrics::count(&shared.metrics.refused);
    }
    answer
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

pub(crate) fn place(shared: &Shared) -> Result<OwnedSemaphorePermit, ApiError> {
    let place = shared.places.clone().try_acquire_owned();
    place.map_err(|_| ApiError::busy())
}

async fn generate(shared: Arc<Shared>, request: Request, is_chat: bool) -> Answer {
    let key = key_of(&shared, request.headers()).await?;
    let body = whole_body(request).await?;
    let asked = match is_chat {
        true => Generate::chat(&body)?,
        false => Generate::completion(&body)?,
    };
    let place = place(&shared)?;
    let (model, text) = offered(&shared, &asked.model, true)?;
    let (coder, prompt) = (text.clone(), asked.prompt);
    let made = blocking(move || encoded(prompt, asked.settings, &*coder)).await??;
    let (units, prompt_tokens, settings) = (made.units_max(), made.prompt_tokens(), made.settings);
    let left = shared.rates.take(&key, units)?;
    let ask = GenerationAsk {
        price_max: price(units, &model)?,
        model: model.name,
        prompt: made.ids,
        settings,
    };
    let name = ask.model.clone();
    let stops = asked.stops;
    let (tell, mut events) = mpsc::channel(EVENTS_MAX);
    let (opened, call) = oneshot::channel();
    let driving = shared.clone();
    // On its own from the reservation on: a client that hangs up at any time leaves no call open.
    tokio::spawn(async move {
        match open(&driving, &key, &ask.model, ask.price_max).await {
            Ok(call) => {
                opened.send(Ok(call)).ok();
                let job = Job {
                    call,
                    ask,
                    text,
                    stops,
                };
                drive(driving, job, tell).await;
            }
            Err(error) => {
                opened.send(Err(error)).ok();
            }
        }
        drop(place);
    });
    let call: u64 = call.await.map_err(|_| broke())??;
    let head = Head {
        is_chat,
        receipt: receipt_id(call),
        model: name,
        created: now(),
        seed: settings.seed,
        prompt_tokens,
    };
    // The first word decides whether there is an answer at all: until then a refusal has a status of its own.
    let first = events.recv().await.ok_or_else(broke)?;
    let mut response = match asked.stream {
        true => match first {
            Event::Failed(error) => return Err(error),
            first => streamed(head.clone(), first, events, asked.include_usage),
        },
        false => collected(&head, first, events).await?,
    };
    label(response.headers_mut(), &head.receipt, &left);
    Ok(response)
}

/// Reserves the most that a call may cost. For tasks that close it whatever happens.
pub(crate) async fn open(shared: &Shared, key: &Key, model: &str, most: u128) -> Result<u64, ApiError> {
    let (key, model) = (key.id.clone(), model.to_owned());
    shared
        .ledger(move |ledger| ledger.open_call(&key, &model, most))
        .await
}

pub(crate) fn broke() -> ApiError {
    ApiError::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal",
        "the answer broke off: its reason is in the log",
    )
}

async fn collected(head: &Head, first: Event, mut events: mpsc::Receiver<Event>) -> Answer {
    let (mut text, mut ids, mut next) = (String::new(), Vec::new(), first);
    loop {
        match next {
            Event::Delta { text: more, ids: new } => {
                text.push_str(&more);
                ids.extend(new);
            }
            Event::Failed(error) => return Err(error),
            Event::End { finish, tokens } => {
                return Ok(Json(head.answer(&text, &ids, finish, tokens)).into_response());
            }
        }
        next = events.recv().await.ok_or_else(broke)?;
    }
}

fn streamed(head: Head, first: Event, events: mpsc::Receiver<Event>, include_usage: bool) -> Response {
    let parts = stream::unfold((Some(first), events, false), move |(first, mut events, over)| {
        let head = head.clone();
        async move {
            if over {
                return None;
            }
            let next = match first {
                Some(first) => first,
                None => events.recv().await.unwrap_or_else(|| Event::Failed(broke())),
            };
            let (text, over) = match next {
                Event::Delta { text, ids } => {
                    (data(&head.chunk(Some(&text), None, &ids, include_usage)), false)
                }
                Event::Failed(error) => (data(&error.body()), true),
                Event::End { finish, tokens } => {
                    let mut last = data(&head.chunk(None, Some(finish), &[], include_usage));
                    if include_usage {
                        last.push_str(&data(&head.usage_chunk(tokens)));
                    }
                    last.push_str("data: [DONE]\n\n");
                    (last, true)
                }
            };
            Some((Ok::<_, Infallible>(text), (None, events, over)))
        }
    });
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, Body::from_stream(parts)).into_response()
}

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

pub(crate) fn label(headers: &mut HeaderMap, receipt: &str, left: &Left) {
    left.write(headers);
    headers.insert(
        "x-surety-privacy",
        HeaderValue::from_static("providers-and-auditors-read"),
    );
    headers.insert("x-surety-verdict", HeaderValue::from_static("unbatched"));
    if let Ok(receipt) = HeaderValue::from_str(receipt) {
        headers.insert("x-surety-receipt", receipt);
    }
}

pub(crate) fn price(units: u32, model: &Offered) -> Result<u128, ApiError> {
    let price = u128::from(units).checked_mul(model.unit_price_max);
    price.ok_or_else(|| ApiError::invalid("model", "the model's price is no sum that can be paid"))
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
