//! How a task ended, for people and for scripts.

use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};
use surety_chain_client::{BlockNumber, TaskInfo, address};
use surety_engine::generation::FinishReason;
use surety_types::{
    TaskId,
    task::{ResultClaim, TaskState},
};

use crate::{
    amount::{Amount, Plancks},
    deliver::{Delivery, decided},
    text,
    transcript::Streamed,
    words::state_name,
};

/// How a task ended, or what it has come to when it is left with its result. Amounts are in plancks, as text.
#[derive(Debug, PartialEq, Serialize)]
pub struct Report {
    /// Task id.
    pub task: TaskId,
    /// `Settled`, `Failed` or `Cancelled`; `Running` when it is left with its result.
    pub state: String,
    /// The accepted result.
    pub claim: Option<Claim>,
    /// What each provider got.
    pub payments: Vec<Payment>,
    /// What went back to the client, once the task is over.
    pub refund: Option<Plancks>,
    /// What the chain kept, once the task is over.
    pub fee: Option<Plancks>,
    /// What is still held for the task: nothing, once it is over.
    pub escrow_left: Plancks,
    /// Block in which it was settled.
    pub settled_block: Option<BlockNumber>,
    /// The finalised block that this was read from.
    pub finalized_block: BlockNumber,
    /// Until the output was here. Unknown when the task was posted from another home.
    pub seconds_post_to_result: Option<f64>,
    /// Until the settlement was final.
    pub seconds_post_to_settled: Option<f64>,
    /// File that the output is in, where it was asked for.
    pub output_path: Option<String>,
    /// Content hash of the output, once it is here.
    pub output_hash: Option<String>,
    /// Of a generation, once its output is here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<Generated>,
}

/// A generation, and what came of streaming it.
#[derive(Debug, PartialEq, Serialize)]
pub struct Generated {
    /// What the output says.
    #[serde(flatten)]
    pub made: text::Generated,
    /// What came of streaming it.
    pub streamed: Streamed,
}

/// The accepted result, hashes in hexadecimal.
#[derive(Debug, PartialEq, Serialize)]
pub struct Claim {
    output: String,
    trace_root: String,
    units: u32,
}

/// What one provider got.
#[derive(Debug, PartialEq, Serialize)]
pub struct Payment {
    account: String,
    amount: Plancks,
}

impl From<&ResultClaim> for Claim {
    fn from(claim: &ResultClaim) -> Self {
        Self {
            output: format!("{:?}", claim.output),
            trace_root: format!("{:?}", claim.trace_root),
            units: claim.units,
        }
    }
}

/// Seconds since the task was posted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// Until the output was here.
    pub result: Option<f64>,
    /// Until the settlement was final.
    pub settled: Option<f64>,
}

impl Report {
    /// The report of a task that is finished or decided; nothing before that.
    pub fn new(
        task: TaskId,
        info: &TaskInfo,
        finalized_block: BlockNumber,
        delivery: Option<&Delivery>,
        output_path: Option<&Path>,
        times: Times,
    ) -> Option<Self> {
        let (settled_block, payments, refund, fee) = match &info.task.state {
            TaskState::Settled {
                at,
                payments,
                refund,
                fee,
                ..
            } => (Some(*at), payments.as_slice(), Some(*refund), Some(*fee)),
            TaskState::Failed { at, .. } => (Some(*at), &[][..], Some(info.task.cap), Some(0)),
            TaskState::Cancelled { at, fee } => {
                let refund = info.task.cap.saturating_sub(*fee);
                (Some(*at), &[][..], Some(refund), Some(*fee))
            }
            _ if decided(info).is_some() => (None, &[][..], None, None),
            _ => return None,
        };
        let paid = payments.iter().map(|payment| Payment {
            account: address(&payment.provider),
            amount: Plancks(payment.price),
        });
        Some(Self {
            task,
            state: state_name(&info.task.state),
            claim: decided(info).map(|(claim, _)| Claim::from(claim)),
            payments: paid.collect(),
            refund: refund.map(Plancks),
            fee: fee.map(Plancks),
            escrow_left: Plancks(info.escrow),
            settled_block,
            finalized_block,
            seconds_post_to_result: times.result,
            seconds_post_to_settled: times.settled,
            output_path: delivery.and(output_path).map(|path| path.display().to_string()),
            output_hash: delivery.map(|delivery| format!("{:?}", delivery.hash)),
            generation: None,
        })
    }

    /// As the last event for programs that follow a task.
    pub fn as_event(&self) -> Value {
        json!({ "event": "end", "report": self })
    }

    /// For people.
    pub fn text(&self) -> String {
        let task = self.task;
        let mut lines = vec![match self.settled_block {
            Some(block) => format!(
                "task {task} is {}: block {block}, final in block {}",
                self.state, self.finalized_block
            ),
            None => format!(
                "task {task} has its result, which can be challenged yet. {} are held for it; who is paid what: \
                 surety task watch {task}",
                Amount(self.escrow_left.0)
            ),
        }];
        for payment in &self.payments {
            lines.push(format!(
                "  paid      {}  {}",
                Amount(payment.amount.0),
                payment.account
            ));
        }
        for (what, amount) in [("fee     ", self.fee), ("refunded", self.refund)] {
            lines.extend(amount.map(|amount| format!("  {what}  {}", Amount(amount.0))));
        }
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
        let text::Generated {
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
