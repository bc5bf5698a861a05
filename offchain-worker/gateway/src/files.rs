//! `/v1/files`: what batches read, and what they have written.

use std::time::Duration;

use axum::{
    Json,
    body::{Body, to_bytes},
    extract::{Path, Query, Request},
    http::{StatusCode, header},
    response::IntoResponse,
};
use futures::stream;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    api::{Answer, Asker, now},
    error::ApiError,
    ledger::{FileRecord, NewFile, Page, Purpose},
    multipart::{boundary, parts},
};

/// Largest file.
const FILE_BYTES_MAX: usize = 32 << 20;
/// What a form adds to it.
const FORM_BYTES_MAX: usize = 64 << 10;
/// For a file to come.
const UPLOAD_TIME: Duration = Duration::from_secs(300);
/// Longest name of a file.
const NAME_BYTES_MAX: usize = 512;
/// Fields of a form that change nothing here.
const IGNORED: [&str; 2] = ["expires_after[anchor]", "expires_after[seconds]"];

pub(crate) fn file_id(number: u64) -> String {
    format!("file-{number:016x}")
}

/// The number that stands behind `prefix` in the id of a file or a batch.
pub(crate) fn numbered(id: &str, prefix: &str) -> Option<u64> {
    let digits = id.strip_prefix(prefix).filter(|digits| digits.len() == 16)?;
    u64::from_str_radix(digits, 16).ok()
}

fn number(id: &str) -> Result<u64, ApiError> {
    numbered(id, "file-").ok_or_else(|| no_file(id))
}

pub(crate) fn no_file(id: &str) -> ApiError {
    let told = format!("this key has no file {id:?}");
    ApiError {
        param: Some("id".into()),
        ..ApiError::new(StatusCode::NOT_FOUND, "file_not_found", told)
    }
}

fn told(file: &FileRecord) -> Value {
    json!({
        "id": file_id(file.number), "object": "file", "bytes": file.bytes, "created_at": file.created_unix,
        "filename": file.name, "purpose": file.purpose, "status": "processed",
    })
}

/// What of a list is asked for.
#[derive(Deserialize)]
pub(crate) struct Wanted {
    after: Option<String>,
    limit: Option<usize>,
    order: Option<String>,
    purpose: Option<String>,
}

impl Wanted {
    /// With ids of this prefix, and so many at most.
    pub fn page(&self, prefix: &str, usual: usize, most: usize) -> Result<Page, ApiError> {
        let after = self.after.as_deref().map(|id| {
            let told = || ApiError::invalid("after", format!("{id:?} is no id of this list"));
            numbered(id, prefix).ok_or_else(told)
        });
        let limit = self.limit.unwrap_or(usual);
        if !(1..=most).contains(&limit) {
            return Err(ApiError::invalid(
                "limit",
                format!("limit has to be between 1 and {most}"),
            ));
        }
        let ascending = match self.order.as_deref() {
            None | Some("desc") => false,
            Some("asc") => true,
            Some(_) => return Err(ApiError::invalid("order", "order has to be asc or desc")),
        };
        Ok(Page {
            after: after.transpose()?,
            limit,
            ascending,
        })
    }
}

/// A page of a list, as OpenAI's clients turn them.
pub(crate) fn listed(data: &[Value], has_more: bool) -> Value {
    let id = |value: Option<&Value>| value.and_then(|value| value.get("id")).cloned();
    json!({
        "object": "list", "data": data, "has_more": has_more,
        "first_id": id(data.first()), "last_id": id(data.last()),
    })
}

pub(crate) async fn create(Asker { shared, key }: Asker, request: Request) -> Answer {
    shared.rates.take(&key, 0)?;
    // Each is in memory, twice, until it is kept.
    let _place = shared.uploads.try_acquire().map_err(|_| ApiError::busy())?;
    let kind = request.headers().get(header::CONTENT_TYPE);
    let kind = kind
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default()
        .to_owned();
    let read = to_bytes(request.into_body(), FILE_BYTES_MAX.saturating_add(FORM_BYTES_MAX));
    let body = match timeout(UPLOAD_TIME, read).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => {
            let told =
                format!("the file broke off, or is longer than {FILE_BYTES_MAX} bytes: cut it into several");
            return Err(ApiError::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "file_too_large",
                told,
            ));
        }
        Err(_) => {
            let told = "the file came too slowly";
            return Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "body", told));
        }
    };
    let file = shared.ledger(move |ledger| {
        let form = match form(&kind, &body) {
            Ok((name, bytes)) => NewFile {
                name,
                bytes,
                now: now(),
            },
            Err(error) => return Ok(Err(error)),
        };
        ledger.add_file(&key.id, &form).map(Ok)
    });
    Ok(Json(told(&file.await??)).into_response())
}

