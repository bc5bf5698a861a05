//! What audits are paid against what they cost, tasks that nobody could audit, and standstills while auditors
//! work.

use serde_json::{Map, Value, json};
use sp_arithmetic::{Permill, Perquintill};
use surety_audit_economics::{
    AuditPay, AuditPolicy, AuditThreshold, Refusal, SecurityLevel, Terms, generation_audit,
};
use surety_dispute_game::testsuite::dice::Dice;
use surety_types::limits::AUDITS_PER_MEMBER_MAX;

use crate::rules::{REWARD, Rules};

/// Verifiers in these draws.
const VERIFIERS: u32 = 100;

/// Tokens of the generations.
const TOKENS: u32 = 2_000;

/// What one pass over tokens costs of generating as many, as the runtime's parameter has it.
const PASS: Permill = Permill::from_percent(25);

/// A kind of task.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// As reports have it.
    pub name: &'static str,
    /// Items; 1 for a generation, whose audits are of the whole.
    pub items: u32,
    /// Of a generation, how many of its 2,000 tokens are its prompt's.
    pub prompt: Option<u32>,
}

/// What is asked of models.
pub const KINDS: [Kind; 5] = [
    Kind::embed("embed, 1 item", 1),
    Kind::embed("embed, 10 items", 10),
    Kind::embed("embed, 1,000 items", 1_000),
    Kind::generate("generate, short prompt", 20),
    Kind::generate("generate, long prompt", 1_900),
];

impl Kind {
    const fn embed(name: &'static str, items: u32) -> Self {
        Self {
            name,
            items,
            prompt: None,
        }
    }

    const fn generate(name: &'static str, prompt: u32) -> Self {
        Self {
            name,
            items: 1,
            prompt: Some(prompt),
        }
    }

    /// What an audit costs that computes so many of its items, as a part of what the work does.
    fn part(&self, own: u32) -> Perquintill {
        match self.prompt {
            Some(prompt) => generation_audit(PASS, prompt, TOKENS),
            None => Perquintill::from_rational(u64::from(own), u64::from(self.items)),
        }
    }
}

/// What audits of a kind of task are paid.
#[derive(Clone, Copy, Debug)]
pub struct Paid {
    /// The kind.
    pub kind: Kind,
    /// The level.
    pub level: SecurityLevel,
    /// Items of each auditor.
    pub own: u32,
    /// What an audit costs, as a part of what the work does.
    pub part: f64,
    /// What an audit is paid in the mean, as a multiple of its cost, by a provider whose price just covers
    /// its work and its audits.
    pub over_cost: f64,
    /// The part of its price that such a provider pays for audits.
    pub of_price: f64,
}

/// Pay over cost of every kind at every level. Nothing is at risk but the price.
///
/// # Errors
/// The [`Refusal`] of a market in which nobody is punished.
pub fn table(rules: &Rules, seed: u64, tasks: u64) -> Result<Vec<Paid>, Refusal> {
    let mut rows = Vec::new();
    for (number, kind) in KINDS.into_iter().enumerate() {
        for level in SecurityLevel::ALL {
            rows.push(paid(rules, kind, level, seed ^ (number as u64) << 40, tasks)?);
        }
    }
    Ok(rows)
}

fn paid(rules: &Rules, kind: Kind, level: SecurityLevel, seed: u64, tasks: u64) -> Result<Paid, Refusal> {
    let expected = rules.policy.rates.expected(level, u32::MAX);
    let terms = Terms {
        reward: REWARD,
        saved: REWARD,
        outside: 0,
    };
    let lock = rules.policy.least_lock(expected, &terms)?;
    let own = rules.policy.items(kind.items, expected, &terms, lock)?;
    let share = rules.audit_pay.share(kind.part(own), expected);
    let part = kind.part(own).deconstruct() as f64 / 1e18;
    let threshold = AuditThreshold::equal(expected, VERIFIERS);
    let (mut all, mut audits) = (0u128, 0u128);
    for task in 0..tasks {
        let mut dice = Dice::new(seed ^ (level as u64) << 48, task);
        let drawn = (0..VERIFIERS)
            .filter(|_| threshold.draws(&dice.vrf_output()))
            .count() as u32;
        let drawn = drawn.min(AUDITS_PER_MEMBER_MAX);
        all += AuditPay::of(share, REWARD, drawn) * u128::from(drawn);
        audits += u128::from(drawn);
    }
    let price = REWARD as f64;
    let (of_price, each) = (
        all as f64 / tasks as f64 / price,
        all as f64 / audits.max(1) as f64 / price,
    );
    let cost = (1.0 - of_price) * part;
    Ok(Paid {
        kind,
        level,
        own,
        part,
        over_cost: each / cost,
        of_price,
    })
}

/// The table for people.
pub fn text(rows: &[Paid]) -> String {
    let mut text = format!(
        "{:<22} {:<9} {:>5} {:>14} {:>14}",
        "operation", "level", "items", "pay over cost", "of the price"
    );
    for row in rows {
        let level = format!("{:?}", row.level).to_lowercase();
        text += &format!(
            "\n{:<22} {level:<9} {:>5} {:>14.3} {:>14.4}",
            row.kind.name, row.own, row.over_cost, row.of_price
        );
    }
    text
}

/// By operation, the least of all levels.
pub fn over_cost(rows: &[Paid]) -> Value {
    let mut least = Map::new();
    for row in rows {
        let known = least.get(row.kind.name).and_then(Value::as_f64);
        let over_cost = known.unwrap_or(f64::MAX).min(row.over_cost);
        least.insert(row.kind.name.into(), json!(over_cost));
    }
    least.into()
}

/// Posts tasks for models that any part of the verifiers' stake may be able to audit. How many were posted,
/// and how many were refused or taken that should not have been.
pub fn refusals(rules: &Rules, seed: u64, tasks: u64) -> (u64, u64) {
    let mut wrong = 0;
    for task in 0..tasks {
        let mut dice = Dice::new(seed ^ 0x0ab1e, task);
        let able = Perquintill::from_rational(u64::from(dice.below(10_001)), 10_000);
        let policy = AuditPolicy {
            able,
            ..rules.policy.clone()
        };
        let terms = Terms {
            reward: REWARD,
            saved: REWARD,
            outside: u128::from(dice.below(20)) * REWARD / 10,
        };
        let plan = policy.plan(SecurityLevel::Standard, u32::MAX, &terms, u128::MAX);
        let is_refused = matches!(plan, Err(Refusal::NobodyAble));
        wrong += u64::from(is_refused != (able <= policy.corrupt));
        let is_secured = plan.is_ok_and(|plan| {
            let lost = policy.burned.mul_floor(plan.lock);
            surety_audit_economics::honesty_pays(policy.caught(plan.expected), &terms, lost)
        });
        wrong += u64::from(!is_refused && !is_secured);
    }
    (tasks, wrong)
}

/// Lets finality stand still while auditors work: they need up to their window, and the window goes by the
/// running clock. How many standstills there were, and how many auditors came too late.
pub fn stalls(rules: &Rules, seed: u64, tasks: u64) -> (u64, u64) {
    let (mut late, window) = (0, rules.blocks.audit);
    for task in 0..tasks {
        let mut dice = Dice::new(seed ^ 0x57a11, task);
        let work = 1 + dice.below(window);
        let (begins, lasts) = (dice.below(window), 1 + dice.below(10 * window));
        // An auditor works on; the clock does not.
        let stood = work.saturating_sub(begins).min(lasts);
        late += u64::from(work - stood > window);
    }
    (tasks, late)
}
