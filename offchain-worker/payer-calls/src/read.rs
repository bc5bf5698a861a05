//! What a finalised block says, as far as a payer needs it.

use std::collections::BTreeMap;

use surety_chain_client::{BlockRef, ChainError, ChannelView, OfferView, When};
use surety_channels::Time;

use crate::{StartError, config::Config, cover, market::Market};

/// Offers that are looked at, the cheapest first.
const OFFERS_MAX: usize = 512;

/// What was read of a finalised block.
pub(crate) struct Read {
    pub block: BlockRef,
    pub channels: Vec<ChannelView>,
    pub market: Market,
}

/// Whether the state of a block is gone.
pub(crate) const fn is_gone<T>(read: &Result<T, StartError>) -> bool {
    matches!(read, Err(StartError::Chain(ChainError::Pruned { .. })))
}

/// What a finalised block says. Addresses that are `known` are not asked for again.
pub(crate) async fn read(
    config: &Config,
    block: BlockRef,
    known: Option<&Market>,
) -> Result<Read, StartError> {
    let when = When::At(block.hash);
    let chain = &config.channels;
    let channels = chain.channels_by(when, config.signer.account()).await?;
    let rules = chain.rules(when).await?;
    let now: Time = chain.time(when).await?;
    let mut offers = chain.offers(when).await?;
    let is_wanted = |offer: &OfferView| {
        let mut sold = config.models.values();
        sold.any(|sold| sold.model == offer.model && sold.operations.contains(&offer.operation))
    };
    offers.retain(|offer| is_wanted(offer) && offer.provider != *config.signer.account());
    offers.sort_by_key(|offer| offer.unit_price);
    offers.truncate(OFFERS_MAX);
    let mut endpoints = BTreeMap::new();
    for offer in &offers {
        let provider = &offer.provider;
        if endpoints.contains_key(provider) {
            continue;
        }
        let of = match known.and_then(|known| known.endpoints.get(provider)) {
            Some(of) => of.clone(),
            None => {
                let registered = config.chain.provider(when, provider).await?;
                // One that is not registered cannot be reached.
                registered
                    .map(|registered| registered.endpoints.to_vec())
                    .unwrap_or_default()
            }
        };
        endpoints.insert(provider.clone(), of);
    }
    let mut covers = BTreeMap::new();
    for channel in &channels {
        let payee = &channel.payee;
        if covers.contains_key(payee) {
            continue;
        }
        let known = known.and_then(|known| known.covers.get(payee));
        let cover = match known.filter(|cover| !cover.is_old(block.number)) {
            Some(cover) => *cover,
            None => cover::read(config, block, payee).await?,
        };
        covers.insert(payee.clone(), cover);
    }
    let market = Market {
        now,
        rules,
        offers,
        endpoints,
        covers,
        channels: BTreeMap::new(),
    };
    Ok(Read {
        block,
        channels,
        market,
    })
}
