//! Outputs, for the account that has posted the task. It signs for this peer; nothing else is asked of it.

use axum::{
    Json,
    extract::{Path, State, rejection::JsonRejection},
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use surety_access::{signed_ticket, ticket_hash};
use surety_chain_client::{TaskInfo, When};
use surety_engine::{Embeddings, generation::Generation};
use surety_types::{TaskId, model::Operation};
use tokio::sync::Semaphore;

use super::{Backend, Client, error::HttpError, parsed};
use crate::{
    deliver::{self, Delivery, Wanted, wanted},
    text::Generated,
};

#[derive(Serialize)]
pub(super) struct ToSign {
    /// 32 bytes in hex, to be signed between `<Bytes>` and `</Bytes>` as wallets do.
    message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SignedClient {
    account: String,
    /// Of the ticket's message, by sr25519: 64 bytes in hex.
    signature: String,
}

/// `POST /v1/tasks/{task}/ticket`.
pub(super) async fn ticket(
    State(backend): State<Backend>,
    Path(task): Path<TaskId>,
    request: Result<Json<Client>, JsonRejection>,
) -> Result<Json<ToSign>, HttpError> {
    let account = parsed(&request?.account)?;
    let genesis = backend.chain.info().genesis;
    let hash = ticket_hash(&genesis, &backend.plane.peer_id(), task, &account);
    Ok(Json(ToSign {
        message: format!("0x{}", hex::encode(hash)),
    }))
}

/// `POST /v1/tasks/{task}/output`. As JSON, or as the bytes of the chain's claim where those are accepted.
pub(super) async fn output(
    State(backend): State<Backend>,
    Path(task): Path<TaskId>,
    headers: HeaderMap,
    request: Result<Json<SignedClient>, JsonRejection>,
) -> Result<Response, HttpError> {
    let Json(client) = request?;
    let account = parsed(&client.account)?;
    let info = backend.chain.task(When::Best, task).await?;
    let info = info.ok_or(HttpError::UnknownTask(task))?;
    if info.task.client != account {
        return Err(HttpError::NotTheClient(task));
    }
    let bad = || HttpError::BadRequest("a signature is 64 bytes in hex".into());
    let signature = hex::decode(client.signature.trim_start_matches("0x")).map_err(|_| bad())?;
    let signature: [u8; 64] = signature.try_into().map_err(|_| bad())?;
    let (genesis, peer) = (backend.chain.info().genesis, backend.plane.peer_id());
    let ticket = signed_ticket(&genesis, &peer, task, &account, signature);
    // Asked of nobody else: providers serve this server without a ticket where it is the source of the input,
    // and what was fetched once lies here.
    let ticket = ticket.ok_or(HttpError::BadSignature(task))?;
    // Providers go by final state, too.
    let info = backend.chain.task(When::Finalized, task).await?;
    let info = info.ok_or(HttpError::NoResult(task))?;
    // Outputs of others lie here, too: a provider can say of any that it is the task's.
    let wanted = Wanted {
        anew: true,
        ..wanted(&info)
    };
    if wanted.providers.is_empty() {
        return Err(HttpError::NoResult(task));
    }
    let (chain, plane) = (&*backend.chain, &*backend.plane);
    let delivery = deliver::fetch(chain, plane, &backend.home, task, &wanted, Some(&ticket)).await;
    let delivery = delivery.map_err(|undelivered| {
        if let Some(warning) = &undelivered.warning {
            tracing::warn!(task, warning, "an output was not delivered");
        }
        let reasons = undelivered.attempts;
        HttpError::NotServed { task, reasons }
    })?;
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    if accepts.is_some_and(|accepts| accepts.contains("application/octet-stream")) {
        let kind = [(header::CONTENT_TYPE, "application/octet-stream")];
        return Ok((kind, delivery.bytes).into_response());
    }
    // The semaphore is never closed.
    let _place = AS_JSON.acquire().await.ok();
    as_json(&backend, &info, &delivery).await
}

/// Outputs that are written as JSON at once: one of many vectors takes some hundred MB.
static AS_JSON: Semaphore = Semaphore::const_new(2);

#[derive(Serialize)]
struct Output<T> {
    /// Its content hash: compare it with the claim of the settled task.
    output: String,
    #[serde(flatten)]
    content: T,
}

#[derive(Serialize)]
struct Vectors {
    vectors: Vec<Vec<f32>>,
}

async fn as_json(backend: &Backend, info: &TaskInfo, delivery: &Delivery) -> Result<Response, HttpError> {
    let output = format!("{:?}", delivery.hash);
    let broken = |e: &dyn std::fmt::Display| HttpError::Internal(e.to_string());
    let spec = &info.task.spec;
    match spec.operation {
        Operation::Embed => {
            let embeddings = Embeddings::decode(&delivery.bytes).map_err(|e| broken(&e))?;
            let vectors = embeddings.rows().map(<[f32]>::to_vec).collect();
            let content = Vectors { vectors };
            Ok(Json(Output { output, content }).into_response())
        }
        Operation::Generate => {
            let made = Generation::decode(&delivery.bytes).map_err(|e| broken(&e))?;
            // Without the tokenizer there are ids all the same.
            let found = backend.models.find(&format!("{:?}", spec.model)).await.ok();
            let codec = found.map(|(_, _, codec)| codec);
            let text = codec.as_deref().map(|codec| codec as &dyn crate::text::ToText);
            let content = Generated::new(made, spec.work().prompt_tokens(), text);
            Ok(Json(Output { output, content }).into_response())
        }
    }
}
