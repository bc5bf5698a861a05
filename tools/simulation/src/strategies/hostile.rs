//! Cheats that have verifiers of their own where a committee decides, or that keep the honest ones busy.

use surety_audit_economics::{AuditPay, AuditWork, CommitteePay, OFFERED_SLACK};
use surety_dispute_game::{
    committee::CANDIDATES_EXPECTED,
    quorum_streak::{SEATS, STREAK},
};
use surety_types::{BLOCK_SECONDS, model::Operation, task::AuditTerms};

use crate::{
    books::Role,
    committees::{self, Members},
    life::{Cronies, Life},
};

/// Its verifiers vote for the liar.
pub fn votes_for_the_liar(life: &mut Life) {
    before_a_committee(life, Members::Lie);
}

/// They take their seats and say nothing.
pub fn abstains(life: &mut Life) {
    before_a_committee(life, Members::Abstain);
}

/// They seal and never open: each phase takes all of its time.
pub fn shows_late(life: &mut Life) {
    before_a_committee(life, Members::SealOnly);
}

/// They vote for the liar, which concedes before they have decided: nobody is to be paid.
pub fn dissolves(life: &mut Life) {
    before_a_committee(life, Members::Dissolved);
}

/// A wrong result, of which honest auditors dispute a cell that no block can compute.
fn before_a_committee(life: &mut Life, members: Members) {
    let sealed = life.commit(Role::Provider, life.claim(false));
    let drawn = life.draw();
    life.books.pay(Role::World, Role::Provider, life.market.outside);
    life.opens(Role::Provider, &sealed.commitment, &sealed.claim, &sealed.salt);
    if !life.found(drawn.honest) {
        life.judged(false, drawn, Cronies::Confirm, Role::Verifier);
        return;
    }
    // Where it is not paid for, nobody honest computes.
    let come = life.rules.committees_paid;
    let verdict = committees::verdict(life.cronies, members, come, &mut life.dice);
    let convicted = members == Members::Dissolved || verdict.value == Some(committees::RIGHT);
    if verdict.value == Some(committees::WRONG) && !convicted {
        let bond = life.rules.challenge_bond(life.market);
        life.forfeit(Role::Verifier, bond, Role::Provider, false);
    }
    life.judged(convicted, drawn, Cronies::Confirm, Role::Verifier);
    if convicted && come {
        pays_members(life, verdict.right);
    }
}

/// Whoever lost pays those who gave the right answer.
fn pays_members(life: &mut Life, right: u32) {
    let pay = CommitteePay {
        premium: AuditPay::default().premium,
        computing: CANDIDATES_EXPECTED * STREAK,
        seats: SEATS * STREAK,
    };
    let each = pay.each(pay.pot(life.market.audit), right);
    let all = each * u128::from(right);
    life.books.pay(Role::Provider, Role::Verifier, all);
    let cost = life.market.audit * u128::from(right);
    life.books.pay(Role::Verifier, Role::World, cost);
}

/// Dust tasks of its own that it posts before it lies.
const DUST: u32 = 200;

/// Items of each of them: a verifier that begins to offer audits is busy with all of them for four hours and
/// a half.
const DUST_ITEMS: u32 = 1_000;

/// Auditors of each: as many as a newcomer has.
const DUST_AUDITORS: f64 = 3.0;

/// How much of the time for openings a verifier fills (`FILLED_PERCENT` of the worker).
const FILLED_PERCENT: u64 = 75;

/// Posts tasks that are large and cheap, serves nobody their leaves, and lies where it hopes for auditors
/// that have no room left.
pub fn crowds_by_work(life: &mut Life) {
    let opening = u64::from(life.rules.blocks.opening) * u64::from(BLOCK_SECONDS);
    let room = opening * FILLED_PERCENT / 100;
    // Speed so that all items of one task are all the room of the slowest.
    let item_tokens = 512;
    let tokens = u64::from(DUST_ITEMS) * item_tokens;
    let speed = u32::try_from(tokens * 1_000 * OFFERED_SLACK / room.max(1)).unwrap_or(u32::MAX);
    let work = AuditWork::of(
        &AuditTerms {
            operation: Operation::Embed,
            item_tokens: 512,
            speed,
            ..AuditTerms::default()
        },
        DUST_ITEMS,
    );
    let own = life.items_of_auditors(DUST_ITEMS);
    // Whom nobody shows the leaves of its items may have to compute all.
    let reserved = match life.rules.leaves_demanded {
        true => own,
        false => DUST_ITEMS,
    };
    let seconds = |items| work.tokens(items) * 1_000 * OFFERED_SLACK / u64::from(speed).max(1);
    for _ in 0..DUST {
        for _ in 0..3 {
            life.transact(Role::Provider);
        }
    }
    let mut drawn = life.draw();
    let share = DUST_AUDITORS / f64::from(life.market.verifiers);
    let mut with_room = 0;
    for _ in 0..drawn.honest {
        let dust = (0..DUST).filter(|_| life.dice.chance(share)).count() as u64;
        let owed = dust.saturating_mul(seconds(reserved)).min(room);
        with_room += u32::from(owed + seconds(own) <= room);
    }
    drawn.honest = with_room;
    life.wrong_result_before(drawn, Cronies::Confirm, Role::Verifier);
}
