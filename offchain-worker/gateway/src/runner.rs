//! Whoever computes what nobody waits for beside an open connection: tasks on the chain, or a fake.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use surety_types::{input::Work, speed::Requirements};
use utoipa::ToSchema;

/// A model that tasks can be posted for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchModel {
    /// What requests call it.
    pub name: String,
    /// Whether it makes text; embeddings otherwise.
    pub generates: bool,
}

/// What a task will cost at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted {
    /// Its cap, in plancks.
    pub cap: u128,
    /// The chain's height now: the task is in no earlier block.
    pub height: u64,
}

/// A task that is to be posted, or was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posting {
    /// Its number in this gateway: never that of another task.
    pub number: u64,
    /// The model's name.
    pub model: String,
    /// What is asked for.
    pub work: Work,
    /// What its providers have to be.
    pub requirements: Requirements,
    /// The input blob.
    pub input: Vec<u8>,
    /// What was quoted for that number.
    pub quoted: Quoted,
    /// When it was last tried to post it, in seconds since 1970.
    pub tried_unix: u64,
}

/// What a task has come to, as the chain says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskReceipt {
    /// The task's number on the chain.
    pub task: u64,
    /// Content hash of its output, hexadecimal; nothing where there is none.
    pub output_hash: Option<String>,
    /// The block in which it was settled, or failed.
    pub block: u64,
    /// Who was paid.
    pub payments: Vec<Payment>,
    /// What the chain kept, in plancks, as a decimal number.
    #[serde(with = "crate::ledger::amount")]
    #[schema(value_type = String)]
    pub fee: u128,
}

/// What one provider was paid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Payment {
    /// Its account.
    pub provider: String,
    /// In plancks, as a decimal number.
    #[serde(with = "crate::ledger::amount")]
    #[schema(value_type = String)]
    pub price: u128,
}

impl TaskReceipt {
    /// What it cost in all.
    pub fn spent(&self) -> u128 {
        let paid = self.payments.iter().map(|payment| payment.price);
        paid.fold(self.fee, u128::saturating_add)
    }
}

/// What was computed.
#[derive(Clone, Debug, PartialEq)]
pub enum Computed {
    /// A vector for each item, in their order.
    Vectors(Vec<Vec<f32>>),
    /// A continuation.
    Tokens {
        /// Its ids, the one that ended it included.
        ids: Vec<u32>,
        /// Whether a stop id of the model ended it.
        stopped: bool,
    },
}

/// A task that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// What it cost.
    pub receipt: TaskReceipt,
    /// Its output, or why there is none, for whoever asked.
    pub output: Result<Computed, String>,
}

/// Why something is not done. The texts are for the gateway's users.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunnerError {
    /// Not now. It is tried again.
    #[error("{0}")]
    Later(String),
    /// It was not posted, and will not be.
    #[error("{0}")]
    Refused(String),
    /// What became of it cannot be said any more: it may have cost all that it could.
    #[error("{0}")]
    Lost(String),
}

/// Has tasks computed. All of it may be called again after a restart, with the same postings.
#[async_trait]
pub trait BatchRunner: Send + Sync {
    /// What tasks can be posted for.
    fn models(&self) -> Vec<BatchModel>;

    /// That as many providers as compute a task are what is asked for, as far as can be seen now.
    ///
    /// # Errors
    /// [`RunnerError::Refused`] where they are fewer, and why; [`RunnerError::Later`] where nobody can say.
    async fn check_providers(&self, asked: &Requirements) -> Result<(), RunnerError>;

    /// What a task costs at most. Tasks of different numbers can be told from one another by what is quoted,
    /// also where all else of them is the same.
    ///
    /// # Errors
    /// [`RunnerError`].
    async fn quote(&self, number: u64, model: &str, work: &Work) -> Result<Quoted, RunnerError>;

    /// Posts a task. Returns its number on the chain once that is final.
    ///
    /// # Errors
    /// [`RunnerError::Refused`] where it was not posted; after any other it may have been, and
    /// [`find`](Self::find) tells.
    async fn post(&self, posting: &Posting) -> Result<u64, RunnerError>;

    /// The number of a task that may have been posted; nothing once it is certain that it never will be.
    ///
    /// # Errors
    /// [`RunnerError::Later`] while it is not certain, [`RunnerError::Lost`] where it never will be.
    async fn find(&self, posting: &Posting) -> Result<Option<u64>, RunnerError>;

    /// Serves the input of a posted task, and waits until the task is settled and its output here. Dropped,
    /// it may be called again.
    ///
    /// # Errors
    /// [`RunnerError`].
    async fn ended(&self, posting: &Posting, task: u64) -> Result<Ended, RunnerError>;

    /// Withdraws a task that nobody works for yet. [`ended`](Self::ended) says what has come of it.
    ///
    /// # Errors
    /// [`RunnerError::Refused`] where somebody does.
    async fn cancel(&self, task: u64) -> Result<(), RunnerError>;
}
