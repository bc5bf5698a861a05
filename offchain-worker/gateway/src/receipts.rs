//! `/v1/receipts/{id}`: what an answer has cost, and who stands by it.

use std::collections::BTreeMap;

use axum::{Json, extract::Path, http::StatusCode, response::IntoResponse};
use futures::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use tokio::time::{Instant, timeout_at};
use utoipa::ToSchema;

use crate::{
    answer::words,
    api::{Answer, Asker, Shared, tell_receipt},
    batch::record::{BatchTask, TaskState},
    error::ApiError,
    ledger::{Call, CallState, Key, LedgerError},
    proof::{NoProof, Proof},
    runner::TaskReceipt,
    upstream::{Finish, Receipt, Verdict},
};

/// Receipts of a call that are asked about at once. It may have some hundred: of a race, of several attempts,
/// and of more items than one request has.
const ASKED_AT_ONCE: usize = 16;

words!(
    CallWord = "surety.call",
    ProofWord = "surety.proof",
    TaskWord = "surety.task"
);

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
    /// The worst of the receipts that its answer is made of, or `wrong` if any of its receipts is; nothing
    /// where it has none.
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

/// What shows that the receipts of a call are in batches on the chain.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CallProofs {
    object: ProofWord,
    id: String,
    model: String,
    /// One for each of its receipts, in their order: of several, only the last has answered to the end.
    proofs: Vec<Proven>,
}

/// A receipt's proof, or why there is none.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Proven {
    proof: Option<Proof>,
    missing: Option<Missing>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Missing {
    /// For programs: `not_batched`, `not_kept` or `not_shown`.
    code: &'static str,
    /// For people.
    message: String,
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
    let (verdict, told) = match own(&shared, &key, &id).await? {
        Found::Call(_, call) => {
            let told = of_call(&shared, id.clone(), call).await;
            (told.verdict, ReceiptDetail::Call(told))
        }
        Found::Task(task) => {
            let told = of_task(id.clone(), task);
            (told.verdict, ReceiptDetail::Task(told))
        }
    };
    let mut response = Json(told).into_response();
    tell_receipt(response.headers_mut(), &id, verdict);
    Ok(response)
}

/// Prove a receipt
///
/// What shows to anybody, who trusts neither this gateway nor a node, that an answer's receipt is in a batch
/// on the chain. Of a call, by the `receipt` in its answer. The provider is asked for it once, which counts
/// as a request of the key; after that it is kept.
#[utoipa::path(
    get,
    path = "/v1/receipts/{id}/proof",
    operation_id = "proveReceipt",
    tag = "receipts",
    params(("id" = String, Path, description = "Its id.")),
    responses((
        status = 200,
        description = "One of its receipts at least is proven. Where none can be, `409` says that it is not \
                       batched yet or was not kept, and `503` that its provider does not show it.",
        body = CallProofs
    ))
)]
pub(crate) async fn proof(Asker { shared, key }: Asker, Path(id): Path<String>) -> Answer {
    let Found::Call(number, mut call) = own(&shared, &key, &id).await? else {
        let told = "the chain itself has the results of a batch's tasks, and who stands by them";
        return Err(ApiError::new(StatusCode::CONFLICT, "not_a_call", told));
    };
    if call.receipts.len() > call.proofs.len() {
        shared.take_request(&key)?;
    }
    let until = Instant::now()
        .checked_add(shared.settings.proof_time)
        .unwrap_or_else(Instant::now);
    let shared = &shared;
    // By their places. A slow one takes a place from those that wait, and no more.
    let found: BTreeMap<usize, Result<Proof, NoProof>> = stream::iter(call.receipts.into_iter().enumerate())
        .map(|(place, receipt)| (call.proofs.remove(&place), place, receipt))
        .map(|(kept, place, receipt)| async move {
            let found = match kept {
                Some(kept) => Ok(kept),
                None => prove(shared, (number, place), receipt, until).await?,
            };
            Ok::<_, ApiError>((place, found))
        })
        .buffer_unordered(ASKED_AT_ONCE)
        .try_collect()
        .await?;
    let mut refusal = None;
    let proven = found.into_values().map(|found| match found {
        Ok(proof) => Proven {
            proof: Some(proof),
            missing: None,
        },
        Err(why) => {
            let missing = Missing {
                code: why.code(),
                message: why.to_string(),
            };
            refusal = Some(why);
            Proven {
                proof: None,
                missing: Some(missing),
            }
        }
    });
    let proofs: Vec<Proven> = proven.collect();
    if proofs.iter().any(|proven| proven.proof.is_some()) {
        let object = ProofWord::Word;
        let model = call.model;
        return Ok(Json(CallProofs {
            object,
            id,
            model,
            proofs,
        })
        .into_response());
    }
    let nothing = || {
        let told = "no provider has signed a receipt for this call: it is open, or nobody has answered it";
        ApiError::new(StatusCode::CONFLICT, "nothing_signed", told)
    };
    Err(refusal.map_or_else(nothing, ApiError::from))
}

