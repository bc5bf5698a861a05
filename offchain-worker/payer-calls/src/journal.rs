//! The journal of vouchers and receipts, read and written where nobody waits for a disk.

use std::sync::Arc;

use surety_channel_calls::{PayerEffect, Row, Step};
use surety_journal::{CallStore, JournalError};

use crate::StartError;

pub(crate) async fn read(
    store: &Arc<CallStore>,
    read: impl FnOnce(&CallStore) -> Result<Vec<Row>, JournalError> + Send + 'static,
) -> Result<Vec<Row>, StartError> {
    let store = store.clone();
    let rows = tokio::task::spawn_blocking(move || read(&store)).await;
    let rows = rows.map_err(|error| StartError::Journal(error.to_string()))?;
    rows.map_err(|error| StartError::Journal(error.to_string()))
}

/// Makes rows durable, of a step that does nothing else.
pub(crate) async fn write(store: &Arc<CallStore>, step: Step<PayerEffect>) -> Result<(), StartError> {
    let store = store.clone();
    let written = tokio::task::spawn_blocking(move || step.commit(&*store)).await;
    let written = written.map_err(|error| StartError::Journal(error.to_string()))?;
    written
        .map(drop)
        .map_err(|failed| StartError::Journal(failed.error.to_string()))
}
