//! The same without shares: who has what, and a loop over everybody for each reward and each slash.
//!
//! Amounts are exact, but for what is below a thousand-millionth of a planck.

use std::collections::BTreeMap;

use sp_core::U256;

use crate::{SESSIONS_TO_LEAVE, mock::*};

/// Parts of a planck that the model counts in.
pub(super) const UNIT: u128 = 1_000_000_000;

/// Millionths.
const MILLION: u128 = 1_000_000;

/// `value * numerator / denominator`.
fn scaled(value: u128, numerator: u128, denominator: u128) -> u128 {
    let exact = U256::from(value) * U256::from(numerator) / U256::from(denominator);
    exact.as_u128()
}

#[derive(Default)]
pub(super) struct Holding {
    pub(super) stake: u128,
    pub(super) owed: u128,
}

#[derive(Default)]
pub(super) struct Pool {
    /// Millionths of each reward.
    pub(super) commission: u128,
    /// Commission that its operator has not claimed.
    pub(super) earned: u128,
    pub(super) holdings: BTreeMap<AccountId, Holding>,
}

pub(super) struct Chunk {
    pub(super) amount: u128,
    pub(super) available_at: u64,
}

/// Slashes of an operator that wait.
pub(super) struct Waiting {
    /// Day of each offence.
    pub(super) offences: Vec<u32>,
    /// The first of all that have waited since none did.
    pub(super) since: u32,
    /// Who leaves leaves as of this day.
    pub(super) until: u32,
}

#[derive(Default)]
pub(super) struct Model {
    pub(super) free: BTreeMap<AccountId, u128>,
    pub(super) pools: BTreeMap<AccountId, Pool>,
    /// By owner, operator and day.
    pub(super) chunks: BTreeMap<(AccountId, AccountId, u32), Chunk>,
    pub(super) waiting: BTreeMap<AccountId, Waiting>,
    pub(super) burned: u128,
}

impl Model {
    fn pay(&mut self, who: AccountId, amount: u128) {
        *self.free.entry(who).or_default() += amount;
    }

    /// Pays what somebody has earned, an operator with its commission.
    pub(super) fn claim(&mut self, who: AccountId, operator: AccountId) {
        let Some(pool) = self.pools.get_mut(&operator) else {
            return;
        };
        let mut due = pool
            .holdings
            .get_mut(&who)
            .map_or(0, |holding| std::mem::take(&mut holding.owed));
        if who == operator {
            due += std::mem::take(&mut pool.earned);
        }
        self.pay(who, due);
    }

    /// Puts so many plancks behind an operator.
    fn join(&mut self, who: AccountId, operator: AccountId, amount: Balance) {
        // An operator that comes back after it had left keeps its commission until it claims.
        if self
            .pools
            .get(&operator)
            .is_some_and(|pool| pool.holdings.contains_key(&who))
        {
            self.claim(who, operator);
        }
        let pool = self.pools.entry(operator).or_default();
        pool.holdings.entry(who).or_default().stake += amount * UNIT;
    }

    pub(super) fn delegate(&mut self, who: AccountId, operator: AccountId, amount: Balance) {
        self.take_free(who, amount);
        self.join(who, operator, amount);
    }

    fn take_free(&mut self, who: AccountId, amount: Balance) {
        let free = self.free.get_mut(&who).unwrap();
        // It may have a few plancks less than the pallet has paid by now.
        *free = free.saturating_sub(amount * UNIT);
    }

    /// Whether an operator has stake of its own in its pool.
    pub(super) fn is_led(&self, operator: AccountId) -> bool {
        self.pools
            .get(&operator)
            .is_some_and(|pool| pool.holdings.contains_key(&operator))
    }

    pub(super) fn leaving_day(&self, operator: AccountId) -> u32 {
        self.waiting.get(&operator).map_or_else(
            || (Session::get() + SESSIONS_TO_LEAVE) / DAY,
            |waiting| waiting.until,
        )
    }

    /// Takes so many plancks out, or all.
    pub(super) fn leave(&mut self, who: AccountId, operator: AccountId, amount: Option<Balance>) {
        self.claim(who, operator);
        let day = self.leaving_day(operator);
        let pool = self.pools.get_mut(&operator).unwrap();
        let holding = pool.holdings.get_mut(&who).unwrap();
        let taken = amount.map_or(holding.stake, |amount| holding.stake.min(amount * UNIT));
        holding.stake -= taken;
        if amount.is_none() {
            self.drop_holding(who, operator);
        }
        let available_at = System::block_number() + PERIOD;
        let chunk = self.chunks.entry((who, operator, day)).or_insert(Chunk {
            amount: 0,
            available_at,
        });
        chunk.amount += taken;
        chunk.available_at = chunk.available_at.max(available_at);
    }

