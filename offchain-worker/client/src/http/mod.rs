//! What a browser cannot do by itself, over HTTP: text becomes ids, an input is kept where providers fetch
//! it, and an output is fetched from them. Tasks are posted, and money is moved, by the browser's own wallet.

mod error;
mod inputs;
mod outputs;
#[cfg(test)]
mod tests;
mod upkeep;

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use axum::{
    Json, Router,
    extract::DefaultBodyLimit,
    http::{HeaderValue, Method, header},
    routing::{get, post},
};
use surety_chain_client::{Chain, RegisteredModel};
use surety_models::tokens::TextCodec;
use surety_network::DataPlane;
use surety_types::ModelId;
use tower::limit::GlobalConcurrencyLimitLayer;
use tower_http::cors::{AllowOrigin, CorsLayer};

pub use error::HttpError;
pub use upkeep::{Kept, Upkeep};

/// Largest body that is taken, in bytes: the largest input that a chain takes by default.
const BODY_BYTES_MAX: usize = 16 << 20;

/// Requests that are answered at once; more wait.
const REQUESTS_MAX: usize = 32;

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
    /// Where providers' statements are kept.
    pub home: PathBuf,
    /// Inputs that were taken.
    pub kept: Arc<Kept>,
}

/// The routes. Pages of these origins may call them; `*` is any.
///
/// # Errors
/// When an origin is none.
pub fn router(backend: Backend, origins: &[String]) -> Result<Router, HttpError> {
    let cors = CorsLayer::new()
        .allow_methods([Method::GET, Method::POST])
        .allow_headers([header::CONTENT_TYPE, header::ACCEPT])
        .allow_origin(allowed(origins)?);
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
        .layer(cors)
        .with_state(backend))
}

fn allowed(origins: &[String]) -> Result<AllowOrigin, HttpError> {
    if origins.iter().any(|origin| origin == "*") {
        return Ok(AllowOrigin::any());
    }
    let parsed = origins.iter().map(|origin| {
        let value = HeaderValue::from_str(origin).ok();
        let is_origin = origin.starts_with("http://") || origin.starts_with("https://");
        value
            .filter(|_| is_origin && !origin.ends_with('/'))
            .ok_or_else(|| HttpError::BadOrigin(origin.clone()))
    });
    Ok(AllowOrigin::list(parsed.collect::<Result<Vec<_>, _>>()?))
}
