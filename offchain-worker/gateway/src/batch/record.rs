//! What is kept of batches and of their tasks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use surety_types::{input::Work, model::Operation, speed::Requirements};
use utoipa::ToSchema;

use super::requires;
use crate::{
    ledger::amount,
    runner::{Posting, Quoted, TaskReceipt},
};

/// What the requests of a batch are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum Endpoint {
    /// Embeddings.
    #[serde(rename = "/v1/embeddings")]
    Embeddings,
    /// Answers to conversations.
    #[serde(rename = "/v1/chat/completions")]
    Chat,
    /// Continuations.
    #[serde(rename = "/v1/completions")]
    Completions,
}

impl Endpoint {
    /// As it stands in requests.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Embeddings => "/v1/embeddings",
            Self::Chat => "/v1/chat/completions",
            Self::Completions => "/v1/completions",
        }
    }
}

/// How far a batch is, in OpenAI's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Its file is being read.
    Validating,
    /// Its file was refused.
    Failed,
    /// Its tasks are posted and computed.
    InProgress,
    /// All tasks are over.
    Finalizing,
    /// Its files are there.
    Completed,
    /// Its time was over before all tasks were posted.
    Expired,
    /// No more tasks are posted.
    Cancelling,
    /// And those that were are over.
    Cancelled,
}

impl Status {
    /// As it stands in answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Validating => "validating",
            Self::Failed => "failed",
            Self::InProgress => "in_progress",
            Self::Finalizing => "finalizing",
            Self::Completed => "completed",
            Self::Expired => "expired",
            Self::Cancelling => "cancelling",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether nothing will change any more.
    pub const fn is_over(self) -> bool {
        matches!(
            self,
            Self::Failed | Self::Completed | Self::Expired | Self::Cancelled
        )
    }
}

/// What is wrong with a batch's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fault {
    /// For programs.
    pub code: String,
    /// For people.
    pub message: String,
    /// Which field, where it is one.
    pub param: Option<String>,
    /// In which line, from 1, where it is one.
    pub line: Option<u64>,
}

/// Requests of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Counts {
    /// All.
    pub total: u64,
    /// Those that have their answer.
    pub completed: u64,
    /// Those that have none, and will have none.
    pub failed: u64,
}

/// When what happened, in seconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// It was created.
    pub created: u64,
    /// Nothing more is posted then.
    pub expires: u64,
    /// Its file was read.
    pub in_progress: Option<u64>,
    /// Its tasks were over.
    pub finalizing: Option<u64>,
    /// It was completed.
    pub completed: Option<u64>,
    /// It failed.
    pub failed: Option<u64>,
    /// It expired.
    pub expired: Option<u64>,
    /// It was told to end.
    pub cancelling: Option<u64>,
    /// It did.
    pub cancelled: Option<u64>,
}

/// A batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Its number.
    pub number: u64,
    /// Whose it is.
    pub key: String,
    /// What its requests are for.
    pub endpoint: Endpoint,
    /// The number of the file that they stand in.
    pub input: u64,
    /// The number of the file for answers; the next one's is that of the file for refusals.
    pub output: u64,
    /// Whether the two are there.
    pub has_output: bool,
    /// Whether there were refusals.
    pub has_errors: bool,
    /// How far it is.
    pub status: Status,
    /// Whether something was not posted because its time was over.
    pub is_late: bool,
    /// When what happened.
    pub times: Times,
    /// Its requests.
    pub counts: Counts,
    /// Why its file was refused.
    pub faults: Vec<Fault>,
    /// What its owner says of it.
    pub metadata: BTreeMap<String, String>,
    /// Number of its first task, and how many it has.
    pub tasks: (u64, u64),
}

impl Batch {
    /// The number of the file for refusals.
    pub const fn errors(&self) -> u64 {
        self.output.saturating_add(1)
    }
}

/// How far a task of a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// It was not posted.
    Waiting,
    /// It is about to be posted, or was: the chain says which. Since when, in seconds since 1970.
    Posting(u64),
    /// It is on the chain, under this number.
    Posted(u64),
    /// It is over, and settled with its key.
    Ended,
}

/// A task of a batch: lines of its file that are computed together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchTask {
    /// Its number, which is that of its receipt.
    pub number: u64,
    /// Its batch's.
    pub batch: u64,
    /// Whose it is.
    pub key: String,
    /// The model's name.
    pub model: String,
    /// Whether text is made; embeddings otherwise.
    pub generates: bool,
    /// Bytes of its input.
    pub input_bytes: u32,
    /// Units that are paid for at most.
    pub units_max: u32,
    /// What its providers have to be.
    #[serde(default, with = "requires::kept")]
    pub requirements: Requirements,
    /// What is reserved for it.
    #[serde(with = "amount")]
    pub cap: u128,
    /// The chain's height when it was quoted.
    pub height: u64,
    /// How far it is.
    pub state: TaskState,
    /// What it did cost.
    #[serde(with = "amount")]
    pub spent: u128,
    /// What the chain says of it, once it is over.
    pub receipt: Option<TaskReceipt>,
    /// The lines, in the order of their items in the input.
    pub lines: Vec<Line>,
}

impl BatchTask {
    /// What is asked for.
    pub const fn work(&self) -> Work {
        Work {
            operation: if self.generates {
                Operation::Generate
            } else {
                Operation::Embed
            },
            input_bytes: self.input_bytes,
            units_max: self.units_max,
        }
    }

    /// For whoever posts it.
    pub fn posting(&self, input: Vec<u8>) -> Posting {
        Posting {
            number: self.number,
            model: self.model.clone(),
            work: self.work(),
            requirements: self.requirements,
            input,
            quoted: Quoted {
                cap: self.cap,
                height: self.height,
            },
            tried_unix: match self.state {
                TaskState::Posting(since) => since,
                TaskState::Waiting | TaskState::Posted(_) | TaskState::Ended => 0,
            },
        }
    }
}

/// A request of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// What its owner calls it.
    pub custom_id: String,
    /// What is to be made of the output.
    pub ask: Ask,
}

/// What is to be made of an output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// Vectors.
    Embed {
        /// Items of this line.
        items: u32,
        /// Tokens of these.
        tokens: u32,
        /// Vectors are given as base64.
        base64: bool,
    },
    /// An answer.
    Generate {
        /// Of a conversation.
        is_chat: bool,
        /// What ends it.
        stops: Vec<String>,
        /// What it was drawn by.
        seed: u64,
    },
}
