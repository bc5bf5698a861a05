//! The journal of vouchers and receipts, read where nobody waits for a disk.

use std::sync::Arc;

use surety_channel_calls::Row;
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
