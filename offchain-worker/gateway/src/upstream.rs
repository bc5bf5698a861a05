//! Whoever computes: providers over payment channels, or a fake.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use surety_types::input::Settings;
use utoipa::ToSchema;

use crate::proof::{NoProof, Proof};

/// A model that is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offered {
    /// What requests call it.
    pub name: String,
    /// Whether it makes text; embeddings otherwise.
    pub generates: bool,
    /// Most that a unit may cost, in plancks: a token of a prompt or an answer, or an item to embed.
    pub unit_price_max: u128,
}

/// What is to be continued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenerationAsk {
    /// The call that it is for, by [`crate::OpenCall::journal_id`]: what is signed for it is kept under that.
    pub call: u64,
    /// The model's name.
    pub model: String,
    /// Ids of the prompt.
    pub prompt: Vec<u32>,
    /// How it is continued. The model's own stop ids always end it.
    pub settings: Settings,
    /// Most that it may cost.
    pub price_max: u128,
}

/// Items to embed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbeddingAsk<'a> {
    /// The call that they are for, by [`crate::OpenCall::journal_id`]: what is signed for it is kept under
    /// that.
    pub call: u64,
    /// The model's name.
    pub model: &'a str,
    /// Ids of each.
    pub items: &'a [Vec<u32>],
    /// Most that all of them may cost.
    pub price_max: u128,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// By a stop id of the model.
    Stop,
    /// It has as many tokens as were asked for.
    Length,
    /// It was cancelled.
    Cancelled,
    /// Its provider broke it off.
    Cut,
}

/// What a provider has signed, as far as users need it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Receipt {
    /// The provider's account.
    pub provider: String,
    /// The channel that it is paid over.
    pub channel: u64,
    /// The request's number in it.
    pub nonce: u32,
    /// Content hash of the output, hexadecimal.
    pub output_hash: String,
    /// Root of the trace, hexadecimal.
    pub trace_root: String,
    /// Units that are paid for.
    pub units: u32,
    /// What they cost, in plancks, as a decimal number.
    #[serde(with = "crate::ledger::amount")]
    #[schema(value_type = String)]
    pub price: u128,
    /// Why it ended.
    pub finish: Finish,
    /// All that was signed, with the signature, as SCALE: `SignedChunkStatement` of `surety-channels`,
    /// hexadecimal. Of calls of earlier versions it is not kept.
    #[serde(with = "crate::proof::scale", default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<String>)]
    pub signed: Vec<u8>,
}

/// What has become of a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// In no batch on the chain yet.
    Unbatched,
    /// In a batch that can still be disputed.
    Challengeable,
    /// It stands.
    Final,
    /// Its channel has ended, and its provider has never shown it in a batch that is final.
    Unproven,
    /// It was shown to be wrong.
    Wrong,
}

impl Verdict {
    /// As it stands in answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unbatched => "unbatched",
            Self::Challengeable => "challengeable",
            Self::Final => "final",
            Self::Unproven => "unproven",
            Self::Wrong => "wrong",
        }
    }

    /// Of several receipts for one answer: it is no better than the worst.
    pub(crate) fn worst(all: impl IntoIterator<Item = Self>) -> Option<Self> {
        all.into_iter().max_by_key(|verdict| match verdict {
            Self::Final => 0,
            Self::Challengeable => 1,
            Self::Unbatched => 2,
            Self::Unproven => 3,
            Self::Wrong => 4,
        })
    }
}

/// The next of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// More ids.
    Tokens(Vec<u32>),
    /// There are no more.
    Done(Receipt),
}

/// Vectors of the first items, as many as one request may have.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedded {
    /// One for each of them, in their order.
    pub vectors: Vec<Vec<f32>>,
    /// What was signed for them: several, where others have confirmed them.
    pub receipts: Vec<Receipt>,
    /// What others may have been paid who have signed no receipt for it by now, in plancks.
    pub spent: u128,
}

/// What was signed for a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignedFor {
    /// What providers have signed of it: of an answer that broke off what they had said last.
    pub receipts: Vec<Receipt>,
    /// What it has cost, or may have, in plancks, whatever of it has a receipt.
    pub spent: u128,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// Nobody offers it now.
    #[error("no provider offers this model now: try again later, or another model")]
    NoProvider,
    /// All places are taken.
    #[error("all providers of this model are busy: try again in a moment")]
    Busy,
    /// One failed. Another is asked.
    #[error("the provider {provider} failed: {why}")]
    Failed {
        /// Its account.
        provider: String,
        /// What happened.
        why: String,
        /// What it is owed, or may have been signed, without a receipt, in plancks.
        spent: u128,
        /// What was signed all the same.
        receipts: Vec<Receipt>,
    },
    /// No channel has the money for it, and there is no more for one.
    #[error("the gateway's channels have too little money for this: its operator has to raise their budget")]
    Exhausted,
    /// Providers have been asked as much as they stand behind: that takes an hour or more to settle. Nobody
    /// is paid.
    #[error(
        "the providers of this model were asked for as much as their locks cover: try again when it is settled, \
         or another model"
    )]
    Uncovered,
}

