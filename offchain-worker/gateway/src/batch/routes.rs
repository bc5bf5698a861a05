//! The routes.

use std::collections::BTreeMap;

use axum::{
    Json,
    extract::{Path, Query, Request},
    http::StatusCode,
    response::IntoResponse,
};
use serde::Deserialize;
use serde_json::Value;

use super::{
    record::{Batch, Counts, Endpoint, Status, Times},
    told::{batch_id, told},
};
use crate::{
    api::{Answer, Asker, now, whole_body},
    error::ApiError,
    files::{Wanted, listed, no_file, numbered},
};

/// The only window that OpenAI's clients know.
pub(super) const WINDOW: &str = "24h";
/// As OpenAI has it.
const METADATA_MAX: usize = 16;
const METADATA_KEY_MAX: usize = 64;
const METADATA_VALUE_MAX: usize = 512;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct New {
    input_file_id: String,
    endpoint: String,
    completion_window: String,
    metadata: Option<BTreeMap<String, String>>,
    /// Files are kept until they are deleted.
    #[serde(rename = "output_expires_after")]
    _output_expires_after: Option<Value>,
}

fn no_batch(id: &str) -> ApiError {
    ApiError {
        param: Some("batch_id".into()),
        ..ApiError::new(
            StatusCode::NOT_FOUND,
            "batch_not_found",
            format!("this key has no batch {id:?}"),
        )
    }
}

fn number(id: &str) -> Result<u64, ApiError> {
    numbered(id, "batch_").ok_or_else(|| no_batch(id))
}

pub(crate) async fn create(Asker { shared, key }: Asker, request: Request) -> Answer {
    let body = whole_body(request).await?;
    let new: New =
        serde_json::from_slice(&body).map_err(|error| ApiError::invalid("body", error.to_string()))?;
    let endpoint = Endpoint::parse(&new.endpoint).ok_or_else(|| {
        let told = "endpoint has to be /v1/embeddings, /v1/chat/completions or /v1/completions";
        ApiError::invalid("endpoint", told)
    })?;
    if new.completion_window != WINDOW {
        let told = format!("completion_window has to be {WINDOW:?}");
        return Err(ApiError::invalid("completion_window", told));
    }
    let metadata = new.metadata.unwrap_or_default();
    let fits = |(name, value): (&String, &String)| {
        name.len() <= METADATA_KEY_MAX && value.len() <= METADATA_VALUE_MAX
    };
    if metadata.len() > METADATA_MAX || !metadata.iter().all(fits) {
        let told = format!(
            "metadata has {METADATA_MAX} entries at most, of {METADATA_KEY_MAX} and {METADATA_VALUE_MAX} bytes"
        );
        return Err(ApiError::invalid("metadata", told));
    }
    shared.rates.take(&key, 0)?;
    let id = new.input_file_id;
    let input = numbered(&id, "file-").ok_or_else(|| no_file(&id))?;
    let created = now();
    let batch = Batch {
        number: 0,
        key: key.id,
        endpoint,
        input,
        output: 0,
        has_output: false,
        has_errors: false,
        status: Status::Validating,
        is_late: false,
        times: Times {
            created,
            expires: created.saturating_add(shared.settings.batches.window.as_secs()),
            ..Times::default()
        },
        counts: Counts::default(),
        faults: Vec::new(),
        metadata,
        tasks: (0, 0),
    };
    let kept = shared.ledger(move |ledger| {
        ledger.file(&batch.key, input)?;
        ledger.add_batch(batch)
    });
    let batch = kept.await?;
    shared.new_batch.notify_one();
    Ok(Json(told(&batch)).into_response())
}

pub(crate) async fn list(Asker { shared, key }: Asker, Query(wanted): Query<Wanted>) -> Answer {
    let page = wanted.page("batch_", 20, 100)?;
    let (batches, has_more) = shared.ledger(move |ledger| ledger.batches(&key.id, page)).await?;
    let data: Vec<Value> = batches.iter().map(told).collect();
    Ok(Json(listed(&data, has_more)).into_response())
}

pub(crate) async fn show(Asker { shared, key }: Asker, Path(id): Path<String>) -> Answer {
    let number = number(&id)?;
    let batch = shared.ledger(move |ledger| ledger.batch(&key.id, number)).await?;
    Ok(Json(told(&batch)).into_response())
}

pub(crate) async fn cancel(Asker { shared, key }: Asker, Path(id): Path<String>) -> Answer {
    let number = number(&id)?;
    let cancelled = shared.ledger(move |ledger| ledger.cancel_batch(&key.id, number, now()));
    let batch = cancelled.await?;
    tracing::info!(batch = batch_id(number), "a batch is cancelled");
    // Tasks that wait for something look again.
    shared
        .cancelled
        .send_modify(|count| *count = count.wrapping_add(1));
    Ok(Json(told(&batch)).into_response())
}
