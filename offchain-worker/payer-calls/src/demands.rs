//! The duty of whoever holds receipts: each of them is in a batch, or demanded.
//!
//! What a batch has of a channel is known to its provider. A payer sees it on the chain only when it is
//! counted, which happens in the order of requests. So where receipts are not counted for as long as the
//! payer waits, or their channel soon ends, their provider is asked for each of them, over a connection. What
//! it shows there under a root that the chain has costs nobody anything. The first that it does not show is
//! demanded on the chain, and then the next: whoever puts just what is demanded into batches, and nothing
//! else, has more of it met by points each time.
//!
//! What is shown says as much as what was signed; a batch that says something else is for whoever draws it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use surety_chain_client::{Call, ChainError, ChannelRules, ChannelView, When};
use surety_channels::{ChannelId, Nonce, SignedChunkStatement, Time, view::Wanted};
use tokio::task::JoinSet;

use crate::{
    AccountId,
    channel::Message,
    evidence::stands_by,
    market::{Market, Shared, named},
};

/// Blocks in which a demand is in a final block, also after another of the same provider has ended.
const PLACED_WITHIN: Time = 30;

/// Until when receipts of a channel may wait for a batch. The chain takes demands only while it has the
/// channel: there is time for one more after that of the same provider which is open. Whoever has given its
/// payer's money back, so that no other sees what it has signed, is asked at once.
pub(crate) fn demanded_by(channel: &ChannelView, rules: &ChannelRules) -> Time {
    let purse = &channel.purse;
    if purse.closing.is_some() && purse.deposit <= purse.paid {
        return 0;
    }
    let last = channel.purse.last(channel.expiry);
    last.saturating_sub(rules.supply_window)
        .saturating_sub(PLACED_WITHIN)
}

/// A receipt.
type Which = (ChannelId, Nonce);

type Held = SignedChunkStatement<AccountId>;

/// What this payer demands now.
#[derive(Default)]
pub(crate) struct Demands {
    /// By the provider's stash: one thing of each, as the chain has it.
    placed: BTreeMap<AccountId, Which>,
    /// Providers that are asked for receipts, and the first that they have not shown.
    asking: JoinSet<(AccountId, Option<Which>)>,
    /// Those of them.
    asked: BTreeSet<AccountId>,
    /// The receipt that a provider has not shown when it was asked: that one is demanded.
    unshown: BTreeMap<AccountId, Which>,
}

impl Demands {
    /// A final block has a demand.
    pub fn placed(&mut self, held: &Held) {
        let statement = &held.statement;
        let what = (statement.channel, statement.nonce);
        self.placed.insert(statement.payee.clone(), what);
    }

    /// What is to be done about receipts, by this block.
    pub async fn look(
        &mut self,
        shared: &Arc<Shared>,
        when: When,
        market: &Market,
    ) -> Result<Vec<Call>, ChainError> {
        self.hear();
        let due = due(market);
        // What is counted meanwhile, or shown to others, is late no more.
        let is_due = |which: &Which| {
            due.iter()
                .flat_map(|(_, held)| held)
                .any(|held| which_of(held) == *which)
        };
        self.unshown.retain(|_, which| is_due(which));
        let mut calls = Vec::new();
        let placed: Vec<AccountId> = self.placed.keys().cloned().collect();
        for provider in &placed {
            calls.extend(self.follow(shared, when, market, provider).await?);
        }
        let rest = due.into_iter().filter(|(provider, _)| !placed.contains(provider));
        for (provider, held) in rest {
            let open = self.placed.len().saturating_add(calls.len());
            let has_room = open.saturating_add(self.asked.len()) < shared.config.spending.demands_max;
            if self.asked.contains(&provider) || !has_room {
                continue;
            }
            match self.follow(shared, when, market, &provider).await? {
                Some(call) => calls.push(call),
                // A call of an earlier run may have placed one.
                None if self.placed.contains_key(&provider) => {}
                None => calls.extend(self.begin(shared, when, market, (provider, held)).await?),
            }
        }
        Ok(calls)
    }