/// An answer while it is made. Only a bounded number of tokens is made ahead of [`next`](Self::next);
/// dropping it cancels it.
#[async_trait]
pub trait Generating: Send {
    /// What comes next. Cancel-safe.
    ///
    /// # Errors
    /// [`UpstreamError`]; nothing comes after it.
    async fn next(&mut self) -> Result<Step, UpstreamError>;

    /// Ends it; what was served is paid for.
    ///
    /// # Errors
    /// [`UpstreamError`].
    async fn cancel(self: Box<Self>) -> Result<Receipt, UpstreamError>;

    /// What others are paid for it. It may grow until the answer has ended, or was cancelled.
    fn beside(&self) -> Beside {
        Beside::default()
    }
}

/// What others were paid for an answer than whoever has given it: those of a race that it has won.
#[derive(Clone, Debug, Default)]
pub struct Beside(Arc<Mutex<(Vec<Receipt>, u128)>>);

impl Beside {
    /// Adds what somebody has signed.
    pub fn add(&self, receipt: Receipt) {
        self.both().0.push(receipt);
    }

    /// Adds what may have been paid without a receipt, in plancks.
    pub fn spend(&self, plancks: u128) {
        let mut both = self.both();
        both.1 = both.1.saturating_add(plancks);
    }

    /// What was signed, and what may have been paid without a receipt, in plancks. Nothing is left here.
    pub fn take(&self) -> (Vec<Receipt>, u128) {
        std::mem::take(&mut *self.both())
    }

    fn both(&self) -> MutexGuard<'_, (Vec<Receipt>, u128)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Providers.
#[async_trait]
pub trait Upstream: Send + Sync {
    /// What is offered now.
    fn models(&self) -> Vec<Offered>;

    /// Most that a unit of a model may cost now, in plancks, of a request for so many that none of the
    /// providers in `avoid` answers. Nothing where nobody offers it.
    fn unit_price_max(&self, model: &str, generates: bool, units: u32, avoid: &[String]) -> Option<u128>;

    /// Begins an answer, by none of the providers in `avoid`.
    ///
    /// # Errors
    /// [`UpstreamError`].
    async fn generate(
        &self,
        ask: &GenerationAsk,
        avoid: &[String],
    ) -> Result<Box<dyn Generating>, UpstreamError>;

    /// Embeds the first of some items, as many as one request may have, by none of the providers in `avoid`.
    /// Each of them costs its part of what all may cost at most.
    ///
    /// # Errors
    /// [`UpstreamError`].
    async fn embed(&self, ask: &EmbeddingAsk<'_>, avoid: &[String]) -> Result<Embedded, UpstreamError>;

    /// What has become of a receipt.
    async fn verdict(&self, receipt: &Receipt) -> Verdict;

    /// What shows that a receipt is in a batch on the chain.
    ///
    /// # Errors
    /// [`NoProof`].
    async fn proof(&self, receipt: &Receipt) -> Result<Proof, NoProof>;
}

/// Nobody: who waits for an answer is told that no provider offers it now.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProviders;

#[async_trait]
impl Upstream for NoProviders {
    fn models(&self) -> Vec<Offered> {
        Vec::new()
    }

    fn unit_price_max(&self, _: &str, _: bool, _: u32, _: &[String]) -> Option<u128> {
        None
    }

    async fn generate(&self, _: &GenerationAsk, _: &[String]) -> Result<Box<dyn Generating>, UpstreamError> {
        Err(UpstreamError::NoProvider)
    }

    async fn embed(&self, _: &EmbeddingAsk<'_>, _: &[String]) -> Result<Embedded, UpstreamError> {
        Err(UpstreamError::NoProvider)
    }

    async fn verdict(&self, _: &Receipt) -> Verdict {
        Verdict::Unbatched
    }

    async fn proof(&self, _: &Receipt) -> Result<Proof, NoProof> {
        Err(NoProof::NotKept)
    }
}
