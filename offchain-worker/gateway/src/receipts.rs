//! `/v1/receipts/{id}`: what an answer has cost, and who stands by it.

use axum::{Json, extract::Path, http::StatusCode, response::IntoResponse};
use serde_json::{Value, json};

use crate::{
    api::{Answer, Asker, Shared},
    batch::record::{BatchTask, TaskState},
    error::ApiError,
    ledger::{Call, LedgerError},
};

enum Found {
    Call(Call),
    Task(BatchTask),
}

pub(crate) async fn receipt(Asker { shared, key }: Asker, Path(id): Path<String>) -> Answer {
    let none = || {
        ApiError::new(
            StatusCode::NOT_FOUND,
            "no_receipt",
            "this key has no such receipt",
        )
    };
    let number = u64::from_str_radix(&id, 16).map_err(|_| none())?;
    let found = shared.ledger(move |ledger| match ledger.call(number) {
        Err(LedgerError::NoCall) => match ledger.batch_task(number) {
            Err(LedgerError::NoCall) => Ok(None),
            task => task.map(|task| Some(Found::Task(task))),
        },
        call => call.map(|call| Some(Found::Call(call))),
    });
    let told = match found.await? {
        Some(Found::Call(call)) if call.key == key.id => of_call(&shared, &id, &call).await,
        Some(Found::Task(task)) if task.key == key.id => of_task(&id, &task),
        _ => return Err(none()),
    };
    Ok(Json(told).into_response())
}

async fn of_call(shared: &Shared, id: &str, call: &Call) -> Value {
    let mut receipts = Vec::new();
    for receipt in &call.receipts {
        let verdict = shared.upstream.verdict(receipt).await;
        receipts.push(json!({"receipt": receipt, "verdict": verdict}));
    }
    json!({
        "object": "surety.call", "id": id, "model": call.model, "state": call.state,
        "spent": call.spent.to_string(), "receipts": receipts,
    })
}

/// Of a task in a batch. The chain has its result and its payments.
fn of_task(id: &str, task: &BatchTask) -> Value {
    let (state, on_chain) = match task.state {
        TaskState::Waiting => ("waiting", None),
        TaskState::Posting(_) => ("posting", None),
        TaskState::Posted(on_chain) => ("posted", Some(on_chain)),
        TaskState::Ended => ("ended", task.receipt.as_ref().map(|receipt| receipt.task)),
    };
    json!({
        "object": "surety.task", "id": id, "model": task.model, "state": state, "task": on_chain,
        "reserved": task.cap.to_string(), "spent": task.spent.to_string(), "receipt": task.receipt,
    })
}
