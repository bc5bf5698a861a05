//! The duty of whoever holds receipts: each of them is shown to be in a batch, or demanded.
//!
//! What a batch has of a channel is known to its provider. A payer sees on the chain how many requests final
//! batches were counted with, and not what they say of them. So a provider is asked for each receipt, over a
//! connection: as soon as its number is counted, and where it is not counted for as long as the payer waits,
//! or their channel soon ends. What it shows there under a root that the chain has costs nobody anything.
//!
//! Whoever has not shown something in time, for whatever reason, is demanded something on the chain, one
//! receipt at a time. It is drawn by price, of all that it has not shown and not of what it was asked for:
//! whoever puts something else into a batch than it has signed cannot choose. What was counted has to be in
//! a batch from before that, so it is withheld if anything else is there; what was not may still be batched,
//! and is met by points then.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use surety_chain_client::{Call, ChainError, ChannelRules, ChannelView, When};
use surety_channels::{BatchNumber, ChannelId, Nonce, SignedChunkStatement, Time, view::Wanted};
use tokio::{task::JoinSet, time::Instant};

use crate::{
    AccountId,
    channel::{Drawn, Handle, Message},
    evidence::stands_by,
    market::{Market, Shared, named},
    proof::Roots,
};

/// Blocks in which a demand is in a final block, also after another of the same provider has ended, or it was
/// asked for everything.
const PLACED_WITHIN: Time = 60;

/// For so long a provider is asked for one receipt after the other: half of that.
const ASKED_FOR: Duration = Duration::from_secs(60);

/// Providers that are asked at once.
const ASKED_MAX: usize = 16;

/// Who has not shown something is not asked again so soon.
const AGAIN: Duration = Duration::from_secs(60);

/// Channels that end within so much time of each other are as pressing, in blocks: an hour.
const AS_PRESSING: Time = 1_800;

/// Blocks after which it is looked again which batches are final.
const FINAL_EVERY: u32 = 10;

/// Until when receipts of a channel may wait for a batch. The chain takes demands only while it has the
/// channel, and the batches that may have them: there is time for one more after that of the same provider
/// which is open. Whoever has given its payer's money back, so that no other sees what it has signed, is
/// asked at once.
pub(crate) fn demanded_by(channel: &ChannelView, rules: &ChannelRules) -> Time {
    let purse = &channel.purse;
    if purse.closing.is_some() && purse.deposit <= purse.paid {
        return 0;
    }
    let last = channel.purse.last(channel.expiry).min(channel.demanded_until);
    last.saturating_sub(rules.supply_window)
        .saturating_sub(PLACED_WITHIN)
}

/// A receipt.
type Which = (ChannelId, Nonce);

type Held = SignedChunkStatement<AccountId>;

/// What a provider is to show.
#[derive(Default)]
struct Due {
    /// What it has no more time for, as it was drawn.
    late: Vec<Drawn>,
    /// What it was counted for, and has not shown yet.
    uncompared: Vec<Held>,
    /// All that it has not shown, as it was drawn.
    unshown: Vec<Drawn>,
    /// When the first of those channels ends.
    last: Time,
    /// What it has signed that is not settled, in plancks.
    at_stake: u128,
}

/// What this payer demands now.
#[derive(Default)]
pub(crate) struct Demands {
    /// By the provider's stash: one thing of each, as the chain has it.
    placed: BTreeMap<AccountId, Which>,
    /// Providers that are asked for receipts, and what they have left.
    asking: JoinSet<(AccountId, Left)>,
    /// Those of them.
    asked: BTreeSet<AccountId>,
    /// Providers that have not shown all in time when they were asked: something is demanded of each.
    stalls: BTreeSet<AccountId>,
    /// Providers that have not shown something are not asked again before that.
    again: BTreeMap<AccountId, Instant>,
    /// What the chain takes no demand of any more.
    refused: BTreeSet<Which>,
    /// The block by which it was looked which batches are final.
    finals_at: u32,
}

impl Demands {
    /// A final block has a demand.
    pub fn placed(&mut self, held: &Held) {
        let statement = &held.statement;
        let what = (statement.channel, statement.nonce);
        self.placed.insert(statement.payee.clone(), what);
    }

    /// The chain takes no demand of that: it was counted too long ago, say.
    pub fn refused(&mut self, held: &Held) {
        self.refused.insert(which_of(held));
    }

