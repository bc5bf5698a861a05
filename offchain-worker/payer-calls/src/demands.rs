//! The duty of whoever holds receipts: each of them is in a batch, or demanded.
//!
//! What a batch has of a channel is known to its provider. A payer sees it on the chain only when it is
//! counted, which happens in the order of requests. So where a receipt is not counted for as long as the
//! payer waits, or its channel soon ends, the newest such one of a channel is demanded: batches of a channel
//! are paid in the order of its requests, and who shows one with that receipt is paid for it only if those
//! before it are in batches, too. What is shown says as much as what was signed; a batch that says something
//! else is for whoever draws it.

use std::collections::BTreeMap;

use surety_chain_client::{Call, ChainError, ChannelRules, ChannelView, When};
use surety_channels::{ChannelId, Nonce, SignedChunkStatement, Time, view::Wanted};

use crate::{
    AccountId,
    channel::Message,
    evidence::stands_by,
    market::{Market, Shared},
};

/// Blocks in which a demand is in a final block, also after another of the same provider has ended.
const PLACED_WITHIN: Time = 30;

/// Until when receipts of a channel may wait for a batch. The chain takes demands only while it has the
/// channel: there is time for one more after that of the same provider which is open.
pub(crate) fn demanded_by(channel: &ChannelView, rules: &ChannelRules) -> Time {
    let last = channel.purse.last(channel.expiry);
    last.saturating_sub(rules.supply_window)
        .saturating_sub(PLACED_WITHIN)
}

/// What this payer demands now, by the provider's stash: one thing of each, as the chain has it.
#[derive(Default)]
pub(crate) struct Demands(BTreeMap<AccountId, (ChannelId, Nonce)>);

impl Demands {
    /// A final block has a demand.
    pub fn placed(&mut self, held: &SignedChunkStatement<AccountId>) {
        let statement = &held.statement;
        let what = (statement.channel, statement.nonce);
        self.0.insert(statement.payee.clone(), what);
    }

    /// What is to be done about receipts, by this block.
    pub async fn look(
        &mut self,
        shared: &Shared,
        when: When,
        market: &Market,
    ) -> Result<Vec<Call>, ChainError> {
        let due = due(market);
        let mut providers: Vec<AccountId> = self.0.keys().cloned().collect();
        providers.extend(
            due.keys()
                .filter(|provider| !self.0.contains_key(provider))
                .cloned(),
        );
        let mut calls = Vec::new();
        for provider in providers {
            let has_room = self.0.len().saturating_add(calls.len()) < shared.config.spending.demands_max;
            let due = due.get(&provider).filter(|_| has_room);
            let call = self.of(shared, when, market, (&provider, due)).await?;
            calls.extend(call);
        }
        Ok(calls)
    }

    async fn of(
        &mut self,
        shared: &Shared,
        when: When,
        market: &Market,
        (provider, due): (&AccountId, Option<&SignedChunkStatement<AccountId>>),
    ) -> Result<Option<Call>, ChainError> {
        let (chain, account) = (&shared.config.channels, shared.config.signer.account());
        let demands = chain.demands(when, provider).await?;
        let own = demands.into_iter().find(|demand| demand.demander == *account);
        if let Some(own) = own {
            if let Wanted::Receipt { channel, nonce, .. } = own.wanted {
                self.0.insert(provider.clone(), (channel, nonce));
            }
            let is_late = own.until < market.now;
            return Ok(is_late.then(|| Call::EndDemand {
                provider: provider.clone(),
                demander: account.clone(),
            }));
        }
        if let Some((channel, nonce)) = self.0.get(provider).copied() {
            // It is over: shown, unless its provider was convicted.
            let is_shown = stands_by(&shared.config, when, (provider, channel)).await?;
            self.0.remove(provider);
            if let Some(handle) = market.channels.get(&channel).filter(|_| is_shown) {
                handle.tell(Message::Shown(nonce)).await;
            }
            return Ok(None);
        }
        let Some(held) = due else { return Ok(None) };
        // Of one that was convicted the chain takes no demand, but its fee.
        let stands = stands_by(&shared.config, when, (provider, held.statement.channel)).await?;
        Ok(stands.then(|| Call::DemandReceipt {
            held: Box::new(held.clone()),
        }))
    }
}

/// What is late, one of each provider: of the channel that ends first.
fn due(market: &Market) -> BTreeMap<AccountId, SignedChunkStatement<AccountId>> {
    let mut late = Vec::new();
    for handle in market.channels.values() {
        let status = handle.status();
        if let Some(held) = &status.due {
            late.push((status.purse.last(status.terms.expiry), held.clone()));
        }
    }
    late.sort_by_key(|(last, _)| *last);
    let mut due = BTreeMap::new();
    for (_, held) in late {
        due.entry(held.statement.payee.clone()).or_insert(held);
    }
    due
}
