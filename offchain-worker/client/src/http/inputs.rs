//! Inputs: as text of a model, or as the bytes that a task is posted with.

use axum::{
    Json,
    body::Bytes,
    extract::{
        State,
        rejection::{BytesRejection, JsonRejection},
    },
};
use serde::{Deserialize, Serialize};
use surety_network::Bytes as Blob;
use surety_types::input::{Settings, TOP_P_MILLI_MAX};

use super::{Backend, error::HttpError};
use crate::text::Input;

/// Tokens to add where nothing is said, as in `surety task submit`.
const MAX_TOKENS: u32 = 128;

/// What is to be computed: texts to embed, or a prompt to go on from.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TextRequest {
    /// Name or id.
    model: String,
    #[serde(flatten)]
    work: TextWork,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TextWork {
    Embed { texts: Vec<String> },
    Generate(Prompt),
}

#[derive(Deserialize)]
struct Prompt {
    prompt: String,
    #[serde(default = "max_tokens")]
    max_tokens: u32,
    /// In thousandths.
    #[serde(default)]
    temperature_milli: u32,
    #[serde(default)]
    top_k: u32,
    /// In thousandths.
    #[serde(default = "top_p")]
    top_p_milli: u32,
    #[serde(default)]
    seed: u64,
}

fn max_tokens() -> u32 {
    MAX_TOKENS
}

fn top_p() -> u32 {
    TOP_P_MILLI_MAX
}

/// The fields of a `TaskSpec` that follow from an input.
#[derive(Serialize)]
pub(super) struct TextInput {
    model: String,
    operation: String,
    units_max: u32,
    #[serde(flatten)]
    blob: Kept,
}

/// An input that is kept for providers.
#[derive(Serialize)]
pub(super) struct Kept {
    input: String,
    input_bytes: u32,
    /// Where it can be fetched, as the chain takes it.
    sources: Vec<String>,
}

/// `POST /v1/inputs`.
pub(super) async fn of_text(
    State(backend): State<Backend>,
    request: Result<Json<TextRequest>, JsonRejection>,
) -> Result<Json<TextInput>, HttpError> {
    let Json(TextRequest { model, work }) = request?;
    let (id, _, codec) = backend
        .models
        .find(&model)
        .await
        .map_err(HttpError::UnknownModel)?;
    let encoded = tokio::task::spawn_blocking(move || match work {
        TextWork::Embed { texts } => {
            let items: Result<Vec<_>, _> = texts.iter().map(|text| codec.encode(text)).collect();
            Input::item_ids(&items?, &codec.bounds())
        }
        TextWork::Generate(prompt) => {
            let settings = Settings {
                max_tokens: prompt.max_tokens,
                temperature_milli: prompt.temperature_milli,
                top_k: prompt.top_k,
                top_p_milli: prompt.top_p_milli,
                seed: prompt.seed,
            };
            settings.check()?;
            Input::prompt(&codec, &prompt.prompt, &settings)
        }
    });
    let Input { blob, work } = encoded.await.map_err(|e| HttpError::Internal(e.to_string()))??;
    Ok(Json(TextInput {
        model: format!("{id:?}"),
        operation: format!("{:?}", work.operation),
        units_max: work.units_max,
        blob: keep(&backend, blob.into()).await?,
    }))
}

/// `POST /v1/blobs`.
pub(super) async fn of_bytes(
    State(backend): State<Backend>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Kept>, HttpError> {
    let body = body?;
    if body.is_empty() {
        return Err(HttpError::BadRequest("an input has a byte at least".into()));
    }
    Ok(Json(keep(&backend, body).await?))
}

async fn keep(backend: &Backend, blob: Blob) -> Result<Kept, HttpError> {
    let endpoints = backend.plane.endpoints();
    if endpoints.is_empty() {
        return Err(HttpError::Unreachable);
    }
    let input_bytes = u32::try_from(blob.len()).map_err(|_| HttpError::TooLarge("over 4 GiB".into()))?;
    let input = backend.kept.keep(&*backend.plane, blob).await?;
    let sources = endpoints
        .iter()
        .map(|endpoint| String::from_utf8_lossy(endpoint).into_owned());
    Ok(Kept {
        input: format!("{input:?}"),
        input_bytes,
        sources: sources.collect(),
    })
}