    /// What is to be done about receipts, by this block.
    pub async fn look(
        &mut self,
        shared: &Arc<Shared>,
        (when, block): (When, u32),
        market: &Market,
    ) -> Result<Vec<Call>, ChainError> {
        self.hear();
        if block >= self.finals_at.saturating_add(FINAL_EVERY) {
            if let Err(error) = tell_finals(shared, when, market).await {
                tracing::warn!(%error, "cannot see which batches are final");
            }
            self.finals_at = block;
        }
        let due = due(market);
        // What is shown meanwhile is late no more.
        let late = due.iter().filter(|(_, due)| !due.late.is_empty());
        let late: BTreeSet<&AccountId> = late.map(|(provider, _)| provider).collect();
        self.stalls.retain(|provider| late.contains(provider));
        let channels = &market.channels;
        self.refused.retain(|(channel, _)| channels.contains_key(channel));
        let mut calls = Vec::new();
        let placed: Vec<AccountId> = self.placed.keys().cloned().collect();
        for provider in &placed {
            calls.extend(self.follow(shared, when, market, provider).await?);
        }
        let rest = due.into_iter().filter(|(provider, _)| !placed.contains(provider));
        for (provider, due) in rest {
            if self.asked.contains(&provider) {
                continue;
            }
            if !due.late.is_empty() {
                let call = self.follow(shared, when, market, &provider).await?;
                let is_placed = self.placed.contains_key(&provider);
                calls.extend(call);
                // A call of an earlier run may have placed one.
                if is_placed {
                    continue;
                }
            }
            let open = self.placed.len().saturating_add(calls.len());
            match self.not_shown(&provider, &due) {
                Some(held) if open < shared.config.spending.demands_max => {
                    let of = (&provider, held.statement.channel);
                    // Of one that was convicted the chain takes no demand, but its fee.
                    if stands_by(&shared.config, when, of).await? {
                        let held = Box::new(held.clone());
                        calls.push(Call::DemandReceipt { held });
                    }
                }
                Some(_) => {}
                None => self.ask(shared, market, provider, due),
            }
        }
        Ok(calls)
    }

    /// Providers that were asked have answered.
    fn hear(&mut self) {
        let now = Instant::now();
        self.again.retain(|_, until| *until > now);
        while let Some(asked) = self.asking.try_join_next() {
            match asked {
                Ok((provider, left)) => {
                    self.asked.remove(&provider);
                    // What it has shown may be settled.
                    self.finals_at = 0;
                    if left != Left::Nothing {
                        self.again
                            .extend(now.checked_add(AGAIN).map(|at| (provider.clone(), at)));
                    }
                    if left == Left::Late {
                        self.stalls.insert(provider);
                    }
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
            // It is over. Nothing ends a demand but that it is shown, or that its provider is convicted.
            let is_shown = stands_by(&shared.config, when, (provider, channel)).await?;
            self.placed.remove(provider);
            self.stalls.remove(provider);
            self.again.remove(provider);
            if let Some(handle) = market.channels.get(&channel).filter(|_| is_shown) {
                handle.tell(Message::Shown(nonce)).await;
            }
        }
        Ok(None)
    }

    /// One of all that a provider has not shown which has not shown something in time, drawn by price. What
    /// it was asked for first, and what it has made late, says nothing of where the lie is.
    fn not_shown<'a>(&self, provider: &AccountId, due: &'a Due) -> Option<&'a Held> {
        let unshown = due.unshown.iter().filter(|_| self.stalls.contains(provider));
        let unshown = unshown.filter(|drawn| !self.refused.contains(&which_of(&drawn.held)));
        let first = unshown.min_by(|one, other| one.rank.total_cmp(&other.rank));
        first.map(|drawn| &drawn.held)
    }

    /// Asks a provider for what it is to show.
    fn ask(&mut self, shared: &Arc<Shared>, market: &Market, provider: AccountId, due: Due) {
        let is_nothing = due.late.is_empty() && due.uncompared.is_empty();
        // What has become late is asked for though something else was not shown: then it is demanded.
        let is_again = due.late.is_empty() || self.stalls.contains(&provider);
        let is_paused = is_again && self.again.contains_key(&provider);
        if is_nothing || is_paused || self.asked.len() >= ASKED_MAX {
            return;
        }
        self.asked.insert(provider.clone());
        let (shared, channels) = (shared.clone(), market.channels.clone());
        self.asking.spawn(async move {
            let left = show_all(&shared, &channels, &due).await;
            (provider, left)
        });
    }
}

/// What a provider has left of what it was to show.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Nothing,
    /// There is still time for that.
    Something,
    Late,
}

