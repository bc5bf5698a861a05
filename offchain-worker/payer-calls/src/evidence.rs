//! What shows that a provider has lied, from the journal: whoever found it may have been killed before the
//! chain had it.

use codec::DecodeAll;
use surety_chain_client::When;
use surety_channel_calls::{Table, payer::Evidence};
use surety_channels::{ChannelTerms, Equivocation};

use crate::{AccountId, StartError, config::Config};

/// What shows that a provider has said two things over a channel, unless it was convicted since.
pub(crate) async fn unreported(
    config: &Config,
    terms: &ChannelTerms<AccountId>,
) -> Result<Option<Box<Equivocation<AccountId>>>, StartError> {
    let channel = terms.channel;
    let standing = config.channels.standing(When::Finalized, &terms.payee).await?;
    if !standing.is_some_and(|standing| standing.lock > 0 && standing.since_channel <= channel) {
        return Ok(None);
    }
    let store = config.store.clone();
    let read = tokio::task::spawn_blocking(move || store.read(Table::Evidence, &channel.to_be_bytes())).await;
    let rows = read.map_err(|error| StartError::Journal(error.to_string()))?;
    let rows = rows.map_err(|error| StartError::Journal(error.to_string()))?;
    let mut kept = rows.iter().filter_map(|row| row.value.as_deref());
    Ok(kept.find_map(|value| match Evidence::decode_all(&mut &*value) {
        Ok(Evidence::Equivocation(shown)) => Some(shown),
        _ => None,
    }))
}
