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

/// Audits, announces, and never opens what it has sealed: somebody would rather not see it.
pub fn aborts(life: &mut Life) {
    let drawn = life.right_result(Role::Provider, Cronies::Hide).cronies;
    life.audit(Role::Crony, drawn);
    let bond = REWARD * life.rules.audit_rewards;
    life.slash(Role::Crony, bond * u128::from(drawn), Role::Pool, true);
}

/// Says of a right result that it is wrong.
pub fn accuses(life: &mut Life) {
    life.right_result(Role::Provider, Cronies::Accuse);
}

/// How often it works to keep an auditor off the network.
const SILENCED: f64 = 0.9;

/// A wrong result, and whoever announces an audit is kept off the network for as long as openings are taken:
/// an opening costs nothing and anybody may carry it, so that a shorter time, or only one way to the chain,
/// is of no use.
pub fn denial(life: &mut Life) {
    let sealed = life.commit(Role::Provider, life.claim(false));
    life.books.pay(Role::World, Role::Provider, life.market.outside);
    life.opens(Role::Provider, &sealed.commitment, &sealed.claim, &sealed.salt);
    let drawn = life.draw();
    let standing = (0..drawn.honest).filter(|_| !silenced(life)).count();
    let convicted = life.found(u32::try_from(standing).unwrap_or(u32::MAX));
    life.judged(convicted, drawn, Cronies::Work, Role::Verifier);
}

/// Its bond is lost then, though it has done nothing wrong.
fn silenced(life: &mut Life) -> bool {
    life.books.pay(Role::Provider, Role::World, life.market.silence);
    let is_silenced = life.dice.chance(SILENCED);
    if is_silenced {
        life.tally.honest_fines += 1;
        let shares = life.rules.split.shares(REWARD * life.rules.audit_rewards);
        life.books.pay(Role::Verifier, Role::Burned, shares.burned);
        life.books
            .pay(Role::Verifier, Role::Pool, shares.finder + shares.client);
    }
    is_silenced
}