/// The name and the bytes of the file that a form has.
fn form<'a>(kind: &str, body: &'a [u8]) -> Result<(&'a str, &'a [u8]), ApiError> {
    let invalid = |error: crate::multipart::FormFault| ApiError::invalid("body", error.to_string());
    let parts = parts(body, boundary(kind).map_err(invalid)?).map_err(invalid)?;
    let (mut file, mut purpose) = (None, None);
    for part in parts {
        match part.name() {
            Some("file") => file = Some(part),
            Some("purpose") => purpose = Some(part.bytes),
            Some(known) if IGNORED.contains(&known) => {}
            Some(other) => return Err(ApiError::unsupported(other)),
            None => return Err(ApiError::invalid("body", "a part of the form has no name")),
        }
    }
    if purpose != Some(b"batch".as_slice()) {
        let told = "purpose has to be batch: files are for batches here";
        return Err(ApiError::invalid("purpose", told));
    }
    let file = file.ok_or_else(|| ApiError::invalid("file", "file is missing"))?;
    let name = file.filename().unwrap_or("upload.jsonl");
    if file.bytes.is_empty() || file.bytes.len() > FILE_BYTES_MAX || name.len() > NAME_BYTES_MAX {
        let told = format!(
            "a file has between 1 and {FILE_BYTES_MAX} bytes, and a name of {NAME_BYTES_MAX} at most"
        );
        return Err(ApiError::invalid("file", told));
    }
    Ok((name, file.bytes))
}

pub(crate) async fn list(Asker { shared, key }: Asker, Query(wanted): Query<Wanted>) -> Answer {
    let page = wanted.page("file-", 1_000, 10_000)?;
    let purpose = match wanted.purpose.as_deref() {
        None => None,
        Some("batch") => Some(Purpose::Batch),
        Some("batch_output") => Some(Purpose::BatchOutput),
        // There are none.
        Some(_) => return Ok(Json(listed(&[], false)).into_response()),
    };
    let found = shared.ledger(move |ledger| ledger.files(&key.id, purpose, page));
    let (files, has_more) = found.await?;
    let data: Vec<Value> = files.iter().map(told).collect();
    Ok(Json(listed(&data, has_more)).into_response())
}

async fn found(asker: &Asker, id: &str) -> Result<FileRecord, ApiError> {
    let (key, number) = (asker.key.id.clone(), number(id)?);
    asker.shared.ledger(move |ledger| ledger.file(&key, number)).await
}

pub(crate) async fn show(asker: Asker, Path(id): Path<String>) -> Answer {
    let file = found(&asker, &id).await?;
    Ok(Json(told(&file)).into_response())
}

pub(crate) async fn content(asker: Asker, Path(id): Path<String>) -> Answer {
    let file = found(&asker, &id).await?;
    let (number, count, bytes) = (file.number, file.parts, file.bytes);
    let shared = asker.shared;
    let parts = stream::unfold(0, move |part| {
        let shared = shared.clone();
        async move {
            if part >= count {
                return None;
            }
            let read = shared.ledger(move |ledger| ledger.file_part(number, part)).await;
            // What was deleted meanwhile breaks off: its length is known to whoever reads it.
            let gone = || std::io::Error::other("the file is gone");
            let read = read.map_err(|error| std::io::Error::other(error.message));
            let read = read.and_then(|bytes| bytes.ok_or_else(gone));
            // Nothing comes after an error.
            let next = if read.is_err() {
                count
            } else {
                part.saturating_add(1)
            };
            Some((read, next))
        }
    });
    let headers = [
        (header::CONTENT_TYPE, "application/jsonl".to_owned()),
        (header::CONTENT_LENGTH, bytes.to_string()),
    ];
    Ok((headers, Body::from_stream(parts)).into_response())
}

pub(crate) async fn remove(Asker { shared, key }: Asker, Path(id): Path<String>) -> Answer {
    let number = number(&id)?;
    shared
        .ledger(move |ledger| ledger.remove_file(&key.id, number))
        .await?;
    Ok(Json(json!({"id": id, "object": "file", "deleted": true})).into_response())
}
