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
    extract::{Path, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::from_fn,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures::stream;
use serde_json::{Value, json};
use surety_http_server::{BodyFault, Limits, by_address_only, read_body};
use tokio::{
    net::TcpListener,
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
    time::timeout,
};

use crate::{
    answer::Head,
    drive::{Event, Job, drive},
    embed::embedded,
    error::ApiError,
    ledger::{Key, KeyTerms, Ledger, LedgerError},
    metrics::Metrics,
    rate::{Left, Rates},
    request::{Generate, Prompt},
    text::ModelText,
    upstream::{GenerationAsk, Offered, Upstream},
};

/// Longest body.
const BODY_BYTES_MAX: usize = 4 << 20;
/// Parts of an answer that wait for a client to read them.
const EVENTS_MAX: usize = 4;
/// Tokens of an answer where none are asked for: each is reserved.
const TOKENS_DEFAULT: u32 = 1024;

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
}

/// Why an address is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} can be reached from other machines, so that requests need keys: create one, or listen on 127.0.0.1"
)]
pub struct Exposed(pub IpAddr);

pub(crate) struct Shared {
    pub upstream: Arc<dyn Upstream>,
    pub settings: Settings,
    pub metrics: Metrics,
    pub rates: Rates,
    texts: BTreeMap<String, Arc<dyn ModelText>>,
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
    /// In front of an upstream. Models without a text of their own in `texts` are not offered.
    pub fn new(
        upstream: Arc<dyn Upstream>,
        texts: BTreeMap<String, Arc<dyn ModelText>>,
        ledger: Arc<Ledger>,
        settings: Settings,
    ) -> Self {
        Self(Arc::new(Shared {
            places: Arc::new(Semaphore::new(settings.calls)),
            upstream,
            settings,
            metrics: Metrics::default(),
            texts,
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

    /// Answers until `stop`, then ends what is being answered.
    ///
    /// # Errors
    /// [`Exposed`] where the address is not loopback and requests need no key.
    pub async fn serve(
        &self,
        listener: &TcpListener,
        address: SocketAddr,
        stop: impl Future<Output = ()>,
    ) -> Result<(), Exposed> {
        if self.0.settings.without_key.is_some() && !address.ip().is_loopback() {
            return Err(Exposed(address.ip()));
        }
        let limits = Limits {
            connections_per_address: self.0.settings.connections,
            ..Limits::new(self.0.settings.connections, self.0.settings.time)
        };
        surety_http_server::serve(listener, self.routes(), limits, &[], stop).await;
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

async fn models(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Answer {
    key_of(&shared, &headers).await?;
    let offered = shared.upstream.models();
    let known = offered
        .iter()
        .filter(|model| shared.texts.contains_key(&model.name));
    let data: Vec<Value> = known.map(shown).collect();
    Ok(Json(json!({"object": "list", "data": data})).into_response())
}

async fn model(State(shared): State<Arc<Shared>>, Path(name): Path<String>, headers: HeaderMap) -> Answer {
    key_of(&shared, &headers).await?;
    let found = shared
        .upstream
        .models()
        .into_iter()
        .find(|model| model.name == name);
    let found = found.filter(|model| shared.texts.contains_key(&model.name));
    let found = found.ok_or_else(|| ApiError::no_model(&name))?;
    Ok(Json(shown(&found)).into_response())
}

fn shown(model: &Offered) -> Value {
    json!({
        "id": model.name, "object": "model", "created": 0, "owned_by": "surety",
        "surety": {
            "operation": if model.generates { "generate" } else { "embed" },
            "unit_price_max": model.unit_price_max.to_string(),
            "privacy": "providers-and-auditors-read",
        },
    })
}

async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4")];
    (kind, shared.metrics.text()).into_response()
}

async fn receipt(State(shared): State<Arc<Shared>>, Path(id): Path<String>, headers: HeaderMap) -> Answer {
    let key = key_of(&shared, &headers).await?;
    let none = || {
        ApiError::new(
            StatusCode::NOT_FOUND,
            "no_receipt",
            "this key has no such receipt",
        )
    };
    let number = u64::from_str_radix(&id, 16).map_err(|_| none())?;
    let call = shared.ledger(move |ledger| match ledger.call(number) {
        Err(LedgerError::NoCall) => Ok(None),
        call => call.map(Some),
    });
    let call = call.await?.filter(|call| call.key == key.id).ok_or_else(none)?;
    let mut receipts = Vec::new();
    for receipt in &call.receipts {
        let verdict = shared.upstream.verdict(receipt).await;
        receipts.push(json!({"receipt": receipt, "verdict": verdict}));
    }
    let told = json!({
        "object": "surety.call", "id": id, "model": call.model, "state": call.state,
        "spent": call.spent.to_string(), "receipts": receipts,
    });
    Ok(Json(told).into_response())
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

/// A model that is offered for this, and its text.
pub(crate) fn offered(
    shared: &Shared,
    name: &str,
    generates: bool,
) -> Result<(Offered, Arc<dyn ModelText>), ApiError> {
    let text = shared.texts.get(name).cloned();
    let found = shared.upstream.models().into_iter();
    let found = found
        .filter(|model| model.generates == generates)
        .find(|model| model.name == name);
    found.zip(text).ok_or_else(|| ApiError::no_model(name))
}

pub(crate) fn place(shared: &Shared) -> Result<OwnedSemaphorePermit, ApiError> {
    shared.places.clone().try_acquire_owned().map_err(|_| ApiError {
        retry_after: Some(1),
        ..ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "busy",
            "this gateway is busy: try again in a moment",
        )
    })
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
    let param = if is_chat { "messages" } else { "prompt" };
    let coder = text.clone();
    let ids = match asked.prompt {
        Prompt::Ids(ids) => Ok(ids),
        Prompt::Text(plain) => blocking(move || coder.encode(&plain)).await?,
        Prompt::Chat(messages) => blocking(move || coder.chat(&messages)).await?,
    };
    let prompt = ids.map_err(|why| ApiError::invalid(param, why))?;
    let mut settings = asked.settings;
    let bounds = text.bounds();
    let prompt_tokens = u32::try_from(prompt.len()).unwrap_or(u32::MAX);
    if settings.max_tokens == 0 {
        let room = bounds.positions.saturating_sub(prompt_tokens);
        settings.max_tokens = room.clamp(1, TOKENS_DEFAULT);
    }
    let encoded = surety_types::input::encode_prompt(&prompt, &settings, &bounds);
    encoded.map_err(|fault| ApiError::invalid(param, fault.to_string()))?;
    let units = prompt_tokens.saturating_add(settings.max_tokens);
    let left = shared.rates.take(&key, units)?;
    let ask = GenerationAsk {
        price_max: price(units, &model)?,
        model: model.name,
        prompt,
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
        receipt: format!("{call:016x}"),
        model: name,
        created: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |now| now.as_secs()),
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

pub(crate) async fn blocking<T: Send + 'static>(
    act: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(act).await.map_err(|_| broke())
}
