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
use utoipa::ToSchema;

use super::{
    record::{Batch, Counts, Endpoint, Status, Times},
    requires::requirements,
    told::{Told, Window, batch_id, told},
};
use crate::{
    api::{Answer, Asker, now, whole_body},
    error::ApiError,
    files::{Listed, Wanted, no_file, numbered},
    request::read,
};

/// As OpenAI has it.
const METADATA_MAX: usize = 16;
const METADATA_KEY_MAX: usize = 64;
const METADATA_VALUE_MAX: usize = 512;

/// A batch that is to be begun.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewBatch {
    /// The file with its requests.
    input_file_id: String,
    /// What all of its requests are for.
    endpoint: Endpoint,
    #[serde(rename = "completion_window")]
    _completion_window: Window,
    /// Up to 16 entries, of 64 and 512 bytes. Three of them ask something of the providers of its tasks:
    /// `surety_min_tier` (`A`, `B` or `C`) and `surety_min_memory_mib` what the chain's benchmark has
    /// measured of them, `surety_region` (`DE`: ISO 3166-1 alpha-2) where they say that they are, which
    /// nobody can check. Other names that begin with `surety_` are refused.
    metadata: Option<BTreeMap<String, String>>,
    /// Ignored: files are kept until they are deleted.
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

/// Begin a batch
///
/// Each answer is a task on the chain; embeddings of a model are computed together.
#[utoipa::path(
    post,
    path = "/v1/batches",
    operation_id = "createBatch",
    tag = "batches",
    request_body = NewBatch,
    responses((status = 200, description = "The batch.", body = Told))
)]
pub(crate) async fn create(Asker { shared, key }: Asker, request: Request) -> Answer {
    shared.take_request(&key)?;
    let new: NewBatch = read(&whole_body(request).await?)?;
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
    requirements(&metadata)?;
    let id = new.input_file_id;
    let input = numbered(&id, "file-").ok_or_else(|| no_file(&id))?;
    let created = now();
    let batch = Batch {
        number: 0,
        key: key.id,
        endpoint: new.endpoint,
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
    Ok(Json(told(batch)).into_response())
}

/// List batches
#[utoipa::path(
    get,
    path = "/v1/batches",
    operation_id = "listBatches",
    tag = "batches",
    params(Wanted),
    responses((status = 200, description = "Some of them.", body = Listed<Told>))
)]
pub(crate) async fn list(Asker { shared, key }: Asker, Query(wanted): Query<Wanted>) -> Answer {
    let page = wanted.page("batch_", 20, 100)?;
    let (batches, has_more) = shared.ledger(move |ledger| ledger.batches(&key.id, page)).await?;
    let list = Listed::new(batches.into_iter().map(told).collect(), has_more);
    Ok(Json(list).into_response())
}

/// Look at a batch
#[utoipa::path(
    get,
    path = "/v1/batches/{id}",
    operation_id = "retrieveBatch",
    tag = "batches",
    params(("id" = String, Path, description = "Its id.")),
    responses((status = 200, description = "The batch.", body = Told))
)]
pub(crate) async fn show(Asker { shared, key }: Asker, Path(id): Path<String>) -> Answer {
    let number = number(&id)?;
    let batch = shared.ledger(move |ledger| ledger.batch(&key.id, number)).await?;
    Ok(Json(told(batch)).into_response())
}

/// Cancel a batch
///
/// Nothing more is posted; what providers have begun goes on to its end, and is paid.
#[utoipa::path(
    post,
    path = "/v1/batches/{id}/cancel",
    operation_id = "cancelBatch",
    tag = "batches",
    params(("id" = String, Path, description = "Its id.")),
    responses((status = 200, description = "The batch.", body = Told))
)]
pub(crate) async fn cancel(Asker { shared, key }: Asker, Path(id): Path<String>) -> Answer {
    let number = number(&id)?;
    let cancelled = shared.ledger(move |ledger| ledger.cancel_batch(&key.id, number, now()));
    let batch = cancelled.await?;
    tracing::info!(batch = batch_id(number), "a batch is cancelled");
    // Tasks that wait for something look again.
    shared
        .cancelled
        .send_modify(|count| *count = count.wrapping_add(1));
    Ok(Json(told(batch)).into_response())
}
