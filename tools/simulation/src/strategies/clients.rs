//! Clients that cheat.

use super::providers;
use crate::{
    books::Role,
    life::{Cronies, Life},
    rules::REWARD,
};

/// Its input cannot be had: nobody can commit, and it has its money back but for its lock.
pub fn withholds_input(life: &mut Life) {
    life.transact(Role::Client);
    life.draw();
    let lost = life.rules.client_lock.mul_ceil(REWARD);
    life.books.pay(Role::Client, Role::Provider, lost);
    life.tally.honest_tasks = 1;
}

/// Says that it has not got what it got, and demands four pieces of it on chain. The provider supplies them.
pub fn denies_delivery(life: &mut Life) {
    life.right_result(Role::Provider, Cronies::Work);
    for _ in 0..4 {
        life.transact(Role::Client);
        life.books
            .pay(Role::Client, Role::Provider, life.rules.demand_price);
        life.transact(Role::Provider);
    }
}

/// Tasks a wash takes before it cheats: as long as a newcomer is watched more closely.
const WASHES: u64 = 200;

/// Posts tasks to itself until it is no newcomer any more, then cheats a stranger once. It does the work:
/// audits come to its own tasks, too. Rewards for tasks there are none.
pub fn wash(life: &mut Life) {
    let clean = u32::try_from(life.task % (WASHES + 1)).unwrap_or(0);
    life.expected = life.rules.policy.rates.expected(life.plan.level, clean);
    if u64::from(clean) == WASHES {
        // The stranger's money is not the cheat's.
        let convicted = life.wrong_result(Cronies::Work, Role::Verifier);
        return providers::sold_on(life, convicted);
    }
    life.right_result(Role::Provider, Cronies::Work);
    // Its own answer is worth nothing to it.
    life.books.pay(Role::Client, Role::World, life.market.worth);
}

/// Posts ten tasks that nobody is to do, and cancels them: twenty transactions.
pub fn spams(life: &mut Life) {
    for _ in 0..20 {
        life.transact(Role::Client);
    }
}
