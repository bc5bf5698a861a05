//! What a finalised block says, as far as a payer needs it.

use std::collections::BTreeMap;

use surety_chain_client::{BlockRef, ChainError, ChannelView, OfferView, When};
use surety_channels::Time;
use surety_types::multiaddr::Endpoint;

use crate::{
    AccountId, StartError,
    config::Config,
    cover::{self, Cover},
    market::Market,
};

/// Offers of a model that are looked at, the cheapest first.
const OFFERS_MAX: usize = 256;

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
    let offers = chain.offers(when).await?;
    let is_wanted = |offer: &OfferView| {
        let mut sold = config.models.values();
        sold.any(|sold| sold.model == offer.model && sold.operations.contains(&offer.operation))
    };
    let offers =
        looked_at(offers.into_iter().filter(|offer| {
            offer.places > 0 && is_wanted(offer) && offer.provider != *config.signer.account()
        }));
    let endpoints = endpoints(config, when, &offers, known).await?;
    let covers = covers(config, block, &channels, known).await?;
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

/// Where those answer who offer something.
async fn endpoints(
    config: &Config,
    when: When,
    offers: &[OfferView],
    known: Option<&Market>,
) -> Result<BTreeMap<AccountId, Vec<Endpoint>>, ChainError> {
    let mut endpoints = BTreeMap::new();
    for offer in offers {
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
    Ok(endpoints)
}

/// What those stand behind to whom there is a channel, or was wanted.
async fn covers(
    config: &Config,
    block: BlockRef,
    channels: &[ChannelView],
    known: Option<&Market>,
) -> Result<BTreeMap<AccountId, Cover>, ChainError> {
    let mut covers = BTreeMap::new();
    // Also of those that a channel was only wanted to; once it is there it is looked again who came before.
    let is_new = |known: &Market, provider: &AccountId| {
        let had = known.channels.values().any(|handle| handle.payee == *provider);
        !had && channels.iter().any(|channel| channel.payee == *provider)
    };
    if let Some(known) = known {
        let kept = known.covers.iter();
        let kept = kept.filter(|(provider, cover)| !cover.is_old(block.number) && !is_new(known, provider));
        covers.extend(kept.map(|(provider, cover)| (provider.clone(), *cover)));
    }
    for channel in channels {
        let payee = &channel.payee;
        if covers.contains_key(payee) {
            continue;
        }
        let cover = match cover::read(config, block, payee).await {
            Ok(cover) => Some(cover),
            Err(error @ ChainError::Pruned { .. }) => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "cannot see what a provider stands behind");
                known.and_then(|known| known.covers.get(payee)).copied()
            }
        };
        if let Some(cover) = cover {
            covers.insert(payee.clone(), cover);
        }
    }
    Ok(covers)
}

/// So many of each kind, the cheapest first: no number of cheap ones of one kind hides another.
fn looked_at(offers: impl Iterator<Item = OfferView>) -> Vec<OfferView> {
    let mut kinds = BTreeMap::<_, Vec<_>>::new();
    for offer in offers {
        let kind = kinds.entry((offer.model, offer.operation));
        kind.or_default().push(offer);
    }
    for of_kind in kinds.values_mut() {
        of_kind.sort_by_key(|offer| offer.unit_price);
        of_kind.truncate(OFFERS_MAX);
    }
    kinds.into_values().flatten().collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use surety_channels::view::TrackRecord;
    use surety_types::{ModelId, model::Operation};

    use super::*;

    fn offer((operation, unit_price): (Operation, u128)) -> OfferView {
        OfferView {
            provider: [1; 32].into(),
            model: ModelId::repeat_byte(1),
            operation,
            unit_price,
            places: 1,
            busy: 0,
            signers: Vec::new(),
            room: 0,
            region: None,
            record: TrackRecord::default(),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn however_many_offers_of_one_kind_are_cheap_those_of_another_are_seen(
            cheap in 0usize..1_000, mut dear in prop::collection::vec(10u128..1_000, 0..600),
        ) {
            let offers = std::iter::repeat_n((Operation::Embed, 1), cheap);
            let offers = offers.chain(dear.iter().map(|price| (Operation::Generate, *price)));
            let seen = looked_at(offers.map(offer));
            let prices = |operation| {
                let of = seen.iter().filter(move |offer| offer.operation == operation);
                of.map(|offer| offer.unit_price).collect::<Vec<_>>()
            };
            prop_assert_eq!(prices(Operation::Embed).len(), cheap.min(OFFERS_MAX));
            dear.sort_unstable();
            dear.truncate(OFFERS_MAX);
            prop_assert_eq!(prices(Operation::Generate), dear);
        }
    }
}
