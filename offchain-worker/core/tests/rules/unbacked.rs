//! A bid that other tasks leave no stake for waits for it.

use surety_worker_core::Failure;

use super::*;

/// What a bid for a task needs.
const LOCK: u128 = 500 * 40;

/// A provider whose bid for task 7 the chain has refused at block 11.
fn refused() -> Provider {
    let mut provider = provider(Vec::new());
    provider.step(9, Event::Stake { free: 3 * LOCK });
    assert_eq!(
        kinds(&see(&mut provider, 10, vec![bidding(7)])),
        [EffectKind::Bid]
    );
    assert_eq!(provider.step(11, refusal(7)), Step::default());
    provider
}

fn refusal(task: u64) -> Event {
    Event::EffectFailed {
        task,
        kind: EffectKind::Bid,
        failure: Failure::Unbacked,
    }
}

#[test]
fn it_is_made_again_once_there_is_enough_and_not_before() {
    let mut provider = refused();
    for block in 12..40 {
        provider.step(block, Event::Stake { free: LOCK - 1 });
        assert_eq!(see(&mut provider, block, vec![bidding(7)]), Step::default());
    }
    assert_eq!(provider.progress().collect::<Vec<_>>(), [(7, Progress::Bidding)]);
    provider.step(40, Event::Stake { free: LOCK });
    let step = see(&mut provider, 40, vec![bidding(7)]);
    // The very bid that the journal has.
    assert_eq!((kinds(&step), step.records.len()), (vec![EffectKind::Bid], 0));
    assert!(!step.effects[0].urgent);
    assert_eq!(see(&mut provider, 41, vec![bidding(7)]), Step::default());
}

#[test]
fn what_the_chain_has_said_counts_for_other_tasks_until_the_stake_is_looked_at_again() {
    let mut provider = refused();
    let both = || vec![bidding(7), bidding(8)];
    assert_eq!(see(&mut provider, 12, both()), Step::default());
    // Enough for one of them. What was refused first comes first.
    provider.step(13, Event::Stake { free: LOCK });
    let step = see(&mut provider, 13, both());
    assert_eq!(
        (kinds(&step), effects(&step)[0].task()),
        (vec![EffectKind::Bid], 7)
    );
}

#[test]
fn it_leaves_the_stake_to_tasks_that_need_less() {
    let mut provider = refused();
    let mut small = bidding(8);
    small.terms.as_mut().unwrap().lock = LOCK / 2;
    let step = see(&mut provider, 12, vec![bidding(7), small]);
    assert_eq!(
        (kinds(&step), effects(&step)[0].task()),
        (vec![EffectKind::Bid], 8)
    );
}

#[test]
fn a_state_that_lags_costs_a_few_fees_and_no_tip() {
    let mut provider = refused();
    let mut sent = 0;
    for block in 12..100 {
        // Finalised state does not show yet what has locked it.
        let told = provider.step(block, Event::Stake { free: 3 * LOCK });
        let seen = see(&mut provider, block, vec![bidding(7)]);
        for due in told.effects.iter().chain(&seen.effects) {
            assert!(!due.urgent);
            sent += 1;
            provider.step(block, refusal(7));
        }
    }
    // After one block, two and four, then eight each time, and two near the end.
    assert!((10..=18).contains(&sent), "{sent}");
    // It is over with the time for bids.
    let revealing = task(7, TaskState::Revealing { until: 200 });
    let step = see(&mut provider, 101, vec![revealing]);
    assert_eq!(step.records, [Record::Finished { task: 7, at: 101 }]);
}