/// Asks the provider, and keeps what it shows. One that is slow keeps nobody waiting beyond `until`.
async fn prove(
    shared: &Shared,
    (number, place): (u64, usize),
    receipt: Receipt,
    until: Instant,
) -> Result<Result<Proof, NoProof>, ApiError> {
    let proof = match timeout_at(until, shared.upstream.proof(&receipt)).await {
        Ok(Ok(proof)) => proof,
        Ok(Err(why)) => return Ok(Err(why)),
        Err(_) => return Ok(Err(NoProof::Unshown("it does not answer in time".into()))),
    };
    let kept = proof.clone();
    shared
        .ledger(move |ledger| ledger.keep_proof(number, place, kept))
        .await?;
    Ok(Ok(proof))
}

enum Found {
    Call(u64, Call),
    Task(BatchTask),
}

/// What stands behind an answer of this key.
async fn own(shared: &Shared, key: &Key, id: &str) -> Result<Found, ApiError> {
    let none = || {
        let told = "this key has no such receipt";
        ApiError::new(StatusCode::NOT_FOUND, "no_receipt", told)
    };
    let number = u64::from_str_radix(id, 16).map_err(|_| none())?;
    let found = shared.ledger(move |ledger| match ledger.call(number) {
        Err(LedgerError::NoCall) => match ledger.batch_task(number) {
            Err(LedgerError::NoCall) => Ok(None),
            task => task.map(|task| Some((task.key.clone(), Found::Task(task)))),
        },
        call => call.map(|call| Some((call.key.clone(), Found::Call(number, call)))),
    });
    let found = found.await?.filter(|(of, _)| *of == key.id);
    found.map(|(_, found)| found).ok_or_else(none)
}

async fn of_call(shared: &Shared, id: String, call: Call) -> CallDetail {
    let receipts: Vec<Signed> = stream::iter(call.receipts)
        .map(|receipt| async move {
            let verdict = shared.upstream.verdict(&receipt).await;
            Signed { receipt, verdict }
        })
        .buffered(ASKED_AT_ONCE)
        .collect()
        .await;
    let last = receipts.len().checked_sub(1);
    // Whoever answers in place of others says all of it. One that a stop string ends was cancelled, and is
    // the last.
    let made_of = receipts.iter().enumerate().filter(|(place, signed)| {
        let is_whole = matches!(signed.receipt.finish, Finish::Stop | Finish::Length);
        is_whole || Some(*place) == last || signed.verdict == Verdict::Wrong
    });
    let verdict = Verdict::worst(made_of.map(|(_, signed)| signed.verdict));
    CallDetail {
        object: CallWord::Word,
        id,
        model: call.model,
        state: call.state,
        reserved: call.reserved.to_string(),
        spent: call.spent.to_string(),
        verdict,
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
