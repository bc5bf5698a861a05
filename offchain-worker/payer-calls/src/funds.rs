//! What is done with channels: opened where somebody wants one, topped up before they are exhausted, extended
//! before they expire, closed when nobody uses them, and ended when their time is over.
//!
//! It is a function of what a finalised block says and what this program knows, so that nothing is forgotten
//! over a restart: what was not done is found again.

use std::collections::BTreeSet;

use surety_chain_client::{Call, ChannelRules};
use surety_channels::{ChannelId, Purse, Time};

use crate::{AccountId, config::Spending};

/// A channel of this payer's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Funded {
    /// Whom it pays.
    pub payee: AccountId,
    /// Its money, by a finalised block.
    pub purse: Purse,
    /// Last time at which vouchers are redeemed.
    pub expiry: Time,
    /// What may be asked for over it, in plancks, with what is being answered taken off.
    pub left: u128,
    /// More than that is wanted of it, in plancks.
    pub wanted: u128,
    /// Something was asked over it.
    pub is_used: bool,
    /// Nothing is being asked or answered over it.
    pub is_quiet: bool,
    /// As much is as may be.
    pub is_full: bool,
    /// When it was last not, or when this program has begun to look.
    pub used_at: Time,
    /// It is from before a conviction of its payee: it pays nothing more.
    pub is_void: bool,
    /// Nothing more is asked over it, whatever comes.
    pub is_useless: bool,
}

/// Somebody wants a channel to a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    /// The provider's stash.
    pub payee: AccountId,
    /// What is to be asked over it costs so much, in plancks.
    pub price: u128,
}

/// What all of it is decided by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Funds<'a> {
    /// How much may be at stake.
    pub spending: &'a Spending,
    /// A channel that nobody uses for so long is closed.
    pub idle: Time,
    /// What the chain says.
    pub rules: &'a ChannelRules,
    /// The chain's time.
    pub now: Time,
    /// All channels.
    pub channels: &'a [Funded],
    /// Channels that are wanted.
    pub wants: &'a [Want],
    /// What was signed for over channels that have ended, and what calls that are under way may deposit.
    pub committed: u128,
    /// Providers that calls which are under way open a channel to.
    pub opening: &'a BTreeSet<AccountId>,
}

impl Funds<'_> {
    /// What may be deposited still, in plancks.
    pub fn left(&self) -> u128 {
        let deposits = self.channels.iter().map(|channel| channel.purse.deposit);
        let committed = deposits.fold(self.committed, u128::saturating_add);
        self.spending.budget.saturating_sub(committed)
    }

    /// What is to be done. Whatever is left out for want of money is decided anew at the next block.
    pub fn plan(&self, key: &AccountId) -> Vec<Call> {
        let mut left = self.left();
        let mut calls: Vec<Call> = Vec::new();
        for channel in self.channels {
            if let Some(call) = self.upkeep(channel, &mut left) {
                calls.push(call);
            }
        }
        let is_live = |channel: &&Funded| channel.purse.closing.is_none();
        let mut count = self.channels.iter().filter(is_live).count();
        count = count.saturating_add(self.opening.len());
        for want in self.wants {
            if self.opening.contains(&want.payee) || self.is_met(want) || count >= self.spending.channels_max
            {
                continue;
            }
            let deposit = self.spending.deposit.max(want.price).max(self.rules.min_deposit);
            if deposit > left {
                continue;
            }
            left = left.saturating_sub(deposit);
            count = count.saturating_add(1);
            calls.push(Call::Open {
                payee: want.payee.clone(),
                key: key.clone(),
                deposit,
                expiry: self.now.saturating_add(self.rules.max_life),
            });
        }
        calls
    }

    /// A channel that was opened meanwhile will do.
    fn is_met(&self, want: &Want) -> bool {
        let mut channels = self.channels.iter();
        channels.any(|channel| {
            let is_open = channel.purse.closing.is_none() && !channel.is_useless && !channel.is_full;
            channel.payee == want.payee && is_open && channel.left >= want.price
        })
    }

    fn upkeep(&self, channel: &Funded, left: &mut u128) -> Option<Call> {
        let (purse, id) = (&channel.purse, channel.purse.channel);
        if purse.refund(self.now, channel.expiry).is_some() {
            return Some(Call::End { channel: id });
        }
        if purse.closing.is_some() {
            // What is left of one that pays nothing more comes back when it is closed again.
            let is_due = channel.is_void && purse.deposit > purse.paid;
            return is_due.then_some(Call::Close { channel: id });
        }
        let idle = self.now.saturating_sub(channel.used_at) > self.idle;
        if channel.is_quiet && (channel.is_useless || idle) {
            return Some(Call::Close { channel: id });
        }
        if channel.is_useless {
            return None;
        }
        if channel.is_used && self.is_short_lived(channel.expiry) {
            let expiry = self.now.saturating_add(self.rules.max_life);
            return (expiry > channel.expiry).then_some(Call::Extend { channel: id, expiry });
        }
        let is_short = channel.is_used && channel.left < self.spending.least_left;
        if !is_short && channel.wanted <= channel.left {
            return None;
        }
        let missing = channel.wanted.saturating_sub(channel.left);
        let mut amount = self.spending.deposit.max(missing);
        if amount > *left && is_short {
            // What is wanted is too dear; others are not.
            amount = self.spending.deposit;
        }
        if amount > *left {
            return None;
        }
        *left = left.saturating_sub(amount);
        Some(Call::TopUp { channel: id, amount })
    }

    /// Less is left than its payee may need to be paid, and half of the rest.
    fn is_short_lived(&self, expiry: Time) -> bool {
        let closing = self.rules.closing_period;
        let half = self.rules.max_life.saturating_sub(closing) / 2;
        expiry < self.now.saturating_add(closing).saturating_add(half)
    }
}

