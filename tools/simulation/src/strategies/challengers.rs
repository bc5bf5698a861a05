//! Challengers that cheat.

use surety_dispute_game::bisection::Side;

use super::providers;
use crate::{
    books::Role,
    game::Challenger,
    life::{Cronies, Life},
};

fn against_honest(life: &mut Life, how: Challenger) {
    life.right_result(Role::Provider, Cronies::Work);
    let bond = life.rules.challenge_bond(life.market);
    life.challenged(Role::Provider, Role::Challenger, how, bond);
}

/// The client challenges the right answer that it got, to have its money back.
pub fn for_refund(life: &mut Life) {
    against_honest(life, Challenger::Guesses);
}

/// Challenges a right result.
pub fn false_dispute(life: &mut Life) {
    against_honest(life, Challenger::Guesses);
}

/// Challenges a right result to hold it up, which is worth as much to it as a wrong answer.
pub fn delay(life: &mut Life) {
    against_honest(life, Challenger::Delays);
    life.books.pay(Role::World, Role::Challenger, life.market.outside);
}

/// Leads a dispute over a right result to what only a committee can decide.
pub fn overloads(life: &mut Life) {
    against_honest(life, Challenger::Overloads);
}

/// Sees an honest challenge of a wrong result in the pool, and is there first, without having computed
/// anything.
///
/// A real trace is deeper than three toys, one below the other: to find its cell by chance is to win in all
/// three.
pub fn front_runs(life: &mut Life) {
    life.draw();
    life.transact(Role::Challenger);
    let lucky = (0..3).all(|_| life.dispute(false, Challenger::Guesses) == Side::Challenger);
    if lucky {
        life.convict(Role::Provider, Role::Challenger, true)
    } else {
        let bond = life.rules.challenge_bond(life.market);
        life.forfeit(Role::Challenger, bond, Role::Provider, true);
    }
}

/// A cheat is challenged by a friend first, who gives up. The honest auditors' disputes go on all the same.
pub fn shields(life: &mut Life) {
    let bond = life.rules.challenge_bond(life.market);
    life.transact(Role::Challenger);
    if life.dispute(false, Challenger::Concedes) == Side::Defender {
        life.forfeit(Role::Challenger, bond, Role::Provider, true);
    }
    providers::collusion(life);
}

/// A cheat's friends take all places for challenges, and give up. Somebody who has computed the answer, too,
/// waits for one of them.
pub fn floods(life: &mut Life) {
    let bond = life.rules.challenge_bond(life.market);
    for _ in 0..life.rules.places {
        life.transact(Role::Challenger);
        if life.dispute(false, Challenger::Concedes) == Side::Defender {
            life.forfeit(Role::Challenger, bond, Role::Provider, true);
        }
    }
    let sealed = life.commit(Role::Provider, life.claim(false));
    let drawn = life.draw();
    life.books.pay(Role::World, Role::Provider, life.market.outside);
    life.opens(Role::Provider, &sealed.commitment, &sealed.claim, &sealed.salt);
    let comes_in = life.rules.pursuit.places_return;
    let convicted = life.found(drawn.honest)
        || (comes_in && life.dispute(false, Challenger::Computes) == Side::Challenger);
    life.judged(convicted, drawn, Cronies::Confirm, Role::Stranger);
    providers::sold_on(life, convicted);
}

/// An honest provider whose auditors, if corrupt, accuse it, whose client denies delivery, whom others
/// challenge now and then, and whose moves are censored. Now and then finality stands still, and its client
/// has been refused before.
pub fn all_against_one(life: &mut Life) {
    match life.dice.below(10) {
        0..3 => life.stall(),
        3..6 => life.post_somewhere(),
        _ => {}
    }
    life.censored = f64::from(life.market.corrupt) / 100.0;
    life.right_result(Role::Provider, Cronies::Accuse);
    let bond = life.rules.challenge_bond(life.market);
    let how = match life.dice.below(100) {
        0..6 => Challenger::Guesses,
        6..8 => Challenger::Delays,
        8..10 => Challenger::Overloads,
        _ => return,
    };
    life.challenged(Role::Provider, Role::Challenger, how, bond);
}
