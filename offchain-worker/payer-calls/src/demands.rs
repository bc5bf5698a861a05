//! The duty of whoever holds receipts: each of them is shown to be in a batch, or demanded.
//!
//! What a batch has of a channel is known to its provider. A payer sees on the chain that there is one, and
//! how many requests final batches were counted with, and not what they say of them. So a provider is asked
//! for each receipt, over a connection: as soon as a batch may have it, as soon as its number is counted, and
//! where it is not counted for as long as the payer waits, or their channel soon ends. What it shows there
//! under a root that the chain has costs nobody anything.
//!
//! Of whoever has not shown something in time, for whatever reason, several receipts are demanded on the
//! chain. They are drawn by price, of all that it has not shown and not of what it was asked for: whoever
//! puts something else into a batch than it has signed cannot choose. What was counted has to be in a batch
//! from before that, so it is withheld if anything else is there; and it is paid only after a while, in which
//! it is demanded, and not while it is. What was not counted may still be batched, and is met by points then.

mod batches;
mod show;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use surety_chain_client::{Call, ChainError, ChannelRules, ChannelView, When};
use surety_channels::{ChannelId, Nonce, SignedChunkStatement, Time, view::Wanted};
use tokio::{task::JoinSet, time::Instant};

use crate::{
    AccountId,
    channel::{Drawn, Message},
    evidence::stands_since,
    market::{Market, Shared},
};

use show::{Left, show_all};

/// Blocks in which a demand is in a final block, also after a provider was asked for everything.
const PLACED_WITHIN: Time = 60;

/// Blocks in which it is seen that something was counted, and a demand is in a block.
const SEEN_WITHIN: Time = 10;

/// Providers that are asked at once.
const ASKED_MAX: usize = 16;

/// Who has shown nothing of what it was asked for is not asked again so soon, and who has shown something.
const AGAIN: Duration = Duration::from_secs(60);
const AGAIN_SOON: Duration = Duration::from_secs(5);

/// Receipts of a provider that are demanded at once, of what was counted and of the rest, where none of these
/// is; and of what was counted where some are. It may draw those out until the end of their time, in which it
/// is no more than the 32 that the chain takes.
const DEMANDED: usize = 8;
const OTHERS: usize = 4;
const MORE: usize = 2;

/// So many times in the time in which something is shown more is demanded of a provider, and so many times as
/// often of one that has shown all that was, on the chain alone.
const DRAWN_IN_WINDOW: Time = 10;
const PAUSE_PARTS: Time = 6;

/// Channels that end within so much time of each other are as pressing, in blocks: an hour.
const AS_PRESSING: Time = 1_800;

/// Blocks after which it is looked again which batches there are.
const BATCHES_EVERY: u32 = 10;

/// Until when receipts of a channel may wait for a batch. The chain takes demands only while it has the
/// channel, and the batches that may have them: there is time for one more after those of the same provider
/// which are open. Whoever has given its payer's money back, so that no other sees what it has signed, is
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

/// What was counted is asked for so long before it is demanded: half of the time after which it is paid, less
/// what it takes to see both in final blocks.
pub(crate) const fn counted_wait(rules: &ChannelRules) -> Time {
    let half = surety_channels::paid_after(rules.supply_window) / 2;
    half.saturating_sub(SEEN_WITHIN)
}

/// A receipt.
type Which = (ChannelId, Nonce);

type Held = SignedChunkStatement<AccountId>;

/// What a provider is to show.
#[derive(Default)]
struct Due {
    /// What it has no more time for, as it was drawn.
    late: Vec<Drawn>,
    /// What it was counted for, or a batch may have, and it has not shown yet.
    uncompared: Vec<Drawn>,
    /// All that it has not shown, as it was drawn.
    unshown: Vec<Drawn>,
    /// When the first of those channels ends.
    last: Time,
    /// What it has signed that is not settled, in plancks.
    at_stake: u128,
}

