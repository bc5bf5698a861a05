//! `/v1/files`: what batches read, and what they have written.

use std::time::Duration;

use axum::{
    Json,
    body::Body,
    extract::{Path, Query, Request},
    http::{HeaderName, StatusCode, header},
    response::IntoResponse,
};
use futures::stream;
use serde::{Deserialize, Serialize};
use surety_http_server::{BodyFault, Pace, read_at_pace};
use utoipa::ToSchema;

use crate::{
    answer::{ListWord, words},
    api::{Answer, Asker, PRIVACY, PRIVACY_HEADER, now},
    error::ApiError,
    ledger::{FileRecord, NewFile, Page, Purpose},
    multipart::{boundary, parts},
};

/// Largest file.
const FILE_BYTES_MAX: usize = 32 << 20;
/// What a form adds to it.
const FORM_BYTES_MAX: usize = 64 << 10;
/// Longest time for a file to come, and to wait for a place before that: who is next has it by then.
const UPLOAD_TIME: Duration = Duration::from_secs(240);
/// How fast it has to come: whoever sends nothing has no place for long.
const UPLOAD_PACE: Pace = Pace {
    start: Duration::from_secs(10),
    bytes_per_second: 16 << 10,
    longest: UPLOAD_TIME,
};
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

words!(FileWord = "file", ProcessedWord = "processed");

/// A file.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct File {
    id: String,
    object: FileWord,
    bytes: u64,
    /// Seconds since 1970.
    created_at: u64,
    /// What its owner calls it.
    filename: String,
    purpose: Purpose,
    status: ProcessedWord,
}

/// A file that is no more.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Deleted {
    id: String,
    object: FileWord,
    deleted: bool,
}

/// A form with a file.
#[derive(ToSchema)]
#[allow(dead_code, reason = "it says what the form has, which is read part by part")]
pub(crate) struct Upload {
    /// Requests of a batch: a JSON object a line, of `custom_id`, `method`, `url` and `body`. 32 MiB at most.
    #[schema(value_type = String, content_media_type = "application/octet-stream")]
    file: Vec<u8>,
    purpose: UploadPurpose,
}

#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
#[allow(dead_code, reason = "as above")]
pub(crate) enum UploadPurpose {
    Batch,
}

fn told(file: &FileRecord) -> File {
    File {
        id: file_id(file.number),
        object: FileWord::Word,
        bytes: file.bytes,
        created_at: file.created_unix,
        filename: file.name.clone(),
        purpose: file.purpose,
        status: ProcessedWord::Word,
    }
}

/// What of a list is asked for.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wanted {
    /// What comes after the one of this id.
    after: Option<String>,
    /// So many at most.
    limit: Option<usize>,
    /// `desc`, the newest first, or `asc`.
    order: Option<String>,
    /// Files for this alone.
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

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Listed<T> {
    object: ListWord,
    data: Vec<T>,
    /// Whether there are more after the last.
    has_more: bool,
    first_id: Option<String>,
    last_id: Option<String>,
}

/// What has an id in lists.
pub(crate) trait Named {
    fn id(&self) -> &str;
}

impl Named for File {
    fn id(&self) -> &str {
        &self.id
    }
}

impl<T: Named> Listed<T> {
    pub fn new(data: Vec<T>, has_more: bool) -> Self {
        let id = |one: Option<&T>| one.map(|one| one.id().to_owned());
        Self {
            object: ListWord::Word,
            has_more,
            first_id: id(data.first()),
            last_id: id(data.last()),
            data,
        }
    }
}