/// Asks a provider for all that it is to show, in turn. What was not reached in time is left, too.
async fn show_all(shared: &Shared, channels: &BTreeMap<ChannelId, Arc<Handle>>, due: &Due) -> Left {
    let (begun, mut left, mut roots) = (Instant::now(), Left::Nothing, Roots::new());
    let late = due.late.iter().map(|drawn| (&drawn.held, Left::Late));
    let others = due.uncompared.iter().map(|held| (held, Left::Something));
    for (held, kind) in late.chain(others) {
        if begun.elapsed() > ASKED_FOR {
            return if left == Left::Late { left } else { kind };
        }
        let (channel, nonce) = which_of(held);
        match shared.look_for(&held.statement, &mut roots).await {
            Ok(shown) => {
                if let Some(handle) = channels.get(&channel) {
                    shown.covers(handle).await;
                }
            }
            Err(why) => {
                let provider = named(&held.statement.payee);
                tracing::info!(provider, channel, nonce, %why, "a receipt is not shown");
                if left != Left::Late {
                    left = kind;
                }
            }
        }
    }
    left
}

/// Tells channels whose receipts were shown in batches which of those are final: nothing can be said against
/// them any more, and they take nothing of what their provider's lock covers, whenever it counts them.
async fn tell_finals(shared: &Shared, when: When, market: &Market) -> Result<(), ChainError> {
    let mut read = BTreeMap::<AccountId, Arc<BTreeSet<BatchNumber>>>::new();
    for handle in market.channels.values() {
        let covered = handle.status().covered.clone();
        if covered.is_empty() {
            continue;
        }
        if !read.contains_key(&handle.payee) {
            let batches = shared.config.channels.batches(when, &handle.payee).await?;
            let are_final = batches
                .into_iter()
                .filter(|batch| batch.window.is_final(market.now));
            let are_final = are_final.map(|batch| batch.batch).collect();
            read.insert(handle.payee.clone(), Arc::new(are_final));
        }
        let are_final = read
            .get(&handle.payee)
            .filter(|finals| !finals.is_disjoint(&covered));
        if let Some(finals) = are_final {
            handle.tell(Message::Final(finals.clone())).await;
        }
    }
    Ok(())
}

const fn which_of(held: &Held) -> Which {
    (held.statement.channel, held.statement.nonce)
}

/// What each provider is to show. Those first whose channels end first, and of those that are as pressing
/// where more is at stake.
fn due(market: &Market) -> Vec<(AccountId, Due)> {
    let mut channels: Vec<_> = market.channels.iter().collect();
    channels.sort_by_key(|(_, handle)| {
        let status = handle.status();
        status.purse.last(status.terms.expiry)
    });
    let mut due = BTreeMap::<AccountId, Due>::new();
    for (channel, handle) in channels {
        let since = market.covers.get(&handle.payee).map(|cover| cover.since);
        let status = handle.status();
        let is_owed = since.is_none_or(|since| since <= *channel);
        if !is_owed || (status.unshown.is_empty() && status.uncompared.is_empty()) {
            continue;
        }
        let of = due.entry(handle.payee.clone()).or_insert_with(|| Due {
            last: Time::MAX,
            ..Due::default()
        });
        if !status.due.is_empty() {
            of.last = of.last.min(status.purse.last(status.terms.expiry));
        }
        of.late.extend(status.due.iter().cloned());
        of.uncompared.extend(status.uncompared.iter().cloned());
        of.unshown.extend(status.unshown.iter().cloned());
        of.at_stake = of.at_stake.saturating_add(status.uncounted);
    }
    for of in due.values_mut() {
        of.late.sort_by(|one, other| one.rank.total_cmp(&other.rank));
    }
    let mut due: Vec<_> = due.into_iter().collect();
    sort(&mut due);
    due
}

fn sort(due: &mut [(AccountId, Due)]) {
    due.sort_by_key(|(_, due)| {
        let pressing = due.last.checked_div(AS_PRESSING);
        (pressing, Reverse(due.at_stake), due.last)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_is_as_pressing_that_is_demanded_first_of_which_more_is_at_stake() {
        let due = |name, last, at_stake| {
            let due = Due {
                last,
                at_stake,
                ..Due::default()
            };
            (AccountId::new([name; 32]), due)
        };
        let mut all = [
            due(1, 2 * AS_PRESSING, 9),
            due(2, AS_PRESSING - 2, 1),
            due(3, AS_PRESSING - 1, 3),
            due(4, AS_PRESSING - 2, 3),
        ];
        sort(&mut all);
        let order = all.map(|(provider, _)| AsRef::<[u8; 32]>::as_ref(&provider)[0]);
        assert_eq!(order, [4, 3, 2, 1]);
    }
}