/// What is demanded of a provider.
#[derive(Default)]
struct Placed {
    /// As the chain has it, and whether it was counted when it was demanded.
    open: BTreeMap<Which, bool>,
    /// What was drawn and is in no block yet.
    drawn: Vec<Drawn>,
    /// When that was, on the chain's clock.
    drawn_at: Option<Time>,
}

impl Placed {
    /// Whether something is demanded that was not counted.
    fn has_others(&self) -> bool {
        let mut drawn = self.drawn.iter();
        self.open.values().any(|is_counted| !is_counted) || drawn.any(|drawn| drawn.counted.is_none())
    }
}

/// What this payer demands now.
#[derive(Default)]
pub(crate) struct Demands {
    /// By the provider's stash.
    placed: BTreeMap<AccountId, Placed>,
    /// Providers that are asked for receipts, and what they have left.
    asking: JoinSet<(AccountId, Left)>,
    /// Those of them.
    asked: BTreeSet<AccountId>,
    /// Providers that have not shown all in time when they were asked: something is demanded of each.
    stalls: BTreeSet<AccountId>,
    /// Providers that have not shown something are not asked again before that, whether it was late or not.
    again: BTreeMap<AccountId, (Instant, bool)>,
    /// What the chain takes no demand of any more.
    refused: BTreeSet<Which>,
    /// The block by which it was looked which batches there are.
    batches_at: u32,
}

impl Demands {
    /// A final block has a demand.
    pub fn placed(&mut self, held: &Held) {
        let placed = self.placed.entry(held.statement.payee.clone()).or_default();
        // Whether it was counted by then the next block says.
        placed.open.insert(which_of(held), false);
        placed.drawn.retain(|drawn| drawn.held != *held);
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
        // Before anything is waited for: what all channels say is of one block.
        let due = due(market);
        if block >= self.batches_at.saturating_add(BATCHES_EVERY) {
            if let Err(error) = batches::look(shared, when, market).await {
                tracing::warn!(%error, "cannot see which batches are final");
            }
            self.batches_at = block;
        }
        // What is shown meanwhile is late no more.
        let late = due.iter().filter(|(_, due)| !due.late.is_empty());
        let late: BTreeSet<AccountId> = late.map(|(provider, _)| provider.clone()).collect();
        self.stalls.retain(|provider| late.contains(provider));
        let channels = &market.channels;
        self.refused.retain(|(channel, _)| channels.contains_key(channel));
        // Nothing more is demanded of what was said before a conviction.
        let owing: BTreeSet<&AccountId> = due.iter().map(|(provider, _)| provider).collect();
        for (provider, placed) in &mut self.placed {
            if !owing.contains(provider) {
                placed.drawn.clear();
            }
        }
        let mut calls = Vec::new();
        // An earlier run may have placed some.
        let demanded = channels
            .values()
            .filter(|handle| handle.status().purse.demands > 0);
        let demanded = demanded.map(|handle| handle.payee.clone());
        let known = self.placed.keys().cloned().chain(late).chain(demanded);
        let known: BTreeSet<AccountId> = known.collect();
        for provider in &known {
            calls.extend(self.follow(shared, when, market, provider).await?);
        }
        for (provider, due) in due {
            self.draw(&provider, &due, market, shared.config.spending.demands_max);
            let left = self.left_to_place(&provider, market);
            if !left.is_empty() {
                // Of one that was convicted the chain takes no demand, but its fee.
                let since = stands_since(&shared.config, when, &provider).await?;
                let is_owed = |held: &Held| since.is_some_and(|since| since <= held.statement.channel);
                let owed = left.into_iter().filter(is_owed).map(Box::new);
                calls.extend(owed.map(|held| Call::DemandReceipt { held }));
            }
            self.ask(shared, market, provider, due);
        }
        Ok(calls)
    }