    /// Providers that were asked have answered.
    fn hear(&mut self) {
        while let Some(asked) = self.asking.try_join_next() {
            match asked {
                Ok((provider, unshown)) => {
                    self.asked.remove(&provider);
                    self.unshown.extend(unshown.map(|which| (provider, which)));
                }
                Err(error) => tracing::error!(%error, "a provider cannot be asked for a receipt"),
            }
        }
        if self.asking.is_empty() {
            self.asked.clear();
        }
    }

    /// What becomes of a demand.
    async fn follow(
        &mut self,
        shared: &Shared,
        when: When,
        market: &Market,
        provider: &AccountId,
    ) -> Result<Option<Call>, ChainError> {
        let (chain, account) = (&shared.config.channels, shared.config.signer.account());
        let demands = chain.demands(when, provider).await?;
        let own = demands.into_iter().find(|demand| demand.demander == *account);
        if let Some(own) = own {
            if let Wanted::Receipt { channel, nonce, .. } = own.wanted {
                self.placed.insert(provider.clone(), (channel, nonce));
            }
            let is_late = own.until < market.now;
            return Ok(is_late.then(|| Call::EndDemand {
                provider: provider.clone(),
                demander: account.clone(),
            }));
        }
        if let Some((channel, nonce)) = self.placed.get(provider).copied() {
            // It is over: shown, unless its provider was convicted.
            let is_shown = stands_by(&shared.config, when, (provider, channel)).await?;
            self.placed.remove(provider);
            self.unshown.remove(provider);
            if let Some(handle) = market.channels.get(&channel).filter(|_| is_shown) {
                handle.tell(Message::Shown(nonce)).await;
            }
        }
        Ok(None)
    }

    /// Demands what a provider has not shown, or asks it for what is late.
    async fn begin(
        &mut self,
        shared: &Arc<Shared>,
        when: When,
        market: &Market,
        (provider, late): (AccountId, Vec<Held>),
    ) -> Result<Option<Call>, ChainError> {
        let Some(channel) = late.first().map(|held| held.statement.channel) else {
            return Ok(None);
        };
        // Of one that was convicted the chain takes no demand, but its fee.
        if !stands_by(&shared.config, when, (&provider, channel)).await? {
            return Ok(None);
        }
        let unshown = self.unshown.get(&provider);
        let demanded = late.iter().find(|held| unshown == Some(&which_of(held)));
        if let Some(held) = demanded {
            let held = Box::new(held.clone());
            return Ok(Some(Call::DemandReceipt { held }));
        }
        let Some(handle) = market.channels.get(&channel).cloned() else {
            return Ok(None);
        };
        self.asked.insert(provider.clone());
        let shared = shared.clone();
        self.asking.spawn(async move {
            for held in &late {
                match shared.look_for(&held.statement).await {
                    Ok(shown) => shown.covers(&handle).await,
                    Err(why) => {
                        let nonce = held.statement.nonce;
                        let name = named(&provider);
                        tracing::info!(provider = name, channel, nonce, %why, "a receipt is demanded");
                        return (provider, Some((channel, nonce)));
                    }
                }
            }
            (provider, None)
        });
        Ok(None)
    }
}

const fn which_of(held: &Held) -> Which {
    (held.statement.channel, held.statement.nonce)
}

/// What is late of each provider: of the channel that ends first, and those first whose channels do.
fn due(market: &Market) -> Vec<(AccountId, Vec<Held>)> {
    let mut late = Vec::new();
    for handle in market.channels.values() {
        let status = handle.status();
        if !status.due.is_empty() {
            let last = status.purse.last(status.terms.expiry);
            late.push((last, handle.payee.clone(), status.due.clone()));
        }
    }
    late.sort_by_key(|(last, ..)| *last);
    let mut due: Vec<(AccountId, Vec<Held>)> = Vec::new();
    for (_, provider, held) in late {
        if due.iter().all(|(of, _)| *of != provider) {
            due.push((provider, held));
        }
    }
    due
}
