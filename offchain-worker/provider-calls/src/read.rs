//! What is asked of the journal beside what the payee knows.

use std::sync::Arc;

use surety_channel_calls::{ReadRow, Table, call_key};
use surety_journal::CallStore;
use surety_proofs::SegmentOpening;
use surety_types::input::WORD_BYTES;

use crate::{CallsError, Parts, front::CallId};

/// Reads what the payee has in the journal alone. It blocks for one row. What cannot be read is looked for
/// again: with the next block, or when somebody asks again.
pub(crate) fn rows_for_payee(store: Arc<CallStore>) -> ReadRow {
    Arc::new(move |table: Table, key: &[u8]| match store.read(table, key) {
        Ok(rows) => rows.into_iter().next(),
        Err(error) => {
            tracing::error!(%error, "a receipt cannot be read, and is shown to nobody meanwhile");
            None
        }
    })
}

/// The input of a request; nothing where it was forgotten.
pub(crate) async fn input(parts: &Parts, call: CallId) -> Result<Option<Vec<u8>>, CallsError> {
    let mut rows = rows(parts, Table::Inputs, call).await?;
    Ok((!rows.is_empty()).then(|| rows.swap_remove(0)))
}

/// The output of a generation as far as it was said, as it is if it ends there by its length.
pub(crate) async fn output(parts: &Parts, call: CallId) -> Result<Vec<u8>, CallsError> {
    let chunks = rows(parts, Table::Outputs, call).await?;
    let mut output = vec![0; WORD_BYTES as usize];
    output.extend(chunks.concat());
    Ok(output)
}

/// A segment of it.
pub(crate) async fn segment(parts: &Parts, call: CallId, segment: u32) -> Result<SegmentOpening, CallsError> {
    let output = output(parts, call).await?;
    // All of it is hashed.
    let shown = tokio::task::spawn_blocking(move || SegmentOpening::new(&output, segment)).await;
    let shown = shown.map_err(|error| CallsError::Internal(error.to_string()))?;
    // The chain would not take the call without it.
    shown.ok_or_else(|| CallsError::Journal("an answer that has to be shown is not there".into()))
}

async fn rows(parts: &Parts, table: Table, (channel, nonce): CallId) -> Result<Vec<Vec<u8>>, CallsError> {
    let store = parts.store.clone();
    let read = move || store.read(table, &call_key(channel, nonce));
    let rows = tokio::task::spawn_blocking(read).await;
    let rows = rows.map_err(|error| CallsError::Internal(error.to_string()))?;
    let rows = rows.map_err(|error| CallsError::Journal(error.to_string()))?;
    Ok(rows.into_iter().filter_map(|row| row.value).collect())
}
