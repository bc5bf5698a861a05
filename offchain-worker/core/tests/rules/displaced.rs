//! A bid that lost its place is none of ours any more.

use surety_worker_core::Failure;

use super::*;

fn bid_of(step: &Step) -> surety_types::task::Bid<u128> {
    match step.records.as_slice() {
        [Record::BidMade { bid, .. }] => bid.clone(),
        other => panic!("{other:?}"),
    }
}

fn shown(mut task: TaskSnapshot, bid: &surety_types::task::Bid<u128>) -> TaskSnapshot {
    task.bid = Some(BidSeen {
        seal: bid.seal(task.id, &stash()),
        opened: false,
    });
    task
}

/// A provider whose bid for task 7 the chain has shown, and its records so far.
fn with_a_bid(config: Config) -> (Provider, surety_types::task::Bid<u128>, Vec<Record>) {
    let mut provider = Provider::new(config, Vec::new()).unwrap();
    let step = see(&mut provider, 10, vec![bidding(7)]);
    let bid = bid_of(&step);
    assert_eq!(
        see(&mut provider, 12, vec![shown(bidding(7), &bid)]),
        Step::default()
    );
    (provider, bid, step.records)
}

#[test]
fn it_is_dropped_at_once_and_neither_made_again_nor_opened() {
    let (mut provider, _, mut records) = with_a_bid(config());
    let step = see(&mut provider, 13, vec![bidding(7)]);
    assert_eq!(step.records, [Record::Finished { task: 7, at: 13 }]);
    assert_eq!(effects(&step), [Effect::Forget { task: 7 }]);
    assert_eq!(provider.progress().count(), 0);
    records.extend(step.records);
    // Nor after a restart.
    let mut restarted = Provider::new(config(), records).unwrap();
    for block in 14..120 {
        let state = match block {
            ..100 => TaskState::Bidding { until: 100 },
            _ => TaskState::Revealing { until: 110 },
        };
        let task = task(7, state);
        assert_eq!(see(&mut provider, block, vec![task.clone()]), Step::default());
        assert_eq!(see(&mut restarted, block, vec![task]), Step::default());
    }
}

#[test]
fn its_work_and_its_stake_are_free_for_other_tasks() {
    let mut config = config();
    config.commit_seconds = 20;
    let (mut provider, bid, _) = with_a_bid(config);
    let both = |first| vec![first, bidding(8)];
    let step = see(&mut provider, 13, both(shown(bidding(7), &bid)));
    assert_eq!(step, Step::default(), "there is work enough");
    let step = see(&mut provider, 14, both(bidding(7)));
    assert!(kinds(&step).contains(&EffectKind::Bid), "{step:?}");
}

#[test]
fn while_only_the_best_block_lacks_it_nothing_is_sent_and_nothing_forgotten() {
    let (mut provider, bid, _) = with_a_bid(config());
    for block in 13..40 {
        let best = Event::Best {
            block,
            clock: block,
            tasks: vec![bidding(7)],
        };
        assert_eq!(provider.step(block, best), Step::default());
    }
    // That block was replaced: it is opened as ever.
    see(&mut provider, 40, vec![shown(bidding(7), &bid)]);
    let revealing = task(7, TaskState::Revealing { until: 200 });
    let step = see(&mut provider, 110, vec![shown(revealing, &bid)]);
    assert_eq!(kinds(&step), [EffectKind::BidReveal]);
}

#[test]
fn one_that_is_outranked_is_not_tried_again_and_one_that_came_too_early_is() {
    for (failure, tries) in [(Failure::Failed, 0), (Failure::Refused, 1)] {
        let mut provider = provider(Vec::new());
        see(&mut provider, 10, vec![bidding(7)]);
        let kind = EffectKind::Bid;
        let failed = Event::EffectFailed {
            task: 7,
            kind,
            failure,
        };
        provider.step(11, failed);
        let again = (12..20).map(|block| see(&mut provider, block, vec![bidding(7)]).effects.len());
        assert_eq!(again.sum::<usize>(), tries, "{failure:?}");
    }
}