/// Until when something can be asked over a channel: after it, what it pays could not become final in time.
pub const fn asked_until(expiry: Time, rules: &ChannelRules) -> Time {
    expiry.saturating_sub(rules.closing_period)
}

/// Most that a call deposits, in plancks.
pub const fn deposited(call: &Call) -> u128 {
    match call {
        Call::Open { deposit, .. } => *deposit,
        Call::TopUp { amount, .. } => *amount,
        _ => 0,
    }
}

/// The channel that a call is about.
pub const fn channel_of(call: &Call) -> Option<ChannelId> {
    match call {
        Call::TopUp { channel, .. }
        | Call::Extend { channel, .. }
        | Call::Close { channel }
        | Call::End { channel } => Some(*channel),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::arithmetic_side_effects)]

    use super::*;
    use proptest::{collection::vec, prelude::*};

    const SPENDING: Spending = Spending {
        budget: 1_000,
        deposit: 100,
        least_left: 30,
        channels_max: 4,
        unit_price_max: u128::MAX,
        slack_percent: 25,
        demands_max: 4,
    };

    const RULES: ChannelRules = ChannelRules {
        min_deposit: 10,
        max_life: 1_000,
        closing_period: 200,
        batch_window: 50,
        announce_window: 20,
        refute_window: 20,
        redeem_by: 500,
        supply_window: 30,
        dispute_window: 50,
        demand_price: 5,
        point_bond: 1,
        point_cost: 1,
    };

    const KEY: AccountId = AccountId::new([9; 32]);

    fn payee(seed: u8) -> AccountId {
        AccountId::new([seed; 32])
    }

    fn channel(id: ChannelId) -> Funded {
        Funded {
            payee: payee(1),
            purse: Purse::new(id, 100, 0),
            expiry: 1_500,
            left: 100,
            wanted: 0,
            is_used: true,
            is_quiet: true,
            is_full: false,
            used_at: 500,
            is_void: false,
            is_useless: false,
        }
    }

    fn want(seed: u8, price: u128) -> Want {
        Want {
            payee: payee(seed),
            price,
        }
    }

    fn plan(channels: &[Funded], wants: &[Want], committed: u128) -> Vec<Call> {
        let opening = BTreeSet::new();
        let funds = Funds {
            spending: &SPENDING,
            idle: 300,
            rules: &RULES,
            now: 600,
            channels,
            wants,
            committed,
            opening: &opening,
        };
        funds.plan(&KEY)
    }

    fn with(change: impl FnOnce(&mut Funded)) -> Funded {
        let mut channel = channel(7);
        change(&mut channel);
        channel
    }

    #[test]
    fn a_channel_is_topped_up_before_it_is_exhausted_and_by_what_somebody_waits_for() {
        assert_eq!(plan(&[channel(7)], &[], 0), []);
        let top_up = |amount| [Call::TopUp { channel: 7, amount }];
        assert_eq!(plan(&[with(|one| one.left = 29)], &[], 0), top_up(100));
        let dear = with(|one| (one.left, one.wanted) = (50, 250));
        assert_eq!(plan(std::slice::from_ref(&dear), &[], 0), top_up(200));
        // Not beyond the budget, and nothing where it is to end.
        assert_eq!(plan(std::slice::from_ref(&dear), &[], 701), []);
        // One request that is too dear keeps no money from others.
        let short = with(|one| (one.left, one.wanted) = (29, 250));
        assert_eq!(plan(&[dear, short], &[], 650), top_up(100));
        let unused = with(|one| (one.left, one.is_used) = (29, false));
        assert_eq!(plan(&[unused], &[], 0), []);
    }

    #[test]
    fn a_channel_is_extended_while_it_is_used_closed_when_it_is_not_and_ended_when_it_is_over() {
        // 600 and 200 for its payee, and half of the 800 that are left of a life.
        let (channel, expiry) = (7, 1_600);
        let short = plan(&[with(|one| one.expiry = 1_199)], &[], 0);
        assert_eq!(short, [Call::Extend { channel, expiry }]);
        assert_eq!(plan(&[with(|one| one.expiry = 1_200)], &[], 0), []);
        let close = [Call::Close { channel }];
        assert_eq!(plan(&[with(|one| one.used_at = 299)], &[], 0), close);
        assert_eq!(plan(&[with(|one| one.is_useless = true)], &[], 0), close);
        let busy = with(|one| (one.is_useless, one.is_quiet) = (true, false));
        assert_eq!(plan(&[busy], &[], 0), []);
        let closing = with(|one| one.purse.close(600));
        assert_eq!(plan(std::slice::from_ref(&closing), &[], 0), []);
        // What is left of one that pays nothing more comes back at once.
        let mut void = Funded {
            is_void: true,
            ..closing
        };
        assert_eq!(plan(std::slice::from_ref(&void), &[], 0), close);
        void.purse.give_back(600, 0);
        assert_eq!(plan(&[void], &[], 0), []);
        let over = with(|one| one.purse.close(599));
        assert_eq!(plan(&[over], &[], 0), [Call::End { channel }]);
        assert_eq!(
            plan(&[with(|one| one.expiry = 599)], &[], 0),
            [Call::End { channel }]
        );
    }

    #[test]
    fn channels_are_opened_where_they_are_wanted_as_many_as_may_be() {
        let wants = [want(2, 0), want(3, 150), want(4, 0)];
        // One that is there will do, unless it is full.
        assert_eq!(plan(&[channel(7)], &[want(1, 100)], 0), []);
        assert_eq!(
            plan(&[with(|one| one.is_full = true)], &[want(1, 100)], 0).len(),
            1
        );
        let calls = plan(&[channel(7)], &wants, 0);
        let deposits: Vec<u128> = calls.iter().map(deposited).collect();
        assert_eq!(deposits, [100, 150, 100]);
        let all = [channel(1), channel(2), channel(3), channel(4)];
        assert_eq!(plan(&all, &wants, 0), []);
        let closing = with(|one| one.purse.close(700));
        assert_eq!(
            plan(&[channel(1), channel(2), channel(3), closing], &wants, 0).len(),
            1
        );
    }

    proptest! {
        #[test]
        fn no_plan_ever_commits_more_than_the_budget(
            deposits in vec((0u128..400, 0u128..400, 0u128..600, any::<bool>()), 0..6),
            prices in vec(0u128..700, 0..6),
            committed in 0u128..1_200,
        ) {
            let channels: Vec<Funded> = deposits.iter().zip(1..).map(|((deposit, left, wanted, is_used), id)| Funded {
                purse: Purse::new(id, *deposit, 0),
                left: *left.min(deposit),
                wanted: *wanted,
                is_used: *is_used,
                ..channel(id)
            }).collect();
            let wants: Vec<Want> = prices.iter().zip(10..).map(|(price, seed)| want(seed, *price)).collect();
            let calls = plan(&channels, &wants, committed);
            let before: u128 = committed + deposits.iter().map(|(deposit, ..)| deposit).sum::<u128>();
            let more: u128 = calls.iter().map(deposited).sum();
            prop_assert!(more == 0 || before + more <= SPENDING.budget);
            // What is deposited pays for what it was wanted for.
            for call in &calls {
                if let Call::Open { deposit, payee, .. } = call {
                    let of = wants.iter().find(|want| want.payee == *payee).unwrap();
                    prop_assert!(*deposit >= of.price && *deposit >= RULES.min_deposit);
                }
            }
        }
    }
}