/// Give a file
#[utoipa::path(
    post,
    path = "/v1/files",
    operation_id = "createFile",
    tag = "files",
    request_body(content = Upload, content_type = "multipart/form-data"),
    responses((status = 200, description = "The file.", body = File))
)]
pub(crate) async fn create(Asker { shared, key }: Asker, request: Request) -> Answer {
    shared.take_request(&key)?;
    let _place = shared.uploads.place(&key.id, UPLOAD_TIME).await?;
    let kind = request.headers().get(header::CONTENT_TYPE);
    let kind = kind
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default()
        .to_owned();
    let body = uploaded(request).await?;
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

/// The form, with the file in it.
async fn uploaded(request: Request) -> Result<Vec<u8>, ApiError> {
    let bytes_max = FILE_BYTES_MAX.saturating_add(FORM_BYTES_MAX);
    let read = read_at_pace(request, bytes_max, UPLOAD_PACE).await;
    read.map_err(|fault| match fault {
        BodyFault::NotWhole => {
            let told =
                format!("the file broke off, or is longer than {FILE_BYTES_MAX} bytes: cut it into several");
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "file_too_large", told)
        }
        BodyFault::TooSlow => {
            let told = "the file came too slowly: cut it into several";
            ApiError::new(StatusCode::REQUEST_TIMEOUT, "body", told)
        }
    })
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

/// List files
#[utoipa::path(
    get,
    path = "/v1/files",
    operation_id = "listFiles",
    tag = "files",
    params(Wanted),
    responses((status = 200, description = "Some of them.", body = Listed<File>))
)]
pub(crate) async fn list(Asker { shared, key }: Asker, Query(wanted): Query<Wanted>) -> Answer {
    let page = wanted.page("file-", 1_000, 10_000)?;
    let purpose = match wanted.purpose.as_deref() {
        None => None,
        Some("batch") => Some(Purpose::Batch),
        Some("batch_output") => Some(Purpose::BatchOutput),
        // There are none.
        Some(_) => return Ok(Json(Listed::<File>::new(Vec::new(), false)).into_response()),
    };
    let found = shared.ledger(move |ledger| ledger.files(&key.id, purpose, page));
    let (files, has_more) = found.await?;
    let list = Listed::new(files.iter().map(told).collect(), has_more);
    Ok(Json(list).into_response())
}

async fn found(asker: &Asker, id: &str) -> Result<FileRecord, ApiError> {
    let (key, number) = (asker.key.id.clone(), number(id)?);
    asker.shared.ledger(move |ledger| ledger.file(&key, number)).await
}

/// Look at a file
#[utoipa::path(
    get,
    path = "/v1/files/{id}",
    operation_id = "retrieveFile",
    tag = "files",
    params(("id" = String, Path, description = "Its id.")),
    responses((status = 200, description = "The file.", body = File))
)]
pub(crate) async fn show(asker: Asker, Path(id): Path<String>) -> Answer {
    let file = found(&asker, &id).await?;
    Ok(Json(told(&file)).into_response())
}

/// Read a file
#[utoipa::path(
    get,
    path = "/v1/files/{id}/content",
    operation_id = "downloadFile",
    tag = "files",
    params(("id" = String, Path, description = "Its id.")),
    responses((
        status = 200,
        description = "Its bytes: of what a batch has written, a JSON object a line.",
        body = String,
        content_type = "application/jsonl"
    ))
)]
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
        (HeaderName::from_static(PRIVACY_HEADER), PRIVACY.to_owned()),
    ];
    Ok((headers, Body::from_stream(parts)).into_response())
}

/// Delete a file
#[utoipa::path(
    delete,
    path = "/v1/files/{id}",
    operation_id = "deleteFile",
    tag = "files",
    params(("id" = String, Path, description = "Its id.")),
    responses((status = 200, description = "It is no more.", body = Deleted))
)]
pub(crate) async fn remove(Asker { shared, key }: Asker, Path(id): Path<String>) -> Answer {
    let number = number(&id)?;
    shared
        .ledger(move |ledger| ledger.remove_file(&key.id, number))
        .await?;
    let deleted = Deleted {
        id,
        object: FileWord::Word,
        deleted: true,
    };
    Ok(Json(deleted).into_response())
}
