//! What shows that a provider has lied, from the journal: whoever found it may have been killed before the
//! chain had it.

use codec::DecodeAll;
use surety_chain_client::{ChainError, When};
use surety_channel_calls::{Table, payer::Evidence};
use surety_channels::{ChannelId, ChannelTerms, Equivocation};
use surety_journal::CallStore;

use crate::{AccountId, StartError, config::Config, journal};

/// The first channel over which a provider can still be punished for what it has said: it was not convicted
/// since. Nothing where it has no lock.
pub(crate) async fn stands_since(
    config: &Config,
    when: When,
    provider: &AccountId,
) -> Result<Option<ChannelId>, ChainError> {
    let standing = config.channels.standing(when, provider).await?;
    let standing = standing.filter(|standing| standing.lock > 0);
    Ok(standing.map(|standing| standing.since_channel))
}

/// What shows that a provider has said two things over a channel, unless it was convicted since.
pub(crate) async fn unreported(
    config: &Config,
    terms: &ChannelTerms<AccountId>,
) -> Result<Option<Box<Equivocation<AccountId>>>, StartError> {
    let channel = terms.channel;
    let since = stands_since(config, When::Finalized, &terms.payee).await?;
    if since.is_none_or(|since| channel < since) {
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
