//! Outputs that are shown to nobody, to some another than to others, or for nothing.

use surety_dispute_game::{bisection::Side, testsuite::generation::OUTPUT_BYTES};
use surety_proofs::{CommitStatement, segments};

use crate::{
    books::Role,
    game::{Challenger, Dispute, Output},
    life::{Cronies, Life},
};

/// A wrong generation whose tokens nobody gets. A verifier that was drawn generates itself, finds something
/// else, and asks for them in its dispute.
fn withholds(life: &mut Life, output: Output) {
    let sealed = life.commit(Role::Provider, life.claim(false));
    let drawn = life.draw();
    life.books.pay(Role::World, Role::Provider, life.market.outside);
    life.opens(Role::Provider, &sealed.commitment, &sealed.claim, &sealed.salt);
    let convicted = life.found_without_output(drawn.honest, output);
    life.judged(convicted, drawn, Cronies::Work, Role::Verifier);
}

/// The provider makes every move but the showing.
pub fn withholds_output(life: &mut Life) {
    withholds(life, Output::Withheld);
}

/// It shows them when it has to, and plays on.
pub fn shows_when_asked(life: &mut Life) {
    withholds(life, Output::Shown);
}

/// A wrong generation that no auditor is served before the reveal. One that was drawn demands it on chain.
/// What the provider does not show there it has withheld.
pub fn withholds_from_auditors(life: &mut Life) {
    let sealed = life.commit(Role::Provider, life.claim(false));
    let drawn = life.draw();
    life.books.pay(Role::World, Role::Provider, life.market.outside);
    if drawn.honest > 0 && life.rules.auditors_demand {
        life.transact(Role::Verifier);
        return life.convict(Role::Provider, Role::Verifier, true);
    }
    life.opens(Role::Provider, &sealed.commitment, &sealed.claim, &sealed.salt);
    life.judged(false, drawn, Cronies::Confirm, Role::Verifier);
}

/// It shows it there, once for all of them, and is audited.
pub fn shows_on_demand(life: &mut Life) {
    let sealed = life.commit(Role::Provider, life.claim(false));
    let drawn = life.draw();
    life.books.pay(Role::World, Role::Provider, life.market.outside);
    if drawn.honest > 0 {
        life.transact(Role::Verifier);
        life.transact(Role::Provider);
        let price = life.rules.demand_price * u128::from(segments(OUTPUT_BYTES));
        life.books.pay(Role::Verifier, Role::Provider, price / 2);
    }
    life.opens(Role::Provider, &sealed.commitment, &sealed.claim, &sealed.salt);
    let convicted = life.found(drawn.honest);
    life.judged(convicted, drawn, Cronies::Work, Role::Verifier);
}

/// Challenges a right result, and has its provider show on chain what it has got. Then it guesses.
pub fn asks_for_nothing(life: &mut Life) {
    life.right_result(Role::Provider, Cronies::Work);
    life.transact(Role::Challenger);
    let bond = life.rules.challenge_bond(life.market);
    let dispute = Dispute {
        output: Output::Shown,
        ..Dispute::of(true, Challenger::Guesses, life.rules.blocks.clock)
    };
    if life.played(dispute) == Side::Challenger {
        return life.convict(Role::Provider, Role::Challenger, false);
    }
    let price = life.rules.demand_price * u128::from(segments(OUTPUT_BYTES));
    life.books.pay(Role::Challenger, Role::Provider, price);
    life.forfeit(Role::Challenger, bond, Role::Provider, true);
}

/// Reveals one output and has served auditors another, with the statement that they do not take it without.
fn two_faced(life: &mut Life, reveals_right: bool) {
    let [revealed, served] = [reveals_right, !reveals_right].map(|right| life.claim(right));
    let sealed = life.commit(Role::Provider, revealed);
    let drawn = life.draw();
    let signed = CommitStatement {
        task: life.task,
        provider: Role::Provider.account(),
        commitment: sealed.commitment,
        output: served.output,
    };
    if reveals_right {
        life.work(Role::Provider);
    } else {
        life.books.pay(Role::World, Role::Provider, life.market.outside);
    }
    life.opens(Role::Provider, &sealed.commitment, &sealed.claim, &sealed.salt);
    life.audit(Role::Verifier, drawn.honest);
    if drawn.honest > 0 && signed.output != sealed.claim.output {
        // One report is enough, and what they have sealed is void.
        life.transact(Role::Verifier);
        return life.convict(Role::Provider, Role::Verifier, true);
    }
    life.settle(Role::Provider, reveals_right);
    life.pay_audits(Role::Provider, 0, drawn.cronies);
}

/// Serves what is right, so that auditors find nothing wrong, and reveals something else.
pub fn reveals_another(life: &mut Life) {
    two_faced(life, false);
}

/// Reveals what is right, against which auditors are to lose their bonds.
pub fn serves_another(life: &mut Life) {
    two_faced(life, true);
}
