//! Cheats that register a model of somebody else's before it does: its id is a hash that anybody can name.

use surety_audit_economics::{AuditPolicy, AuditWork};
use surety_types::{
    model::{Operation, audit_speeds},
    task::AuditTerms,
};

use crate::{
    books::Role,
    life::{Cronies, Life},
};

/// Multiplications for a token of the model: 10^9 weights.
const WORK_PER_TOKEN: u64 = 1_000_000_000;

/// Tokens of a task: 20 minutes of the reference machine, which is what honest verifiers have.
const TOKENS: u32 = 12_000;

/// Retires the model and registers it again, and offers audits of it with verifiers of its own alone. A task
/// that is refused then is asked of a model that it serves itself.
pub fn retires(life: &mut Life) {
    for _ in 0..2 {
        life.transact(Role::Provider);
    }
    for _ in 0..life.cronies {
        life.transact(Role::Provider);
    }
    let able = match life.rules.owners_decide {
        true => life.market.corrupt_part(),
        false => life.rules.policy.able,
    };
    let policy = AuditPolicy {
        able,
        ..life.rules.policy.clone()
    };
    let market = life.market;
    let plan = policy.plan(market.level, market.clean_tasks, &market.terms(), market.stake);
    let served_by = if plan.is_ok() { Role::Rival } else { Role::Provider };
    life.right_result(served_by, Cronies::Work);
}

/// Registers the model first, and says that its reference machine is as fast as an owner could say: auditors
/// have a third of what they need, or less. Then it lies.
pub fn hurries(life: &mut Life) {
    life.transact(Role::Provider);
    let (reference, range) = audit_speeds(WORK_PER_TOKEN);
    let speed = match life.rules.owners_decide {
        true => *range.end(),
        false => reference,
    };
    let of = |speed| AuditTerms {
        operation: Operation::Generate,
        speed,
        ..AuditTerms::default()
    };
    let needed = AuditWork::of(&of(reference), TOKENS).seconds(u32::MAX) / 3;
    let window = AuditWork::of(&of(speed), TOKENS).seconds(u32::MAX);
    let mut drawn = life.draw();
    if needed > window.max(life.rules.blocks.audit_seconds()) {
        drawn.honest = 0;
    }
    life.wrong_result_before(drawn, Cronies::Confirm, Role::Verifier);
}
