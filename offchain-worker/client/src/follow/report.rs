//! How a task ended, for people and for scripts.

use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};
use surety_chain_client::{Balance, BlockNumber, TaskInfo, address};
use surety_engine::generation::FinishReason;
use surety_types::{TaskId, task::TaskState};

use crate::{amount::Amount, deliver::Delivery, text, transcript::Streamed, words::state_name};

/// How a task ended. Amounts are in plancks.
#[derive(Debug, PartialEq, Serialize)]
pub struct Report {
    /// Task id.
    pub task: TaskId,
    /// `Settled`, `Failed` or `Cancelled`.
    pub state: String,
    /// The accepted result.
    pub claim: Option<Claim>,
    /// What each provider got.
    pub payments: Vec<Payment>,
    /// What went back to the client.
    pub refund: Balance,
    /// What the chain kept.
    pub fee: Balance,
    /// What is still held for the task: nothing.
    pub escrow_left: Balance,
    /// Block in which it was settled.
    pub settled_block: BlockNumber,
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

/// What one provider got, in plancks.
#[derive(Debug, PartialEq, Serialize)]
pub struct Payment {
    account: String,
    amount: Balance,
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
    /// The report of a finished task; nothing while it is not finished.
    pub fn new(
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

    /// As the last event for programs that follow a task.
    pub fn as_event(&self) -> Value {
        json!({ "event": "end", "report": self })
    }

    /// For people.
    pub fn text(&self) -> String {
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
