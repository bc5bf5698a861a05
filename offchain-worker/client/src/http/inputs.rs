//! Inputs: as text of a model, or as the bytes that a task is posted with.

use axum::{
    Json,
    body::Bytes,
    extract::{
        Query, State,
        rejection::{BytesRejection, JsonRejection, QueryRejection},
    },
};
use serde::{Deserialize, Serialize};
use surety_chain_client::AccountId;
use surety_models::{
    chat::{Message, Renderer},
    tokens::TextCodec,
};
use surety_network::Bytes as Blob;
use surety_types::{
    input::{Settings, TOP_P_MILLI_MAX},
    limits::INPUT_BYTES_MAX,
};
use tokio::sync::Semaphore;

use super::{Backend, Client, error::HttpError, parsed};
use crate::text::{Input, TextInputError};

/// Tokens to add where nothing is said, as in `surety task submit`.
const MAX_TOKENS: u32 = 128;

/// Texts that are turned into ids at once. Whoever hangs up does not stop that: its place is free when it is
/// done.
static ENCODING: Semaphore = Semaphore::const_new(2);

/// What is to be computed: texts to embed, a prompt to go on from, or a conversation to answer. Flat, because
/// serde refuses unknown fields by name in nothing else.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TextRequest {
    /// Who will post the task, in SS58: the input is served for tasks of this account.
    account: String,
    /// Name or id.
    model: String,
    texts: Option<Vec<String>>,
    prompt: Option<String>,
    messages: Option<Vec<Message>>,
    max_tokens: Option<u32>,
    /// In thousandths.
    temperature_milli: Option<u32>,
    top_k: Option<u32>,
    /// In thousandths.
    top_p_milli: Option<u32>,
    seed: Option<u64>,
}

enum TextWork {
    Embed(Vec<String>),
    Generate(String, Settings),
    Answer(Vec<Message>, Settings),
}

impl TextRequest {
    fn work(self) -> Result<TextWork, HttpError> {
        let bad = |message: String| Err(HttpError::BadRequest(message));
        let settings = Settings {
            max_tokens: self.max_tokens.unwrap_or(MAX_TOKENS),
            temperature_milli: self.temperature_milli.unwrap_or_default(),
            top_k: self.top_k.unwrap_or_default(),
            top_p_milli: self.top_p_milli.unwrap_or(TOP_P_MILLI_MAX),
            seed: self.seed.unwrap_or_default(),
        };
        match (self.texts, self.prompt, self.messages) {
            (Some(texts), None, None) => {
                let settings = [
                    ("max_tokens", self.max_tokens.is_some()),
                    ("temperature_milli", self.temperature_milli.is_some()),
                    ("top_k", self.top_k.is_some()),
                    ("top_p_milli", self.top_p_milli.is_some()),
                    ("seed", self.seed.is_some()),
                ];
                match settings.iter().find(|(_, is_given)| *is_given) {
                    Some((name, _)) => bad(format!(
                        "`{name}` goes with `prompt` or `messages`, and there are `texts`"
                    )),
                    None => Ok(TextWork::Embed(texts)),
                }
            }
            (None, Some(prompt), None) => Ok(TextWork::Generate(prompt, settings)),
            (None, None, Some(messages)) => Ok(TextWork::Answer(messages, settings)),
            _ => bad("a request has one of `texts`, `prompt` and `messages`".into()),
        }
    }
}

impl TextWork {
    fn encode(self, codec: &TextCodec, renderer: &dyn Renderer) -> Result<Input, TextInputError> {
        match self {
            Self::Embed(texts) => {
                let items: Result<Vec<_>, _> = texts.iter().map(|text| codec.encode(text)).collect();
                Input::item_ids(&items?, &codec.bounds())
            }
            Self::Generate(prompt, settings) => Input::prompt(codec, &prompt, &settings),
            Self::Answer(messages, settings) => Input::chat(codec, &messages, &settings, renderer),
        }
    }
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
    let Json(mut request) = request?;
    let client = parsed(&request.account)?;
    let model = std::mem::take(&mut request.model);
    let work = request.work()?;
    let found = backend.models.find(&model).await;
    let (id, _, codec) = found.map_err(HttpError::UnknownModel)?;
    let internal = |e: &dyn std::fmt::Display| HttpError::Internal(e.to_string());
    let place = ENCODING.acquire().await.map_err(|e| internal(&e))?;
    let renderer = backend.renderer.clone();
    let encoded = tokio::task::spawn_blocking(move || {
        let encoded = work.encode(&codec, &*renderer);
        drop(place);
        encoded
    });
    let Input { blob, work } = encoded.await.map_err(|e| internal(&e))??;
    Ok(Json(TextInput {
        model: format!("{id:?}"),
        operation: format!("{:?}", work.operation),
        units_max: work.units_max,
        blob: keep(&backend, client, blob.into()).await?,
    }))
}

/// `POST /v1/blobs`.
pub(super) async fn of_bytes(
    State(backend): State<Backend>,
    client: Result<Query<Client>, QueryRejection>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Kept>, HttpError> {
    let client = parsed(&client?.account)?;
    let body = body?;
    if body.is_empty() {
        return Err(HttpError::BadRequest("an input has a byte at least".into()));
    }
    Ok(Json(keep(&backend, client, body).await?))
}

async fn keep(backend: &Backend, client: AccountId, blob: Blob) -> Result<Kept, HttpError> {
    let endpoints = backend.plane.endpoints();
    if endpoints.is_empty() {
        return Err(HttpError::Unreachable);
    }
    let bytes = blob.len();
    let input_bytes = u32::try_from(bytes)
        .ok()
        .filter(|bytes| *bytes <= INPUT_BYTES_MAX);
    let input_bytes = input_bytes.ok_or(HttpError::InputTooLarge { bytes })?;
    // Whoever hangs up does not stop it half way.
    let (kept, plane) = (backend.kept.clone(), backend.plane.clone());
    let kept = tokio::spawn(async move { kept.keep(&*plane, client, blob).await });
    let input = kept.await.map_err(|e| HttpError::Internal(e.to_string()))??;
    let sources = endpoints.iter().map(ToString::to_string);
    Ok(Kept {
        input: format!("{input:?}"),
        input_bytes,
        sources: sources.collect(),
    })
}