    /// Providers that were asked have answered.
    fn hear(&mut self) {
        let now = Instant::now();
        self.again.retain(|_, (until, _)| *until > now);
        while let Some(asked) = self.asking.try_join_next() {
            match asked {
                Ok((provider, left)) => {
                    self.asked.remove(&provider);
                    // What it has shown may be settled.
                    self.batches_at = 0;
                    if left.is_some {
                        let pause = if left.has_shown { AGAIN_SOON } else { AGAIN };
                        let until = now.checked_add(pause).unwrap_or(now);
                        self.again.insert(provider.clone(), (until, left.is_late));
                    }
                    match left.is_late {
                        true => self.stalls.insert(provider),
                        false => self.stalls.remove(&provider),
                    };
                }
                Err(error) => tracing::error!(%error, "a provider cannot be asked for a receipt"),
            }
        }
        if self.asking.is_empty() {
            self.asked.clear();
        }
    }

    /// What becomes of demands.
    async fn follow(
        &mut self,
        shared: &Shared,
        when: When,
        market: &Market,
        provider: &AccountId,
    ) -> Result<Option<Call>, ChainError> {
        let (chain, account) = (&shared.config.channels, shared.config.signer.account());
        let demands = chain.demands(when, provider).await?;
        let own = demands.into_iter().filter(|demand| demand.demander == *account);
        let since = stands_since(&shared.config, when, provider).await?;
        let stands_by = |channel: ChannelId| since.is_some_and(|since| since <= channel);
        let mut is_over = false;
        let mut open = BTreeMap::new();
        for demand in own {
            is_over |= demand.until < market.now;
            if let Wanted::Receipt {
                channel,
                nonce,
                counted,
                ..
            } = demand.wanted
            {
                // Nothing is owed of what was said before a conviction.
                is_over |= !stands_by(channel);
                open.insert((channel, nonce), counted.is_some());
            }
        }
        let before = self.placed.get(provider).map(|placed| placed.open.clone());
        let mut ended = before.unwrap_or_default();
        ended.retain(|which, _| !open.contains_key(which));
        for ((channel, nonce), was_counted) in ended {
            // It may show the rest now.
            self.again.remove(provider);
            // Nothing ends a demand but that it is shown, or that its provider is convicted.
            if let Some(handle) = market.channels.get(&channel).filter(|_| stands_by(channel)) {
                handle.tell(Message::Shown(nonce, was_counted)).await;
            }
        }
        match self.placed.get_mut(provider) {
            Some(placed) => placed.open = open,
            None if open.is_empty() => {}
            None => {
                let placed = Placed {
                    open,
                    drawn_at: Some(market.now),
                    ..Placed::default()
                };
                self.placed.insert(provider.clone(), placed);
            }
        }
        let is_done = |placed: &Placed| placed.open.is_empty() && placed.drawn.is_empty();
        let has_waited = |placed: &Placed| {
            let pause = between_draws(&market.rules);
            placed
                .drawn_at
                .is_none_or(|at| at.saturating_add(pause) <= market.now)
        };
        if self
            .placed
            .get(provider)
            .is_some_and(|placed| is_done(placed) && has_waited(placed))
        {
            self.placed.remove(provider);
        }
        Ok(is_over.then(|| Call::EndDemand {
            provider: provider.clone(),
            demander: account.clone(),
        }))
    }

