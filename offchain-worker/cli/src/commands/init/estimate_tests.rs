#![allow(clippy::unwrap_used)]
use surety_chain_client::sample;
use surety_types::task::Assignment;

use super::*;

const HOUR: BlockNumber = 3_600 / BLOCK_SECONDS;

/// A task of so many units, settled by these providers for so much each.
fn settled(id: TaskId, posted_at: BlockNumber, units: u32, paid: &[(u8, Balance)]) -> (TaskId, TaskRecord) {
    let is_settled = |task: &TaskRecord| matches!(task.state, TaskState::Settled { .. });
    let mut task = sample::records::tasks().into_iter().find(is_settled).unwrap();
    (task.spec.model, task.posted_at) = (ModelId::zero(), posted_at);
    if let TaskState::Settled {
        at, claim, payments, ..
    } = &mut task.state
    {
        (*at, claim.units) = (posted_at + 50, units);
        let paid = paid.iter().map(|(provider, price)| Assignment {
            provider: AccountId::new([*provider; 32]),
            price: *price,
        });
        *payments = paid.collect::<Vec<_>>().try_into().unwrap();
    }
    (id, task)
}

/// Twelve tasks within two hours: ten units each, by two providers, for 20 to 31 plancks a unit.
fn newest() -> Newest {
    let task = |id: u32| {
        let price = Balance::from(20 + id) * 10;
        settled(id.into(), 8 * HOUR - id, 10, &[(1, price), (2, price)])
    };
    Newest {
        tasks: (0..12).map(task).collect(),
        are_all: true,
        now: 8 * HOUR,
        kept_blocks: Some(2 * HOUR),
        alive: 5,
    }
}

const SLOW: Speed = Speed {
    units: 1,
    millis: 3_600_000,
    is_measured: true,
};
const FAST: Speed = Speed {
    units: 20,
    millis: 1_000,
    is_measured: false,
};

#[test]
fn work_is_shared_with_all_who_may_have_it_or_with_those_who_had_it() {
    let payouts = Payouts {
        to_auditors: 10,
        kept: 90,
        ..Payouts::default()
    };
    let estimate = newest().market(ModelId::zero()).estimate(payouts, FAST).unwrap();
    // 240 units in two hours are 2,880 a day; a sixth of them, or a third.
    assert_eq!(estimate.per_day_least, Plancks(2_880 / 6 * 22 * 9 / 10));
    assert_eq!(estimate.per_day_most, Plancks(2_880 / 3 * 28 * 9 / 10));
    assert_eq!((estimate.tasks_per_hour, estimate.hours), (6.0, 2.0));
    assert_eq!((estimate.providers_paid, estimate.providers_alive), (2, 5));
    assert_eq!(estimate.auditors_share, Some(0.1));
    assert!(
        estimate.text().contains("once its auditors"),
        "{}",
        estimate.text()
    );
    assert!(estimate.reasons().contains("assumed"), "{}", estimate.reasons());
    assert!(serde_json::to_value(&estimate).unwrap()["per_day_most"].is_string());
}

#[test]
fn nobody_earns_more_than_its_machine_computes() {
    let estimate = newest().market(ModelId::zero());
    let estimate = estimate.estimate(Payouts::default(), SLOW).unwrap();
    // One unit an hour.
    assert_eq!(
        (estimate.per_day_least, estimate.per_day_most),
        (Plancks(24 * 22), Plancks(24 * 28))
    );
    assert_eq!(estimate.auditors_share, None);
    assert!(estimate.text().contains("get a part"), "{}", estimate.text());
    assert!(
        estimate.reasons().contains("was measured"),
        "{}",
        estimate.reasons()
    );
}

#[test]
fn of_too_few_tasks_or_too_short_a_time_nothing_is_made_up() {
    let refused = |newest: &Newest, model| {
        let market = newest.market(model);
        market.estimate(Payouts::default(), FAST).unwrap_err()
    };
    let mut few = newest();
    few.tasks.truncate(9);
    assert!(refused(&few, ModelId::zero()).starts_with("too few tasks to say: 9 "));
    assert!(refused(&newest(), ModelId::repeat_byte(7)).starts_with("too few tasks to say: 0 "));
    let mut young = newest();
    // There may be older ones, and the oldest that is known was posted a moment ago.
    young.are_all = false;
    assert!(refused(&young, ModelId::zero()).contains("within the last 0 min"));
}

#[test]
fn what_is_older_than_a_day_says_nothing() {
    let mut old = newest();
    (old.now, old.kept_blocks) = (8 * HOUR + BLOCKS_MAX + 1, None);
    let market = old.market(ModelId::zero());
    assert_eq!((market.posted, market.settled, market.blocks), (0, 0, BLOCKS_MAX));
}