    /// Somebody has nothing behind an operator any more, and the last who had closes the pool.
    pub(super) fn drop_holding(&mut self, who: AccountId, operator: AccountId) {
        self.claim(who, operator);
        let pool = self.pools.get_mut(&operator).unwrap();
        self.burned += pool.holdings.remove(&who).map_or(0, |holding| holding.stake);
        if pool.holdings.is_empty() {
            self.claim(operator, operator);
            self.pools.remove(&operator);
        }
    }

    pub(super) fn redelegate(
        &mut self,
        who: AccountId,
        from: AccountId,
        day: u32,
        to: AccountId,
        amount: Balance,
    ) {
        let chunk = self.chunks.get_mut(&(who, from, day)).unwrap();
        chunk.amount = chunk.amount.saturating_sub(amount * UNIT);
        self.join(who, to, amount);
    }

    pub(super) fn is_kept(&self, owner: AccountId, operator: AccountId, day: u32) -> bool {
        let waiting = self.waiting.get(&operator);
        waiting.is_some_and(|waiting| waiting.since <= day || self.is_last_own(owner, operator, day))
    }

    /// The day of what an operator took out last, where nothing of its own works any more.
    fn left_on(&self, operator: AccountId) -> Option<u32> {
        if self.is_led(operator) {
            return None;
        }
        let chunks = self.chunks.keys();
        let own = chunks.filter(|(owner, of, _)| *owner == operator && *of == operator);
        own.map(|(_, _, day)| *day).max()
    }

    fn is_last_own(&self, owner: AccountId, operator: AccountId, day: u32) -> bool {
        owner == operator && self.left_on(operator) == Some(day)
    }

    /// Whether a chunk cannot go to another operator yet.
    pub(super) fn answers(&self, owner: AccountId, operator: AccountId, day: u32) -> bool {
        let is_due = self.chunks[&(owner, operator, day)].available_at <= System::block_number();
        today() < day + 2 || (self.is_last_own(owner, operator, day) && !is_due)
    }

    /// Releases what is due. Says whether anything was.
    pub(super) fn withdraw(&mut self, who: AccountId) -> bool {
        let due: Vec<_> = self
            .chunks
            .iter()
            .filter(|((owner, operator, day), chunk)| {
                *owner == who
                    && chunk.available_at <= System::block_number()
                    && !self.is_kept(who, *operator, *day)
            })
            .map(|(key, _)| *key)
            .collect();
        for key in &due {
            let amount = self.chunks.remove(key).unwrap().amount;
            self.pay(who, amount);
        }
        !due.is_empty()
    }

    pub(super) fn reward(&mut self, operator: AccountId, amount: Balance) {
        let pool = self.pools.get_mut(&operator).unwrap();
        let commission = scaled(amount * UNIT, pool.commission, MILLION);
        pool.earned += commission;
        let all: u128 = pool.holdings.values().map(|holding| holding.stake).sum();
        for holding in pool.holdings.values_mut() {
            holding.owed += scaled(amount * UNIT - commission, holding.stake, all);
        }
    }

    /// Convicts an operator of what it did on a day. Says whether an earlier slash has waited for so long
    /// that its days are not all in reach of one that ends now.
    pub(super) fn convict(&mut self, operator: AccountId, since: u32) -> bool {
        let last = (Session::get() + 2) / DAY;
        let waiting = self.waiting.entry(operator).or_insert(Waiting {
            offences: Vec::new(),
            since,
            until: last,
        });
        waiting.offences.push(since);
        waiting.since = waiting.since.min(since);
        let reached = waiting.since + 3;
        waiting.until = waiting.until.max(last.min(reached));
        last > reached
    }

    /// Takes one of the offences that wait out. Returns its day.
    pub(super) fn decide(&mut self, operator: AccountId, at: usize) -> u32 {
        let waiting = self.waiting.get_mut(&operator).unwrap();
        let since = waiting.offences.remove(at % waiting.offences.len());
        if waiting.offences.is_empty() {
            self.waiting.remove(&operator);
        }
        since
    }

    /// Everybody who was behind an operator on a day or later loses so many thousandths, however long ago
    /// that is. Who left after `until`, while a slash waited, left as of that day. An operator that had
    /// nothing of its own there any more loses of what it took out last.
    pub(super) fn slash(&mut self, operator: AccountId, thousandths: u128, since: u32, until: u32) {
        let last = self.left_on(operator);
        let holdings = self.pools.get_mut(&operator).into_iter();
        let stakes = holdings.flat_map(|pool| pool.holdings.values_mut().map(|holding| &mut holding.stake));
        let chunks = self.chunks.iter_mut().filter(|((owner, of, day), _)| {
            let is_last_own = *owner == operator && last == Some(*day);
            *of == operator && (*day >= since.min(until) || is_last_own)
        });
        for amount in stakes.chain(chunks.map(|(_, chunk)| &mut chunk.amount)) {
            let lost = scaled(*amount, thousandths, 1_000);
            *amount -= lost;
            self.burned += lost;
        }
    }
}
