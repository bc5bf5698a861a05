//! What a browser cannot do by itself, over HTTP: text becomes ids, an input is kept where providers fetch
//! it, and an output is fetched from them. Tasks are posted, and money is moved, by the browser's own wallet.

mod error;
mod inputs;
mod kept;
mod outputs;
#[cfg(test)]
mod tests;
mod upkeep;

use std::{path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, Request, State},
    http::{HeaderValue, Method, header},
    middleware::{Next, from_fn, from_fn_with_state},
    response::Response,
    routing::{get, post},
};
use serde::Deserialize;
use surety_chain_client::{AccountId, Chain, RegisteredModel, parse_address};
use surety_http_server::{BodyFault, Limits, read_body};
use surety_models::{chat::Renderer, tokens::TextCodec};
use surety_network::DataPlane;
use surety_types::{ModelId, limits::INPUT_BYTES_MAX};
use tower::limit::GlobalConcurrencyLimitLayer;
use tower_http::cors::{AllowOrigin, CorsLayer};

pub use error::HttpError;
pub use kept::Kept;
pub use upkeep::Upkeep;

/// Largest body that is taken, in bytes: as text, and with what JSON adds to it, the largest input that a
/// chain takes is about this long.
const BODY_BYTES_MAX: usize = 2 * INPUT_BYTES_MAX as usize;

/// Requests that are answered at once; more wait, each with its body in memory.
const REQUESTS_MAX: usize = 32;

/// Connections of pages. A browser opens six to one server; an output of 64 MiB takes that long at 4 Mbit/s.
pub const LIMITS: Limits = Limits::new(256, Duration::from_secs(120));

/// A model, and what its text becomes ids by.
pub type FoundModel = (ModelId, RegisteredModel, Arc<TextCodec>);

/// Finds models by what people call them.
#[async_trait]
pub trait Models: Send + Sync {
    /// A model of the chain, by name or id.
    ///
    /// # Errors
    /// What is to be told to whoever named it.
    async fn find(&self, named: &str) -> Result<FoundModel, String>;
}

/// What the server works with.
#[derive(Clone)]
pub struct Backend {
    /// The chain that tasks are posted to.
    pub chain: Arc<dyn Chain>,
    /// Where inputs are kept and outputs come from.
    pub plane: Arc<dyn DataPlane>,
    /// The models that texts are for.
    pub models: Arc<dyn Models>,
    /// What renders their chat templates.
    pub renderer: Arc<dyn Renderer>,
    /// Where providers' statements are kept.
    pub home: PathBuf,
    /// Inputs that were taken.
    pub kept: Arc<Kept>,
}

/// Whose request it is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Client {
    /// Who posts, or has posted, the task: in SS58.
    account: String,
}

fn parsed(account: &str) -> Result<AccountId, HttpError> {
    let bad = || HttpError::BadRequest(format!("{account:?} is no SS58 address"));
    parse_address(account).ok_or_else(bad)
}

/// The routes. Pages of these origins may call them, and programs, which name none; `*` is any.
///
/// # Errors
/// When an origin is none.
pub fn router(backend: Backend, origins: &[String]) -> Result<Router, HttpError> {
    let origins = Origins::parse(origins)?;
    let cors = CorsLayer::new()
        .allow_methods([Method::GET, Method::POST])
        .allow_headers([header::CONTENT_TYPE, header::ACCEPT])
        .allow_origin(origins.shown());
    Ok(Router::new()
        .route(
            "/health",
            get(async || Json(serde_json::json!({ "status": "ok" }))),
        )
        .route("/v1/inputs", post(inputs::of_text))
        .route("/v1/blobs", post(inputs::of_bytes))
        .route("/v1/tasks/{task}/ticket", post(outputs::ticket))
        .route("/v1/tasks/{task}/output", post(outputs::output))
        .fallback(async || HttpError::NoSuchRoute)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(GlobalConcurrencyLimitLayer::new(REQUESTS_MAX))
        .layer(from_fn(body_first))
        .layer(from_fn_with_state(origins, turn_others_away))
        .layer(cors)
        .with_state(backend))
}

/// Who sends slowly keeps nobody from being answered.
async fn body_first(request: Request, next: Next) -> Result<Response, HttpError> {
    let read = read_body(request, BODY_BYTES_MAX).await;
    let request = read.map_err(|fault| match fault {
        BodyFault::NotWhole => HttpError::BodyTooLarge,
        BodyFault::TooSlow => HttpError::BadRequest("the request did not come in time".into()),
    })?;
    Ok(next.run(request).await)
}

/// Whose pages may call.
#[derive(Clone)]
enum Origins {
    Any,
    Only(Vec<HeaderValue>),
}

impl Origins {
    fn parse(origins: &[String]) -> Result<Self, HttpError> {
        if origins.iter().any(|origin| origin == "*") {
            return Ok(Self::Any);
        }
        let parsed = origins.iter().map(|origin| {
            let value = HeaderValue::from_str(origin).ok();
            let is_origin = origin.starts_with("http://") || origin.starts_with("https://");
            value
                .filter(|_| is_origin && !origin.ends_with('/'))
                .ok_or_else(|| HttpError::BadOrigin(origin.clone()))
        });
        Ok(Self::Only(parsed.collect::<Result<_, _>>()?))
    }

    fn has(&self, origin: &HeaderValue) -> bool {
        match self {
            Self::Any => true,
            Self::Only(origins) => origins.contains(origin),
        }
    }

    /// What browsers are told.
    fn shown(&self) -> AllowOrigin {
        match self {
            Self::Any => AllowOrigin::any(),
            Self::Only(origins) => AllowOrigin::list(origins.clone()),
        }
    }
}

/// Being told to hide an answer keeps no browser from sending the request: some it sends without asking, and
/// where a page's own name leads to this machine by now it asks for nothing at all. All of them name the
/// page's origin, but for those that only read; and there is nothing here to read without a `POST`.
async fn turn_others_away(
    State(origins): State<Origins>,
    request: Request,
    next: Next,
) -> Result<Response, HttpError> {
    match request.headers().get(header::ORIGIN) {
        Some(origin) if !origins.has(origin) => {
            let origin = String::from_utf8_lossy(origin.as_bytes()).into_owned();
            Err(HttpError::ForeignOrigin(origin))
        }
        _ => Ok(next.run(request).await),
    }
}
