//! What is written into the files of a batch, and what is told of it.

use std::fmt::Display;

use serde_json::{Value, json};
use surety_types::input::InputReader;

use super::{
    record::{Ask, Batch, BatchTask, Counts, Fault, Line},
    routes::WINDOW,
};
use crate::{
    answer::{Head, embeddings, receipt_id},
    error::ApiError,
    files::file_id,
    runner::Computed,
    stop::StopFilter,
    text::ModelText,
    upstream::Finish,
};

pub(crate) fn batch_id(number: u64) -> String {
    format!("batch_{number:016x}")
}

/// A batch as it is told.
pub(crate) fn told(batch: &Batch) -> Value {
    let Counts {
        total,
        completed,
        failed,
    } = batch.counts;
    let times = &batch.times;
    json!({
        "id": batch_id(batch.number), "object": "batch", "endpoint": batch.endpoint.path(),
        "errors": faults(&batch.faults), "input_file_id": file_id(batch.input), "completion_window": WINDOW,
        "status": batch.status.name(),
        "output_file_id": batch.has_output.then(|| file_id(batch.output)),
        "error_file_id": batch.has_errors.then(|| file_id(batch.errors())),
        "created_at": times.created, "in_progress_at": times.in_progress, "expires_at": times.expires,
        "finalizing_at": times.finalizing, "completed_at": times.completed, "failed_at": times.failed,
        "expired_at": times.expired, "cancelling_at": times.cancelling, "cancelled_at": times.cancelled,
        "request_counts": {"total": total, "completed": completed, "failed": failed},
        "metadata": batch.metadata,
    })
}

fn faults(faults: &[Fault]) -> Value {
    match faults.is_empty() {
        true => Value::Null,
        false => json!({"object": "list", "data": faults}),
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
                embeddings(&task.model, &receipt, own, &ids, *tokens, *base64)
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
                head.answer(&told, ids, finish, tokens)
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
