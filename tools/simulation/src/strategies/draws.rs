//! Cheats that would turn the draw of their auditors.
//!
//! All of them give a wrong result that their own verifiers confirm. They can choose among what the rules
//! leave to them; whom of the others a draw has made auditors they never see before it is too late.

use surety_types::limits::AUDITS_PER_MEMBER_MAX;

use crate::{
    books::Role,
    life::{Cronies, Drawn, Life},
};

/// How often a block's author is the cheat's own.
fn owns_a_block(life: &mut Life) -> bool {
    // One in a hundred makes a strategy of it where it has none.
    life.dice.chance(f64::from(life.market.corrupt.max(1)) / 100.0)
}

/// Audits of a result, when there are more than places and the cheat's verifiers are first.
fn placed(drawn: Drawn) -> Drawn {
    let cronies = drawn.cronies.min(AUDITS_PER_MEMBER_MAX);
    let honest = drawn.honest.min(AUDITS_PER_MEMBER_MAX - cronies);
    Drawn { honest, cronies }
}

fn cheat(life: &mut Life, drawn: Drawn) {
    life.wrong_result_before(placed(drawn), Cronies::Confirm, Role::Verifier);
}

/// Tries four salts. There is nothing to choose one for: the seed is not known, and no commitment is part of
/// what verifiers draw themselves over.
pub fn grinds_commitments(life: &mut Life) {
    for _ in 0..3 {
        life.dice.hash();
    }
    let drawn = life.draw();
    cheat(life, drawn);
}

/// Commits just before a block of its own, whose output it knows, and has `names` of its verifiers take keys
/// or stake with which they are drawn then. Those that are too young for the draw are out of it.
fn late(life: &mut Life, names: u32) {
    if !owns_a_block(life) {
        life.right_result(Role::Provider, Cronies::Work);
        return;
    }
    for _ in 0..names {
        life.transact(Role::Crony);
    }
    let cronies = if life.rules.seasoned { 0 } else { names };
    let honest = life.draw().honest;
    cheat(life, Drawn { honest, cronies });
}

/// Another key for each.
pub fn grinds_keys(life: &mut Life) {
    late(life, life.cronies);
}

/// The stake of all for as many names as a result has places.
pub fn moves_stake(life: &mut Life) {
    late(life, AUDITS_PER_MEMBER_MAX);
}

/// Splits its stake among a hundred times as many names, all of them older than the draw.
pub fn crowds(life: &mut Life) {
    let drawn = life.draw_of_names(100);
    cheat(life, drawn);
}

/// Writes the block that gives the seed, and withholds it as long as the next is its own, too: of the seeds
/// that it sees it takes the one that draws most of its verifiers.
pub fn withholds_entropy(life: &mut Life) {
    let mut best = life.draw();
    while owns_a_block(life) {
        let next = life.draw();
        if next.cronies > best.cronies {
            best = next;
        }
    }
    cheat(life, best);
}
