//! What the journal has of a receipt that is disputed.

use surety_chain_client::Call;
use surety_channel_calls::{AccountId, claimed_output, claimed_units_max};
use surety_channels::{ChunkStatement, Request};
use surety_engine::{Job, content_hash};
use surety_model_trace::embeddings_header;
use surety_proofs::{PartOpening, parts as parts_of};
use surety_types::{
    TaskId,
    input::WORD_BYTES,
    model::Operation,
    trust::{Content, ContentPart},
};

use crate::{CallsError, Parts, front::CallId, read};

/// A receipt of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Receipt {
    pub(crate) statement: ChunkStatement<AccountId>,
    pub(crate) request: Request,
}

/// A part of 8 KiB that somebody demands in a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Demanded {
    pub(crate) round: TaskId,
    pub(crate) receipt: Receipt,
    pub(crate) part: ContentPart,
}

impl Receipt {
    pub(crate) const fn call(&self) -> CallId {
        (self.statement.channel, self.statement.nonce)
    }

    /// What it took to answer.
    pub(crate) async fn job(&self, parts: &Parts) -> Result<Job, CallsError> {
        Ok(Job {
            operation: self.request.operation,
            input: self.input(parts).await?,
            units_max: claimed_units_max(&self.statement, &self.request),
        })
    }

    async fn input(&self, parts: &Parts) -> Result<Vec<u8>, CallsError> {
        let input = read::input(parts, self.call()).await?.unwrap_or_default();
        match content_hash(&input) == self.request.input {
            true => Ok(input),
            false => Err(self.is_lost("input")),
        }
    }

    /// The output that it claims.
    pub(crate) async fn output(&self, parts: &Parts) -> Result<Vec<u8>, CallsError> {
        let mut output = read::output(parts, self.call()).await?;
        if self.request.operation == Operation::Embed {
            let vectors = output.split_off((WORD_BYTES as usize).min(output.len()));
            output = self.header(vectors.len()).unwrap_or_default();
            output.extend(vectors);
        }
        if content_hash(&output) != self.statement.output {
            return Err(self.is_lost("output"));
        }
        Ok(claimed_output(&self.statement, output))
    }

    /// What stands before vectors of so many bytes.
    fn header(&self, bytes: usize) -> Option<Vec<u8>> {
        let items = self.request.units_max;
        let words = u32::try_from(bytes).ok()?.checked_div(WORD_BYTES)?;
        embeddings_header(items, words.checked_div(items)?)
    }

    fn is_lost(&self, what: &str) -> CallsError {
        let (channel, nonce) = self.call();
        CallsError::Journal(format!(
            "the {what} of request {nonce} of channel {channel} is gone or changed: restore the file from its newest copy"
        ))
    }
}

/// Shows a part: the last one, where there are not as many.
///
/// Nobody can demand leaves: they are for auditors of a task's items.
pub(crate) async fn supply(parts: &Parts, demanded: Demanded) -> Result<Call, CallsError> {
    let Demanded {
        round,
        receipt,
        part: ContentPart { content, part },
    } = demanded;
    let blob = match content {
        Content::Input => receipt.input(parts).await?,
        Content::Output => receipt.output(parts).await?,
        Content::Leaves => return Err(CallsError::Internal("leaves of a receipt are demanded".into())),
    };
    // All of it is hashed.
    let opened = tokio::task::spawn_blocking(move || {
        let bytes = u32::try_from(blob.len()).ok()?;
        let last = parts_of(bytes).saturating_sub(1);
        Some((bytes, PartOpening::new(&blob, part.min(last))?))
    });
    let opened = opened
        .await
        .map_err(|error| CallsError::Internal(error.to_string()))?;
    let (bytes, opening) = opened.ok_or_else(|| CallsError::Internal("there is nothing to show".into()))?;
    Ok(Call::Supply {
        task: round,
        content,
        bytes,
        opening,
    })
}
