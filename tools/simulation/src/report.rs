//! The whole bench, as JSON.

use serde_json::{Map, Value, json};
use sp_arithmetic::FixedU128;
use surety_audit_economics::{AuditPay, Refusal, SecurityLevel};

use crate::{
    audits, break_even, bytes, channels, committees, pay,
    rules::{Market, Pursuit, REWARD, Rules},
    run::{Outcome, run},
    strategies::{HONEST, STRATEGIES, Strategy},
};

/// Percent of verifiers, stake and authors that are the cheat's.
pub const CORRUPT: [u32; 4] = [0, 10, 25, 33];

/// How much is played.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Tasks of each strategy and corrupt part.
    pub tasks: u64,
    /// Tasks of honest providers among hostile others, all corrupt parts together.
    pub honest: u64,
    /// Committees of each corrupt part.
    pub committees: u32,
    /// Locks tried for each corrupt part.
    pub locks: u32,
    /// Tasks for each of them.
    pub lock_tasks: u64,
}

impl Size {
    /// What the report needs.
    pub const FULL: Self = Self {
        tasks: 100_000,
        honest: 1_000_000,
        committees: 5_000,
        locks: 11,
        lock_tasks: 40_000,
    };

    /// For trying it out.
    pub const QUICK: Self = Self {
        tasks: 5_000,
        honest: 20_000,
        committees: 300,
        locks: 5,
        lock_tasks: 10_000,
    };
}

/// Plays everything. `said` hears what is going on.
///
/// # Errors
/// The [`Refusal`] of a market in which no lock would do.
pub fn report(rules: &Rules, seed: u64, size: Size, said: &dyn Fn(&str)) -> Result<Value, Refusal> {
    said("audits: how often an honest verifier is drawn");
    let detection = detection(rules, seed, size);
    said("honest providers among hostile others");
    let honest = honest(rules, seed, size)?;
    let mut strategies = Vec::new();
    let mut best = Map::new();
    for (number, strategy) in STRATEGIES.iter().enumerate() {
        said(&format!(
            "strategy {} of {}: {}",
            number + 1,
            STRATEGIES.len(),
            strategy.name
        ));
        let found = of_strategy(strategy, rules, seed, size)?;
        best.insert(
            strategy.name.into(),
            found.get("best_profit_in_r").cloned().unwrap_or_default(),
        );
        strategies.push(found);
    }
    said("profit over the size of the lock");
    let curves = CORRUPT.map(|corrupt| {
        // The least watched tasks need the largest locks.
        let market = Market::basic(corrupt);
        break_even::curve(rules, &market, seed, size.locks, size.lock_tasks).map(|curve| curve.json())
    });
    let curves = curves.into_iter().collect::<Result<Vec<_>, _>>()?;
    said("committees");
    let snowflake: Vec<Value> = [20, 25, 33]
        .into_iter()
        .map(|corrupt| committees::row(corrupt, seed, size.committees).json())
        .collect();
    said("what audits are paid");
    let paid = pay::table(rules, seed, size.tasks.min(20_000))?;
    said(&pay::text(&paid));
    let (refusals, refused_wrongly) = pay::refusals(rules, seed, size.tasks);
    said("cheats over channels");
    let over_channels = channels::report(seed, size.tasks / 500);
    let (stalls, late) = pay::stalls(rules, seed, size.tasks);
    let count = |value: &Value, key: &str| value.get(key).and_then(Value::as_u64).unwrap_or(0);
    let sum = |key: &str| {
        strategies
            .iter()
            .chain([&honest])
            .map(|value| count(value, key))
            .sum::<u64>()
    };
    let mut whole = json!({
        "seed": seed,
        "tasks_per_configuration": size.tasks,
        "honest_tasks": sum("honest_tasks"),
        "honest_slashes": sum("honest_slashes"),
        "best_cheat_profit_in_r": best,
        "honest_among_hostile": honest,
        "strategies": strategies,
        "detection": detection,
        "break_even": curves,
        "snowflake": snowflake,
        "bytes": bytes::json(),
        "audit_pay_over_cost": pay::over_cost(&paid),
        "refusals_simulated": refusals + count(&honest, "refusals"),
        "refusals_wrong": refused_wrongly,
        "stalls_simulated": stalls + count(&honest, "stalls"),
        "stalls_late": late,
        "channels": over_channels.tables,
        "channels_hold": over_channels.holds,
        "what_if": what_if(rules, seed, size)?,
        "market": market(rules)?,
    });
    if let Some(fields) = whole.as_object_mut() {
        fields.extend(over_channels.headline);
    }
    Ok(whole)
}

fn detection(rules: &Rules, seed: u64, size: Size) -> Vec<Value> {
    let of = |level| CORRUPT.map(|corrupt| audits::detection(rules, level, corrupt, seed, size.tasks).json());
    SecurityLevel::ALL.into_iter().flat_map(of).collect()
}

fn honest(rules: &Rules, seed: u64, size: Size) -> Result<Value, Refusal> {
    let mut whole = Map::new();
    for corrupt in CORRUPT {
        let tasks = size.honest / CORRUPT.len() as u64;
        let found = run(&HONEST, rules, &Market::with_corrupt(corrupt), seed, tasks)?;
        let tally = found.tally;
        for (key, value) in [
            ("honest_tasks", tally.honest_tasks),
            ("honest_slashes", tally.honest_slashes),
            ("disputes", tally.disputes),
            ("stalls", tally.stalls),
            ("refusals", tally.refusals),
        ] {
            let before = whole.get(key).and_then(Value::as_u64).unwrap_or(0);
            whole.insert(key.into(), (before + value).into());
        }
        let longest = whole
            .get("dispute_blocks_max")
            .and_then(Value::as_u64)
            .unwrap_or(0);
        whole.insert(
            "dispute_blocks_max".into(),
            longest.max(tally.blocks_max.into()).into(),
        );
    }
    Ok(whole.into())
}