    /// Draws what is demanded of a provider that has not shown something in time: by price, of all that it
    /// has not shown, of what was counted and of the rest. What it was asked for first, and what it has made
    /// late, says nothing of where the lie is. A demand holds the pay of its channel: so one of each comes
    /// first.
    fn draw(&mut self, provider: &AccountId, due: &Due, market: &Market, providers_max: usize) {
        if !self.stalls.contains(provider) {
            return;
        }
        let known = self.placed.get(provider);
        let drawn_at = known.and_then(|placed| placed.drawn_at);
        let since = drawn_at.map(|at| market.now.saturating_sub(at));
        let has_waited = |pause: Time| since.is_none_or(|since| since >= pause);
        let pause = between_draws(&market.rules);
        if !has_waited(pause / PAUSE_PARTS) {
            return;
        }
        let (mut open, mut channels) = ([0usize; 2], BTreeSet::new());
        for (which, is_counted) in known.iter().flat_map(|placed| &placed.open) {
            let [others, counted] = &mut open;
            let kind = if *is_counted { counted } else { others };
            *kind = kind.saturating_add(1);
            channels.insert(which.0);
        }
        let counted_max = match open {
            [_, 0] => DEMANDED,
            _ if has_waited(pause) => MORE,
            _ => 0,
        };
        let elsewhere = self
            .placed
            .iter()
            .filter(|(of, placed)| *of != provider && placed.has_others())
            .count();
        let others_max = match open {
            [0, _] if elsewhere < providers_max => OTHERS,
            _ => 0,
        };
        let is_free = |drawn: &&Drawn| {
            let which = which_of(&drawn.held);
            let is_open = known.is_some_and(|placed| placed.open.contains_key(&which));
            !is_open && !self.refused.contains(&which)
        };
        let mut free: Vec<&Drawn> = due.unshown.iter().filter(is_free).collect();
        free.sort_by(|one, other| one.rank.total_cmp(&other.rank));
        let (counted, others): (Vec<_>, Vec<_>) = free.into_iter().partition(|drawn| drawn.counted.is_some());
        let mut drawn = first(&counted, counted_max, &mut channels);
        drawn.extend(first(&others, others_max, &mut channels));
        if drawn.is_empty() {
            return;
        }
        self.stalls.remove(provider);
        let placed = self.placed.entry(provider.clone()).or_default();
        (placed.drawn, placed.drawn_at) = (drawn, Some(market.now));
    }

    /// What was drawn and is in no block yet, unless it was shown meanwhile.
    fn left_to_place(&mut self, provider: &AccountId, market: &Market) -> Vec<Held> {
        let Some(placed) = self.placed.get_mut(provider) else {
            return Vec::new();
        };
        let (open, refused) = (&placed.open, &self.refused);
        placed.drawn.retain(|drawn| {
            let which = which_of(&drawn.held);
            let (channel, nonce) = which;
            let handle = market.channels.get(&channel);
            let waits = handle.is_some_and(|handle| handle.status().waiting.contains(&nonce));
            waits && !open.contains_key(&which) && !refused.contains(&which)
        });
        placed.drawn.iter().map(|drawn| drawn.held.clone()).collect()
    }

    /// Asks a provider for what it is to show.
    fn ask(&mut self, shared: &Arc<Shared>, market: &Market, provider: AccountId, due: Due) {
        let is_nothing = due.late.is_empty() && due.uncompared.is_empty();
        // What has become late is asked for though something else was not shown: then it is demanded.
        let is_new_late = |was_late: bool| !due.late.is_empty() && !was_late;
        let again = self.again.get(&provider);
        let is_paused = again.is_some_and(|(_, was_late)| !is_new_late(*was_late));
        let is_asked = self.asked.contains(&provider);
        if is_nothing || is_paused || is_asked || self.asked.len() >= ASKED_MAX {
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

/// The first of each channel that is not among these, and then the others, as many as may be.
fn first(drawn: &[&Drawn], most: usize, channels: &mut BTreeSet<ChannelId>) -> Vec<Drawn> {
    let (firsts, others): (Vec<&Drawn>, Vec<&Drawn>) = drawn
        .iter()
        .copied()
        .partition(|drawn| channels.insert(drawn.held.statement.channel));
    let all = firsts.into_iter().chain(others);
    all.take(most).cloned().collect()
}

/// Between two draws of what is demanded of a provider.
fn between_draws(rules: &ChannelRules) -> Time {
    rules
        .supply_window
        .checked_div(DRAWN_IN_WINDOW)
        .unwrap_or_default()
}

const fn which_of(held: &Held) -> Which {
    (held.statement.channel, held.statement.nonce)
}

/// What each provider is to show. Those first whose channels end first, and of those that are as pressing
/// where more is at stake.
fn due(market: &Market) -> Vec<(AccountId, Due)> {
    let mut due = BTreeMap::<AccountId, Due>::new();
    for (channel, handle) in &market.channels {
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
        for drawn in [&mut of.late, &mut of.uncompared] {
            drawn.sort_by(|one, other| one.rank.total_cmp(&other.rank));
        }
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
