//! What was signed for a gateway's calls, by the journal.

use std::collections::BTreeMap;

use surety_channel_calls::{Table, payer};
use surety_gateway::SignedFor;
use surety_journal::{CallStore, JournalError};

use crate::{StartError, run::receipt};

/// What was signed for each call that something is kept of, by its id. That is all that was where nothing is
/// asked meanwhile: before [`crate::Providers`] start. What a final batch has is not kept.
///
/// # Errors
/// [`StartError::Journal`].
pub fn signed_for(store: &CallStore) -> Result<BTreeMap<u64, SignedFor>, StartError> {
    let unreadable = |error: JournalError| StartError::Journal(error.to_string());
    let mut rows = store.read(Table::Held, &[]).map_err(unreadable)?;
    rows.extend(store.read(Table::Asked, &[]).map_err(unreadable)?);
    let mut calls = BTreeMap::<u64, SignedFor>::new();
    for (call, signed) in payer::signed_for(&rows)? {
        let of = calls.entry(call).or_default();
        for one in signed {
            of.spent = of.spent.saturating_add(one.paid);
            let said = one.statement.as_ref();
            of.receipts
                .extend(said.map(|said| receipt(said, said.statement.price.min(one.paid))));
        }
    }
    Ok(calls)
}
