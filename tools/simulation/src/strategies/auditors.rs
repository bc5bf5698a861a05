//! Auditors that do not audit, and who keeps them from it.

use surety_audit_economics::audit_seal;

use crate::{
    books::Role,
    life::{Cronies, Life},
    rules::REWARD,
};

/// Seals a result that it has not computed. When the provider has revealed, it would like to have sealed
/// that.
pub fn guesses(life: &mut Life) {
    let (provider, verifier) = (Role::Provider.account(), Role::Crony.account());
    let salt = life.dice.hash();
    let guess = audit_seal(life.task, &provider, &verifier, &life.claim(false), &salt);
    let wanted = audit_seal(life.task, &provider, &verifier, &life.claim(true), &salt);
    // What does not open cannot confirm: it stands by its guess, and loses the dispute that follows.
    let plays = if guess == wanted {
        Cronies::Confirm
    } else {
        Cronies::Accuse
    };
    life.right_result(Role::Provider, plays);
}

/// Does not say that it was drawn. Nobody knows; nobody pays it.
pub fn hides(life: &mut Life) {
    life.right_result(Role::Provider, Cronies::Hide);
}

/// Announces, and never reveals: the whole bond each.
pub fn no_show(life: &mut Life) {
    let drawn = life.right_result(Role::Provider, Cronies::Hide).cronies;
    let bond = REWARD * life.rules.audit_rewards;
    life.slash(Role::Crony, bond * u128::from(drawn), Role::Pool, true);
}

/// Says of a right result that it is wrong.
pub fn accuses(life: &mut Life) {
    life.right_result(Role::Provider, Cronies::Accuse);
}

/// What it costs to keep one auditor off the network until the challenge window ends.
const DENIAL: u128 = 2 * REWARD;
/// How often that works.
const DENIED: f64 = 0.9;

/// A wrong result, and whoever announces an audit is attacked. While somebody does not reveal, others are
/// drawn.
pub fn denial(life: &mut Life) {
    let sealed = life.commit(Role::Provider, life.claim(false));
    life.books.pay(Role::World, Role::Provider, life.market.outside);
    life.opens(Role::Provider, &sealed.commitment, &sealed.claim, &sealed.salt);
    let mut drawn = life.draw();
    let mut left = life.rules.tranches;
    let convicted = loop {
        let standing = (0..drawn.honest).filter(|_| !attacked(life)).count();
        if standing > 0 {
            break life.found(u32::try_from(standing).unwrap_or(1));
        }
        if drawn.honest == 0 || left == 0 {
            break false;
        }
        left -= 1;
        if let Some(level) = life.rules.tranche_level {
            life.expected = life.rules.policy.rates.expected(level, life.market.clean_tasks);
        }
        drawn = life.draw();
    };
    life.judged(convicted, drawn, Cronies::Work, Role::Verifier);
}

fn attacked(life: &mut Life) -> bool {
    life.books.pay(Role::Provider, Role::World, DENIAL);
    let down = life.dice.chance(DENIED);
    if down {
        life.tally.honest_fines += 1;
        life.books.pay(Role::Verifier, Role::Burned, REWARD);
    }
    down
}
