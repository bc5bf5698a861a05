//! What shows that a provider has lied, from the journal: whoever found it may have been killed before the
//! chain had it.

use codec::DecodeAll;
use surety_chain_client::{ChainError, When};
use surety_channel_calls::{Table, payer::Evidence};
use surety_channels::{ChannelId, ChannelTerms, Equivocation};
use surety_journal::CallStore;

use crate::{AccountId, StartError, config::Config, journal};

/// Whether a provider can still be punished for what it has said over a channel: it has a lock, and was not
/// convicted since.
pub(crate) async fn stands_by(
    config: &Config,
    when: When,
    (provider, channel): (&AccountId, ChannelId),
) -> Result<bool, ChainError> {
    let standing = config.channels.standing(when, provider).await?;
    Ok(standing.is_some_and(|standing| standing.lock > 0 && standing.since_channel <= channel))
}

/// What shows that a provider has said two things over a channel, unless it was convicted since.
pub(crate) async fn unreported(
    config: &Config,
    terms: &ChannelTerms<AccountId>,
) -> Result<Option<Box<Equivocation<AccountId>>>, StartError> {
    let channel = terms.channel;
    if !stands_by(config, When::Finalized, (&terms.payee, channel)).await? {
        return Ok(None);
    }
    let of = move |store: &CallStore| store.read(Table::Evidence, &channel.to_be_bytes());
    let rows = journal::read(&config.store, of).await?;
    let mut kept = rows.iter().filter_map(|row| row.value.as_deref());
    Ok(kept.find_map(|value| match Evidence::decode_all(&mut &*value) {
        Ok(Evidence::Equivocation(shown)) => Some(shown),
        _ => None,
    }))
}
