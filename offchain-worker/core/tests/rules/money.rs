//! Money stays free for the fees of showing what may be demanded.

use surety_types::limits::{DEMAND_PARTS_MAX, INPUT_BYTES_MAX};
use surety_worker_core::{LARGEST_DEMAND, SUPPLY_FEE, demand_cost};

use super::*;

fn cost() -> u128 {
    demand_cost(&bidding(1).task)
}

fn has_money(provider: &mut Provider, block: u32, free: u128) {
    provider.step(block, Event::Money { free });
}

fn is_bid(step: &Step) -> bool {
    kinds(step).contains(&EffectKind::Bid)
}

#[test]
fn who_could_not_pay_for_showing_what_is_demanded_does_not_bid() {
    let mut provider = provider(Vec::new());
    has_money(&mut provider, 9, cost() - 1);
    assert_eq!(see(&mut provider, 10, vec![bidding(7)]), Step::default());
    has_money(&mut provider, 11, cost());
    let step = see(&mut provider, 12, vec![bidding(7), bidding(8)]);
    // Enough for one of them.
    assert_eq!(kinds(&step), [EffectKind::Bid]);
}

#[test]
fn what_may_still_be_demanded_is_kept_until_a_task_is_over() {
    let mut provider = provider(Vec::new());
    let computed = Event::ResultReady {
        task: 1,
        claim: claim(1),
        leaves: None,
    };
    see(&mut provider, 10, vec![working(1)]);
    provider.step(10, Event::InputReady { task: 1 });
    provider.step(10, computed);
    let revealed = || {
        let verdict = Verdict::Failed(FailureReason::NoAgreement);
        let phase = RoundPhase::Challengeable { until: 500, verdict };
        running(1, MemberProgress::Revealed(claim(1)), phase)
    };
    has_money(&mut provider, 11, 2 * cost() - 1);
    let step = see(&mut provider, 12, vec![revealed(), bidding(2)]);
    assert!(!is_bid(&step), "{step:?}");
    // Nothing is demanded of who was convicted.
    let mut convicted = revealed();
    convicted.round.as_mut().unwrap().members[0].fault = Some(FaultKind::WithheldData);
    assert!(is_bid(&see(&mut provider, 13, vec![convicted, bidding(2)])));
}

#[test]
fn what_is_kept_is_what_one_demand_can_name_of_a_task() {
    let kept = |change: &dyn Fn(&mut TaskSnapshot)| {
        let mut task = bidding(1);
        change(&mut task);
        demand_cost(&task.task) / SUPPLY_FEE
    };
    // A part of the input; four of leaves and rows for each item, and three besides.
    assert_eq!(kept(&|_| ()), 1 + 4 * 50 + 3);
    assert_eq!(
        kept(&|task| task.task.spec.operation = Operation::Generate),
        4,
        "prompt and answer"
    );
    let large = kept(&|task| {
        (task.task.spec.input_bytes, task.task.spec.units_max) = (INPUT_BYTES_MAX, 5_000);
    });
    assert_eq!(large, u128::from(DEMAND_PARTS_MAX));
    assert_eq!(LARGEST_DEMAND, large * SUPPLY_FEE);
    let unknown = kept(&|task| task.task.audits.item_parts = 0);
    assert_eq!(unknown, u128::from(DEMAND_PARTS_MAX));
}
