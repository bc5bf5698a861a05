//! What is written into the files of a batch, and what is told of it.

use std::{collections::BTreeMap, fmt::Display};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use surety_types::input::InputReader;
use utoipa::ToSchema;

use super::record::{Ask, Batch, BatchTask, Counts, Endpoint, Fault, Line, Status};
use crate::{
    answer::{Head, ListWord, embeddings, receipt_id, words},
    error::ApiError,
    files::{Named, file_id},
    runner::Computed,
    stop::StopFilter,
    text::ModelText,
    upstream::Finish,
};

pub(crate) fn batch_id(number: u64) -> String {
    format!("batch_{number:016x}")
}

words!(BatchWord = "batch");

/// In which a batch is computed: the only one that OpenAI's clients know.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) enum Window {
    #[serde(rename = "24h")]
    Day,
}

/// A batch.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Batch)]
pub(crate) struct Told {
    id: String,
    object: BatchWord,
    endpoint: Endpoint,
    /// Why its file was refused.
    errors: Option<Faults>,
    input_file_id: String,
    completion_window: Window,
    status: Status,
    /// The file with the answers, once it is over and there are any.
    output_file_id: Option<String>,
    /// The file with the refusals, once it is over and there are any.
    error_file_id: Option<String>,
    /// Seconds since 1970, as all of its times.
    created_at: u64,
    in_progress_at: Option<u64>,
    /// Nothing more is posted then.
    expires_at: u64,
    finalizing_at: Option<u64>,
    completed_at: Option<u64>,
    failed_at: Option<u64>,
    expired_at: Option<u64>,
    cancelling_at: Option<u64>,
    cancelled_at: Option<u64>,
    request_counts: Counts,
    /// What its owner says of it.
    metadata: BTreeMap<String, String>,
}

/// What is wrong with a batch's file.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Faults {
    object: ListWord,
    data: Vec<Fault>,
}

impl Named for Told {
    fn id(&self) -> &str {
        &self.id
    }
}

/// A batch as it is told.
pub(crate) fn told(batch: Batch) -> Told {
    let (times, errors) = (batch.times, batch.errors());
    Told {
        id: batch_id(batch.number),
        object: BatchWord::Word,
        endpoint: batch.endpoint,
        errors: (!batch.faults.is_empty()).then_some(Faults {
            object: ListWord::Word,
            data: batch.faults,
        }),
        input_file_id: file_id(batch.input),
        completion_window: Window::Day,
        status: batch.status,
        output_file_id: batch.has_output.then(|| file_id(batch.output)),
        error_file_id: batch.has_errors.then(|| file_id(errors)),
        created_at: times.created,
        in_progress_at: times.in_progress,
        expires_at: times.expires,
        finalizing_at: times.finalizing,
        completed_at: times.completed,
        failed_at: times.failed,
        expired_at: times.expired,
        cancelling_at: times.cancelling,
        cancelled_at: times.cancelled,
        request_counts: batch.counts,
        metadata: batch.metadata,
    }
}

fn line(id: &str, custom_id: &str, response: &Value, error: &Value) -> Vec<u8> {
    let line = json!({"id": id, "custom_id": custom_id, "response": response, "error": error});
    let mut line = line.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// A request that is answered with a refusal.
pub(crate) fn refusal(id: &str, receipt: &str, custom_id: &str, error: &ApiError) -> Vec<u8> {
    let response = json!({
        "status_code": error.status.as_u16(), "request_id": receipt, "body": error.body(),
    });
    line(id, custom_id, &response, &Value::Null)
}

/// Requests of a task that are answered with the same refusal.
pub(crate) fn refusals(task: &BatchTask, error: &ApiError) -> Vec<u8> {
    let receipt = receipt_id(task.number);
    let refused = |(place, line): (usize, &Line)| {
        refusal(&request_id(task.number, place), &receipt, &line.custom_id, error)
    };
    task.lines.iter().enumerate().flat_map(refused).collect()
}

/// Requests of a task that were not even asked.
pub(crate) fn not_asked(task: &BatchTask, code: &str, message: &str) -> Vec<u8> {
    let error = json!({"code": code, "message": message});
    let told = |(place, asked): (usize, &Line)| {
        line(
            &request_id(task.number, place),
            &asked.custom_id,
            &Value::Null,
            &error,
        )
    };
    task.lines.iter().enumerate().flat_map(told).collect()
}

/// Of a task and a place in it, or of a batch and a line of its file.
pub(crate) fn request_id(number: u64, place: impl Display) -> String {
    format!("batch_req_{number:016x}_{place}")
}

/// The lines of a task that was computed.
///
/// # Errors
/// Why its output answers none of them.
pub(crate) fn answers(
    task: &BatchTask,
    input: &[u8],
    text: &dyn ModelText,
    computed: &Computed,
    now: u64,
) -> Result<Vec<u8>, String> {
    let reader = InputReader::new(input, text.bounds());
    let receipt = receipt_id(task.number);
    let (mut all, mut item) = (Vec::new(), 0u32);
    for (place, asked) in task.lines.iter().enumerate() {
        let body = match (&asked.ask, computed) {
            (
                Ask::Embed {
                    items,
                    tokens,
                    base64,
                },
                Computed::Vectors(vectors),
            ) => {
                let end = item.saturating_add(*items);
                let own = vectors.get(item as usize..end as usize);
                let own = own.ok_or("the task has fewer vectors than items")?;
                let ids: Vec<_> = (item..end).map(|item| reader.item(item)).collect();
                item = end;
                json!(embeddings(&task.model, &receipt, own, ids, *tokens, *base64))
            }
            (Ask::Generate { is_chat, stops, seed }, Computed::Tokens { ids, stopped }) => {
                let whole = text.decode(ids)?;
                let mut filter = StopFilter::new(stops.clone());
                let (mut told, is_cut) = filter.push(&whole);
                if !is_cut {
                    told.push_str(&filter.end());
                }
                let finish = match *stopped || is_cut {
                    true => Finish::Stop,
                    false => Finish::Length,
                };
                let tokens = u32::try_from(ids.len()).unwrap_or(u32::MAX);
                let head = Head {
                    is_chat: *is_chat,
                    receipt: receipt.clone(),
                    model: task.model.clone(),
                    created: now,
                    seed: *seed,
                    prompt_tokens: task.work().prompt_tokens(),
                };
                json!(head.answer(&told, ids, finish, tokens))
            }
            _ => return Err("the task's output is of another kind".into()),
        };
        let response = json!({"status_code": 200, "request_id": receipt, "body": body});
        all.extend(line(
            &request_id(task.number, place),
            &asked.custom_id,
            &response,
            &Value::Null,
        ));
    }
    Ok(all)
}