fn of_strategy(strategy: &Strategy, rules: &Rules, seed: u64, size: Size) -> Result<Value, Refusal> {
    let mut outcomes: Vec<(u32, Outcome)> = Vec::new();
    for corrupt in CORRUPT {
        outcomes.push((
            corrupt,
            run(strategy, rules, &Market::with_corrupt(corrupt), seed, size.tasks)?,
        ));
    }
    let best = outcomes
        .iter()
        .map(|(_, outcome)| outcome.profit())
        .fold(f64::MIN, f64::max);
    let count = |of: fn(&Outcome) -> u64| outcomes.iter().map(|(_, outcome)| of(outcome)).sum::<u64>();
    let by_corrupt: Map<String, Value> = outcomes
        .iter()
        .map(|(corrupt, outcome)| {
            let value = json!({
                "profit_in_r": outcome.profit(),
                "error": outcome.error(),
                "audited": outcome.audited(),
                "convicted": outcome.tally.convicted,
                "disputes": outcome.tally.disputes,
            });
            (corrupt.to_string(), value)
        })
        .collect();
    Ok(json!({
        "name": strategy.name,
        "threat": strategy.threat,
        "best_profit_in_r": best,
        "by_corrupt_percent": by_corrupt,
        "honest_tasks": count(|outcome| outcome.tally.honest_tasks),
        "honest_slashes": count(|outcome| outcome.tally.honest_slashes),
        "honest_fines": count(|outcome| outcome.tally.honest_fines),
        "dispute_blocks_max": outcomes.iter().map(|(_, outcome)| outcome.tally.blocks_max).max(),
    }))
}

/// What cheats would win under other rules: why these are as they are.
///
/// # Errors
/// The [`Refusal`] of a market in which no lock would do.
pub fn what_if(rules: &Rules, seed: u64, size: Size) -> Result<Value, Refusal> {
    let changed = |change: fn(&mut Rules)| {
        let mut rules = rules.clone();
        change(&mut rules);
        rules
    };
    let unpaid = changed(|rules| {
        rules.audit_pay = AuditPay {
            premium: FixedU128::from_u32(0),
        };
    });
    let young = changed(|rules| rules.seasoned = false);
    let first_come = changed(|rules| rules.places_by_stake = false);
    let owned = changed(|rules| rules.owners_decide = true);
    let computed = changed(|rules| rules.leaves_demanded = false);
    let volunteers = changed(|rules| rules.committees_paid = false);
    let soon = changed(|rules| rules.blocks.unbonding = rules.blocks.challenge);
    let judged_only = changed(|rules| rules.pursuit = Pursuit::OF_JUDGED_ONLY);
    let (standard, basic) = (Market::with_corrupt(33), Market::basic(33));
    let cheap = Market {
        silence: REWARD,
        ..basic.clone()
    };
    let unaudited = rules.without_audits();
    let plays = [
        (
            "a fault that nobody could decide about shields from others",
            "lesser fault",
            (&judged_only, &standard),
        ),
        (
            "an audit that confirms is not paid",
            "lazy auditor, hides",
            (&unpaid, &standard),
        ),
        ("nobody is audited", "wrong result", (&unaudited, &standard)),
        (
            "stake unbonds within the challenge window",
            "unbonding",
            (&soon, &standard),
        ),
        (
            "keys may be younger than the seed",
            "key grinding",
            (&young, &standard),
        ),
        (
            "places for bids go to whoever comes first",
            "cornered bids",
            (&first_come, &standard),
        ),
        (
            "an auditor of items has to keep room for all of a task",
            "crowding by work",
            (&computed, &standard),
        ),
        (
            "members of committees are not paid",
            "hostile committee, votes",
            (&volunteers, &standard),
        ),
        (
            "a model's auditors go when its owner retires it",
            "squatted model, retired",
            (&owned, &standard),
        ),
        (
            "a model's owner says how fast its reference machine is",
            "squatted model, hurried",
            (&owned, &standard),
        ),
        (
            "basic level, silencing an auditor for hours costs 12 R",
            "auditor denial of service",
            (rules, &basic),
        ),
        (
            "basic level, silencing an auditor for hours costs 1 R",
            "auditor denial of service",
            (rules, &cheap),
        ),
    ];
    let played = plays.map(|(what, name, (rules, market))| {
        let outcome = run(named(name), rules, market, seed, size.tasks / 4)?;
        Ok(json!({
            "what": what,
            "strategy": name,
            "corrupt_percent": market.corrupt,
            "profit_in_r": outcome.profit(),
            "error": outcome.error(),
        }))
    });
    played.into_iter().collect()
}

/// The strategy of that name.
fn named(name: &str) -> &'static Strategy {
    let mut strategies = STRATEGIES.iter();
    let found = strategies.find(|strategy| strategy.name == name);
    found.expect("a strategy that is played")
}

/// The market and the locks, in rewards.
fn market(rules: &Rules) -> Result<Value, Refusal> {
    let market = Market::with_corrupt(33);
    let plan = rules.plan(&market)?;
    let rewards = |plancks: u128| plancks as f64 / REWARD as f64;
    Ok(json!({
        "level": format!("{:?}", plan.level).to_lowercase(),
        "lock": rewards(plan.lock),
        "work": rewards(market.work),
        "outside": rewards(market.outside),
        "audit_cost": rewards(market.audit),
        "audit_pay": rewards(AuditPay::of(rules.audit_share(&market, plan.expected), REWARD, 1)),
        "stake": rewards(market.stake),
        "transaction": rewards(market.transaction),
    }))
}
