//! How a task ended, for people and for scripts.

use std::path::Path;

use serde::Serialize;
use serde_json::{json, Value};
use surety_chain_client::{address, short, AccountId, Balance, BlockNumber, TaskInfo};
use surety_client::{deliver::Delivery, transcript::Streamed};
use surety_engine::generation::{FinishReason, Generation};
use surety_types::{
    task::{FailureReason, TaskState},
    TaskId,
};

use crate::amount::Amount;

/// The last thing that `surety task submit` and `watch` print. Amounts are in plancks.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Report {
    pub(super) task: TaskId,
    /// `Settled`, `Failed` or `Cancelled`.
    pub(super) state: String,
    /// The accepted result.
    pub(super) claim: Option<Claim>,
    pub(super) payments: Vec<Payment>,
    pub(super) refund: Balance,
    pub(super) fee: Balance,
    /// What is still held for the task: nothing.
    pub(super) escrow_left: Balance,
    /// Block in which it was settled.
    pub(super) settled_block: BlockNumber,
    /// The finalised block that this was read from.
    pub(super) finalized_block: BlockNumber,
    /// Until the output was here. Unknown when the task was posted from another home.
    pub(super) seconds_post_to_result: Option<f64>,
    /// Until the settlement was final.
    pub(super) seconds_post_to_settled: Option<f64>,
    pub(super) output_path: Option<String>,
    pub(super) output_hash: Option<String>,
    /// Of a generation, once its output is here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) generation: Option<Generated>,
}

/// A generation, and what came of streaming it.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Generated {
    #[serde(flatten)]
    pub(super) made: Generation,
    pub(super) streamed: Streamed,
}

#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Claim {
    output: String,
    trace_root: String,
    units: u32,
}

#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Payment {
    account: String,
    amount: Balance,
}

/// Seconds since the task was posted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    pub(super) result: Option<f64>,
    pub(super) settled: Option<f64>,
}

impl Report {
    /// The report of a finished task; nothing while it is not finished.
    pub(super) fn new(
        task: TaskId,
        info: &TaskInfo,
        finalized_block: BlockNumber,
        delivery: Option<&Delivery>,
        output_path: Option<&Path>,
        times: Times,
    ) -> Option<Self> {
        let empty = || (None, Vec::new(), info.task.cap, 0);
        let (settled_block, (claim, payments, refund, fee)) = match &info.task.state {
            TaskState::Settled {
                at,
                claim,
                payments,
                refund,
                fee,
            } => {
                let paid = payments.iter().map(|payment| Payment {
                    account: address(&payment.provider),
                    amount: payment.price,
                });
                let claim = Claim {
                    output: format!("{:?}", claim.output),
                    trace_root: format!("{:?}", claim.trace_root),
                    units: claim.units,
                };
                (*at, (Some(claim), paid.collect(), *refund, *fee))
            }
            TaskState::Failed { at, .. } | TaskState::Cancelled { at } => (*at, empty()),
            _ => return None,
        };
        Some(Self {
            task,
            state: state_name(&info.task.state),
            claim,
            payments,
            refund,
            fee,
            escrow_left: info.escrow,
            settled_block,
            finalized_block,
            seconds_post_to_result: times.result,
            seconds_post_to_settled: times.settled,
            output_path: delivery.and(output_path).map(|path| path.display().to_string()),
            output_hash: delivery.map(|delivery| format!("{:?}", delivery.hash)),
            generation: None,
        })
    }

    /// The last of the events that `--follow --json` prints.
    pub(super) fn as_event(&self) -> Value {
        json!({ "event": "end", "report": self })
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let mut lines = vec![format!(
            "task {} is {}: block {}, final in block {}",
            self.task, self.state, self.settled_block, self.finalized_block
        )];
        for payment in &self.payments {
            lines.push(format!(
                "  paid      {}  {}",
                Amount(payment.amount),
                payment.account
            ));
        }
        lines.push(format!("  fee       {}", Amount(self.fee)));
        lines.push(format!("  refunded  {}", Amount(self.refund)));
        if let (Some(path), Some(hash)) = (&self.output_path, &self.output_hash) {
            lines.push(format!("  output    {path} ({hash})"));
        }
        if let Some(generated) = &self.generation {
            lines.push(format!("  tokens    {}", generated.text()));
        }
        lines.join("\n")
    }
}

impl Generated {
    fn text(&self) -> String {
        let Generation {
            tokens,
            prompt_tokens,
            finish_reason,
            ..
        } = &self.made;
        let why = match finish_reason {
            FinishReason::Stop => "the model was done",
            FinishReason::Length => "as many as were asked for",
        };
        let seconds = self.streamed.seconds_post_to_first_token;
        let first = seconds.map_or_else(String::new, |s| format!(", the first after {s:.1} s"));
        format!(
            "{} after a prompt of {prompt_tokens} ({why}); {} were streamed{first}",
            tokens.len(),
            self.streamed.tokens
        )
    }
}

/// A state's name.
pub(super) fn state_name(state: &TaskState<AccountId, Balance, BlockNumber>) -> String {
    match state {
        TaskState::Bidding { .. } => "Bidding",
        TaskState::Revealing { .. } => "Revealing",
        TaskState::Drawing { .. } => "Drawing",
        TaskState::Running { .. } => "Running",
        TaskState::Settled { .. } => "Settled",
        TaskState::Failed { .. } => "Failed",
        TaskState::Cancelled { .. } => "Cancelled",
    }
    .into()
}

/// Why nobody was paid, for people.
pub(super) fn reason_text(reason: FailureReason) -> &'static str {
    match reason {
        FailureReason::NotEnoughBids => "fewer providers bid than were asked for, within the cap",
        FailureReason::NotEnoughResults => "too few providers delivered in time",
        FailureReason::NoAgreement => "no result was shared by a majority of the providers",
        FailureReason::InputWithheld => {
            "a piece of the input was demanded on the chain and not shown: the client's lock is lost"
        }
    }
}

/// A list of accounts, for people.
pub(super) fn accounts<'a>(accounts: impl IntoIterator<Item = &'a AccountId>) -> String {
    let texts: Vec<String> = accounts.into_iter().map(short).collect();
    match texts.is_empty() {
        true => "nobody".into(),
        false => texts.join(", "),
    }
}
