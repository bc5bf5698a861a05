//! `/v1/receipts/{id}`: what an answer has cost, and who stands by it.

use axum::{Json, extract::Path, http::StatusCode, response::IntoResponse};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    answer::words,
    api::{Answer, Asker, Shared, tell_receipt},
    batch::record::{BatchTask, TaskState},
    error::ApiError,
    ledger::{Call, CallState, LedgerError},
    runner::TaskReceipt,
    upstream::{Receipt, Verdict},
};

words!(CallWord = "surety.call", TaskWord = "surety.task");

/// What stands behind an answer.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ReceiptDetail {
    Call(CallDetail),
    Task(TaskDetail),
}

/// A call, of those that are answered at once.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CallDetail {
    object: CallWord,
    id: String,
    model: String,
    state: CallState,
    /// Most that it may cost, in plancks, as a decimal number.
    reserved: String,
    /// What it did cost, in plancks, as a decimal number.
    spent: String,
    /// The worst of its receipts; nothing where it has none.
    verdict: Option<Verdict>,
    /// What providers have signed, in the order in which they were asked: of several, only the last has
    /// answered to the end.
    receipts: Vec<Signed>,
}

/// What a provider has signed, and what has become of it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Signed {
    receipt: Receipt,
    verdict: Verdict,
}

/// A task of a batch. The chain has its result and its payments.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TaskDetail {
    object: TaskWord,
    id: String,
    model: String,
    state: TaskStep,
    /// Its number on the chain, once it has one.
    task: Option<u64>,
    /// Most that it may cost, in plancks, as a decimal number.
    reserved: String,
    /// What it did cost, in plancks, as a decimal number.
    spent: String,
    /// `final` once it has a result: it is fetched when the chain has settled it.
    verdict: Option<Verdict>,
    /// What the chain says of it, once it is over.
    receipt: Option<TaskReceipt>,
}

/// How far a task of a batch is.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TaskStep {
    /// It is not posted.
    Waiting,
    /// It is about to be posted, or was.
    Posting,
    /// It is on the chain.
    Posted,
    /// It is over.
    Ended,
}

/// Look at a receipt
///
/// Of a call, by the `receipt` in its answer; of a task of a batch, by the `request_id` of its answers.
#[utoipa::path(
    get,
    path = "/v1/receipts/{id}",
    operation_id = "retrieveReceipt",
    tag = "receipts",
    params(("id" = String, Path, description = "Its id.")),
    responses((
        status = 200,
        description = "What it has cost, who stands by it, and what has become of that.",
        body = ReceiptDetail,
        headers(
            ("x-surety-receipt" = String, description = "Its id"),
            ("x-surety-verdict" = String, description = "Its verdict, where it has one"),
        )
    ))
)]
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
    let (verdict, told) = match found.await? {
        Some(Found::Call(call)) if call.key == key.id => {
            let told = of_call(&shared, id.clone(), call).await;
            (told.verdict, ReceiptDetail::Call(told))
        }
        Some(Found::Task(task)) if task.key == key.id => {
            let told = of_task(id.clone(), task);
            (told.verdict, ReceiptDetail::Task(told))
        }
        _ => return Err(none()),
    };
    let mut response = Json(told).into_response();
    tell_receipt(response.headers_mut(), &id, verdict);
    Ok(response)
}

enum Found {
    Call(Call),
    Task(BatchTask),
}

async fn of_call(shared: &Shared, id: String, call: Call) -> CallDetail {
    let mut receipts = Vec::new();
    for receipt in call.receipts {
        let verdict = shared.upstream.verdict(&receipt).await;
        receipts.push(Signed { receipt, verdict });
    }
    CallDetail {
        object: CallWord::Word,
        id,
        model: call.model,
        state: call.state,
        reserved: call.reserved.to_string(),
        spent: call.spent.to_string(),
        verdict: Verdict::worst(receipts.iter().map(|signed| signed.verdict)),
        receipts,
    }
}

fn of_task(id: String, task: BatchTask) -> TaskDetail {
    let on_chain = task.receipt.as_ref().map(|receipt| receipt.task);
    let has_result = task
        .receipt
        .as_ref()
        .is_some_and(|receipt| receipt.output_hash.is_some());
    let (state, on_chain) = match task.state {
        TaskState::Waiting => (TaskStep::Waiting, None),
        TaskState::Posting(_) => (TaskStep::Posting, None),
        TaskState::Posted(on_chain) => (TaskStep::Posted, Some(on_chain)),
        TaskState::Ended => (TaskStep::Ended, on_chain),
    };
    TaskDetail {
        object: TaskWord::Word,
        id,
        model: task.model,
        state,
        task: on_chain,
        reserved: task.cap.to_string(),
        spent: task.spent.to_string(),
        verdict: has_result.then_some(Verdict::Final),
        receipt: task.receipt,
    }
}
