//! Whom a channel is opened to: to one that is wanted, whose lock covers what it is wanted for, and while
//! there is room for those that have answered.

use std::{
    collections::BTreeMap,
    sync::{Arc, MutexGuard, PoisonError},
};

use surety_chain_client::When;

use crate::{
    AccountId, cover,
    funds::Want,
    market::{Market, Shared},
};

/// Channels that are wanted: whoever wants more waits for these first.
const WANTS_MAX: usize = 64;

impl Shared {
    /// What may be deposited still, in plancks.
    pub fn may_deposit(&self, left: u128) {
        let before = std::mem::replace(
            &mut *self.free.lock().unwrap_or_else(PoisonError::into_inner),
            left,
        );
        if before < left {
            self.changed.send_modify(|times| *times = times.wrapping_add(1));
        }
    }

    pub fn free(&self) -> u128 {
        *self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a channel would have for a request that costs so much, in plancks.
    pub fn deposit(&self, price: u128) -> u128 {
        self.config.spending.deposit.max(price)
    }

    /// Whether a channel may be opened to somebody only because it is unknown: half of the channels, and of
    /// the budget, is left to those that are best.
    pub fn may_try(&self, market: &Market) -> bool {
        let spending = &self.config.spending;
        let left = self.free().saturating_sub(spending.deposit);
        market.channels.len() < spending.channels_max / 2 && left >= spending.budget / 2
    }

    /// Whether a channel to a provider can be opened for a request that costs so much. Once something was
    /// answered over one, no more than half of the budget is in those over which nothing was: whoever is
    /// cheap and dead leaves the other half.
    pub fn may_open(&self, market: &Market, provider: &AccountId, price: u128) -> bool {
        let (mut live, mut locked, mut has_answered, mut is_any) = (0usize, 0u128, false, false);
        for handle in market.channels.values() {
            let status = handle.status();
            live = live.saturating_add(usize::from(status.purse.closing.is_none()));
            if status.settled == 0 {
                locked = locked.saturating_add(status.purse.deposit);
                continue;
            }
            is_any = true;
            has_answered |= handle.payee == *provider;
        }
        let (deposit, spending) = (self.deposit(price), &self.config.spending);
        if live >= spending.channels_max || self.free() < deposit {
            return false;
        }
        let record = self.known.of(provider).record;
        if record.is_hopeless(has_answered, self.known.now_ms()) {
            return false;
        }
        let is_half = !is_any || locked.saturating_add(deposit) <= spending.budget / 2;
        has_answered || record.latency_ms().is_some() || is_half
    }

    /// Somebody waits for a channel to a provider. False where there is no room for it: then one whose
    /// provider is hopeless makes some.
    pub fn want(&self, payee: &AccountId, price: u128) -> bool {
        let market = self.market();
        if !self.may_open(&market, payee, price) {
            self.make_room(&market, payee);
            return false;
        }
        let mut wants = self.wants();
        let has_room = wants.len() < WANTS_MAX;
        match wants.iter_mut().find(|want| want.payee == *payee) {
            Some(want) => want.price = want.price.max(price),
            None if has_room => wants.push(Want {
                payee: payee.clone(),
                price,
            }),
            None => return false,
        }
        drop(wants);
        self.wanted.notify_one();
        true
    }

    /// Gives up one channel of those whose providers are hopeless, for somebody that is not.
    fn make_room(&self, market: &Market, payee: &AccountId) {
        let now = self.known.now_ms();
        let record = |provider: &AccountId| self.known.of(provider).record;
        let handles = market.channels.values();
        let live: Vec<_> = handles
            .filter(|handle| handle.status().purse.closing.is_none())
            .collect();
        // One that makes room already has done so at the next block.
        let makes_room = live.iter().any(|handle| handle.status().is_useless());
        if makes_room || record(payee).is_hopeless(false, now) {
            return;
        }
        let dead = live.into_iter().find(|handle| {
            let (is_quiet, has_answered) = {
                let status = handle.status();
                (status.is_quiet(), status.settled > 0)
            };
            is_quiet && record(&handle.payee).is_hopeless(has_answered, now)
        });
        if let Some(dead) = dead {
            dead.give_up("its provider does not answer, and another needs the place".into());
            self.wanted.notify_one();
        }
    }

    pub fn wants(&self) -> MutexGuard<'_, Vec<Want>> {
        self.wants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Channels that are wanted to those whose locks cover what they are wanted for, by what was read.
    pub fn covered_wants(&self) -> Vec<Want> {
        let market = self.market();
        let mut wants = self.wants().clone();
        wants.retain(|want| self.check_cover(&market, &want.payee, want.price).is_ok());
        wants
    }

    /// Looks what those stand behind that channels are wanted to, where that is not known: nobody is paid a
    /// deposit that could be asked for nothing.
    pub async fn look_at_wanted(&self) {
        let market = self.market();
        let mut wanted: Vec<AccountId> = self.wants().iter().map(|want| want.payee.clone()).collect();
        wanted.retain(|payee| !market.covers.contains_key(payee));
        if wanted.is_empty() {
            return;
        }
        let block = match self.config.chain.block(When::Finalized).await {
            Ok(block) => block,
            Err(error) => return tracing::warn!(%error, "cannot see what is final"),
        };
        let mut covers = BTreeMap::new();
        for payee in wanted {
            match cover::read(&self.config, block, &payee).await {
                Ok(cover) => drop(covers.insert(payee, cover)),
                // It is looked again at the next block.
                Err(error) => tracing::warn!(%error, "cannot see what a provider stands behind"),
            }
        }
        if !covers.is_empty() {
            let mut market = Market::clone(&market);
            market.covers.extend(covers);
            self.replace(Arc::new(market));
        }
    }
}
